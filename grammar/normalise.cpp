#include "grammar/normalise.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace grammaton {

namespace {

// The rules a term reaches, callees before callers where there is no cycle.
std::vector<Rule> reachable_rules(TermStore& store, Term start) {
  std::vector<Rule> order;
  std::vector<bool> rule_seen(store.rule_count(), false);
  std::vector<bool> term_seen(store.size(), false);
  struct Visit {
    bool leave;  // the rule is done: append it
    std::uint32_t id;
    bool is_rule;
  };
  std::vector<Visit> stack{{false, start, false}};
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    if (visit.is_rule) {
      if (visit.leave) {
        order.push_back(visit.id);
        continue;
      }
      if (rule_seen[visit.id]) continue;
      rule_seen[visit.id] = true;
      const RuleInfo& info = store.rule_info(visit.id);
      if (!info.defined) throw GrammarFault("rule `" + info.name + "` is used but never defined");
      stack.push_back({true, visit.id, true});
      if (!info.is_template) stack.push_back({false, info.body, false});
      for (const Alternative& alternative : info.alternatives) {
        stack.push_back({false, alternative.head, false});
        stack.push_back({false, alternative.tail, false});
        if (alternative.next != kNone) stack.push_back({false, alternative.next, true});
      }
      continue;
    }
    if (term_seen[visit.id] || !store.has(visit.id, kHasCall)) continue;
    term_seen[visit.id] = true;
    const Node& n = store.node(visit.id);
    switch (n.kind) {
      case Kind::Concat:
        stack.push_back({false, n.a, false});
        stack.push_back({false, n.b, false});
        break;
      case Kind::Union:
        for (const Term t : store.operands(visit.id)) stack.push_back({false, t, false});
        break;
      case Kind::Repeat:
        stack.push_back({false, n.a, false});
        break;
      case Kind::Call:
        stack.push_back({false, n.a, true});
        break;
      default:
        break;
    }
  }
  return order;
}

// Rules whose body contains the empty text: a least fixpoint. Templates never do.
class NullableRules {
 public:
  NullableRules(TermStore& store, const std::vector<Rule>& order)
      : store_(store), of_(store.rule_count(), false) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Rule rule : order) {
        const RuleInfo& info = store.rule_info(rule);
        if (!of_[rule] && !info.is_template && holds(info.body)) of_[rule] = changed = true;
      }
    }
  }
  bool rule(Rule rule) const { return of_[rule]; }
  bool holds(Term t) const {
    if (store_.nullable(t)) return true;
    if (!store_.has(t, kHasCall)) return false;
    const Node& n = store_.node(t);
    switch (n.kind) {
      case Kind::Concat: {
        Term rest = t;
        for (; store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b) {
          if (!holds(store_.node(rest).a)) return false;
        }
        return holds(rest);
      }
      case Kind::Union:
        return std::ranges::any_of(store_.operands(t), [this](Term u) { return holds(u); });
      case Kind::Repeat:
        return holds(n.a);
      case Kind::Call:
        return of_[n.a];
      default:
        return false;
    }
  }

 private:
  TermStore& store_;
  std::vector<bool> of_;
};

class Copy {
 public:
  Copy(TermStore& source, TermStore& target) : source_(source), target_(target) {}

  Term term(Term t, bool restricted) {
    auto& memo = restricted ? restricted_ : plain_;
    if (memo.size() < source_.size()) memo.resize(source_.size(), kNone);
    if (memo[t] != kNone) return memo[t];
    const Node n = source_.node(t);
    Term result = kNothing;
    switch (n.kind) {
      case Kind::Nothing:
        break;
      case Kind::Empty:
        result = kEmpty;
        break;
      case Kind::Bytes:
      case Kind::Chars:
        result = characters(t, restricted);
        break;
      case Kind::Concat: {
        std::vector<Term> heads;
        Term rest = t;
        for (; source_.node(rest).kind == Kind::Concat && memo[rest] == kNone;
             rest = source_.node(rest).b) {
          heads.push_back(rest);
        }
        result = term(rest, restricted);
        auto& again = restricted ? restricted_ : plain_;
        for (std::size_t i = heads.size(); i-- > 0;) {
          result = target_.concat(term(source_.node(heads[i]).a, restricted), result);
          again[heads[i]] = result;
        }
        break;
      }
      case Kind::Union:
      case Kind::Intersect: {
        const std::vector<Term> items(source_.operands(t).begin(), source_.operands(t).end());
        std::vector<Term> copied;
        for (const Term u : items) copied.push_back(term(u, restricted));
        result = n.kind == Kind::Union ? target_.join(std::move(copied))
                                       : target_.intersect(std::move(copied));
        break;
      }
      case Kind::Complement:
        // What is excluded stays whole: a text is excluded whether it can be spelled or not.
        result = target_.raw_complement(term(n.a, false));
        break;
      case Kind::Repeat:
        result = target_.repeat(term(n.a, restricted), n.b, n.c);
        break;
      case Kind::Json:
        // The decoded text is not what tokens spell; the lift restricts its raw characters itself.
        if (n.b != 0) throw_residual();
        result = target_.json(term(n.a, false), restricted && target_.restricted());
        break;
      case Kind::Call:
        result = call(n.a, n.b);
        break;
      case Kind::Residue:
        if (n.b != 0 || (n.c & 0xFFFF) != 0) throw_residual();
        result = target_.multiples(n.a, n.c >> 16);
        if (restricted && target_.restricted()) result = spelled(result);
        break;
      case Kind::JsonRaw:
      case Kind::NoSplit:
      case Kind::Keys:
      case Kind::KeyDigits:
        throw_residual();
    }
    auto& last = restricted ? restricted_ : plain_;
    last[t] = result;
    return result;
  }

  Rule rule(Rule source_rule) {
    const auto found = rules_.find(source_rule);
    if (found != rules_.end()) return found->second;
    const Rule made = target_.rule(source_.rule_info(source_rule).name);
    rules_.emplace(source_rule, made);
    return made;
  }

  // From here on, calls that cannot end become nothing, and those that may be empty an option.
  void set_rule_facts(const NullableRules* nullable, std::function<bool(Rule, Param)> can_end) {
    nullable_ = nullable;
    can_end_ = std::move(can_end);
  }

 private:
  Term call(Rule source_rule, Param source_param) {
    if (can_end_ && !can_end_(source_rule, source_param)) return kNothing;
    const Param param = target_.param(source_.param_value(source_param));
    const Term made = target_.call(rule(source_rule), param);
    if (nullable_ != nullptr && nullable_->rule(source_rule)) return target_.join({kEmpty, made});
    return made;
  }

  [[noreturn]] static void throw_residual() {
    throw GrammarFault("a residual is not a grammar: it cannot be copied or compiled");
  }

  Term characters(Term t, bool restricted) {
    CodeRanges ranges;
    if (source_.node(t).kind == Kind::Chars) {
      ranges = source_.code_ranges(t);
    } else {
      const ByteSet set = source_.byte_set(t);
      if ((set.words[2] | set.words[3]) != 0) return target_.bytes(set);
      set.each([&ranges](unsigned b) { ranges.push_back({b, b}); });
    }
    return target_.chars(std::move(ranges), restricted && target_.restricted());
  }

  // Multiples of which only some characters can be spelled; then they may have no end.
  Term spelled(Term multiples) {
    const CodeRanges used{{'.', '.'}, {'0', '9'}};
    const Term some = target_.chars(used, true);
    if (some == target_.chars(used)) return multiples;
    return target_.intersect({multiples, target_.repeat(some, 0, kUnbounded)});
  }

  TermStore& source_;
  TermStore& target_;
  std::vector<Term> plain_;
  std::vector<Term> restricted_;
  std::map<Rule, Rule> rules_;
  const NullableRules* nullable_ = nullptr;
  std::function<bool(Rule, Param)> can_end_;
};

// Which rules can end: a least fixpoint over their bodies, with call-free parts copied into the
// target store, where characters are restricted and emptiness is decided.
class ProductiveRules {
 public:
  ProductiveRules(TermStore& source, TermStore& target, Copy& copy, const std::vector<Rule>& order)
      : source_(source), target_(target), copy_(copy), of_(source.rule_count(), false) {
    // Short searches first: one that runs long usually waits for a rule that a later round settles.
    find(order, kShortSearch);
    if (gave_up_) find(order, source.limits().max_step_terms);
  }

  bool call_ends(Rule rule, Param param) {
    return source_.rule_info(rule).is_template ? template_ends(rule, param) : of_[rule];
  }

  bool ends(Term t) {
    if (!source_.has(t, kHasCall)) return !target_.is_empty(copy_.term(t, true));
    if (known_[t] != 0) return known_[t] == 1;
    const std::uint64_t cut_before = cut_short_;
    const Node n = source_.node(t);
    bool result = false;
    switch (n.kind) {
      case Kind::Concat: {
        Term rest = t;
        result = true;
        for (; result && source_.node(rest).kind == Kind::Concat; rest = source_.node(rest).b) {
          result = ends(source_.node(rest).a);
        }
        result = result && ends(rest);
        break;
      }
      case Kind::Union: {
        const std::vector<Term> items(source_.operands(t).begin(), source_.operands(t).end());
        result = std::ranges::any_of(items, [this](Term u) { return ends(u); });
        break;
      }
      case Kind::Repeat:
        result = n.b == 0 || ends(n.a);
        break;
      case Kind::Call:
        result = call_ends(n.a, n.b);
        break;
      default:
        break;
    }
    // A "no" holds for this round, unless it rests on a question that is still open further out.
    if (result) {
      known_[t] = 1;
    } else if (cut_short_ == cut_before) {
      known_[t] = 2;
    }
    return result;
  }

  // Whether an alternative's own parts can end.
  bool present(const Alternative& alternative) {
    const bool next_ends = alternative.next == kNone || of_[alternative.next] ||
                           source_.rule_info(alternative.next).is_template;
    return next_ends && ends(alternative.head) && ends(alternative.tail);
  }

 private:
  static constexpr std::uint64_t kShortSearch = 512;

  void find(const std::vector<Rule>& order, std::uint64_t search_limit) {
    search_limit_ = search_limit;
    gave_up_ = false;
    for (bool changed = true; changed;) {
      changed = false;
      known_.assign(source_.size(), 0);
      for (const Rule rule : order) {
        const RuleInfo& info = source_.rule_info(rule);
        if (of_[rule]) continue;
        if (info.is_template ? template_ends(rule, 0) : ends(info.body)) of_[rule] = changed = true;
      }
    }
  }

  // Whether a template and those it goes on to have all their alternatives. Whoever defined it then
  // vouches that it ends for every parameter that can be reached.
  bool complete(Rule rule) {
    std::vector<Rule> queue{rule};
    std::set<Rule> visited{rule};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Rule here = queue[i];
      if (!source_.rule_info(here).is_template) {
        if (!of_[here]) return false;
        continue;
      }
      const std::size_t count = source_.rule_info(here).alternatives.size();
      for (std::size_t k = 0; k < count; ++k) {
        const Alternative& alternative = source_.rule_info(here).alternatives[k];
        if (!present(alternative)) return false;
        if (alternative.next != kNone && visited.insert(alternative.next).second)
          queue.push_back(alternative.next);
      }
    }
    return true;
  }

  bool template_ends(Rule rule, Param param) {
    const std::pair asked{rule, param};
    if (templates_that_end_.contains(asked)) return true;
    if (!templates_asked_.insert(asked).second) {  // within itself: no shorter end this way
      ++cut_short_;
      return false;
    }
    const bool result = complete(rule) || search_end(rule, param);
    templates_asked_.erase(asked);
    if (result) templates_that_end_.insert(asked);
    return result;
  }

  // Depth first through the parameters, with the alternatives that can end so far.
  bool search_end(Rule rule, Param param) {
    const std::pair asked{rule, param};
    std::vector<std::pair<Rule, Param>> queue{asked};
    std::set<std::pair<Rule, Param>> visited{asked};
    bool result = false;
    while (!queue.empty() && !result) {
      const auto [here, value_id] = queue.back();
      queue.pop_back();
      if (!source_.rule_info(here).is_template) {
        result = of_[here];
        continue;
      }
      const std::size_t count = source_.rule_info(here).alternatives.size();
      for (std::size_t i = count; i-- > 0 && !result;) {
        const Alternative& alternative = source_.rule_info(here).alternatives[i];
        ParamValue value = source_.param_value(value_id);
        if (!std::ranges::all_of(alternative.conditions,
                                 [&](const Condition& c) { return value.holds(c); }))
          continue;
        if (!present(alternative)) continue;
        if (alternative.next == kNone) {
          result = true;
          break;
        }
        for (const Update& update : alternative.updates) value.apply(update);
        const std::pair next{alternative.next, source_.param(std::move(value))};
        if (visited.insert(next).second) queue.push_back(next);
        if (visited.size() > search_limit_) {
          gave_up_ = true;
          if (search_limit_ == kShortSearch) return false;
          throw LimitFault("deciding whether rule `" + source_.rule_info(rule).name +
                           "` can end took more than max_step_terms = " +
                           std::to_string(source_.limits().max_step_terms) + " states");
        }
      }
    }
    return result;
  }

  TermStore& source_;
  TermStore& target_;
  Copy& copy_;
  std::vector<bool> of_;
  std::vector<std::uint8_t> known_;
  std::uint64_t search_limit_ = kShortSearch;
  bool gave_up_ = false;
  std::uint64_t cut_short_ = 0;                       // how often a question met itself
  std::set<std::pair<Rule, Param>> templates_asked_;  // searches under way
  std::set<std::pair<Rule, Param>> templates_that_end_;
};

// t without the empty text.
Term without_empty(TermStore& store, Term t) {
  if (!store.nullable(t)) return t;
  const Node n = store.node(t);
  switch (n.kind) {
    case Kind::Empty:
      return kNothing;
    case Kind::Concat: {
      std::vector<Term> spine;
      Term rest = t;
      for (; store.node(rest).kind == Kind::Concat; rest = store.node(rest).b)
        spine.push_back(store.node(rest).a);
      Term whole = rest;
      Term some = without_empty(store, rest);
      for (std::size_t i = spine.size(); i-- > 0;) {
        some = store.join({store.concat(without_empty(store, spine[i]), whole), some});
        whole = store.concat(spine[i], whole);
      }
      return some;
    }
    case Kind::Union: {
      const std::vector<Term> items(store.operands(t).begin(), store.operands(t).end());
      std::vector<Term> kept;
      for (const Term u : items) kept.push_back(without_empty(store, u));
      return store.join(std::move(kept));
    }
    case Kind::Repeat: {
      const Term some = without_empty(store, n.a);
      return store.concat(some, store.repeat(some, 0, n.c == kUnbounded ? kUnbounded : n.c - 1));
    }
    default:
      return store.intersect({t, store.raw_complement(kEmpty)});
  }
}

void refuse_left_recursion(TermStore& store) {
  std::vector<std::vector<Rule>> edges(store.rule_count());
  for (Rule rule = 0; rule < store.rule_count(); ++rule) {
    const RuleInfo info = store.rule_info(rule);
    auto add = [&](Term t) {
      for (const FirstCall& c : store.first_calls(t)) edges[rule].push_back(c.rule);
    };
    if (!info.is_template) add(info.body);
    for (const Alternative& alternative : info.alternatives) add(alternative.head);
  }
  std::vector<std::uint8_t> state(store.rule_count(), 0);  // 1: on the path, 2: done
  for (Rule start = 0; start < store.rule_count(); ++start) {
    std::vector<std::pair<Rule, std::size_t>> path;
    if (state[start] == 0) path.emplace_back(start, 0);
    while (!path.empty()) {
      auto& [rule, next] = path.back();
      state[rule] = 1;
      if (next == edges[rule].size()) {
        state[rule] = 2;
        path.pop_back();
        continue;
      }
      const Rule callee = edges[rule][next++];
      if (state[callee] == 1) {
        std::string cycle = store.rule_info(callee).name;
        bool inside = false;
        for (const auto& [r, unused] : path) {
          if (inside) cycle += " -> " + store.rule_info(r).name;
          inside = inside || r == callee;
        }
        throw GrammarFault("left recursion is not supported: " + cycle + " -> " +
                           store.rule_info(callee).name + "; rewrite `a: a b | c` as `a: c b*`");
      }
      if (state[callee] == 0) path.emplace_back(callee, 0);
    }
  }
}

// Adds the definitions of `order`'s rules. With `ends`, only what can end, and no empty bodies.
void copy_rules(TermStore& source, TermStore& target, Copy& copy, const std::vector<Rule>& order,
                ProductiveRules* ends) {
  bool dropped = false;
  for (const Rule rule : order) {
    const RuleInfo& info = source.rule_info(rule);
    if (!info.is_template) {
      if (ends != nullptr && !ends->call_ends(rule, 0)) continue;
      const Term body = copy.term(info.body, true);
      target.define(copy.rule(rule), ends == nullptr ? body : without_empty(target, body));
      continue;
    }
    std::vector<Alternative> alternatives;
    for (const Alternative& alternative : info.alternatives) {
      if (ends != nullptr && !ends->present(alternative)) {
        dropped = true;
        continue;
      }
      Alternative kept = alternative;
      kept.head = copy.term(alternative.head, true);
      kept.tail = copy.term(alternative.tail, true);
      if (alternative.next != kNone) kept.next = copy.rule(alternative.next);
      alternatives.push_back(std::move(kept));
    }
    target.define_template(copy.rule(rule), std::move(alternatives));
  }
  if (dropped) target.check_templates();
}

}  // namespace

NormalForm normalise(TermStore& source, Term start, const Spelling& spelling,
                     const Limits& limits) {
  const std::vector<Rule> order = reachable_rules(source, start);
  const NullableRules nullable(source, order);
  NormalForm form;
  form.store = TermStore::with_json_strings(limits);
  form.store->merge_keys();
  if (!spelling.all) form.store->restrict_characters(spelling.whole, spelling.joined);
  Copy copy(source, *form.store);
  ProductiveRules ends(source, *form.store, copy, order);
  if (!ends.ends(start)) {
    throw UnsatisfiableFault(spelling.all
                                 ? "no text satisfies the grammar"
                                 : "no text that this vocabulary can spell satisfies the grammar");
  }
  copy.set_rule_facts(&nullable,
                      [&ends](Rule rule, Param param) { return ends.call_ends(rule, param); });
  form.start = copy.term(start, true);
  copy_rules(source, *form.store, copy, order, &ends);
  refuse_left_recursion(*form.store);
  return form;
}

Term import_term(TermStore& target, TermStore& source, Term term) {
  const std::vector<Rule> order = reachable_rules(source, term);
  Copy copy(source, target);
  const Term result = copy.term(term, true);
  copy_rules(source, target, copy, order, nullptr);
  return result;
}

bool accepts_empty(TermStore& store, Term term) {
  const std::vector<Rule> order = reachable_rules(store, term);
  return NullableRules(store, order).holds(term);
}

bool accepts_nothing(TermStore& store, Term term) {
  const std::vector<Rule> order = reachable_rules(store, term);
  TermStore scratch(store.limits());
  Copy copy(store, scratch);
  return !ProductiveRules(store, scratch, copy, order).ends(term);
}

}  // namespace grammaton
