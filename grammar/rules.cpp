// Rules, their parameters, and template bodies.
//
// A parameter is a set of bits and a list of counters, hash-consed to an integer. A template is a
// list of guarded alternatives; its body for one parameter is the union of those whose conditions
// hold, made when the call is first reached. So an object with 300 optional members in any order is
// 300 alternatives and not 2^300 states.
#include <algorithm>
#include <tuple>

#include "grammar/endings.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

// With fewer alternatives, instantiating all of them is cheaper than the rules that avoid it.
constexpr std::size_t kManyMembers = 5;
// Twins among so few calls are no matter.
constexpr std::size_t kFewCalls = 64;

}  // namespace

bool ParamValue::holds(const Condition& condition) const {
  switch (condition.op) {
    case Condition::Op::Unseen:
      return !seen(condition.index);
    case Condition::Op::AllSeen:
      return std::ranges::all_of(condition.bits, [this](std::uint32_t bit) { return seen(bit); });
    case Condition::Op::Between:
      return condition.low <= counter(condition.index) &&
             counter(condition.index) <= condition.high;
    case Condition::Op::Below:
      return counter(condition.index) <
             std::int64_t{counter(condition.low)} + static_cast<std::int32_t>(condition.high);
  }
  return false;
}

void ParamValue::apply(const Update& update) {
  if (update.op == Update::Op::See) {
    if (update.index / 64 >= bits.size()) bits.resize(update.index / 64 + 1, 0);
    bits[update.index / 64] |= std::uint64_t{1} << (update.index % 64);
    return;
  }
  if (update.index >= counters.size()) counters.resize(update.index + 1, 0);
  std::uint32_t& counter = counters[update.index];
  if (update.op == Update::Op::Set) {
    counter = update.value;
  } else if (update.op == Update::Op::Copy) {
    const std::uint64_t sum = std::uint64_t{this->counter(update.value)} + update.cap;
    counters[update.index] = static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, kUnbounded));
  } else {
    const std::uint64_t sum = std::uint64_t{counter} + update.value;
    counter = static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, update.cap));
  }
}

Param TermStore::param(ParamValue value) {
  while (!value.bits.empty() && value.bits.back() == 0) value.bits.pop_back();
  while (!value.counters.empty() && value.counters.back() == 0) value.counters.pop_back();
  if (value.bits.empty() && value.counters.empty()) return 0;
  std::uint64_t h = 11;
  for (const std::uint64_t w : value.bits) h = mix64(h + 1, w);
  h = hash_words(value.counters, h + 17);
  const Param known = param_lookup_.find(h, [&](Param p) { return params_[p] == value; });
  if (known != kNone) return known;
  if (params_.size() >= limits_.max_terms) {
    throw LimitFault("the grammar needs more than max_terms = " +
                     std::to_string(limits_.max_terms) + " parameter values");
  }
  const auto id = static_cast<Param>(params_.size());
  params_.push_back(std::move(value));
  param_lookup_.insert(h, id);
  return id;
}

Rule TermStore::rule(std::string name) {
  const auto id = static_cast<Rule>(rules_.size());
  RuleInfo info;
  info.name = std::move(name);
  rules_.push_back(std::move(info));
  return id;
}

void TermStore::define(Rule rule, Term body) {
  if (rules_[rule].defined) throw GrammarFault("rule `" + rules_[rule].name + "` is defined twice");
  rules_[rule].defined = true;
  rules_[rule].body = body;
  rules_[rule].inherits = depends_on_parameter(body);
}

void TermStore::define_template(Rule rule, std::vector<Alternative> alternatives) {
  if (rules_[rule].defined) throw GrammarFault("rule `" + rules_[rule].name + "` is defined twice");
  for (const Alternative& alternative : alternatives) {
    if (nullable(alternative.head)) {
      throw GrammarFault("an alternative of template rule `" + rules_[rule].name +
                         "` has a head that may be empty");
    }
    if (depends_on_parameter(alternative.head) || depends_on_parameter(alternative.tail)) {
      throw GrammarFault("an alternative of template rule `" + rules_[rule].name +
                         "` passes its parameter on otherwise than to the next rule");
    }
  }
  if (merge_keys_ && alternatives.size() >= kManyMembers) {
    for (Alternative& alternative : alternatives) split_after_key(rule, alternative);
  }
  RuleInfo& info = rules_[rule];
  info.defined = true;
  info.is_template = true;
  info.alternatives = std::move(alternatives);
  if (merge_keys_ && info.alternatives.size() >= kManyMembers) group_members(info);
}

// Moves what follows the key of a member into a rule of its own, so that only the member that is
// taken is instantiated: eight terms for each declared key and parameter otherwise.
void TermStore::split_after_key(Rule rule, Alternative& alternative) {
  if (alternative.next == kNone) return;
  std::vector<Term> heads;
  Term rest = alternative.head;
  bool found = false;
  for (; !found && nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b) {
    heads.push_back(nodes_[rest].a);
    found = key_text(heads.back()).has_value();
  }
  // The byte that closes the key stays: it tells whether the rest is worth a look.
  if (!found || nodes_[rest].kind != Kind::Concat || nodes_[nodes_[rest].a].kind != Kind::Bytes ||
      nullable(nodes_[rest].b)) {
    return;
  }
  heads.push_back(nodes_[rest].a);
  const Rule after = this->rule(rules_[rule].name + "_value");
  rules_[after].defined = true;
  rules_[after].is_template = true;
  rules_[after].alternatives.push_back(
      {nodes_[rest].b, alternative.next, alternative.tail, {}, std::move(alternative.updates)});
  alternative.head = concat(heads);
  alternative.next = after;
  alternative.tail = kEmpty;
  alternative.updates.clear();
}

Term TermStore::call(Rule rule, Param param) {
  if (param == kInherited) has_inherited_ = true;
  return intern(Kind::Call, kHasCall | kFirstCall | kEndless, rule, param, 0);
}

Term TermStore::body(Rule rule, Param param) {
  if (!rules_[rule].is_template && !rules_[rule].inherits) return rules_[rule].body;
  const std::uint64_t key = (std::uint64_t{rule} << 32) | param;
  if (const auto found = bodies_.find(key); found != bodies_.end()) return found->second;
  if (rules_[rule].inherits) {
    std::unordered_map<Term, Term> known;
    const RuleInfo& info = rules_[rule];
    const Term result = info.is_margin
                            ? blanks(params_[param].counter(info.margin_counter), info.margin_tab)
                            : with_parameter(info.body, param, known);
    bodies_.emplace(key, result);
    return result;
  }
  std::vector<Term> branches;
  for (std::uint32_t group = 0; group < rules_[rule].members.size(); ++group)
    branches.push_back(members_left(rule, param, group));
  const std::size_t count = rules_[rule].alternatives.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Alternative& alternative = rules_[rule].alternatives[i];
    if (alternative.listed || !holds(alternative, param)) continue;
    Term rest = alternative.tail;
    if (alternative.next != kNone) {
      ParamValue next = params_[param];
      for (const Update& update : alternative.updates) next.apply(update);
      const Rule next_rule = alternative.next;
      const Param next_param = this->param(std::move(next));
      if (has_cut_ && !can_end(next_rule, next_param)) continue;
      rest = concat(call(next_rule, next_param), rest);
    }
    branches.push_back(concat(alternative.head, rest));
  }
  const Term result = join(std::move(branches));
  bodies_.emplace(key, result);
  return result;
}

bool TermStore::holds(const Alternative& alternative, Param param) const {
  const ParamValue& value = params_[param];
  return std::ranges::all_of(alternative.conditions,
                             [&](const Condition& c) { return value.holds(c); });
}

bool TermStore::can_end(Rule rule, Param param) {
  if (!rules_[rule].is_template) return rules_[rule].body != kNothing;
  std::shared_ptr<const TemplateFacts>& facts = template_facts_[rule];
  if (facts == nullptr) facts = template_facts(*this, rule);
  if (!facts->cut) return true;
  const auto known = [this](Call call) -> std::optional<bool> {
    const auto found = can_end_.find((std::uint64_t{call.first} << 32) | call.second);
    return found == can_end_.end() ? std::nullopt : std::optional(found->second);
  };
  if (const std::optional<bool> found = known({rule, param})) return *found;
  const EndOracle oracle{
      [](const Alternative& a) { return a.head != kNothing && a.tail != kNothing; },
      [this](Rule plain) { return rules_[plain].body != kNothing; }, known};
  const EndAnswer answer = search_end(*this, *facts, {rule, param}, oracle, max_tries());
  if (answer.gave_up) throw too_many_tries(rule);
  for (const auto& [called, with] : answer.calls)
    can_end_[(std::uint64_t{called} << 32) | with] = answer.ends;
  return answer.ends;
}

LimitFault TermStore::too_many_tries(Rule rule) const {
  return LimitFault("deciding whether rule `" + rules_[rule].name + "` can end took more than " +
                        std::to_string(max_tries()) + " tries (10 times max_step_terms)",
                    rules_[rule].name);
}

std::span<const FirstCall> TermStore::first_calls(Term t) {
  if (!has(t, kFirstCall)) return {};
  if (facts_[t].calls_begin == kNone) {
    std::vector<FirstCall> calls;
    const Node n = nodes_[t];
    auto add = [&](Term inner, Term rest) {
      const auto found = first_calls(inner);
      const std::vector<FirstCall> copied(found.begin(), found.end());
      for (const FirstCall& c : copied) calls.push_back({c.rule, c.param, concat(c.rest, rest)});
    };
    switch (n.kind) {
      case Kind::Call:
        calls.push_back({n.a, n.b, kEmpty});
        break;
      case Kind::Distinct:
        calls.push_back({kDistinct, t, take(Written{n.b})});
        break;
      case Kind::Concat: {
        Term rest = t;
        for (;;) {
          const Node link = nodes_[rest];
          if (link.kind != Kind::Concat) {
            add(rest, kEmpty);
            break;
          }
          add(link.a, link.b);
          if (!nullable(link.a)) break;
          rest = link.b;
        }
        break;
      }
      case Kind::Union: {
        const std::vector<Term> items(list(n.a).begin(), list(n.a).end());
        for (const Term item : items) add(item, kEmpty);
        break;
      }
      case Kind::Repeat:
        add(n.a, repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1));
        break;
      default:
        break;
    }
    // Parts that may be empty say the same in many ways: n of them in a row up to n^3.
    if (calls.size() > kFewCalls) {
      const auto place = [](const FirstCall& c) { return std::tuple(c.rule, c.param, c.rest); };
      std::ranges::sort(calls, {}, place);
      const auto twins = std::ranges::unique(calls, {}, place);
      calls.erase(twins.begin(), twins.end());
    }
    facts_[t].calls_begin = static_cast<std::uint32_t>(first_calls_.size());
    facts_[t].calls_count = static_cast<std::uint32_t>(calls.size());
    first_calls_.insert(first_calls_.end(), calls.begin(), calls.end());
  }
  return {first_calls_.data() + facts_[t].calls_begin, facts_[t].calls_count};
}

}  // namespace grammaton
