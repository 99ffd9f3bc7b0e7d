// Terms whose tokens are counted: `max_tokens` and `temperature` of a rule (docs/machine.md).
//
// Metered(a, n) is the texts of a regular term a, of which at most n tokens may hold a part. The
// count is part of the term, so it is part of what a state is: a token that ends inside takes one
// off it (after_token). That there is always a way on, a token may end inside only if the shortest
// text that is left has no more bytes than tokens are left: where every byte is a token, they can
// say it. (Where characters are tokens only as a whole, they need fewer.) When none is left, the
// text is over. The temperature is only carried along.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

// Residuals that are looked at to find out how far from an end any of them is.
constexpr std::size_t kMostResiduals = 512;

}  // namespace

Term TermStore::metered(Term a, std::uint32_t tokens, std::uint32_t temperature) {
  if (has(a, kHasCall)) {
    throw GrammarFault("tokens are counted of regular terms only, and this one contains a rule");
  }
  if (a == kNothing || a == kEmpty) return a;
  if (tokens == kUnbounded && temperature == kNone) return a;
  has_meters_ = true;
  auto flags = static_cast<std::uint8_t>(nodes_[a].flags & ~kStepwise);
  if (tokens != kUnbounded) flags |= kHasNoSplit;
  return intern(Kind::Metered, flags, a, tokens, temperature);
}

Term TermStore::after_token(Term t) {
  if (!has_meters_ || !has(t, kHasNoSplit)) return t;
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Metered: {
      const Term inner = at_token_end(n.a);
      if (inner == kNothing || n.b == kUnbounded) return metered(inner, n.b, n.c);
      const std::uint32_t left = n.b - 1;
      if (shortest(inner) > left) return kNothing;
      return left == 0 ? kEmpty : metered(inner, left, n.c);
    }
    case Kind::Concat:
      return concat(after_token(n.a), n.b);
    case Kind::Union: {
      std::vector<Term> items(operands(t).begin(), operands(t).end());
      for (Term& item : items) item = after_token(item);
      return join(std::move(items));
    }
    default:
      return t;
  }
}

// Breadth first over residuals; what is found is kept for all on the way there.
std::uint32_t TermStore::shortest(Term t) {
  if (nullable(t)) return 0;
  if (const auto known = shortest_.find(t); known != shortest_.end()) return known->second;
  struct Reached {
    Term term;
    std::uint32_t from;
    std::uint32_t depth;
  };
  std::vector<Reached> queue{{t, 0, 0}};
  std::unordered_map<Term, bool> seen{{t, true}};
  std::uint32_t best = kUnbounded;
  std::uint32_t best_at = 0;
  for (std::uint32_t i = 0; i < queue.size() && queue[i].depth < best; ++i) {
    const std::uint32_t depth = queue[i].depth + 1;
    const Row row = this->row(queue[i].term);
    for (unsigned c = 1; c < row.classes; ++c) {
      const Term next = target(row, c);
      const auto known = shortest_.find(next);
      if (!nullable(next) && known == shortest_.end()) {
        if (seen.emplace(next, true).second) queue.push_back({next, i, depth});
        continue;
      }
      const std::uint32_t length = depth + (nullable(next) ? 0 : known->second);
      if (length < best) {
        best = length;
        best_at = i;
      }
    }
    if (queue.size() > limits_.max_step_terms) {
      throw LimitFault(
          "finding the shortest end of a rule with max_tokens took more than max_step_terms = " +
          std::to_string(limits_.max_step_terms) + " states");
    }
  }
  for (std::uint32_t at = best_at; best != kUnbounded; at = queue[at].from) {
    shortest_[queue[at].term] = best - queue[at].depth;
    if (at == 0) break;
  }
  return best;
}

// The longest of the shortest ends of all residuals; kUnbounded where there are many.
std::uint32_t TermStore::farthest(Term t) {
  if (const auto known = farthest_.find(t); known != farthest_.end()) return known->second;
  std::vector<Term> queue{t};
  std::unordered_map<Term, bool> seen{{t, true}};
  std::uint32_t most = shortest(t);
  for (std::size_t i = 0; i < queue.size() && queue.size() <= kMostResiduals; ++i) {
    const Row row = this->row(queue[i]);
    for (unsigned c = 1; c < row.classes; ++c) {
      const Term next = target(row, c);
      if (!seen.emplace(next, true).second) continue;
      queue.push_back(next);
      most = std::max(most, shortest(next));
    }
  }
  if (queue.size() > kMostResiduals) most = kUnbounded;
  for (const Term residual : queue) farthest_.emplace(residual, most);
  return most;
}

Term TermStore::without_meter(Term t) {
  if (!has_meters_) return t;
  const Node n = nodes_[t];
  if (n.kind != Kind::Metered) return t;
  return n.b == kUnbounded || farthest(n.a) < n.b ? n.a : t;
}

}  // namespace grammaton
