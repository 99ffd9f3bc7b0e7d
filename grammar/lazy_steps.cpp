// Steps without rows, for terms that are put together of many.
//
// The row of an intersection with three complements of unions is a new intersection for each of
// some twenty classes of bytes, each with an end to be looked for. Where a vocabulary is walked,
// most of those are never asked for: a node of a trie has few children. A lazy row has the classes,
// which are what the operands' rows tell apart, and makes a residual when it is asked for. It is
// the same term that the row has.
//
// Costs: 2 us a term for its classes, 1 us a residual; 5 ns when they are there.
#include <algorithm>
#include <array>

#include "grammar/partition.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr unsigned kDeepest = 400;

class Deeper {
 public:
  explicit Deeper(unsigned& depth) : depth_(depth) {
    if (depth_ > kDeepest) {
      throw LimitFault("the grammar nests operators more than " + std::to_string(kDeepest) +
                       " deep");
    }
    ++depth_;
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  unsigned& depth_;
};

bool stands_for_itself(unsigned byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

}  // namespace

Term TermStore::step_lazily(Term t, unsigned byte) {
  return has(t, kMaybeEmpty) ? step_once(t, byte) : step(t, byte);
}

Term TermStore::step_once(Term t, unsigned byte) {
  if (facts_[t].row.map != kNone || has(t, kStepwise) || !(has(t, kMaybeEmpty) || is_composed(t)))
    return step(t, byte);
  const LazyRow row = lazy_row(t);
  const std::size_t at = row.targets + maps_[row.map].of[byte];
  if (lazy_targets_[at] == kNone) {
    const Term next = residual(t, byte);
    lazy_targets_[at] = has(next, kMaybeEmpty) && is_empty(next) ? kNothing : next;
  }
  return lazy_targets_[at];
}

ByteSet TermStore::may_begin_with(Term t) {
  if (facts_[t].row.map != kNone || !has(t, kMaybeEmpty)) return maps_[row(t).map].live;
  const Deeper deeper(depth_);
  const Node n = nodes_[t];
  ByteSet found;
  switch (n.kind) {
    case Kind::Intersect:
      found = ByteSet::range(0, 255);
      // By index: making rows may move the lists.
      for (std::size_t i = 0; i < operands(t).size(); ++i)
        found = found & may_begin_with(operands(t)[i]);
      return found;
    case Kind::Union:
      for (std::size_t i = 0; i < operands(t).size(); ++i)
        found = found | may_begin_with(operands(t)[i]);
      return found;
    case Kind::Concat: {
      Term rest = t;
      for (; nodes_[rest].kind == Kind::Concat && nullable(nodes_[rest].a); rest = nodes_[rest].b)
        found = found | may_begin_with(nodes_[rest].a);
      return found | may_begin_with(nodes_[rest].kind == Kind::Concat ? nodes_[rest].a : rest);
    }
    case Kind::Complement:
      return ByteSet::range(0, 255);
    case Kind::Json: {
      if (n.b != 0 || n.c != 0) break;
      const ByteSet inner = may_begin_with(n.a);
      inner.each([&](unsigned b) {
        if (stands_for_itself(b)) found.add(b);
      });
      found.add('\\');
      return found;
    }
    default:
      break;
  }
  return maps_[row(t).map].live;
}

// Whether a residual can be made of those of the parts.
bool TermStore::is_composed(Term t) {
  if (facts_[t].raw_row.map != kNone) return false;
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Union:
    case Kind::Intersect:
    case Kind::Complement:
      return true;
    case Kind::Concat:
      return as_keys(t) == kNothing;
    case Kind::Json:
      return n.b == 0 && n.c == 0 && as_keys(t) == kNothing &&
             !(nodes_[n.a].kind == Kind::Intersect && all_but_few(n.a) != kNothing);
    default:
      return false;
  }
}

// The class maps of the rows that t is made of; bytes that are in one class of each have one
// residual.
void TermStore::add_maps(Term t, std::vector<std::uint32_t>& maps) {
  const Deeper deeper(depth_);
  if (!is_composed(t)) {
    const std::uint32_t map = raw_row(t).map;
    if (std::ranges::find(maps, map) == maps.end()) maps.push_back(map);
    return;
  }
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Union:
    case Kind::Intersect:
      // By index: making rows may move the lists.
      for (std::size_t i = 0; i < operands(t).size(); ++i) add_maps(operands(t)[i], maps);
      return;
    case Kind::Concat: {
      Term rest = t;
      while (nodes_[rest].kind == Kind::Concat) {
        const Node link = nodes_[rest];
        add_maps(link.a, maps);
        rest = nullable(link.a) ? link.b : kNothing;
      }
      if (rest != kNothing) add_maps(rest, maps);
      return;
    }
    case Kind::Json: {
      if (spelled_map_ == kNone) {
        std::array<std::uint8_t, 256> of{};
        for (unsigned b = 0; b < 256; ++b) of[b] = stands_for_itself(b) ? 1 : 0;
        of['\\'] = 2;
        spelled_map_ = intern_map(of);
      }
      if (std::ranges::find(maps, spelled_map_) == maps.end()) maps.push_back(spelled_map_);
      add_maps(n.a, maps);
      return;
    }
    default:
      add_maps(n.a, maps);
  }
}

TermStore::LazyRow TermStore::lazy_row(Term t) {
  if (lazy_rows_.size() <= t) lazy_rows_.resize(std::max(nodes_.size(), std::size_t{t} + 1));
  if (lazy_rows_[t].map != kNone) return lazy_rows_[t];
  std::vector<std::uint32_t> maps;
  add_maps(t, maps);
  std::ranges::sort(maps);
  const auto [found, fresh] = refined_.try_emplace(maps, kNone);
  if (fresh) {
    Partition partition;
    for (const std::uint32_t map : maps) partition.refine(maps_[map], false);
    found->second = intern_map(partition.cells());
  }
  LazyRow row;
  row.map = found->second;
  row.targets = static_cast<std::uint32_t>(lazy_targets_.size());
  const std::size_t classes = std::size_t{1} + std::ranges::max(maps_[row.map].of);
  lazy_targets_.resize(lazy_targets_.size() + classes, kNone);
  if (lazy_rows_.size() <= t) lazy_rows_.resize(nodes_.size());
  return lazy_rows_[t] = row;
}

// What the raw row has there.
Term TermStore::residual(Term t, unsigned byte) {
  const Deeper deeper(depth_);
  if (!is_composed(t)) return step_raw(t, byte);
  const Node n = nodes_[t];
  std::vector<Term> residuals;
  switch (n.kind) {
    case Kind::Intersect:
      for (std::size_t i = 0; i < operands(t).size(); ++i) {
        residuals.push_back(residual(operands(t)[i], byte));
        if (residuals.back() == kNothing) return kNothing;
      }
      return intersect(std::move(residuals));
    case Kind::Union:
      for (std::size_t i = 0; i < operands(t).size(); ++i) {
        const Term next = residual(operands(t)[i], byte);
        if (next != kNothing) residuals.push_back(next);
      }
      break;
    case Kind::Concat: {
      Term rest = t;
      while (rest != kNothing) {
        const Node link = nodes_[rest];
        const bool last = link.kind != Kind::Concat;
        const Term head = residual(last ? rest : link.a, byte);
        if (head != kNothing) residuals.push_back(last ? head : concat(head, link.b));
        rest = !last && nullable(link.a) ? link.b : kNothing;
      }
      break;
    }
    case Kind::Json:
      if (byte == '\\') return step_raw(t, byte);
      return stands_for_itself(byte) ? json(step_once(n.a, byte)) : kNothing;
    default:
      return raw_complement(residual(n.a, byte));
  }
  return residuals.empty()       ? kNothing
         : residuals.size() == 1 ? residuals[0]
                                 : join(std::move(residuals));
}

}  // namespace grammaton
