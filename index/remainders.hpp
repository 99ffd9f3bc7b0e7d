// What is left of tokens where a frame may end inside them.
//
// A frame that may end after each letter leaves "ook(", "ok(", "k(" and "(" of the token "book(",
// and what follows a frame seldom begins with what the frame goes on with. So remainders are of two
// kinds: those that *go on*, whose first byte the frame could take as well, and the others. The
// former are several times as many, and are made when something that follows can begin so. Where
// nothing follows in the state that a frame is made for, and it may end nearly everywhere, both
// are.
#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "index/token_index.hpp"

namespace grammaton {

class Remainders {
 public:
  // `inside`: the tokens that the frame can hold. `counting`: theirs matter, too, because counts
  // may take them out again.
  Remainders(const Trie& trie, const Word* inside, bool counting, Rests kept)
      : trie_(trie), inside_(inside), counting_(counting), kept_(kept) {}

  // The frame ends at a node, from which it goes on with some bytes.
  template <std::predicate<unsigned> GoesOn>
  void add_exit(std::uint32_t node, GoesOn&& goes_on, std::uint32_t items) {
    if (is_wide(node)) {
      exits_.push_back({node, items});
      return;
    }
    const Trie::Node& here = trie_.node(node);
    for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
      const unsigned byte = trie_.byte(child);
      const Trie::Node& below = trie_.node(child);
      if (!keeps(goes_on(byte), byte)) continue;
      for (const Entry& entry : trie_.entries(below.entry_begin, below.subtree_entry_end))
        take({entry.token, entry.start + here.depth, items});
    }
  }

  void add_exit(std::uint32_t node, const ByteSet& live, std::uint32_t items) {
    add_exit(node, [&](unsigned byte) { return live.has(byte); }, items);
  }

  // Whether a remainder is of the kind that is kept; if not, `byte` is one that others begin with.
  bool keeps(bool goes_on, unsigned byte) {
    if (kept_ == Rests::All || goes_on == (kept_ == Rests::GoingOn)) return true;
    if (goes_on) left_out_.add(byte);
    return false;
  }
  void take(const Entry& entry) {
    if (counting_ || !get_bit(inside_, entry.token)) found_.push_back(entry);
  }

  std::size_t count() const { return found_.size(); }
  // To be asked once.
  void finish(FrameMask& mask, TokenIndex& index) {
    if (!found_.empty()) mask.rest = index.keep_trie(std::move(found_));
    mask.left_out = left_out_;
    if (kept_ != Rests::GoingOn) mask.exits = std::move(exits_);
  }

 private:
  static constexpr std::uint32_t kWideExit = 2048;
  static constexpr std::size_t kSampled = 32;

  // By the node alone: what one study lists as an exit, another of the same frame must leave out.
  bool is_wide(std::uint32_t node) const {
    const Trie::Node& below = trie_.node(node);
    if (below.subtree_entry_end - below.entry_end < kWideExit) return false;
    const auto entries = trie_.entries(below.entry_end, below.subtree_entry_end);
    // A sample says it: asking all was a third of the 0.7 ms of a hexadecimal frame.
    std::size_t held = 0;
    for (std::size_t i = 0; i < entries.size(); i += kSampled) {
      if (get_bit(inside_, entries[i].token)) ++held;
    }
    return held * kSampled * 4 < entries.size();
  }

  const Trie& trie_;
  const Word* inside_;
  bool counting_;
  Rests kept_;
  ByteSet left_out_;  // first bytes of remainders that go on, if those are not kept; maybe more
  std::vector<Entry> found_;
  std::vector<Exit> exits_;
};

}  // namespace grammaton
