// Unions: what is joined, and what it comes to.
//
// A union is flat, without repeats, in the order of structural hashes. It merges its byte sets,
// factors equal heads (`a·x | a·y` is `a·(x | y)`, so a literal set becomes a trie), joins counts
// that touch (X{0,3}Y | X{4,9}Y is X{0,9}Y, which keeps `(\S+\s*){0,1000}` small) and, in the
// stores of machines, makes one term of lifted literals (key_trie.cpp). Cost: a sort of the
// operands and a look at each head; tails that meet again are remembered (join_memo.hpp).
#include <algorithm>
#include <array>
#include <tuple>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr unsigned kMostFactored = 200;

class Nesting {
 public:
  explicit Nesting(unsigned& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  unsigned& depth_;
};

}  // namespace

// Replaces groups of items with one head h, h·x | h·y, by h·(x|y). True when anything changed.
bool TermStore::factor(std::vector<Term>& items) {
  auto head = [this](Term t) { return nodes_[t].kind == Kind::Concat ? nodes_[t].a : t; };
  bool repeated = false;
  if (items.size() <= 8) {
    for (std::size_t i = 0; i + 1 < items.size() && !repeated; ++i) {
      for (std::size_t j = i + 1; j < items.size(); ++j) {
        if (head(items[i]) == head(items[j])) {
          repeated = true;
          break;
        }
      }
    }
    if (!repeated) return false;
  }
  std::vector<std::pair<Term, Term>> keyed;
  keyed.reserve(items.size());
  for (const Term t : items) keyed.emplace_back(head(t), t);
  std::ranges::stable_sort(keyed, {}, &std::pair<Term, Term>::first);
  std::vector<Term> result;
  bool changed = false;
  for (std::size_t i = 0; i < keyed.size();) {
    std::size_t j = i + 1;
    while (j < keyed.size() && keyed[j].first == keyed[i].first) ++j;
    if (j == i + 1) {
      result.push_back(keyed[i].second);
    } else {
      std::vector<Term> tails;
      for (std::size_t k = i; k < j; ++k) {
        const Term t = keyed[k].second;
        tails.push_back(nodes_[t].kind == Kind::Concat ? nodes_[t].b : kEmpty);
      }
      result.push_back(concat(keyed[i].first, join_tails(std::move(tails))));
      changed = true;
    }
    i = j;
  }
  if (changed) items = std::move(result);
  return changed;
}

// The union of what stood behind one head. From the second level down it is remembered
// (join_memo.hpp); above, nearly every list is a new one.
Term TermStore::join_tails(std::vector<Term> tails) {
  const Nesting nesting(factor_depth_);
  if (factor_depth_ < 2) return join(std::move(tails));
  std::ranges::sort(tails);
  tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
  if (tails.size() == 1) return tails[0];
  const Term known = tails_.find(tails);
  if (known != kNone) return known;
  const Term result = join(tails);
  tails_.insert(tails, result);
  return result;
}

// Joins X{a,b}Y | X{c,d}Y where the counts touch. True when anything changed.
bool TermStore::merge_counts(std::vector<Term>& items) {
  struct Counted {
    Term base, rest, whole;
    std::uint32_t low, high;
  };
  std::vector<Counted> counted;
  bool has_empty = false;
  for (const Term t : items) {
    has_empty = has_empty || t == kEmpty;
    const Node& n = nodes_[t];
    if (n.kind == Kind::Repeat) {
      counted.push_back({n.a, kEmpty, t, n.b, n.c});
    } else if (n.kind == Kind::Concat && nodes_[n.a].kind == Kind::Repeat) {
      const Node& r = nodes_[n.a];
      counted.push_back({r.a, n.b, t, r.b, r.c});
    }
  }
  if (counted.empty()) return false;
  if (has_empty) {  // the empty text is X{0,0}
    for (const Counted& c : counted) {
      if (c.rest == kEmpty && c.low == 1) {
        std::erase(items, kEmpty);
        std::erase(items, c.whole);
        items.push_back(repeat(c.base, 0, c.high));
        return true;
      }
    }
  }
  if (counted.size() < 2) return false;
  std::ranges::sort(counted, [](const Counted& x, const Counted& y) {
    return std::tie(x.base, x.rest, x.low, x.high) < std::tie(y.base, y.rest, y.low, y.high);
  });
  bool changed = false;
  for (std::size_t i = 0; i < counted.size();) {
    Counted sum = counted[i];
    std::size_t j = i + 1;
    std::vector<Term> merged{sum.whole};
    for (; j < counted.size() && counted[j].base == sum.base && counted[j].rest == sum.rest; ++j) {
      if (sum.high != kUnbounded && counted[j].low > sum.high + 1) break;
      sum.high = std::max(sum.high, counted[j].high);
      merged.push_back(counted[j].whole);
    }
    if (merged.size() > 1) {
      std::erase_if(items, [&](Term t) { return std::ranges::find(merged, t) != merged.end(); });
      items.push_back(concat(repeat(sum.base, sum.low, sum.high), sum.rest));
      changed = true;
    }
    i = j;
  }
  return changed;
}

Term TermStore::join(std::vector<Term> items) {
  for (;;) {
    operands_ += items.size();
    if (operands_ > operands_end_) {
      throw LimitFault("one step joined more than " + std::to_string(kStepOperands) +
                       " * max_step_terms = " + std::to_string(limits_.max_step_terms) +
                       " operands of unions; the grammar is too ambiguous to follow");
    }
    std::vector<Term> flat;
    flat.reserve(items.size());
    ByteSet set;
    std::array<CodeRanges, 2> code_points;  // of plain sets, of restricted ones
    for (const Term t : items) {
      const Node& n = nodes_[t];
      switch (n.kind) {
        case Kind::Nothing:
          break;
        case Kind::Bytes:
          set = set | sets_[n.a];
          break;
        case Kind::Chars:
          code_points[n.b].insert(code_points[n.b].end(), ranges_[n.a].begin(), ranges_[n.a].end());
          break;
        case Kind::Union:
          for (const Term u : list(n.a)) {
            if (nodes_[u].kind == Kind::Bytes) {
              set = set | sets_[nodes_[u].a];
            } else if (nodes_[u].kind == Kind::Chars) {
              const CodeRanges& more = ranges_[nodes_[u].a];
              CodeRanges& all = code_points[nodes_[u].b];
              all.insert(all.end(), more.begin(), more.end());
            } else {
              flat.push_back(u);
            }
          }
          break;
        default:
          flat.push_back(t);
      }
    }
    for (const bool restricted : {false, true}) {
      if (!code_points[restricted].empty())
        flat.push_back(chars(std::move(code_points[restricted]), restricted));
    }
    if (!set.empty()) flat.push_back(bytes(set));
    const Term all = everything();
    if (std::ranges::find(flat, all) != flat.end()) return all;
    const auto has_empty = std::ranges::find(flat, kEmpty);
    if (has_empty != flat.end() &&
        std::ranges::any_of(flat, [this](Term t) { return t != kEmpty && nullable(t); })) {
      std::erase(flat, kEmpty);
    }
    sort_by_hash(flat);
    drop_within_stars(flat);
    if (flat.empty()) return kNothing;
    if (flat.size() == 1) return flat[0];
    // Factoring goes down common beginnings a step at a time; very long ones stay as they are.
    const bool shallow = factor_depth_ < kMostFactored;
    if ((shallow && factor(flat)) || merge_counts(flat) || merge_lifts(flat)) {
      items = std::move(flat);
      continue;
    }
    std::uint8_t flags = 0;
    for (const Term t : flat) flags |= nodes_[t].flags;
    flags = static_cast<std::uint8_t>(flags & ~kStepwise);
    return intern(Kind::Union, flags, intern_list(flat), 0, 0);
  }
}

}  // namespace grammaton
