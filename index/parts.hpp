// The parts of a term: itself, what it is put together from, and so on. Calls are not entered.
#pragma once

#include <unordered_set>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

// Calls visit(part) for parts of a term, each once, breadth first, `most` of them; it returns
// whether what that part is put together from is visited as well. It makes no terms.
template <typename Visit>
void each_part(const TermStore& store, Term t, std::size_t most, Visit&& visit) {
  std::vector<Term> parts{t};
  std::unordered_set<Term> seen{t};
  const auto enter = [&](Term part) {
    if (seen.insert(part).second) parts.push_back(part);
  };
  for (std::size_t i = 0; i < parts.size() && i < most; ++i) {
    if (!visit(parts[i])) continue;
    const Node& n = store.node(parts[i]);
    switch (n.kind) {
      case Kind::Concat:
        enter(n.a);
        enter(n.b);
        break;
      case Kind::Union:
      case Kind::Intersect:
        for (const Term operand : store.operands(parts[i])) enter(operand);
        break;
      case Kind::Complement:
      case Kind::Repeat:
      case Kind::Json:
        enter(n.a);
        break;
      default:
        break;
    }
  }
}

}  // namespace grammaton
