// A byte trie over tokens, or over what remains of tokens.
//
// Nodes are numbered so that the children of a node are neighbours, ordered by byte; tokens are
// numbered in pre-order, so that the tokens of a subtree are one span. An *entry* is a token (an
// id) together with where the part in this trie starts: 0 in the trie of the vocabulary, later in a
// *remainder trie*, which holds what is left of tokens after a frame has ended inside them. Equal
// tokens share a node. Memory: 33 bytes a node, 24 more where four and more lie below, 4 more where
// a character begins that is no ASCII letter or digit, 14 an entry.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "index/letters.hpp"

namespace grammaton {

struct Entry {
  std::uint32_t token = 0;
  std::uint32_t start = 0;  // offset of this trie's part in the token's bytes
  std::uint32_t items = 0;  // remainder tries: how many items the frame had taken (frame_mask.hpp)
};

class Trie {
 public:
  struct Node {
    std::uint32_t child_begin = 0;
    std::uint32_t child_end = 0;
    std::uint32_t entry_begin = 0;  // entries that end here: [entry_begin, entry_end)
    std::uint32_t entry_end = 0;
    std::uint32_t subtree_entry_end = 0;  // entries here and below: [entry_begin, this)
    std::uint32_t subtree_nodes = 0;      // nodes strictly below
    std::uint16_t depth = 0;              // bytes from the root
    std::uint16_t characters = 0;         // characters begun in them
    std::uint32_t letters = kNone;        // number of its Letters, which small subtrees lack
  };
  // Least and most items over the entries of a subtree.
  struct ItemRange {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
  };

  static constexpr std::uint32_t kRoot = 0;

  // `bytes(token)` is the text of a token; entries with no bytes after `start` are dropped.
  template <typename BytesOf>
  Trie(std::vector<Entry> entries, BytesOf&& bytes);

  std::uint64_t uid() const { return uid_; }
  bool unique() const { return unique_; }  // no token has two entries
  std::size_t size() const { return nodes_.size(); }
  const Node& node(std::uint32_t n) const { return nodes_[n]; }
  std::uint8_t byte(std::uint32_t n) const { return bytes_[n]; }
  const std::uint8_t* bytes() const { return bytes_.data(); }
  std::span<const Entry> entries(std::uint32_t begin, std::uint32_t end) const {
    return {entries_.data() + begin, entries_.data() + end};
  }
  const Entry& entry(std::uint32_t e) const { return entries_[e]; }
  std::span<const Entry> entries_at(std::uint32_t n) const {
    return entries(nodes_[n].entry_begin, nodes_[n].entry_end);
  }
  // What the edges of a node are over.
  ByteSet bytes_below(std::uint32_t n) const {
    ByteSet bytes;
    for (std::uint32_t c = nodes_[n].child_begin; c < nodes_[n].child_end; ++c)
      bytes.add(bytes_[c]);
    return bytes;
  }
  // Of a node and all below it.
  std::span<const Entry> entries_from(std::uint32_t n) const {
    return entries(nodes_[n].entry_begin, nodes_[n].subtree_entry_end);
  }
  ItemRange items(std::uint32_t n) const { return items_.empty() ? ItemRange{} : items_[n]; }
  // The characters of the bytes strictly below a node, read from a character boundary; null for
  // small subtrees.
  const Letters* letters_below(std::uint32_t n) const {
    return nodes_[n].letters == kNone ? nullptr : &letters_[nodes_[n].letters];
  }
  // The most characters that begin strictly below a node with Letters, in one token.
  std::uint32_t characters_below(std::uint32_t n) const {
    return most_characters_[nodes_[n].letters] - std::uint32_t{nodes_[n].characters};
  }
  // The nodes below `n` where a character begins that is not in `looped`, or one that is broken
  // off, in pre-order and none below another; false when they are too many for a shortcut, or not
  // known. To be asked of nodes that only first bytes of characters lead to.
  bool find_others(std::uint32_t n, const Letters& looped, std::vector<std::uint32_t>& out) const;
  // The letters that find_others() can't leave out.
  static const Letters& common_letters();
  // How many characters begin in the entry with this number.
  std::uint32_t characters(std::uint32_t entry) const { return characters_[entry]; }
  // The child over a byte, or 0 (the root is nobody's child).
  std::uint32_t child(std::uint32_t n, std::uint8_t byte) const;
  std::size_t memory() const {
    return listed_nodes_ * sizeof(std::uint64_t) + nodes_.size() * (sizeof(Node) + 1) +
           items_.size() * sizeof(ItemRange) +
           letters_.size() * (sizeof(Letters) + sizeof(std::uint16_t)) +
           entries_.size() * (sizeof(Entry) + sizeof(std::uint16_t));
  }

 private:
  struct Sorted {
    std::uint64_t first;  // the first eight bytes as a number, which settles most comparisons
    std::string_view text;
    Entry entry;

    // Text at a place that it has; where there are hundreds of thousands, to look them up is what
    // takes long.
    std::uint8_t byte(std::size_t i) const {
      return static_cast<std::uint8_t>(i < sizeof(first) ? first >> (56 - 8 * i)
                                                         : std::uint64_t{text[i] & 0xFFu});
    }
  };
  static std::size_t common_prefix(const Sorted& a, const Sorted& b);
  static std::uint64_t first_bytes(std::string_view text);
  void build(std::vector<Sorted> sorted);
  static bool all_differ(const std::vector<Sorted>& sorted);
  void summarise();
  class CharacterLists;
  // Nodes sort in pre-order by this: one that begins with the same entry as another is above it,
  // and then has the lower number.
  std::uint64_t in_order(std::uint32_t n) const {
    return std::uint64_t{nodes_[n].entry_begin} << 32 | n;
  }
  void add_letters(std::uint32_t id, Letters& letters) const;

  std::uint64_t uid_ = 0;
  bool unique_ = true;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> bytes_;
  std::vector<ItemRange> items_;  // empty when all are 0
  std::vector<Letters> letters_;
  std::vector<std::uint16_t> most_characters_;  // of any token below, from the root on
  // By letter, but for the commonest: the nodes where such a character begins, as in_order() of
  // them and sorted, so that several lists merge without a look at the nodes. The last: where a
  // character begins that is broken off by another byte. Empty for small tries.
  std::vector<std::vector<std::uint64_t>> characters_at_;
  std::size_t listed_nodes_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint16_t> characters_;
};

template <typename BytesOf>
Trie::Trie(std::vector<Entry> entries, BytesOf&& bytes) {
  std::vector<Sorted> sorted;
  sorted.reserve(entries.size());
  for (const Entry& entry : entries) {
    const std::string_view text = std::string_view(bytes(entry.token)).substr(entry.start);
    if (!text.empty()) sorted.push_back({first_bytes(text), text, entry});
  }
  build(std::move(sorted));
}

}  // namespace grammaton
