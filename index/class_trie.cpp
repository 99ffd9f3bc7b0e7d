#include "index/class_trie.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "automata/flat_map.hpp"
#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kEndOfCodes = 0x110000;
constexpr std::uint32_t kFirstSurrogate = 0xD800;
constexpr std::uint32_t kLastSurrogate = 0xDFFF;
// Most characters of a vocabulary are below; their classes are looked up in a table.
constexpr std::uint32_t kTabled = 0xA000;
// Terms of more parts are not looked through.
constexpr std::size_t kMostParts = 6000;
// A class trie with more than one node for so many of the trie's is of no use.
constexpr std::size_t kGain = 4;

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
  const Term json_character = store.node(store.node(store.any_json_then(store.byte('"'))).a).a;
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

Hash128 CharacterClasses::hash() const {
  Hash128 hash;
  hash.add(lifted_ ? 1 : 0);
  for (const Interval& interval : intervals_)
    hash.add((std::uint64_t{interval.begin} << 32) | interval.cls);
  return hash;
}

class ClassTrie::Builder {
 public:
  Builder(const Trie& trie, const CharacterClasses& classes)
      : trie_(trie),
        classes_(classes),
        table_(classes.table(kTabled)),
        width_(static_cast<std::uint32_t>(classes.count())) {
    by_class_.reserve(trie.size());
    places_.reserve(trie.size() / 2);
    tokens_.reserve(trie.node(Trie::kRoot).subtree_entry_end);
    add_node();
  }

  // In the order in which the nodes lie in memory: parents have lower numbers than their children.
  void run() {
    std::vector<Place> places(trie_.size());
    for (std::uint32_t node = 0; node < trie_.size() && complete(); ++node) {
      const Trie::Node& here = trie_.node(node);
      const Place at = places[node];
      for (std::uint32_t child = here.child_begin; child < here.child_end; ++child)
        places[child] = after(at, trie_.byte(child));
      const bool whole = at.bytes == kWhole || at.bytes == kPlain;
      if (here.entry_begin != here.entry_end) {
        const std::uint32_t in = whole ? at.in : begun(at);
        for (const Entry& entry : trie_.entries_at(node)) tokens_.emplace_back(in, entry.token);
      }
      if (whole && here.child_begin != here.child_end) places_.emplace_back(at.in, node);
    }
  }

  bool complete() const { return nodes_ * kGain <= trie_.size(); }

  void finish(ClassTrie& out) {
    sort_out(edges_, out.edges_begin_, out.edges_);
    sort_out(places_, out.places_begin_, out.places_);
    sort_out(tokens_, out.tokens_begin_, out.tokens_);
  }

 private:
  // The node here that one of the trie belongs to; inside a character, that at its beginning.
  struct Place {
    std::uint32_t in = kRoot;
    std::uint32_t bytes = kWhole;  // how many of a character are there, and which: 2, 8, 8, 8 bits
  };
  static constexpr std::uint32_t kWhole = 0;
  static constexpr std::uint32_t kPlain = ~std::uint32_t{0};  // bytes as they are from here on

  static std::uint8_t byte_of(std::uint32_t bytes, unsigned i) {
    return static_cast<std::uint8_t>(bytes >> (8 * i));
  }

  Place after(const Place& at, std::uint8_t byte) {
    if (at.bytes == kPlain) return {child_over(at.in, byte), kPlain};
    if (at.bytes != kWhole) return within(at, byte);
    if (byte < 0x80) {
      const bool escapes = byte == '\\' && classes_.lifted();
      return {child_over(at.in, symbol_of(byte)), escapes ? kPlain : kWhole};
    }
    if (byte < Letters::kFirstLead || Letters::kLastLead < byte)
      return {child_over(at.in, byte), kPlain};
    return {at.in, (1U << 24) | byte};
  }

  // The next byte of a character under way.
  Place within(const Place& at, std::uint8_t byte) {
    const unsigned begun_so_far = at.bytes >> 24;
    const Lead lead(byte_of(at.bytes, 0));
    const unsigned low = begun_so_far == 1 ? lead.low : 0x80;
    const unsigned high = begun_so_far == 1 ? lead.high : 0xBF;
    if (byte < low || high < byte) return {child_over(begun(at), byte), kPlain};
    if (begun_so_far < lead.more)
      return {at.in, (at.bytes + (1U << 24)) | (std::uint32_t{byte} << (8 * begun_so_far))};
    std::uint32_t code = byte_of(at.bytes, 0) & (0x3FU >> lead.more);
    for (unsigned i = 1; i < begun_so_far; ++i) code = (code << 6) | (byte_of(at.bytes, i) & 0x3FU);
    return {child_over(at.in, symbol_of((code << 6) | (byte & 0x3FU))), kWhole};
  }

  // The node over the bytes of a character under way.
  std::uint32_t begun(const Place& at) {
    std::uint32_t in = at.in;
    for (unsigned i = 0; i < at.bytes >> 24; ++i) in = child_over(in, byte_of(at.bytes, i));
    return in;
  }

  std::uint16_t symbol_of(std::uint32_t code) const {
    return static_cast<std::uint16_t>(kClass +
                                      (code < kTabled ? table_[code] : classes_.class_of(code)));
  }

  std::uint32_t add_node() {
    by_class_.resize(by_class_.size() + width_, kNone);
    return nodes_++;
  }

  std::uint32_t child_over(std::uint32_t node, std::uint16_t symbol) {
    if (symbol >= kClass) {
      const std::size_t at = std::size_t{node} * width_ + (symbol - kClass);
      if (by_class_[at] == kNone) {
        const std::uint32_t made = add_node();
        by_class_[at] = made;
        edges_.emplace_back(node, Edge{symbol, made});
      }
      return by_class_[at];
    }
    const auto [found, fresh] = by_byte_.try_emplace((std::uint64_t{node} << 8) | symbol, nodes_);
    if (fresh) {
      add_node();
      edges_.emplace_back(node, Edge{symbol, found});
    }
    return found;
  }

  // By the first of each pair, in the order in which they were found.
  template <typename Value>
  void sort_out(const std::vector<std::pair<std::uint32_t, Value>>& pairs,
                std::vector<std::uint32_t>& begins, std::vector<Value>& out) const {
    begins.assign(nodes_ + 1, 0);
    for (const auto& [of, value] : pairs) ++begins[of + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    std::vector<std::uint32_t> at(begins.begin(), begins.end() - 1);
    out.resize(pairs.size());
    for (const auto& [of, value] : pairs) out[at[of]++] = value;
  }

  const Trie& trie_;
  const CharacterClasses& classes_;
  std::vector<std::uint8_t> table_;
  std::uint32_t width_;
  std::uint32_t nodes_ = 0;
  std::vector<std::uint32_t> by_class_;
  FlatMap<std::uint32_t> by_byte_;
  std::vector<std::pair<std::uint32_t, Edge>> edges_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens_;
};

ClassTrie::ClassTrie(const Trie& trie, CharacterClasses classes) : classes_(std::move(classes)) {
  Builder builder(trie, classes_);
  builder.run();
  complete_ = builder.complete();
  if (complete_) {
    builder.finish(*this);
  } else {
    edges_begin_.assign(1, 0);
  }
}

}  // namespace grammaton
