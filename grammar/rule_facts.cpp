#include "grammar/rule_facts.hpp"

#include <algorithm>

namespace grammaton {

std::vector<Rule> reachable_rules(TermStore& store, Term start, const Known& known) {
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
    if (visit.id < (visit.is_rule ? known.rules : known.terms)) continue;
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

LeastFixpoint::LeastFixpoint(TermStore& store, std::span<const Term> roots, Sequences sequences,
                             const Settle& settle)
    : visited_(store.size(), false),
      yes_(store.size(), false),
      open_(store.size(), 0),
      uses_of_(store.size(), kNone),
      pending_(roots.begin(), roots.end()) {
  while (!pending_.empty()) {
    const Term t = pending_.back();
    pending_.pop_back();
    if (visited_[t]) continue;
    visited_[t] = true;
    visit(store, t, sequences, settle);
  }
  while (!queue_.empty()) {
    const Term t = queue_.back();
    queue_.pop_back();
    for (std::uint32_t use = uses_of_[t]; use != kNone; use = uses_[use].next) {
      const Term user = uses_[use].user;
      if (yes_[user] || --open_[user] != 0) continue;
      yes_[user] = true;
      queue_.push_back(user);
    }
  }
}

void LeastFixpoint::visit(TermStore& store, Term t, Sequences sequences, const Settle& settle) {
  const std::optional<bool> settled = settle(t);
  const Node& n = store.node(t);
  const bool all_parts = sequences == Sequences::AllParts;
  if (settled.value_or(n.kind == Kind::Repeat && n.b == 0 && all_parts)) {
    yes_[t] = true;
    queue_.push_back(t);
  }
  if (settled) return;
  open_[t] = n.kind == Kind::Concat && all_parts ? 2 : 1;
  switch (n.kind) {
    case Kind::Concat:
      depend(t, n.a);
      depend(t, n.b);
      break;
    case Kind::Union:
      for (const Term part : store.operands(t)) depend(t, part);
      break;
    case Kind::Repeat:
      depend(t, n.a);
      break;
    case Kind::Call:
      depend(t, store.rule_info(n.a).body);
      break;
    default:
      break;
  }
}

void LeastFixpoint::depend(Term user, Term part) {
  uses_.push_back({user, uses_of_[part]});
  uses_of_[part] = static_cast<std::uint32_t>(uses_.size() - 1);
  pending_.push_back(part);
}

std::vector<Term> roots_of(TermStore& store, Term start, const std::vector<Rule>& order) {
  std::vector<Term> roots{start};
  for (const Rule rule : order) {
    if (!store.rule_info(rule).is_template) roots.push_back(store.rule_info(rule).body);
  }
  return roots;
}

NullableRules::NullableRules(TermStore& store, Term start, const std::vector<Rule>& order,
                             const Known& known)
    : store_(store),
      nullable_(store, roots_of(store, start, order), LeastFixpoint::Sequences::AllParts,
                [&store, known](Term t) -> std::optional<bool> {
                  // No known rule may be empty, so that of known terms the store says it all.
                  if (t < known.terms || !store.has(t, kHasCall)) return store.nullable(t);
                  const Node& n = store.node(t);
                  if (n.kind == Kind::Token) return false;
                  if (n.kind == Kind::Margin) return store.nullable(t);
                  if (n.kind != Kind::Call) return std::nullopt;
                  if (n.a < known.rules || store.rule_info(n.a).is_template) return false;
                  return std::nullopt;
                }) {}

bool NullableRules::rule(Rule rule) const {
  const RuleInfo& info = store_.rule_info(rule);
  return !info.is_template && nullable_.holds(info.body);
}

bool NullableRules::holds(Term t) const { return nullable_.holds(t); }

}  // namespace grammaton
