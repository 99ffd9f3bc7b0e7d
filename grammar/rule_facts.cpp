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

namespace {

class Scopes {
 public:
  Scopes(TermStore& store, const std::vector<Rule>& order) : store_(store) {
    // Which rules speak of the scope around them: a least fixpoint, in rounds.
    speaks_.resize(store.rule_count(), false);
    for (bool changed = true; changed;) {
      changed = false;
      known_.assign(store.size(), 0);
      for (const Rule rule : order) {
        if (speaks_[rule] || store.rule_info(rule).scoped || !body_speaks(rule)) continue;
        speaks_[rule] = changed = true;
      }
    }
  }

  void check(Term start, const std::vector<Rule>& order) {
    if (speaks(start)) throw GrammarFault("a distinct value stands in no scope");
    for (const Rule rule : order) {
      const RuleInfo& info = store_.rule_info(rule);
      const bool within = info.scoped || speaks_[rule];
      if (!info.is_template) check_body(rule, info.body, within);
      for (const Alternative& alternative : info.alternatives) {
        check_part(rule, alternative.head);
        check_body(rule, alternative.tail, within);
        if (alternative.next != kNone && speaks_[alternative.next] && alternative.tail != kEmpty)
          fail(rule);
      }
    }
  }

 private:
  bool body_speaks(Rule rule) {
    const RuleInfo& info = store_.rule_info(rule);
    if (!info.is_template) return speaks(info.body);
    return std::ranges::any_of(info.alternatives, [&](const Alternative& a) {
      return speaks(a.head) || speaks(a.tail) || (a.next != kNone && speaks_[a.next]);
    });
  }

  bool speaks(Term t) {
    if (!store_.has(t, kHasCall)) return false;
    if (known_[t] != 0) return known_[t] == 1;
    const Node n = store_.node(t);
    bool result = false;
    switch (n.kind) {
      case Kind::Distinct:
        result = true;
        break;
      case Kind::Call:
        result = speaks_[n.a];
        break;
      case Kind::Concat: {
        Term rest = t;
        for (; !result && store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b)
          result = speaks(store_.node(rest).a);
        result = result || speaks(rest);
        break;
      }
      case Kind::Union:
        for (const Term part : store_.operands(t)) result = result || speaks(part);
        break;
      case Kind::Repeat:
        result = speaks(n.a);
        break;
      default:
        break;
    }
    known_[t] = result ? 1 : 2;
    return result;
  }

  // A term that something follows: calls in it must not speak of the scope.
  void check_part(Rule rule, Term t) {
    if (!speaks(t)) return;
    const Node n = store_.node(t);
    switch (n.kind) {
      case Kind::Call:
        if (speaks_[n.a]) fail(rule);
        break;
      case Kind::Concat:
        for (; store_.node(t).kind == Kind::Concat; t = store_.node(t).b)
          check_part(rule, store_.node(t).a);
        check_part(rule, t);
        break;
      case Kind::Union:
        for (const Term part : store_.operands(t)) check_part(rule, part);
        break;
      case Kind::Repeat:
        check_part(rule, n.a);
        break;
      default:
        break;
    }
  }

  void check_body(Rule rule, Term t, bool within) {
    if (!speaks(t)) return;
    const Node n = store_.node(t);
    if (n.kind == Kind::Union) {
      for (const Term part : store_.operands(t)) check_body(rule, part, within);
    } else if (n.kind == Kind::Concat) {
      for (; store_.node(t).kind == Kind::Concat; t = store_.node(t).b)
        check_part(rule, store_.node(t).a);
      check_body(rule, t, within);
    } else if (n.kind != Kind::Call || !within) {
      check_part(rule, t);
    }
  }

  [[noreturn]] void fail(Rule rule) const {
    throw GrammarFault(
        "in rule `" + store_.rule_info(rule).name +
            "`, something follows a rule with a distinct value within the same scope",
        store_.rule_info(rule).name);
  }

  TermStore& store_;
  std::vector<bool> speaks_;
  std::vector<std::uint8_t> known_;
};

}  // namespace

void check_scopes(TermStore& store, Term start, const std::vector<Rule>& order) {
  Scopes(store, order).check(start, order);
}

}  // namespace grammaton
