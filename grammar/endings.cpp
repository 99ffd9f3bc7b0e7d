#include "grammar/endings.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace grammaton {

namespace {

std::uint64_t key_of(Call call) { return (std::uint64_t{call.first} << 32) | call.second; }

void note(std::vector<std::uint8_t>& helps, std::uint32_t index, unsigned help) {
  if (index >= helps.size()) helps.resize(index + 1, 0);
  helps[index] = static_cast<std::uint8_t>(helps[index] | help);
}

void note_condition(TemplateFacts& facts, const Condition& condition) {
  using Op = Condition::Op;
  constexpr unsigned kMore = TemplateFacts::kMore;
  constexpr unsigned kLess = TemplateFacts::kLess;
  switch (condition.op) {
    case Op::Unseen:
      note(facts.bits, condition.index, kLess);
      break;
    case Op::AllSeen:
      for (const std::uint32_t bit : condition.bits) note(facts.bits, bit, kMore);
      break;
    case Op::Between:
      if (condition.low > 0) note(facts.counters, condition.index, kMore);
      if (condition.high < kUnbounded) note(facts.counters, condition.index, kLess);
      break;
    case Op::Below:
      note(facts.counters, condition.index, kLess);
      note(facts.counters, condition.low, kMore);
      break;
  }
}

// The rules that a rule goes on to, itself among them.
std::vector<Rule> followers(const TermStore& store, Rule rule) {
  std::vector<Rule> queue{rule};
  std::unordered_set<Rule> found{rule};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Alternative& alternative : store.rule_info(queue[i]).alternatives) {
      if (alternative.next != kNone && found.insert(alternative.next).second)
        queue.push_back(alternative.next);
    }
  }
  return queue;
}

// The one alternative of a rule that can only go on; null for other rules.
const Alternative* only_way(const TermStore& store, Rule rule) {
  const RuleInfo& info = store.rule_info(rule);
  if (!info.is_template || info.alternatives.size() != 1) return nullptr;
  const Alternative& way = info.alternatives.front();
  return way.conditions.empty() && way.next != kNone ? &way : nullptr;
}

// Bits and counters that have to do with each other.
class Linked {
 public:
  static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{index} * 2; }
  static std::uint64_t counter(std::uint32_t index) { return std::uint64_t{index} * 2 + 1; }

  std::uint64_t find(std::uint64_t of) {
    std::uint64_t top = of;
    for (auto at = above_.emplace(of, of).first; at->second != top; at = above_.find(top))
      top = at->second;
    for (std::uint64_t at = of; at != top;) at = std::exchange(above_[at], top);
    return top;
  }
  void link(std::uint64_t a, std::uint64_t b) { above_[find(a)] = find(b); }

  // All that a condition speaks of, with each other and with `other`; the last of them.
  std::optional<std::uint64_t> add(const Condition& condition, std::optional<std::uint64_t> other) {
    using Op = Condition::Op;
    const auto with = [&](std::uint64_t one) {
      find(one);
      if (other) link(one, *other);
      other = one;
    };
    if (condition.op == Op::AllSeen) {
      for (const std::uint32_t index : condition.bits) with(bit(index));
    } else {
      with(condition.op == Op::Unseen ? bit(condition.index) : counter(condition.index));
      if (condition.op == Op::Below) with(counter(condition.low));
    }
    return other;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> above_;
};

// Whether the rest can go on with any member that can be taken: a way to has no condition, or asks
// that a counter is below what all members together, each once, add to it.
bool goes_on_with_any(const std::vector<Alternative>& members,
                      const std::vector<std::vector<Update>>& done,
                      const std::vector<Alternative>& ways) {
  std::unordered_set<std::uint32_t> counted;
  for (const Alternative& way : ways) {
    if (way.next == kNone || way.conditions.size() > 1) continue;
    if (way.conditions.empty()) return true;
    const Condition& condition = way.conditions.front();
    if (condition.op != Condition::Op::Between || condition.low != 0) continue;
    std::unordered_map<std::uint32_t, std::uint64_t> most;  // by the bit that a member wants unseen
    bool once = true;
    for (std::size_t i = 0; i < members.size() && once; ++i) {
      for (const Update& update : done[i]) {
        if (update.op == Update::Op::See || update.index != condition.index) continue;
        const auto unseen = std::ranges::find_if(members[i].conditions, [&](const Condition& c) {
          return c.op == Condition::Op::Unseen &&
                 std::ranges::any_of(done[i], [&](const Update& u) {
                   return u.op == Update::Op::See && u.index == c.index;
                 });
        });
        once = update.op == Update::Op::Add && update.value > 0 &&
               unseen != members[i].conditions.end();
        if (!once) break;
        std::uint64_t& here = most[unseen->index];
        here = std::max<std::uint64_t>(here, update.value);
      }
    }
    std::uint64_t all = 0;
    for (const auto& [bit, amount] : most) all += amount;
    if (once && all <= std::uint64_t{condition.high} + 1) counted.insert(condition.index);
  }
  return std::ranges::all_of(done, [&](const std::vector<Update>& updates) {
    return std::ranges::any_of(updates, [&](const Update& u) {
      return u.op == Update::Op::Add && counted.contains(u.index);
    });
  });
}

// Which goals have to be looked at together.
void find_parts(const std::vector<Alternative>& members,
                const std::vector<std::vector<Update>>& done, const std::vector<Alternative>& ways,
                TemplateFacts& facts) {
  Linked linked;
  const bool free = goes_on_with_any(members, done, ways);
  std::unordered_set<std::uint32_t> helpers;
  for (const TemplateFacts::Goal& goal : facts.goals) {
    linked.add(goal.condition, std::nullopt);
    helpers.insert(goal.helpers.begin(), goal.helpers.end());
  }
  std::unordered_set<std::uint32_t> asked;  // counters that some condition but one to go on asks of
  const auto note_asked = [&](const Condition& condition) {
    if (condition.op == Condition::Op::Between || condition.op == Condition::Op::Below)
      asked.insert(condition.index);
    if (condition.op == Condition::Op::Below) asked.insert(condition.low);
  };
  for (const TemplateFacts::Goal& goal : facts.goals) note_asked(goal.condition);
  for (const Alternative& member : members) std::ranges::for_each(member.conditions, note_asked);
  for (const std::uint32_t index : helpers) {
    std::optional<std::uint64_t> other;
    for (const Condition& condition : members[index].conditions)
      other = linked.add(condition, other);
    for (const Update& update : done[index]) {
      const bool see = update.op == Update::Op::See;
      if (free && !see && update.op != Update::Op::Copy && !asked.contains(update.index)) continue;
      const std::uint64_t one = see ? Linked::bit(update.index) : Linked::counter(update.index);
      if (other) linked.link(one, *other);
      other = one;
      if (update.op == Update::Op::Copy) linked.link(one, Linked::counter(update.value));
    }
    for (const Alternative& way : ways) {
      if (free || way.next == kNone) continue;
      for (const Condition& condition : way.conditions) other = linked.add(condition, other);
    }
  }
  std::unordered_map<std::uint64_t, std::size_t> number;
  for (std::uint32_t i = 0; i < facts.goals.size(); ++i) {
    const std::uint64_t top = linked.find(*linked.add(facts.goals[i].condition, std::nullopt));
    const auto [found, isNew] = number.emplace(top, facts.parts.size());
    if (isNew) facts.parts.emplace_back();
    facts.parts[found->second].push_back(i);
  }
}

// Finds the parts of an unordered rule, if it has the shape that is searched by goals.
void find_goals(const TermStore& store, const std::vector<Rule>& rules, TemplateFacts& facts) {
  Rule member = kNone;
  for (const Rule rule : rules) {
    if (!store.rule_info(rule).unordered) continue;
    if (member != kNone) return;
    member = rule;
  }
  if (member == kNone) return;
  Rule rest = kNone;
  std::vector<std::vector<Update>> done;  // by the alternatives of `member`, up to `rest`
  for (const Alternative& alternative : store.rule_info(member).alternatives) {
    std::vector<Update> updates = alternative.updates;
    Rule at = alternative.next;
    if (at == kNone) return;
    for (std::size_t steps = 0; const Alternative* way = only_way(store, at); ++steps) {
      if (steps == rules.size()) return;
      updates.insert(updates.end(), way->updates.begin(), way->updates.end());
      facts.between.insert(at);
      at = way->next;
    }
    if (rest != kNone && at != rest) return;
    rest = at;
    done.push_back(std::move(updates));
  }
  if (rest == kNone || rest == member) return;
  const std::vector<Alternative>& ways = store.rule_info(rest).alternatives;
  std::size_t ends = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].next == kNone) {
      ++ends;
      facts.end = static_cast<std::uint32_t>(i);
    } else if (ways[i].next != member || !ways[i].updates.empty()) {
      return;
    }
  }
  if (ends != 1) return;
  for (const Condition& condition : ways[facts.end].conditions) {
    if (condition.op != Condition::Op::AllSeen) {
      facts.goals.push_back({condition, {}});
      continue;
    }
    for (const std::uint32_t bit : condition.bits) {
      Condition one = condition;
      one.bits = {bit};
      facts.goals.push_back({std::move(one), {}});
    }
  }
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> changing;
  for (std::uint32_t i = 0; i < done.size(); ++i) {
    for (const Update& update : done[i]) {
      const bool see = update.op == Update::Op::See;
      auto& some = changing[see ? Linked::bit(update.index) : Linked::counter(update.index)];
      if (some.empty() || some.back() != i) some.push_back(i);
    }
  }
  for (TemplateFacts::Goal& goal : facts.goals) {
    const Condition& condition = goal.condition;
    const bool seen = condition.op == Condition::Op::AllSeen;
    if (condition.op == Condition::Op::Unseen) continue;  // a bit is never taken back
    goal.helpers =
        changing[seen ? Linked::bit(condition.bits[0]) : Linked::counter(condition.index)];
    if (condition.op == Condition::Op::Below) {
      const auto& more = changing[Linked::counter(condition.low)];
      goal.helpers.insert(goal.helpers.end(), more.begin(), more.end());
    }
  }
  find_parts(store.rule_info(member).alternatives, done, ways, facts);
  facts.unordered = true;
  facts.member = member;
  facts.rest = rest;
}

// How far a condition is from holding.
std::uint64_t lack(const Condition& condition, const ParamValue& value) {
  if (value.holds(condition)) return 0;
  const std::uint64_t counter = value.counter(condition.index);
  switch (condition.op) {
    case Condition::Op::Unseen:
    case Condition::Op::AllSeen:
      return 1;
    case Condition::Op::Between:
      return counter < condition.low ? condition.low - counter : counter - condition.high;
    case Condition::Op::Below:
      // 2^32 less than it is, lest it be negative.
      return (std::uint64_t{1} << 32) + counter - value.counter(condition.low);
  }
  return 1;
}

struct TooManyTries {};

class Search {
 public:
  Search(TermStore& store, const TemplateFacts& facts, const EndOracle& oracle,
         std::uint64_t max_tries)
      : store_(store), facts_(facts), oracle_(oracle), max_tries_(max_tries) {}

  EndAnswer run(Call start) {
    const bool goes_on = facts_.between.contains(start.first);
    if (!facts_.unordered ||
        !(goes_on || start.first == facts_.rest || start.first == facts_.member))
      return ordered(start);
    if (start.first == facts_.rest) return unordered(start, {start.second});
    if (goes_on) {
      ParamValue value = store_.param_value(start.second);
      if (!follow(start.first, value)) return {false, false, {start}};
      return unordered(start, {store_.param(std::move(value))});
    }
    const ParamValue value = store_.param_value(start.second);
    // As long as the end is not there the rest has to go on with a member, too.
    const bool ended = std::ranges::all_of(
        facts_.goals, [&](const auto& goal) { return value.holds(goal.condition); });
    if (!ended && may_go_on(value)) return unordered(start, {start.second});
    std::vector<Param> first;
    const std::size_t count = store_.rule_info(facts_.member).alternatives.size();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (const std::optional<Param> next = take(i, value)) first.push_back(*next);
    }
    return unordered(start, std::move(first));
  }

 private:
  void count_try() {
    if (++tries_ > max_tries_) throw TooManyTries{};
  }

  bool holds(const Alternative& alternative, const ParamValue& value) const {
    return std::ranges::all_of(alternative.conditions,
                               [&](const Condition& c) { return value.holds(c); });
  }

  // Up to the rest of an unordered rule; false where there is no way.
  bool follow(Rule rule, ParamValue& value) const {
    while (rule != facts_.rest) {
      const Alternative& way = store_.rule_info(rule).alternatives.front();
      if (!oracle_.present(way)) return false;
      for (const Update& update : way.updates) value.apply(update);
      rule = way.next;
    }
    return true;
  }

  // The parameter of the rest after an alternative of the unordered rule, if it can be taken.
  std::optional<Param> take(std::uint32_t index, const ParamValue& before) {
    count_try();
    const Alternative& alternative = store_.rule_info(facts_.member).alternatives[index];
    if (!holds(alternative, before) || !oracle_.present(alternative)) return std::nullopt;
    ParamValue value = before;
    for (const Update& update : alternative.updates) value.apply(update);
    if (!follow(alternative.next, value)) return std::nullopt;
    return store_.param(std::move(value));
  }

  bool may_go_on(const ParamValue& value) const {
    const std::vector<Alternative>& ways = store_.rule_info(facts_.rest).alternatives;
    return std::ranges::any_of(ways, [&](const Alternative& way) {
      return way.next != kNone && holds(way, value) && oracle_.present(way);
    });
  }

  struct Place {
    Param param;
    std::vector<Param> next;
    std::size_t tried = 0;
  };

  // From some parameters of the rest, one of which has to do.
  EndAnswer unordered(Call start, const std::vector<Param>& first) {
    EndAnswer answer{false, false, {start}};
    const Alternative& end = store_.rule_info(facts_.rest).alternatives[facts_.end];
    if (!oracle_.present(end)) return answer;
    for (const Param param : first) {
      std::vector<Param> met;
      answer.ends = std::ranges::all_of(facts_.parts, [&](const std::vector<std::uint32_t>& part) {
        return reaches(param, part, met);
      });
      for (const Param each : met) answer.calls.emplace_back(facts_.rest, each);
      if (!answer.ends) continue;
      // What was met without success on the way says nothing of this answer.
      answer.calls.assign({start, {facts_.rest, param}});
      for (const Param each : met) answer.calls.emplace_back(facts_.rest, each);
      break;
    }
    return answer;
  }

  // Depth first from a parameter of the rest to where the goals of a part hold. `met`: what leads
  // there, or, where nothing does, all that was tried.
  bool reaches(Param from, const std::vector<std::uint32_t>& part, std::vector<Param>& met) {
    std::vector<Place> path{{kNone, {from}}};
    std::unordered_set<Param> visited;
    while (!path.empty()) {
      Place& here = path.back();
      if (here.tried == here.next.size()) {
        path.pop_back();
        continue;
      }
      const Param param = here.next[here.tried++];
      if (!visited.insert(param).second) continue;
      const std::optional<bool> known = oracle_.known({facts_.rest, param});
      if (known == false) continue;
      path.push_back({param, {}});
      if (known == true || hold(param, part, path.back().next)) {
        for (std::size_t i = 1; i < path.size(); ++i) met.push_back(path[i].param);
        return true;
      }
    }
    met.assign(visited.begin(), visited.end());
    return false;
  }

  // Whether the goals of a part hold right here; if not, `next` is what may come nearer.
  bool hold(Param param, const std::vector<std::uint32_t>& part, std::vector<Param>& next) {
    const ParamValue value = store_.param_value(param);
    bool all = true;
    for (const std::uint32_t number : part) {
      const TemplateFacts::Goal& goal = facts_.goals[number];
      const std::uint64_t far = lack(goal.condition, value);
      if (far == 0) continue;
      if (all && !may_go_on(value)) return false;
      std::vector<Param> helping;
      for (const std::uint32_t index : goal.helpers) {
        const std::optional<Param> after = take(index, value);
        if (after && lack(goal.condition, store_.param_value(*after)) < far)
          helping.push_back(*after);
      }
      if (all || helping.size() < next.size()) next = std::move(helping);
      all = false;
      if (next.size() <= 1) return false;
    }
    return all;
  }

  // Whether what can follow with `after` could follow with `before`, too.
  bool is_worse(const ParamValue& after, const ParamValue& before) const {
    const auto help = [](const std::vector<std::uint8_t>& helps, std::size_t i) {
      return i < helps.size() ? helps[i] : std::uint8_t{0};
    };
    for (std::size_t word = 0; word < std::max(after.bits.size(), before.bits.size()); ++word) {
      const std::uint64_t a = word < after.bits.size() ? after.bits[word] : 0;
      const std::uint64_t b = word < before.bits.size() ? before.bits[word] : 0;
      for (std::uint64_t differ = a ^ b; differ != 0; differ &= differ - 1) {
        const auto low = static_cast<std::size_t>(std::countr_zero(differ));
        const bool more = ((a >> low) & 1) != 0;
        const unsigned wanted = more ? TemplateFacts::kMore : TemplateFacts::kLess;
        if ((help(facts_.bits, word * 64 + low) & wanted) != 0) return false;
      }
    }
    const std::size_t count = std::max(after.counters.size(), before.counters.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (after.counter(i) == before.counter(i)) continue;
      const bool more = after.counter(i) > before.counter(i);
      const unsigned wanted = more ? TemplateFacts::kMore : TemplateFacts::kLess;
      if ((help(facts_.counters, i) & wanted) != 0) return false;
    }
    return true;
  }

  struct Step {
    Call call;
    std::size_t tried = 0;
    std::size_t before = 0;  // the last place on the path with the same rule, 1 more; 0 for none
  };

  // Depth first to an alternative without a successor. What leads there can end; when there is
  // none, nothing that was reached can.
  EndAnswer ordered(Call start) {
    std::vector<Step> path{{start}};
    std::unordered_map<Rule, std::size_t> last{{start.first, 1}};
    std::unordered_map<std::uint64_t, Call> visited{{key_of(start), start}};
    EndAnswer answer;
    while (!path.empty() && !answer.ends) {
      const Call call = path.back().call;
      const RuleInfo& info = store_.rule_info(call.first);
      if (!info.is_template) {
        answer.ends = oracle_.plain_ends(call.first);
        if (!answer.ends) leave(path, last);
        continue;
      }
      if (path.back().tried == info.alternatives.size()) {
        leave(path, last);
        continue;
      }
      const Alternative& alternative = info.alternatives[path.back().tried++];
      count_try();
      if (!holds(alternative, store_.param_value(call.second)) || !oracle_.present(alternative))
        continue;
      if (alternative.next == kNone) {
        answer.ends = true;
        continue;
      }
      ParamValue value = store_.param_value(call.second);
      for (const Update& update : alternative.updates) value.apply(update);
      std::size_t& place = last[alternative.next];
      if (place != 0 && is_worse(value, store_.param_value(path[place - 1].call.second))) continue;
      const Call next{alternative.next, store_.param(std::move(value))};
      if (const std::optional<bool> known = oracle_.known(next)) {
        answer.ends = *known;
        continue;
      }
      if (!visited.emplace(key_of(next), next).second) continue;
      path.push_back({next, 0, place});
      place = path.size();
    }
    if (answer.ends) {
      for (const Step& step : path) answer.calls.push_back(step.call);
    } else {
      for (const auto& [key, call] : visited) answer.calls.push_back(call);
    }
    return answer;
  }

  static void leave(std::vector<Step>& path, std::unordered_map<Rule, std::size_t>& last) {
    last[path.back().call.first] = path.back().before;
    path.pop_back();
  }

  TermStore& store_;
  const TemplateFacts& facts_;
  const EndOracle& oracle_;
  std::uint64_t max_tries_;
  std::uint64_t tries_ = 0;
};

}  // namespace

std::shared_ptr<const TemplateFacts> template_facts(const TermStore& store, Rule rule) {
  const auto facts = std::make_shared<TemplateFacts>();
  const std::vector<Rule> rules = followers(store, rule);
  for (const Rule each : rules) {
    const RuleInfo& info = store.rule_info(each);
    facts->cut = facts->cut || info.cut;
    for (const Alternative& alternative : info.alternatives) {
      for (const Condition& condition : alternative.conditions) note_condition(*facts, condition);
      for (const Update& update : alternative.updates) {
        if (update.op != Update::Op::Copy) continue;
        note(facts->counters, update.index, TemplateFacts::kMore | TemplateFacts::kLess);
        note(facts->counters, update.value, TemplateFacts::kMore | TemplateFacts::kLess);
      }
    }
  }
  find_goals(store, rules, *facts);
  return facts;
}

EndAnswer search_end(TermStore& store, const TemplateFacts& facts, Call start,
                     const EndOracle& oracle, std::uint64_t max_tries) {
  try {
    return Search(store, facts, oracle, max_tries).run(start);
  } catch (const TooManyTries&) {
    return {true, false, {}};
  }
}

}  // namespace grammaton
