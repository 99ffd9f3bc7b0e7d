// The bits that masks share: unions and intersections, and those of masks much like others.
//
// What a mask puts together is often the same: whitespace and the tokens of a number, the tokens of
// a string and those of at most ten characters. Each such pair is worked out once a vocabulary and
// kept by the two it was made of. At 128k tokens that takes 2 us and four fresh pages the first
// time, 0.1 us afterwards.
//
// Masks are written out from what they differ in from some bits, which is 16 kB to be read. So
// those of a constraint had better differ from the same bits: the 148 masks of some Python texts
// were put together from 61, and 17 are enough. The last that masks differ from are held, and
// others are looked at only where none of them will do.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/hash.hpp"
#include "index/finished_mask.hpp"

namespace grammaton {

class SharedBits {
 public:
  // Bits of `words` words; `most_bytes` bounds the results that are kept, beyond one. What they
  // were made of is held as well.
  SharedBits(std::size_t words, std::size_t most_bytes);

  // Both are of bits that are kept elsewhere for long: they are known by their address.
  Bits join(const Bits& a, const Bits& b) { return combine(a, b, true); }
  Bits meet(const Bits& a, const Bits& b) { return combine(a, b, false); }
  // Bits that are held and differ from these in `most` words of 32 bits or fewer; null for none.
  Bits like(std::span<const Word> bits, std::size_t most);
  // Holds bits that masks differ from, in the place of the oldest.
  void hold(const Bits& bits);
  bool holds(const Bits& bits);

 private:
  struct Pair {
    const Word* low;
    const Word* high;
    bool joined;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  struct PairHasher {
    std::size_t operator()(const Pair& pair) const {
      return static_cast<std::size_t>(mix64(reinterpret_cast<std::uintptr_t>(pair.low),
                                            reinterpret_cast<std::uintptr_t>(pair.high)) +
                                      (pair.joined ? 1 : 0));
    }
  };
  struct Made {
    Bits of[2];  // held, so that their addresses stay theirs
    Bits result;
  };
  Bits combine(const Bits& a, const Bits& b, bool joined);
  // Words that tell at a glance how much bits differ, spread evenly.
  static constexpr std::size_t kSampled = 32;
  using Sample = std::array<Word, kSampled>;
  Sample sample(std::span<const Word> bits) const;

  std::size_t words_;
  std::size_t most_;  // results
  std::mutex mutex_;
  std::unordered_map<Pair, Made, PairHasher> made_;
  static constexpr std::size_t kMostHeld = 64;
  static constexpr std::size_t kMostTried = 4;
  std::vector<Sample> samples_;  // of held_, beside each other
  std::vector<Bits> held_;
  std::size_t oldest_ = 0;
};

}  // namespace grammaton
