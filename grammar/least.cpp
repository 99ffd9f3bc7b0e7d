#include "grammar/least.hpp"

#include <algorithm>

namespace grammaton {

namespace {

constexpr std::uint64_t kMost = 1U << 30;

}  // namespace

std::uint32_t LeastBytes::of(Term t) {
  if (store_.nullable(t)) return 0;
  if (const auto known = known_.find(t); known != known_.end()) return known->second;
  return known_[t] = find(t);
}

std::uint32_t LeastBytes::find(Term t) {
  const Node& n = store_.node(t);
  switch (n.kind) {
    case Kind::Concat: {
      std::uint64_t sum = 0;
      Term rest = t;
      for (; store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b)
        sum += of(store_.node(rest).a);
      return static_cast<std::uint32_t>(std::min(kMost, sum + of(rest)));
    }
    case Kind::Union: {
      auto least = static_cast<std::uint32_t>(kMost);
      for (const Term u : store_.operands(t)) least = std::min(least, of(u));
      return least;
    }
    case Kind::Intersect: {
      // As if one after the other: what is nearer to the end of any of them comes first.
      std::uint64_t sum = 1;
      for (const Term u : store_.operands(t)) sum += of(u);
      return static_cast<std::uint32_t>(std::min(kMost, sum));
    }
    case Kind::Repeat:
      return static_cast<std::uint32_t>(std::min(kMost, std::uint64_t{n.b} * of(n.a)));
    case Kind::Json:
    case Kind::NoSplit:
    case Kind::Metered:
    case Kind::Without:
      return std::max(of(n.a), 1U);
    default:  // whatever it is, it is not the empty text
      return 1;
  }
}

}  // namespace grammaton
