// TermStore and Recognizer for Python. Term, rule and parameter ids come from the caller and are
// checked here, once, so that the core never sees an id that is not its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cmath>
#include <optional>

#include "automata/machine.hpp"
#include "grammar/count.hpp"
#include "grammar/normalise.hpp"
#include "grammar/plain_patterns.hpp"
#include "grammar/saved_terms.hpp"
#include "grammaton/core/bindings.hpp"
#include "grammaton/core/term_nodes.hpp"

namespace grammaton {

namespace {

// Bounds the terms made in a scope, also when it is left by an exception.
class StepBudget {
 public:
  explicit StepBudget(TermStore& store) : store_(store) { store_.begin_step(); }
  ~StepBudget() { store_.end_step(); }
  StepBudget(const StepBudget&) = delete;
  StepBudget& operator=(const StepBudget&) = delete;

 private:
  TermStore& store_;
};

Term checked(const TermStore& store, std::uint64_t term) {
  if (term >= store.size()) {
    throw GrammarFault("term " + std::to_string(term) + " is not of this store, which has " +
                       std::to_string(store.size()));
  }
  return static_cast<Term>(term);
}

std::vector<Term> checked(const TermStore& store, const std::vector<std::uint64_t>& terms) {
  std::vector<Term> result;
  result.reserve(terms.size());
  for (const std::uint64_t t : terms) result.push_back(checked(store, t));
  return result;
}

Rule checked_rule(const TermStore& store, std::uint64_t rule) {
  if (rule >= store.rule_count()) {
    throw GrammarFault("rule " + std::to_string(rule) + " is not of this store, which has " +
                       std::to_string(store.rule_count()));
  }
  return static_cast<Rule>(rule);
}

// Counters and bits are bounded so that a parameter stays small.
std::uint32_t checked_index(std::uint64_t index) {
  constexpr std::uint64_t kMostBits = 1 << 20;
  if (index >= kMostBits)
    throw GrammarFault("bit or counter " + std::to_string(index) + " is too large");
  return static_cast<std::uint32_t>(index);
}

std::uint32_t checked_value(std::uint64_t value) {
  if (value > kUnbounded)
    throw GrammarFault("counter value " + std::to_string(value) + " exceeds 32 bits");
  return static_cast<std::uint32_t>(value);
}

// A number of a template: the tuples come from Python, so nothing about them is sure.
std::uint64_t number(const nb::handle& item) {
  std::int64_t value = -1;
  if (!nb::try_cast(item, value) || value < 0) {
    throw GrammarFault("bits, counters and terms of a template are integers from 0, not " +
                       nb::cast<std::string>(nb::repr(item)));
  }
  return static_cast<std::uint64_t>(value);
}

nb::tuple tuple_of(const nb::handle& item, const char* what) {
  nb::tuple parts;
  if (!nb::try_cast(item, parts) || parts.size() == 0) {
    throw GrammarFault(std::string(what) + " is a tuple, not " +
                       nb::cast<std::string>(nb::repr(item)));
  }
  return parts;
}

std::string operator_of(const nb::tuple& parts) {
  std::string op;
  if (!nb::try_cast(parts[0], op))
    throw GrammarFault("a template condition or update begins with its name");
  return op;
}

Condition condition_of(const nb::handle& item) {
  const nb::tuple parts = tuple_of(item, "a template condition");
  const std::string op = operator_of(parts);
  Condition condition{Condition::Op::Unseen, 0, 0, 0, {}};
  if (op == "unseen" && parts.size() == 2) {
    condition.index = checked_index(number(parts[1]));
  } else if (op == "all_seen" && parts.size() == 2) {
    condition.op = Condition::Op::AllSeen;
    for (const nb::handle bit : parts[1]) {
      condition.bits.push_back(checked_index(number(bit)));
    }
  } else if (op == "between" && parts.size() == 4) {
    condition.op = Condition::Op::Between;
    condition.index = checked_index(number(parts[1]));
    condition.low = checked_value(number(parts[2]));
    condition.high = checked_value(number(parts[3]));
  } else if (op == "below" && parts.size() == 4) {
    condition.op = Condition::Op::Below;
    condition.index = checked_index(number(parts[1]));
    condition.low = checked_index(number(parts[2]));
    std::int32_t offset = 0;
    if (!nb::try_cast(parts[3], offset)) throw GrammarFault("an offset is a 32-bit integer");
    condition.high = static_cast<std::uint32_t>(offset);
  } else {
    throw GrammarFault("unknown template condition `" + op + "`");
  }
  return condition;
}

Update update_of(const nb::handle& item) {
  const nb::tuple parts = tuple_of(item, "a template update");
  const std::string op = operator_of(parts);
  Update update{Update::Op::See, 0, 0, 0};
  if (parts.size() < 2) throw GrammarFault("template update `" + op + "` lacks its operand");
  update.index = checked_index(number(parts[1]));
  if (op == "see" && parts.size() == 2) return update;
  if (op == "set" && parts.size() == 3) {
    update.op = Update::Op::Set;
    update.value = checked_value(number(parts[2]));
  } else if (op == "add" && parts.size() == 4) {
    update.op = Update::Op::Add;
    update.value = checked_value(number(parts[2]));
    update.cap = checked_value(number(parts[3]));
  } else if (op == "copy" && parts.size() == 4) {
    update.op = Update::Op::Copy;
    update.value = checked_index(number(parts[2]));
    update.cap = checked_value(number(parts[3]));
  } else {
    throw GrammarFault("unknown template update `" + op + "`");
  }
  return update;
}

Alternative alternative_of(const TermStore& store, const nb::handle& item) {
  const nb::tuple parts = tuple_of(item, "a template alternative");
  if (parts.size() != 5) {
    throw GrammarFault("a template alternative is (head, next_rule, tail, conditions, updates)");
  }
  Alternative alternative;
  alternative.head = checked(store, number(parts[0]));
  std::int64_t next = -1;
  if (!nb::try_cast(parts[1], next))
    throw GrammarFault("the next rule of an alternative is a rule id or -1");
  if (next >= 0) alternative.next = checked_rule(store, static_cast<std::uint64_t>(next));
  alternative.tail = checked(store, number(parts[2]));
  for (const nb::handle c : parts[3]) alternative.conditions.push_back(condition_of(c));
  for (const nb::handle u : parts[4]) alternative.updates.push_back(update_of(u));
  return alternative;
}

nb::tuple to_tuple(const Alternative& alternative) {
  nb::list conditions;
  for (const Condition& c : alternative.conditions) {
    switch (c.op) {
      case Condition::Op::Unseen:
        conditions.append(nb::make_tuple("unseen", c.index));
        break;
      case Condition::Op::AllSeen: {
        nb::list bits;
        for (const std::uint32_t bit : c.bits) bits.append(bit);
        conditions.append(nb::make_tuple("all_seen", nb::tuple(bits)));
        break;
      }
      case Condition::Op::Between:
        conditions.append(nb::make_tuple("between", c.index, c.low, c.high));
        break;
      case Condition::Op::Below:
        conditions.append(
            nb::make_tuple("below", c.index, c.low, static_cast<std::int32_t>(c.high)));
        break;
    }
  }
  nb::list updates;
  for (const Update& u : alternative.updates) {
    switch (u.op) {
      case Update::Op::See:
        updates.append(nb::make_tuple("see", u.index));
        break;
      case Update::Op::Set:
        updates.append(nb::make_tuple("set", u.index, u.value));
        break;
      case Update::Op::Add:
        updates.append(nb::make_tuple("add", u.index, u.value, u.cap));
        break;
      case Update::Op::Copy:
        updates.append(nb::make_tuple("copy", u.index, u.value, u.cap));
        break;
    }
  }
  const std::int64_t next =
      alternative.next == kNone ? -1 : static_cast<std::int64_t>(alternative.next);
  return nb::make_tuple(alternative.head, next, alternative.tail, nb::tuple(conditions),
                        nb::tuple(updates));
}

ParamValue param_of(const std::vector<std::uint64_t>& bits,
                    const std::vector<std::uint64_t>& counters) {
  ParamValue value;
  for (const std::uint64_t bit : bits) value.apply({Update::Op::See, checked_index(bit), 0, 0});
  for (const std::uint64_t counter : counters) value.counters.push_back(checked_value(counter));
  return value;
}

CodeRanges ranges_of(const Ranges& ranges) {
  CodeRanges result;
  for (const auto& [low, high] : ranges) {
    if (low > high) {
      throw GrammarFault("character range " + std::to_string(low) + " to " + std::to_string(high) +
                         " is reversed");
    }
    if (high > 0x10FFFF) {
      throw GrammarFault("character range " + std::to_string(low) + " to " + std::to_string(high) +
                         " goes beyond U+10FFFF");
    }
    result.push_back({low, high});
  }
  return result;
}

std::string_view view(const nb::bytes& data) { return {data.c_str(), data.size()}; }

}  // namespace

std::vector<IdRange> id_ranges(const Ranges& ranges) {
  std::vector<IdRange> result;
  for (const auto& [low, high] : ranges) {
    if (low > high) {
      throw GrammarFault("the token ids " + std::to_string(low) + " to " + std::to_string(high) +
                         " are reversed");
    }
    result.push_back({low, high});
  }
  return result;
}

nb::tuple node_tuple(const TermStore& store, std::uint64_t term) {
  return term_node(store, checked(store, term));
}

nb::tuple param_tuple(const TermStore& store, std::uint64_t param) {
  if (param >= store.param_count())
    throw GrammarFault("parameter " + std::to_string(param) + " is not of this store");
  const ParamValue& value = store.param_value(static_cast<Param>(param));
  nb::list bits;
  for (std::uint32_t bit = 0; bit < value.bits.size() * 64; ++bit) {
    if (value.seen(bit)) bits.append(bit);
  }
  nb::list counters;
  for (const std::uint32_t counter : value.counters) counters.append(counter);
  return nb::make_tuple(nb::tuple(bits), nb::tuple(counters));
}

std::string rule_name(const TermStore& store, std::uint64_t rule) {
  return store.rule_info(checked_rule(store, rule)).name;
}

void bind_terms(nb::module_& m) {
  using nb::arg;
  using Ids = std::vector<std::uint64_t>;
  nb::class_<TermStore>(m, "TermStore")
      .def(
          "__init__",
          [](TermStore* self, const nb::object& limits) {
            new (self) TermStore(limits_of(limits));
          },
          arg("limits") = nb::none())
      .def_prop_ro_static("NOTHING", [](const nb::object&) { return kNothing; })
      .def_prop_ro_static("EMPTY", [](const nb::object&) { return kEmpty; })
      .def(
          "chars", [](TermStore& s, const Ranges& ranges) { return s.chars(ranges_of(ranges)); },
          arg("ranges"))
      .def(
          "plain_pattern",
          [](TermStore& s, std::string_view pattern) { return plain_pattern(s, pattern); },
          arg("pattern"))
      .def(
          "literal", [](TermStore& s, const nb::bytes& text) { return s.literal(view(text)); },
          arg("text"))
      .def(
          "literals",
          [](TermStore& s, const std::vector<nb::bytes>& texts) {
            std::vector<std::string> copies;
            for (const nb::bytes& text : texts) copies.emplace_back(view(text));
            return s.literals(std::move(copies));
          },
          arg("texts"))
      .def(
          "concat",
          [](TermStore& s, const Ids& terms) {
            return s.concat(std::span<const Term>(checked(s, terms)));
          },
          arg("terms"))
      .def(
          "union", [](TermStore& s, const Ids& terms) { return s.join(checked(s, terms)); },
          arg("terms"))
      .def(
          "intersect",
          [](TermStore& s, const Ids& terms) { return s.intersect(checked(s, terms)); },
          arg("terms"))
      .def(
          "complement", [](TermStore& s, std::uint64_t t) { return s.complement(checked(s, t)); },
          arg("term"))
      .def(
          "members",
          [](TermStore& s, const Ids& keys, const Ids& values, std::uint64_t before,
             std::uint64_t between, std::uint64_t after) {
            if (keys.size() != values.size())
              throw GrammarFault("members() takes as many values as keys");
            const Term open = checked(s, before);
            const Term middle = checked(s, between);
            const Term close = checked(s, after);
            std::vector<Term> made;
            made.reserve(keys.size());
            for (std::size_t i = 0; i < keys.size(); ++i) {
              const Term rest = s.concat(middle, s.concat(checked(s, values[i]), close));
              made.push_back(s.concat(open, s.concat(checked(s, keys[i]), rest)));
            }
            return made;
          },
          arg("keys"), arg("values"), arg("before"), arg("between"), arg("after"))
      .def(
          "repeat",
          [](TermStore& s, std::uint64_t t, std::uint64_t min,
             const std::optional<std::uint64_t>& max) {
            if (min >= kUnbounded || (max && *max >= kUnbounded)) {
              throw GrammarFault("a repetition count exceeds 2**32 - 2");
            }
            return s.repeat(checked(s, t), static_cast<std::uint32_t>(min),
                            max ? static_cast<std::uint32_t>(*max) : kUnbounded);
          },
          arg("term"), arg("min"), arg("max").none())
      .def(
          "json", [](TermStore& s, std::uint64_t t) { return s.json(checked(s, t)); }, arg("term"))
      .def(
          "multiples",
          [](TermStore& s, std::uint64_t divisor, std::uint64_t places) {
            if (divisor == 0 || divisor > kUnbounded)
              throw GrammarFault("a divisor is between 1 and 2**32 - 1");
            if (places > kMostPlaces) {
              throw GrammarFault("a multiple has at most " + std::to_string(kMostPlaces) +
                                 " decimal places");
            }
            return s.multiples(static_cast<std::uint32_t>(divisor),
                               static_cast<std::uint32_t>(places));
          },
          arg("divisor"), arg("places") = 0)
      .def(
          "distinct",
          [](TermStore& s, std::uint64_t t) { return s.distinct(checked(s, t), Written::Scalar); },
          arg("term"))
      .def(
          "distinct_text",
          [](TermStore& s, std::uint64_t t) { return s.distinct(checked(s, t), Written::Text); },
          arg("term"))
      .def(
          "tokens",
          [](TermStore& s, std::vector<std::string> names, const Ranges& ids, bool negated) {
            return s.token({std::move(names), id_ranges(ids), negated});
          },
          arg("names") = std::vector<std::string>{}, arg("ids") = Ranges{}, arg("negated") = false)
      .def(
          "token_sets",
          [](TermStore& s, std::uint64_t t) {
            nb::list found;
            for (const std::uint32_t set : s.token_sets_of(checked(s, t)))
              found.append(nb::make_tuple(set) + token_set_tuple(s.token_set(set)));
            return found;
          },
          arg("term"))
      .def("rule", &TermStore::rule, arg("name"))
      .def(
          "scope", [](TermStore& s, std::uint64_t rule) { s.set_scoped(checked_rule(s, rule)); },
          arg("rule"))
      .def(
          "is_scope",
          [](TermStore& s, std::uint64_t rule) {
            return s.rule_info(checked_rule(s, rule)).scoped;
          },
          arg("rule"))
      .def(
          "unordered",
          [](TermStore& s, std::uint64_t rule) { s.set_unordered(checked_rule(s, rule)); },
          arg("rule"))
      .def(
          "is_unordered",
          [](TermStore& s, std::uint64_t rule) {
            return s.rule_info(checked_rule(s, rule)).unordered;
          },
          arg("rule"))
      .def(
          "set_attributes",
          [](TermStore& s, std::uint64_t rule, std::string capture, std::string stop_capture,
             std::uint64_t suffix, const std::optional<std::uint64_t>& max_tokens,
             const std::optional<double>& temperature) {
            RuleAttributes attributes{std::move(capture), std::move(stop_capture),
                                      checked(s, suffix), kUnbounded, kNone};
            if (max_tokens) {
              if (*max_tokens == 0 || *max_tokens >= kUnbounded)
                throw GrammarFault("max_tokens is between 1 and 2**32 - 2");
              attributes.tokens = static_cast<std::uint32_t>(*max_tokens);
            }
            if (temperature) {
              const auto value = static_cast<float>(*temperature);
              if (!std::isfinite(value) || value < 0)
                throw GrammarFault("a temperature is a finite number from 0 on");
              attributes.temperature = std::bit_cast<std::uint32_t>(value);
            }
            s.set_attributes(checked_rule(s, rule), std::move(attributes));
          },
          arg("rule"), arg("capture") = "", arg("stop_capture") = "", arg("suffix") = kNothing,
          arg("max_tokens") = nb::none(), arg("temperature") = nb::none())
      .def(
          "attributes",
          [](TermStore& s, std::uint64_t rule) {
            const RuleAttributes& a = s.rule_info(checked_rule(s, rule)).attributes;
            return nb::make_tuple(a.capture, a.stop_capture, a.suffix, optional_count(a.tokens),
                                  temperature_of(a.temperature));
          },
          arg("rule"))
      .def(
          "define",
          [](TermStore& s, std::uint64_t rule, std::uint64_t body) {
            s.define(checked_rule(s, rule), checked(s, body));
          },
          arg("rule"), arg("body"))
      .def(
          "define_template",
          [](TermStore& s, std::uint64_t rule, const nb::sequence& alternatives) {
            std::vector<Alternative> items;
            for (const nb::handle item : alternatives) items.push_back(alternative_of(s, item));
            s.define_template(checked_rule(s, rule), std::move(items));
          },
          arg("rule"), arg("alternatives"))
      .def(
          "param",
          [](TermStore& s, const Ids& bits, const Ids& counters) {
            return s.param(param_of(bits, counters));
          },
          arg("bits") = Ids{}, arg("counters") = Ids{})
      .def(
          "call",
          [](TermStore& s, std::uint64_t rule, const std::optional<std::uint64_t>& param) {
            if (!param) return s.call(checked_rule(s, rule), kInherited);
            param_tuple(s, *param);
            return s.call(checked_rule(s, rule), static_cast<Param>(*param));
          },
          arg("rule"), arg("param").none() = 0)
      .def(
          "margin",
          [](TermStore& s, std::uint64_t counter, std::uint64_t tab, bool some) {
            return s.margin(checked_index(counter), checked_index(tab), some);
          },
          arg("counter"), arg("tab"), arg("some") = false)
      .def(
          "import_term",
          [](TermStore& s, TermStore& other, std::uint64_t t) {
            if (&s == &other) return checked(s, t);
            return import_term(s, other, checked(other, t));
          },
          arg("other"), arg("term"))
      .def(
          "is_nullable",
          [](TermStore& s, std::uint64_t t) { return accepts_empty(s, checked(s, t)); },
          arg("term"))
      .def(
          "is_empty",
          [](TermStore& s, std::uint64_t t) {
            const Term term = checked(s, t);
            const StepBudget budget(s);
            return s.has(term, kHasCall) ? accepts_nothing(s, term) : s.is_empty(term);
          },
          arg("term"))
      .def(
          "count_texts",
          [](TermStore& s, std::uint64_t t, std::uint64_t most) {
            const Term term = checked(s, t);
            if (s.has(term, kHasCall)) throw GrammarFault("count_texts() takes a regular term");
            if (most > kUnbounded) throw GrammarFault("count_texts() counts up to 2**32 - 1");
            const StepBudget budget(s);
            return count_texts(s, term, most);
          },
          arg("term"), arg("most"))
      .def(
          "is_regular",
          [](TermStore& s, std::uint64_t t) { return !s.has(checked(s, t), kHasCall); },
          arg("term"))
      .def(
          "derivative",
          [](TermStore& s, std::uint64_t t, std::uint64_t byte) {
            const Term term = checked(s, t);
            if (byte > 255) throw GrammarFault(std::to_string(byte) + " is not a byte");
            if (s.has(term, kHasCall)) throw GrammarFault("derivative() takes a regular term");
            return s.step(term, static_cast<unsigned>(byte));
          },
          arg("term"), arg("byte"))
      .def(
          "matches",
          [](TermStore& s, std::uint64_t t, const nb::bytes& text) {
            Term term = checked(s, t);
            if (s.has(term, kHasCall)) throw GrammarFault("matches() takes a regular term");
            for (const char c : view(text)) term = s.step(term, static_cast<unsigned char>(c));
            return s.nullable(term);
          },
          arg("term"), arg("text"))
      .def(
          "node", [](TermStore& s, std::uint64_t t) { return node_tuple(s, t); }, arg("term"))
      .def(
          "rule_name", [](TermStore& s, std::uint64_t rule) { return rule_name(s, rule); },
          arg("rule"))
      .def(
          "rule_body",
          [](TermStore& s, std::uint64_t rule) -> nb::object {
            const RuleInfo& info = s.rule_info(checked_rule(s, rule));
            if (!info.defined) return nb::none();
            if (!info.is_template) return nb::int_(info.body);
            nb::list alternatives;
            for (const Alternative& alternative : info.alternatives)
              alternatives.append(to_tuple(alternative));
            return alternatives;
          },
          arg("rule"))
      .def(
          "param_value", [](TermStore& s, std::uint64_t param) { return param_tuple(s, param); },
          arg("param"))
      .def(
          "save",
          [](TermStore& s, std::uint64_t t) {
            const std::string data = write_terms(s, checked(s, t));
            return nb::bytes(data.data(), data.size());
          },
          arg("term"))
      .def_static(
          "load",
          [](const nb::bytes& data, const nb::object& limits) {
            ReadTerms read = read_terms(view(data), limits_of(limits));
            return std::make_pair(std::move(read.store), read.start);
          },
          arg("data"), arg("limits") = nb::none())
      .def("keep", &keep)
      .def(
          "copy",
          [](const TermStore& s, const nb::object& limits) { return s.copy(limits_of(limits)); },
          arg("limits") = nb::none())
      .def("__len__", &TermStore::size);

  nb::class_<Recognizer>(m, "Recognizer")
      .def(
          "__init__",
          [](Recognizer* self, TermStore& store, std::uint64_t start, const nb::object& limits) {
            new (self) Recognizer(store, checked(store, start), limits_of(limits));
          },
          arg("store"), arg("start"), arg("limits") = nb::none())
      .def(
          "accepts", [](Recognizer& r, const nb::bytes& text) { return r.accepts(view(text)); },
          arg("text"))
      .def(
          "accepts_prefix",
          [](Recognizer& r, const nb::bytes& text) {
            return r.longest_prefix(view(text)) == text.size();
          },
          arg("text"))
      .def(
          "longest_prefix",
          [](Recognizer& r, const nb::bytes& text) { return r.longest_prefix(view(text)); },
          arg("text"));
}

}  // namespace grammaton
