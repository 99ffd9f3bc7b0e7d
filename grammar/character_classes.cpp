#include "grammar/character_classes.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kFirstSurrogate = 0xD800;
constexpr std::uint32_t kLastSurrogate = 0xDFFF;
// Terms of more parts are not looked through.
constexpr std::size_t kMostParts = 6000;

}  // namespace

std::optional<CharacterClasses> CharacterClasses::of(TermStore& store, Term t) {
  CharacterClasses found;
  if (!found.collect(store, t)) return std::nullopt;
  return found;
}

bool CharacterClasses::add(CodeRanges ranges) {
  if (std::ranges::find(sets_, ranges) != sets_.end()) return true;
  if (sets_.size() == kMostSets) return false;
  sets_.push_back(std::move(ranges));
  return true;
}

bool CharacterClasses::collect(TermStore& store, Term start) {
  const Term json_character = store.any_json_character();
  std::vector<Term> left{start};
  std::unordered_set<Term> seen{start};
  const auto enter = [&](Term t) {
    if (seen.insert(t).second) left.push_back(t);
  };
  bool known = true;
  while (!left.empty()) {
    const Term t = left.back();
    left.pop_back();
    if (seen.size() > kMostParts) return false;
    if (t == json_character) {
      lifted_ = true;
      continue;
    }
    const Node& n = store.node(t);
    switch (n.kind) {
      case Kind::Nothing:
      case Kind::Empty:
        break;
      case Kind::Bytes: {
        if (!store.byte_set(t).is_ascii()) return false;
        CodeRanges ranges;
        store.byte_set(t).each([&](unsigned b) { ranges.push_back({b, b}); });
        known = add(normalise_ranges(std::move(ranges)));
        break;
      }
      case Kind::Chars:
        known = add(store.code_ranges(t));
        break;
      case Kind::Concat:
        enter(n.a);
        enter(n.b);
        break;
      case Kind::Union:
      case Kind::Intersect:
        for (const Term operand : store.operands(t)) enter(operand);
        break;
      case Kind::Complement:
      case Kind::Repeat:
        enter(n.a);
        break;
      case Kind::Json:
        if (n.b != 0 || n.c != 0) return false;
        lifted_ = true;
        enter(n.a);
        break;
      default:
        return false;
    }
    if (!known) return false;
  }
  if (lifted_) return add({{0, 0x1F}}) && add({{'"', '"'}}) && add({{'\\', '\\'}});
  return true;
}

void CharacterClasses::settle() {
  // Where a set begins or ends, and what are no characters.
  std::vector<std::uint32_t> bounds{0, kFirstSurrogate, kLastSurrogate + 1};
  for (const CodeRanges& set : sets_) {
    for (const CodeRange& r : set) {
      bounds.push_back(r.low);
      bounds.push_back(r.high + 1);
    }
  }
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::erase_if(bounds, [](std::uint32_t b) { return b >= kEndOfCodes; });
  std::vector<Signature> signatures(bounds.size());
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    for (const CodeRange& r : sets_[s]) {
      for (auto at =
               static_cast<std::size_t>(std::ranges::lower_bound(bounds, r.low) - bounds.begin());
           at < bounds.size() && bounds[at] <= r.high; ++at) {
        signatures[at][s / 64] |= std::uint64_t{1} << (s % 64);
      }
    }
  }
  std::map<Signature, unsigned> numbers;
  intervals_.clear();
  representatives_.clear();
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i] == kFirstSurrogate) {
      intervals_.push_back({bounds[i], 0});
      continue;
    }
    const auto [found, fresh] =
        numbers.emplace(signatures[i], static_cast<unsigned>(representatives_.size()));
    if (fresh) append_character(bounds[i], representatives_.emplace_back());
    intervals_.push_back({bounds[i], found->second});
  }
}

unsigned CharacterClasses::class_of(std::uint32_t code) const {
  return std::prev(std::ranges::upper_bound(intervals_, code, {}, &Interval::begin))->cls;
}

std::vector<std::uint8_t> CharacterClasses::table(std::uint32_t codes) const {
  std::vector<std::uint8_t> table(codes, 0);
  for (std::size_t i = 0; i < intervals_.size() && intervals_[i].begin < codes; ++i) {
    const std::uint32_t end =
        i + 1 < intervals_.size() ? std::min(codes, intervals_[i + 1].begin) : codes;
    std::fill(table.begin() + intervals_[i].begin, table.begin() + end,
              static_cast<std::uint8_t>(intervals_[i].cls));
  }
  return table;
}

bool CharacterClasses::tells(const CharacterClasses& others) const {
  if (others.lifted_ && !lifted_) return false;
  return std::ranges::all_of(others.sets_, [&](const CodeRanges& set) {
    if (std::ranges::find(sets_, set) != sets_.end()) return true;
    // By class: whether some of it is in the set, and some is not.
    std::vector<std::uint8_t> met(representatives_.size(), 0);
    for (std::size_t i = 0, at = 0; i < intervals_.size(); ++i) {
      const std::uint32_t begin = intervals_[i].begin;
      const std::uint32_t end = i + 1 < intervals_.size() ? intervals_[i + 1].begin : kEndOfCodes;
      while (at < set.size() && set[at].high < begin) ++at;
      const bool some = at < set.size() && set[at].low < end;
      const bool all = some && set[at].low <= begin && end - 1 <= set[at].high;
      std::uint8_t& here = met[intervals_[i].cls];
      here = static_cast<std::uint8_t>(here | (some ? 1 : 0) | (all ? 0 : 2));
      if (here == 3) return false;
    }
    return true;
  });
}

bool CharacterClasses::has_same_sets(const CharacterClasses& others) const {
  return lifted_ == others.lifted_ && sets_.size() == others.sets_.size() &&
         std::ranges::all_of(others.sets_, [this](const CodeRanges& set) {
           return std::ranges::find(sets_, set) != sets_.end();
         });
}

Hash128 CharacterClasses::hash() const {
  Hash128 hash;
  hash.add(lifted_ ? 1 : 0);
  for (const Interval& interval : intervals_)
    hash.add((std::uint64_t{interval.begin} << 32) | interval.cls);
  return hash;
}

}  // namespace grammaton
