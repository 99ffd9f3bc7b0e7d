#include "index/class_trie.hpp"

#include <algorithm>
#include <utility>

#include "automata/flat_map.hpp"

namespace grammaton {

namespace {

// Most characters of a vocabulary are below; their classes are looked up in a table.
constexpr std::uint32_t kTabled = 0xA000;
// A class trie with more than one node for so many of the trie's is of no use.
constexpr std::size_t kGain = 4;

}  // namespace

class ClassTrie::Builder {
 public:
  Builder(const Trie& trie, const CharacterClasses& classes)
      : trie_(trie),
        classes_(classes),
        table_(classes.table(kTabled)),
        width_(static_cast<std::uint32_t>(classes.count())),
        at_(std::make_unique_for_overwrite<Place[]>(trie.size())),
        inner_(std::make_unique_for_overwrite<std::uint32_t[]>(trie.size())),
        token_at_(std::make_unique_for_overwrite<std::uint32_t[]>(entries() + 1)) {
    by_class_.reserve(trie.size());
    add_node();
  }

  // In the order in which the nodes lie in memory: parents have lower numbers than their children.
  // Where nodes differ from one to the next, values are written that may not stay, since a branch
  // that can't be foreseen takes as long as all else.
  void run() {
    at_[Trie::kRoot] = {};
    for (std::uint32_t node = 0; node < trie_.size() && complete(); ++node) {
      const Trie::Node here = trie_.node(node);
      const Place at = at_[node];
      if (at.bytes == kWhole) {
        for (std::uint32_t child = here.child_begin; child < here.child_end; ++child)
          at_[child] = after_whole(at, trie_.byte(child));
      } else {
        for (std::uint32_t child = here.child_begin; child < here.child_end; ++child)
          at_[child] = after(at, trie_.byte(child));
      }
      const bool whole = at.bytes == kWhole || at.bytes == kPlain;
      std::uint32_t in = at.in;
      if (!whole && here.entry_begin != here.entry_end) in = begun(at);
      // The next token in order, where none ends here, is further below and has its say later.
      token_at_[here.entry_begin] = in;
      for (std::uint32_t e = here.entry_begin + 1; e < here.entry_end; ++e) token_at_[e] = in;
      inner_[inner_count_] = node;
      inner_count_ += whole && here.child_begin != here.child_end ? 1 : 0;
    }
  }

  bool complete() const { return nodes_ * kGain <= trie_.size(); }

  void finish(ClassTrie& out) {
    sort_out(
        edges_.size(), [this](std::size_t i) { return edges_[i].first; },
        [this](std::size_t i) { return edges_[i].second; }, out.edges_begin_, out.edges_);
    sort_out(
        inner_count_, [this](std::size_t i) { return at_[inner_[i]].in; },
        [this](std::size_t i) { return inner_[i]; }, out.places_begin_, out.places_);
    sort_out(
        entries(), [this](std::size_t i) { return token_at_[i]; },
        [this](std::size_t i) { return trie_.entry(static_cast<std::uint32_t>(i)).token; },
        out.tokens_begin_, out.tokens_);
  }

 private:
  // The node here that one of the trie belongs to; inside a character, that at its beginning.
  struct Place {
    std::uint32_t in = kRoot;
    std::uint32_t bytes = kWhole;  // how many of a character are there, and which: 2, 8, 8, 8 bits
  };
  static constexpr std::uint32_t kWhole = 0;
  static constexpr std::uint32_t kPlain = ~std::uint32_t{0};  // bytes as they are from here on

  std::size_t entries() const { return trie_.node(Trie::kRoot).subtree_entry_end; }
  static std::uint8_t byte_of(std::uint32_t bytes, unsigned i) {
    return static_cast<std::uint8_t>(bytes >> (8 * i));
  }

  Place after(const Place& at, std::uint8_t byte) {
    if (at.bytes == kPlain) return {child_over(at.in, byte), kPlain};
    return within(at, byte);
  }

  Place after_whole(const Place& at, std::uint8_t byte) {
    if (byte < 0x80) {
      const bool escapes = byte == '\\' && classes_.lifted();
      return {child_over_class(at.in, table_[byte]), escapes ? kPlain : kWhole};
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
    return {child_over_class(at.in, class_of((code << 6) | (byte & 0x3FU))), kWhole};
  }

  // The node over the bytes of a character under way.
  std::uint32_t begun(const Place& at) {
    std::uint32_t in = at.in;
    for (unsigned i = 0; i < at.bytes >> 24; ++i) in = child_over(in, byte_of(at.bytes, i));
    return in;
  }

  unsigned class_of(std::uint32_t code) const {
    return code < kTabled ? table_[code] : classes_.class_of(code);
  }

  std::uint32_t add_node() {
    by_class_.resize(by_class_.size() + width_, kNone);
    return nodes_++;
  }

  std::uint32_t child_over_class(std::uint32_t node, unsigned cls) {
    const std::size_t at = std::size_t{node} * width_ + cls;
    if (by_class_[at] == kNone) {
      const std::uint32_t made = add_node();
      by_class_[at] = made;
      edges_.emplace_back(node, Edge{static_cast<std::uint16_t>(kClass + cls), made});
    }
    return by_class_[at];
  }

  std::uint32_t child_over(std::uint32_t node, std::uint8_t byte) {
    const auto [found, fresh] = by_byte_.try_emplace((std::uint64_t{node} << 8) | byte, nodes_);
    if (fresh) {
      add_node();
      edges_.emplace_back(node, Edge{byte, found});
    }
    return found;
  }

  // Values by the node that they are of, in the order in which they were found.
  template <typename Of, typename ValueOf, typename Value>
  void sort_out(std::size_t count, Of&& of, ValueOf&& value_of, std::vector<std::uint32_t>& begins,
                std::vector<Value>& out) const {
    begins.assign(nodes_ + 1, 0);
    for (std::size_t i = 0; i < count; ++i) ++begins[of(i) + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    std::vector<std::uint32_t> at(begins.begin(), begins.end() - 1);
    out.resize(count);
    for (std::size_t i = 0; i < count; ++i) out[at[of(i)]++] = value_of(i);
  }

  const Trie& trie_;
  const CharacterClasses& classes_;
  std::vector<std::uint8_t> table_;
  std::uint32_t width_;
  std::uint32_t nodes_ = 0;
  std::vector<std::uint32_t> by_class_;
  FlatMap<std::uint32_t> by_byte_;
  std::vector<std::pair<std::uint32_t, Edge>> edges_;
  std::unique_ptr<Place[]> at_;             // by node of the trie
  std::unique_ptr<std::uint32_t[]> inner_;  // nodes of the trie that are no leaves
  std::size_t inner_count_ = 0;
  std::unique_ptr<std::uint32_t[]> token_at_;  // by entry: the node that it ends at
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
