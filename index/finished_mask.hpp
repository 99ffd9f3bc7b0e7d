// Masks as they are kept: what a constraint remembers of a state, and what frames share.
//
// Most masks are a frame's base and a few tokens more or less, and a third of all states are seen
// once. So a finished mask is a base, which it shares with the frame it came from, and the words in
// which it differs: some hundred bytes instead of 16 kB at 128k tokens, whose four fresh pages cost
// more than the median mask (2 us of the kernel's time).
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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
Bits copy_bits(std::span<const Word> words);

class SharedBits;

class FinishedMask {
 public:
  FinishedMask() = default;  // no bits

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
  friend class MaskBuilder;

  Bits base_;
  bool fleeting_ = false;                // the base was made for a mask like this
  std::vector<Difference> differences_;  // in order
};

// A mask under way. Only words that get or lose a bit by themselves are looked at; the others are
// the base's, so a mask of a frame's base and ten tokens costs ten words. The union of two bases is
// a base too.
class MaskBuilder {
 public:
  MaskBuilder(std::size_t words, SharedBits& shared)
      : size_(words), words_(new Word[words]), touched_((words + 63) / 64), shared_(&shared) {}

  void set(std::uint32_t i) { word(i / 64) |= Word{1} << (i % 64); }
  void unset(std::uint32_t i) { word(i / 64) &= ~(Word{1} << (i % 64)); }
  void add(const Bits& bits);  // bits that are kept for long (shared_bits.hpp)
  void add(const MaskBuilder& part);
  // What `part` has within some bits.
  void add(const MaskBuilder& part, const Bits& within);
  void add(const FinishedMask& part);
  void clear();
  // What for: to be added to others, or to be written out, after which it is not added to any.
  enum class Use : std::uint8_t { Added, Written };
  FinishedMask finish(Use use = Use::Added);
  bool has(std::uint32_t i) const { return ((value(i / 64) >> (i % 64)) & 1) != 0; }
  // Calls `visit` with every bit that is set.
  template <typename Visit>
  void each(Visit&& visit) const {
    const auto word = [&](std::size_t i) {
      for (Word left = value(i); left != 0; left &= left - 1)
        visit(static_cast<std::uint32_t>(i * 64) +
              static_cast<std::uint32_t>(std::countr_zero(left)));
    };
    if (!base_) {
      each_touched(word);
      return;
    }
    for (std::size_t i = 0; i < size_; ++i) word(i);
  }

 private:
  Word value(std::size_t i) const { return is_touched(i) ? words_[i] : base_ ? base_[i] : 0; }
  bool is_touched(std::size_t i) const { return ((touched_[i / 64] >> (i % 64)) & 1) != 0; }
  Word& word(std::size_t i) {
    if (!is_touched(i)) {
      touched_[i / 64] |= Word{1} << (i % 64);
      words_[i] = base_ ? base_[i] : 0;
    }
    return words_[i];
  }
  template <typename Visit>
  void each_touched(Visit&& visit) const {
    for (std::size_t k = 0; k < touched_.size(); ++k) {
      for (Word left = touched_[k]; left != 0; left &= left - 1)
        visit(k * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }

  // Puts the words that differ from the base into found_, as far as one more than `most`.
  void find_differences(std::size_t most);
  // Adds bits, but for the words in apart_: those get the value that is there.
  void join(const Bits& bits, bool fleeting);

  std::span<const Word> words() const { return {words_.get(), size_}; }

  Bits base_;              // the words that are not touched
  bool fleeting_ = false;  // it was made for a mask
  std::size_t size_;
  std::unique_ptr<Word[]> words_;  // the others; the rest of it is never written to
  std::vector<Word> touched_;      // a bit a word
  SharedBits* shared_;
  std::vector<FinishedMask::Difference> found_;      // of finish(), kept for its memory
  std::vector<std::pair<std::size_t, Word>> apart_;  // of add(), likewise
};

// How the masks of a constraint are put down. While their bases are few, those they were made of
// serve best; when there are many, one that others are put down to is worth looking for, some 10 us
// each, since a base is 16 kB to be read whenever a mask is written out.
class Bases {
 public:
  FinishedMask finish(MaskBuilder& mask);

 private:
  std::vector<const Word*> first_;  // told apart by their addresses, which is as good as it need be
};

}  // namespace grammaton
