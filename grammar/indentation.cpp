// Indentation: what depends on the columns at which the lines of a block begin (docs/machine.md).
//
// The level of the block under way is a counter of the parameter of the rules inside of it. A plain
// rule passes its own parameter on by calls with kInherited, and a *margin* is the blanks before a
// line of the block: both are replaced when the rule is first called with a parameter. That costs
// what the body is long, for each level that a text reaches. A margin that is not empty becomes the
// call of a rule, so that it is seen where a level begins to matter (levels.cpp).
#include "grammar/terms.hpp"

namespace grammaton {

Term TermStore::margin(std::uint32_t counter, std::uint32_t tab, bool some) {
  has_inherited_ = true;
  has_other_margins_ = has_other_margins_ || counter != 0;
  const int flags = kHasCall | (some ? 0 : kNullable);
  return intern(Kind::Margin, static_cast<std::uint8_t>(flags), counter, tab, some ? 1 : 0);
}

bool TermStore::depends_on_parameter(Term t) {
  if (!has_inherited_ || !has(t, kHasCall)) return false;
  std::vector<Term> pending{t};
  while (!pending.empty()) {
    const Term top = pending.back();
    if (depends_on_parameter_.contains(top)) {
      pending.pop_back();
      continue;
    }
    const Node n = nodes_[top];
    std::vector<Term> parts;
    bool depends = false;
    switch (n.kind) {
      case Kind::Margin:
        depends = true;
        break;
      case Kind::Call:
        depends = n.b == kInherited;
        break;
      case Kind::Concat:
        parts = {n.a, n.b};
        break;
      case Kind::Union:
        parts.assign(operands(top).begin(), operands(top).end());
        break;
      case Kind::Repeat:
        parts = {n.a};
        break;
      default:
        break;
    }
    std::erase_if(parts, [this](Term part) { return !has(part, kHasCall); });
    bool waits = false;
    for (const Term part : parts) {
      const auto known = depends_on_parameter_.find(part);
      if (known == depends_on_parameter_.end()) {
        pending.push_back(part);
        waits = true;
      } else {
        depends = depends || known->second;
      }
    }
    if (waits) continue;
    depends_on_parameter_.emplace(top, depends);
    pending.pop_back();
  }
  return depends_on_parameter_.at(t);
}

// The term with its margins written out and its calls given the parameter.
Term TermStore::with_parameter(Term t, Param param, std::unordered_map<Term, Term>& known) {
  if (!depends_on_parameter(t)) return t;
  if (const auto found = known.find(t); found != known.end()) return found->second;
  const Node n = nodes_[t];
  Term result = kNothing;
  switch (n.kind) {
    case Kind::Margin: {
      const std::uint32_t width = params_[param].counter(n.a);
      result = width > 0 ? call_margin(n.a, n.b, param) : n.c != 0 ? kNothing : kEmpty;
      break;
    }
    case Kind::Call:
      result = call(n.a, param);
      break;
    case Kind::Concat: {
      std::vector<Term> items;
      Term rest = t;
      for (; nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b)
        items.push_back(nodes_[rest].a);
      items.push_back(rest);
      for (Term& item : items) item = with_parameter(item, param, known);
      result = concat(items);
      break;
    }
    case Kind::Union: {
      std::vector<Term> items(operands(t).begin(), operands(t).end());
      for (Term& item : items) item = with_parameter(item, param, known);
      result = join(std::move(items));
      break;
    }
    case Kind::Repeat:
      result = repeat(with_parameter(n.a, param, known), n.b, n.c);
      break;
    default:
      break;
  }
  known.emplace(t, result);
  return result;
}

Term TermStore::call_margin(std::uint32_t counter, std::uint32_t tab, Param param) {
  const std::uint64_t key = (std::uint64_t{counter} << 32) | tab;
  auto known = margin_rules_.find(key);
  if (known == margin_rules_.end()) {
    known = margin_rules_.emplace(key, rule("margin")).first;
    RuleInfo& info = rules_[known->second];
    info.defined = true;
    info.inherits = true;
    info.is_margin = true;
    info.margin_counter = counter;
    info.margin_tab = tab;
  }
  return call(known->second, param);
}

// Every text of spaces and tabs of a width: a space and one that is narrower by 1, or a tab and one
// that is narrower by its width.
Term TermStore::blanks(std::uint32_t width, std::uint32_t tab) {
  if (tab == 0) return repeat(byte(' '), width, width);
  const auto key = [tab](std::uint32_t w) { return (std::uint64_t{w} << 32) | tab; };
  std::uint32_t from = width;
  while (from > 0 && !blanks_.contains(key(from))) --from;
  for (std::uint32_t w = from; w <= width; ++w) {
    if (w == 0) {
      blanks_.try_emplace(key(0), kEmpty);
      continue;
    }
    if (blanks_.contains(key(w))) continue;
    std::vector<Term> ways{concat(byte(' '), blanks_.at(key(w - 1)))};
    if (w >= tab) ways.push_back(concat(byte('\t'), blanks_.at(key(w - tab))));
    blanks_.emplace(key(w), join(std::move(ways)));
  }
  return blanks_.at(key(width));
}

}  // namespace grammaton
