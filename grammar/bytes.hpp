// A set of bytes as 256 bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace grammaton {

struct ByteSet {
  std::array<std::uint64_t, 4> words{};

  friend bool operator==(const ByteSet&, const ByteSet&) = default;

  static ByteSet range(unsigned low, unsigned high) {
    ByteSet set;
    for (unsigned b = low; b <= high; ++b) set.add(b);
    return set;
  }
  static ByteSet of(unsigned byte) { return range(byte, byte); }

  bool has(unsigned byte) const { return (words[byte >> 6] >> (byte & 63)) & 1; }
  void add(unsigned byte) { words[byte >> 6] |= std::uint64_t{1} << (byte & 63); }
  void remove(unsigned byte) { words[byte >> 6] &= ~(std::uint64_t{1} << (byte & 63)); }
  bool is_ascii() const { return (words[2] | words[3]) == 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  unsigned size() const {
    unsigned n = 0;
    for (const std::uint64_t w : words) n += static_cast<unsigned>(std::popcount(w));
    return n;
  }
  // The lowest member; the set must not be empty.
  unsigned first() const {
    for (unsigned i = 0; i < 4; ++i) {
      if (words[i] != 0) return i * 64 + static_cast<unsigned>(std::countr_zero(words[i]));
    }
    return 256;
  }
  template <typename Visit>
  void each(Visit&& visit) const {
    for (unsigned i = 0; i < 4; ++i) {
      for (std::uint64_t w = words[i]; w != 0; w &= w - 1) {
        visit(i * 64 + static_cast<unsigned>(std::countr_zero(w)));
      }
    }
  }
  ByteSet operator|(const ByteSet& o) const {
    ByteSet r;
    for (unsigned i = 0; i < 4; ++i) r.words[i] = words[i] | o.words[i];
    return r;
  }
  ByteSet without(const ByteSet& o) const {
    ByteSet r;
    for (unsigned i = 0; i < 4; ++i) r.words[i] = words[i] & ~o.words[i];
    return r;
  }
  ByteSet operator&(const ByteSet& o) const {
    ByteSet r;
    for (unsigned i = 0; i < 4; ++i) r.words[i] = words[i] & o.words[i];
    return r;
  }
};

}  // namespace grammaton
