// Which languages lie in others, as far as that can be read off the terms.
//
// Containment of regular languages takes exponential time to decide; what is asked here is whether
// it can be *seen*: by comparing operands, counts and characters. A "no" means nothing. Costs: some
// ten comparisons of nodes for most questions, kMostCompared at most; which characters a term uses
// is remembered.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr unsigned kMostCompared = 120;
// Terms with more nodes on the way have too many rests to be of use.
constexpr unsigned kMostRests = 600;

bool covers(const CodeRanges& all, const CodeRanges& some) {
  std::size_t i = 0;
  for (const CodeRange& r : some) {
    while (i < all.size() && all[i].high < r.low) ++i;
    if (i == all.size() || r.low < all[i].low || r.high > all[i].high) return false;
  }
  return true;
}

CodeRanges as_code_points(const ByteSet& set) {
  CodeRanges ranges;
  set.each([&](unsigned b) {
    if (!ranges.empty() && ranges.back().high + 1 == b) {
      ranges.back().high = b;
    } else {
      ranges.push_back({b, b});
    }
  });
  return ranges;
}

}  // namespace

// Whether `a`, one character or byte of a set, is one of `b`.
bool TermStore::letter_within(Term a, Term b) const {
  const Node& x = nodes_[a];
  const Node& y = nodes_[b];
  if (x.kind == Kind::Chars && y.kind == Kind::Chars)
    return y.b <= x.b && covers(ranges_[y.a], ranges_[x.a]);
  if (x.kind == Kind::Bytes && y.kind == Kind::Bytes)
    return (sets_[x.a] & sets_[y.a]) == sets_[x.a];
  if (x.kind == Kind::Bytes && y.kind == Kind::Chars)
    return y.b == 0 && sets_[x.a].is_ascii() && covers(ranges_[y.a], as_code_points(sets_[x.a]));
  if (x.kind == Kind::Chars && y.kind == Kind::Bytes)
    return sets_[y.a].is_ascii() && covers(as_code_points(sets_[y.a]), ranges_[x.a]);
  return false;
}

bool TermStore::is_star(Term t) const {
  const Node& n = nodes_[t];
  return n.kind == Kind::Repeat && n.b == 0 && n.c == kUnbounded &&
         (nodes_[n.a].kind == Kind::Chars || nodes_[n.a].kind == Kind::Bytes);
}

bool TermStore::uses_only(Term t, Term letter) {
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Nothing:
    case Kind::Empty:
      return true;
    case Kind::Bytes:
    case Kind::Chars:
      return letter_within(t, letter);
    case Kind::Repeat:
      return uses_only(n.a, letter);
    case Kind::Concat:
    case Kind::Union:
    case Kind::Intersect:
      break;
    default:
      return false;
  }
  const auto [known, fresh] =
      uses_only_.try_emplace((std::uint64_t{t} << 32) | letter, n.kind != Kind::Intersect);
  if (!fresh) return known->second;
  bool result = true;
  if (n.kind == Kind::Concat) {
    Term rest = t;
    for (; result && nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b)
      result = uses_only(nodes_[rest].a, letter);
    result = result && uses_only(rest, letter);
  } else {
    const std::vector<Term> items(list(n.a).begin(), list(n.a).end());
    const auto uses = [&](Term u) { return uses_only(u, letter); };
    result =
        n.kind == Kind::Union ? std::ranges::all_of(items, uses) : std::ranges::any_of(items, uses);
  }
  uses_only_[(std::uint64_t{t} << 32) | letter] = result;
  return result;
}

// X* takes in every operand that is written in X alone.
void TermStore::drop_within_stars(std::vector<Term>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Term star = items[i];
    if (!is_star(star)) continue;
    const Term letter = nodes_[star].a;
    std::erase_if(items, [&](Term u) { return u != star && uses_only(u, letter); });
    i = static_cast<std::size_t>(std::ranges::find(items, star) - items.begin());
  }
}

bool TermStore::within(Term a, Term b) {
  unsigned budget = kMostCompared;
  return within(a, b, budget);
}

bool TermStore::within(Term a, Term b, unsigned& budget) {
  if (a == b || a == kNothing) return true;
  if (budget == 0) return false;
  --budget;
  const Node x = nodes_[a];
  const Node y = nodes_[b];
  if (((x.flags | y.flags) & (kHasCall | kHasNoSplit)) != 0) return false;
  if (y.kind == Kind::Complement && y.a == kNothing) return true;
  if (a == kEmpty) return nullable(b);
  if (b == kEmpty || b == kNothing) return false;
  if (y.kind == Kind::Union) {
    const std::vector<Term> parts(list(y.a).begin(), list(y.a).end());
    if (std::ranges::find(parts, a) != parts.end()) return true;
    if (x.kind != Kind::Union && x.kind != Kind::Concat) {
      return std::ranges::any_of(parts, [&](Term u) { return within(a, u, budget); });
    }
    if (x.kind == Kind::Concat &&
        std::ranges::any_of(parts, [&](Term u) { return within(a, u, budget); })) {
      return true;
    }
  }
  if (x.kind == Kind::Union) {
    const std::vector<Term> parts(list(x.a).begin(), list(x.a).end());
    return std::ranges::all_of(parts, [&](Term u) { return within(u, b, budget); });
  }
  if (y.kind == Kind::Intersect) {
    const std::vector<Term> parts(list(y.a).begin(), list(y.a).end());
    return std::ranges::all_of(parts, [&](Term u) { return within(a, u, budget); });
  }
  if (x.kind == Kind::Intersect) {
    const std::vector<Term> parts(list(x.a).begin(), list(x.a).end());
    return std::ranges::any_of(parts, [&](Term u) { return within(u, b, budget); });
  }
  if (x.kind == Kind::Complement) return y.kind == Kind::Complement && within(y.a, x.a, budget);
  if (x.kind == Kind::Json) {
    if (y.kind == Kind::Json && x.b == y.b && x.c == y.c) return within(x.a, y.a, budget);
    if (y.kind != Kind::Concat) return false;
  }
  if (is_star(b)) return uses_only(a, y.a);
  if (letter_within(a, b)) return true;
  // Counts of the same items, or of items that lie in the others.
  if (y.kind == Kind::Repeat) {
    const Term item = x.kind == Kind::Repeat ? x.a : a;
    const std::uint32_t low = x.kind == Kind::Repeat ? x.b : 1;
    const std::uint32_t high = x.kind == Kind::Repeat ? x.c : 1;
    if (y.b <= low && high <= y.c && within(item, y.a, budget)) return true;
  }
  const bool x_pair = x.kind == Kind::Concat;
  const bool y_pair = y.kind == Kind::Concat;
  if (y_pair) {
    if (within(x_pair ? x.a : a, y.a, budget) && within(x_pair ? x.b : kEmpty, y.b, budget))
      return true;
    if (nullable(y.a) && within(a, y.b, budget)) return true;
    // X* y takes in x·z where it takes in z.
    if (x_pair && is_star(y.a) && uses_only(x.a, nodes_[y.a].a) && within(x.b, b, budget))
      return true;
  }
  if (x_pair) {
    // (u | v)·w, operand by operand.
    const Node head = nodes_[x.a];
    if (head.kind == Kind::Union) {
      const std::vector<Term> parts(list(head.a).begin(), list(head.a).end());
      return std::ranges::all_of(parts, [&](Term u) { return within(concat(u, x.b), b, budget); });
    }
    const Node tail = nodes_[x.b];
    if (tail.kind == Kind::Union && list(tail.a).size() <= 32) {
      const std::vector<Term> parts(list(tail.a).begin(), list(tail.a).end());
      return std::ranges::all_of(parts, [&](Term u) { return within(concat(x.a, u), b, budget); });
    }
  }
  return false;
}

std::optional<Term> TermStore::rests(Term t) {
  unsigned budget = kMostRests;
  const Term found = rests(t, budget);
  if (budget == 0) return std::nullopt;
  return found;
}

// Of a text of whole characters. With a budget of 0 in the end, it is no answer.
Term TermStore::rests(Term t, unsigned& budget) {
  if (budget == 0) return kNothing;
  --budget;
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Nothing:
    case Kind::Empty:
      return t;
    case Kind::Bytes:
      if (!sets_[n.a].is_ascii()) budget = 0;
      return repeat(t, 0, 1);
    case Kind::Chars:
      return repeat(t, 0, 1);
    case Kind::Concat: {
      std::vector<Term> found;
      Term rest = t;
      for (; nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b) {
        const Node link = nodes_[rest];
        found.push_back(concat(rests(link.a, budget), link.b));
      }
      found.push_back(rests(rest, budget));
      return join(std::move(found));
    }
    case Kind::Union: {
      std::vector<Term> found(list(n.a).begin(), list(n.a).end());
      for (Term& u : found) u = rests(u, budget);
      return join(std::move(found));
    }
    case Kind::Repeat: {
      const Term left = repeat(n.a, 0, n.c == kUnbounded ? kUnbounded : n.c - 1);
      const Term found = concat(rests(n.a, budget), left);
      return n.b == 0 ? join({found, kEmpty}) : found;
    }
    case Kind::Intersect: {
      std::vector<Term> found(list(n.a).begin(), list(n.a).end());
      for (Term& u : found) u = rests(u, budget);
      return intersect(std::move(found));
    }
    default:
      budget = 0;
      return kNothing;
  }
}

}  // namespace grammaton
