// Masks as they are kept: what a constraint remembers of a state, and what frames share.
//
// Most masks are a frame's base and a few tokens more or less, and a third of all states are seen
// once. So a finished mask is a base, which it shares with the frame it came from, and the words in
// which it differs: some hundred bytes instead of 16 kB at 128k tokens, whose four fresh pages cost
// more than the median mask (2 us of the kernel's time).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace grammaton {

using Word = std::uint64_t;
// Bits of a whole vocabulary; null for none set.
using Bits = std::shared_ptr<const Word[]>;

inline void set_bit(Word* words, std::uint32_t i) { words[i / 64] |= Word{1} << (i % 64); }
inline void clear_bit(Word* words, std::uint32_t i) { words[i / 64] &= ~(Word{1} << (i % 64)); }
inline bool get_bit(const Word* words, std::uint32_t i) {
  return ((words[i / 64] >> (i % 64)) & 1) != 0;
}
inline void add_bits(std::span<Word> words, const Word* more) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] |= more[i];
}
Bits copy_bits(std::span<const Word> words);

class FinishedMask {
 public:
  // The mask `words`; a copy of them is the base when they differ from `base` in too many places.
  FinishedMask(std::span<const Word> words, Bits base);

  // `out`: the mask's words of 32 bits.
  void write(std::span<std::uint32_t> out) const;
  bool equals(std::span<const std::uint32_t> out) const;
  const Bits& base() const { return base_; }
  std::size_t memory() const {  // the base not counted
    return sizeof(FinishedMask) + differences_.capacity() * sizeof(Difference);
  }

 private:
  struct Difference {
    std::uint32_t word;  // number of a word of 32 bits
    std::uint32_t bits;
  };
  Bits base_;
  std::vector<Difference> differences_;  // in order
};

}  // namespace grammaton
