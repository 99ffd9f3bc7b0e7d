#include "grammar/left_recursion.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace grammaton {

namespace {

using Edges = std::vector<std::vector<std::uint32_t>>;

// Which strongly connected component each node is in.
std::vector<std::uint32_t> components(const Edges& edges) {
  const auto count = static_cast<std::uint32_t>(edges.size());
  std::vector<std::uint32_t> component(count, kNone);
  std::vector<std::uint32_t> index(count, kNone);
  std::vector<std::uint32_t> low(count, 0);
  std::vector<std::uint32_t> open;
  std::vector<std::pair<std::uint32_t, std::size_t>> path;
  std::uint32_t indices = 0;
  std::uint32_t made = 0;
  const auto enter = [&](std::uint32_t node) {
    index[node] = low[node] = indices++;
    open.push_back(node);
    path.emplace_back(node, 0);
  };
  for (std::uint32_t start = 0; start < count; ++start) {
    if (index[start] == kNone) enter(start);
    while (!path.empty()) {
      const std::uint32_t node = path.back().first;
      if (path.back().second < edges[node].size()) {
        const std::uint32_t to = edges[node][path.back().second++];
        if (index[to] == kNone) {
          enter(to);
        } else if (component[to] == kNone) {
          low[node] = std::min(low[node], index[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[node]);
      if (low[node] != index[node]) continue;
      for (std::uint32_t member = kNone; member != node;) {
        member = open.back();
        open.pop_back();
        component[member] = made;
      }
      ++made;
    }
  }
  return component;
}

// The rules that each rule can begin with, by the bodies to be and the templates defined.
Edges first_rules(TermStore& store, const std::vector<Term>& bodies) {
  Edges edges(bodies.size());
  for (Rule rule = 0; rule < bodies.size(); ++rule) {
    const auto add = [&](Term t) {
      for (const FirstCall& call : store.first_calls(t)) {
        if (call.rule != kDistinct) edges[rule].push_back(call.rule);
      }
    };
    if (bodies[rule] != kNone) add(bodies[rule]);
    const std::size_t alternatives = store.rule_info(rule).alternatives.size();
    for (std::size_t i = 0; i < alternatives; ++i) add(store.rule_info(rule).alternatives[i].head);
  }
  return edges;
}

// Rules that begin with each other, some of them called from elsewhere: the *entries*.
class Knot {
 public:
  Knot(TermStore& store, WithoutEmpty& without_empty, const std::vector<Term>& bodies,
       std::vector<Rule> rules);

  // The body of an entry. The tail rules that it needs are defined.
  Term body(Rule entry);

 private:
  // Rules that are each other by unit calls (`a: b | ...`, `b: a | ...`) have the same texts and
  // the same tails: one *class*.
  struct Class {
    std::string name;
    Term starts = kNothing;               // texts that begin outside of the knot
    std::map<std::uint32_t, Term> grows;  // by class: class -> this, then the term
    std::vector<std::uint32_t> unit_of;   // other classes that may be a text of this alone
    std::vector<std::uint32_t> units;     // the reverse
  };

  Term outside(Term t);
  Term make_outside(Term t);
  Term make_body(std::uint32_t entry);

  TermStore& store_;
  WithoutEmpty& without_empty_;
  std::unordered_map<Rule, std::uint32_t> class_of_;
  std::vector<Class> classes_;
  std::unordered_map<std::uint32_t, Term> entries_;
  std::unordered_map<Term, Term> outside_;
  std::size_t tail_rules_ = 0;
};

Knot::Knot(TermStore& store, WithoutEmpty& without_empty, const std::vector<Term>& bodies,
           std::vector<Rule> rules)
    : store_(store), without_empty_(without_empty) {
  std::unordered_map<Rule, std::uint32_t> number;
  for (const Rule rule : rules) number.emplace(rule, static_cast<std::uint32_t>(number.size()));
  std::vector<std::vector<FirstCall>> calls(rules.size());
  Edges units(rules.size());
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const std::span<const FirstCall> all = store.first_calls(bodies[rules[i]]);
    for (const FirstCall& call : all) {
      if (!number.contains(call.rule)) continue;
      calls[i].push_back(call);
      if (store.nullable(call.rest)) units[i].push_back(number[call.rule]);
    }
  }
  const std::vector<std::uint32_t> component = components(units);
  classes_.resize(*std::ranges::max_element(component) + 1);
  for (std::uint32_t i = 0; i < rules.size(); ++i) class_of_[rules[i]] = component[i];
  std::vector<std::vector<Term>> starts(classes_.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Term>> grows;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const std::uint32_t to = component[i];
    if (classes_[to].name.empty()) classes_[to].name = store.rule_info(rules[i]).name;
    starts[to].push_back(outside(bodies[rules[i]]));
    for (const FirstCall& call : calls[i]) {
      const std::uint32_t from = class_of_[call.rule];
      if (store.nullable(call.rest) && from != to) {
        classes_[from].unit_of.push_back(to);
        classes_[to].units.push_back(from);
      }
      grows[{from, to}].push_back(without_empty_.of(call.rest));
    }
  }
  for (std::size_t i = 0; i < classes_.size(); ++i)
    classes_[i].starts = store.join(std::move(starts[i]));
  for (auto& [edge, rests] : grows) {
    const Term rest = store.join(std::move(rests));
    if (rest != kNothing) classes_[edge.first].grows[edge.second] = rest;
  }
  for (Class& c : classes_) {
    for (std::vector<std::uint32_t>* list : {&c.units, &c.unit_of}) {
      std::ranges::sort(*list);
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }
}

// The texts of a term but the empty one, and those that begin with a call of the knot.
Term Knot::outside(Term t) {
  if (!store_.has(t, kFirstCall)) return without_empty_.of(t);
  if (const auto found = outside_.find(t); found != outside_.end()) return found->second;
  const Term result = make_outside(t);
  outside_.emplace(t, result);
  return result;
}

Term Knot::make_outside(Term t) {
  const Node n = store_.node(t);
  std::vector<Term> ways;
  switch (n.kind) {
    case Kind::Call:
      return class_of_.contains(n.a) ? kNothing : t;
    case Kind::Concat: {
      Term rest = t;
      for (;;) {
        const Node link = store_.node(rest);
        if (link.kind != Kind::Concat) {
          ways.push_back(outside(rest));
          break;
        }
        ways.push_back(store_.concat(outside(link.a), link.b));
        if (!store_.nullable(link.a)) break;
        rest = link.b;
      }
      return store_.join(std::move(ways));
    }
    case Kind::Union: {
      const std::vector<Term> items(store_.operands(t).begin(), store_.operands(t).end());
      for (const Term item : items) ways.push_back(outside(item));
      return store_.join(std::move(ways));
    }
    case Kind::Repeat: {
      const std::uint32_t most = n.c == kUnbounded ? kUnbounded : n.c - 1;
      return store_.concat(outside(n.a), store_.repeat(n.a, n.b == 0 ? 0 : n.b - 1, most));
    }
    default:
      return t;
  }
}

Term Knot::body(Rule entry) {
  const std::uint32_t c = class_of_.at(entry);
  if (const auto found = entries_.find(c); found != entries_.end()) return found->second;
  const Term result = make_body(c);
  entries_.emplace(c, result);
  return result;
}

Term Knot::make_body(std::uint32_t entry) {
  if (classes_.size() == 1) {
    const auto& grows = classes_[0].grows;
    const Term loop = grows.empty() ? kEmpty : store_.repeat(grows.at(0), 0, kUnbounded);
    return store_.concat(classes_[0].starts, loop);
  }
  // tail(entry, c) is what rule tails[c] says, and the empty text where units lead up to the entry.
  std::vector<bool> may_end(classes_.size(), false);
  std::vector<std::uint32_t> queue{entry};
  may_end[entry] = true;
  while (!queue.empty()) {
    const std::uint32_t c = queue.back();
    queue.pop_back();
    for (const std::uint32_t below : classes_[c].units) {
      if (!may_end[below]) queue.push_back(below);
      may_end[below] = true;
    }
  }
  tail_rules_ += classes_.size();
  if (tail_rules_ * 16 > store_.limits().max_terms) {
    throw LimitFault("left recursion through " + std::to_string(classes_.size()) +
                         " rules, such as `" + classes_[entry].name +
                         "`, takes too many rules to remove for max_terms = " +
                         std::to_string(store_.limits().max_terms),
                     classes_[entry].name);
  }
  std::vector<Rule> rules;
  std::vector<Term> tails;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    rules.push_back(store_.rule(classes_[entry].name + " after " + classes_[c].name));
    const Term call = store_.call(rules[c]);
    tails.push_back(may_end[c] ? store_.join({kEmpty, call}) : call);
  }
  std::vector<Term> ways;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (const auto& [to, rest] : classes_[c].grows) ways.push_back(store_.concat(rest, tails[to]));
    for (const std::uint32_t to : classes_[c].unit_of) ways.push_back(store_.call(rules[to]));
    store_.define(rules[c], store_.join(std::move(ways)));
    store_.set_loop(rules[c], tails[entry]);
    ways.clear();
  }
  for (std::size_t c = 0; c < classes_.size(); ++c)
    ways.push_back(store_.concat(classes_[c].starts, tails[c]));
  return store_.join(std::move(ways));
}

[[noreturn]] void refuse(TermStore& store, const Edges& edges,
                         const std::vector<std::uint32_t>& component, Rule rule) {
  // The shortest way back to the template.
  std::vector<Rule> queue{rule};
  std::unordered_map<Rule, Rule> came_from;
  for (std::size_t i = 0; i < queue.size() && !came_from.contains(rule); ++i) {
    for (const Rule to : edges[queue[i]]) {
      if (component[to] == component[rule] && came_from.emplace(to, queue[i]).second)
        queue.push_back(to);
    }
  }
  std::string cycle = store.rule_info(rule).name;
  Rule at = rule;
  do {
    at = came_from.at(at);
    cycle = store.rule_info(at).name + " -> " + cycle;
  } while (at != rule);
  throw GrammarFault(
      "left recursion through a rule with parameters or a scope is not supported: " + cycle,
      store.rule_info(rule).name);
}

}  // namespace

Term WithoutEmpty::of(Term t) {
  if (!store_.nullable(t)) return t;
  if (const auto found = known_.find(t); found != known_.end()) return found->second;
  const Term result = make(t);
  known_.emplace(t, result);
  return result;
}

Term WithoutEmpty::make(Term t) {
  const Node n = store_.node(t);
  std::vector<Term> ways;
  switch (n.kind) {
    case Kind::Empty:
      return kNothing;
    case Kind::Concat: {
      Term rest = t;
      for (; store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b) {
        const Node link = store_.node(rest);
        ways.push_back(store_.concat(of(link.a), link.b));
      }
      ways.push_back(of(rest));
      return store_.join(std::move(ways));
    }
    case Kind::Union: {
      const std::vector<Term> items(store_.operands(t).begin(), store_.operands(t).end());
      for (const Term item : items) ways.push_back(of(item));
      return store_.join(std::move(ways));
    }
    case Kind::Repeat: {
      const Term some = of(n.a);
      return store_.concat(some, store_.repeat(some, 0, n.c == kUnbounded ? kUnbounded : n.c - 1));
    }
    case Kind::Margin:
      return store_.margin(n.a, n.b, true);
    case Kind::Metered:
      return store_.metered(of(n.a), n.b, n.c);
    default:
      return store_.intersect({t, store_.raw_complement(kEmpty)});
  }
}

void define_without_left_recursion(TermStore& store, const std::vector<Term>& bodies, Term start,
                                   WithoutEmpty& without_empty) {
  const Edges edges = first_rules(store, bodies);
  const std::vector<std::uint32_t> component = components(edges);
  std::vector<std::uint32_t> sizes(bodies.size(), 0);
  for (const std::uint32_t c : component) ++sizes[c];
  std::vector<bool> knotted(bodies.size(), false);  // by component
  bool any = false;
  for (Rule rule = 0; rule < bodies.size(); ++rule) {
    if (sizes[component[rule]] == 1 && std::ranges::find(edges[rule], rule) == edges[rule].end())
      continue;
    if (store.rule_info(rule).is_template || store.rule_info(rule).scoped ||
        store.depends_on_parameter(bodies[rule]))
      refuse(store, edges, component, rule);
    knotted[component[rule]] = any = true;
  }
  if (!any) {
    for (Rule rule = 0; rule < bodies.size(); ++rule) {
      if (bodies[rule] != kNone) store.define(rule, bodies[rule]);
    }
    return;
  }
  // From the start onwards, so that only rules called from outside their knot become entries.
  std::vector<std::vector<Rule>> members(bodies.size());
  for (Rule rule = 0; rule < bodies.size(); ++rule) members[component[rule]].push_back(rule);
  std::vector<std::unique_ptr<Knot>> knots(bodies.size());
  std::vector<Term> pending{start};
  std::vector<bool> seen;
  std::unordered_map<Rule, bool> reached;
  const auto reach = [&](Rule rule) {
    if (!reached.emplace(rule, true).second) return;
    if (!store.rule_info(rule).defined) {
      const std::uint32_t c = component[rule];
      if (knotted[c] && knots[c] == nullptr)
        knots[c] = std::make_unique<Knot>(store, without_empty, bodies, members[c]);
      store.define(rule, knotted[c] ? knots[c]->body(rule) : bodies[rule]);
    }
    pending.push_back(store.rule_info(rule).body);
    for (const Alternative& alternative : store.rule_info(rule).alternatives) {
      pending.push_back(alternative.head);
      pending.push_back(alternative.tail);
      if (alternative.next != kNone) pending.push_back(store.call(alternative.next));
    }
  };
  while (!pending.empty()) {
    const Term t = pending.back();
    pending.pop_back();
    if (!store.has(t, kHasCall)) continue;
    if (t >= seen.size()) seen.resize(store.size(), false);
    if (seen[t]) continue;
    seen[t] = true;
    const Node n = store.node(t);
    switch (n.kind) {
      case Kind::Concat:
        pending.push_back(n.a);
        pending.push_back(n.b);
        break;
      case Kind::Union:
        for (const Term part : store.operands(t)) pending.push_back(part);
        break;
      case Kind::Repeat:
        pending.push_back(n.a);
        break;
      case Kind::Keys:
      case Kind::KeyDigits:
        for (std::size_t i = 1; i < store.operands(t).size(); i += 2)
          pending.push_back(store.operands(t)[i]);
        break;
      case Kind::Call:
        reach(n.a);
        break;
      default:
        break;
    }
  }
}

}  // namespace grammaton
