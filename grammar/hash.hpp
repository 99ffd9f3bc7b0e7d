// Hashing and interning shared by the layers.
//
// A *structural hash* is 128 bits computed from what a term means, never from ids, so that equal
// terms of different stores have equal hashes and may share token masks. Its first lane has a fixed
// key: operands are ordered by it, hence printing is the same in every process. Its second lane is
// keyed per process: nobody can prepare two grammars whose hashes collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace grammaton {

inline std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  // Folded 64x64 -> 128 multiplication: two operations and full avalanche.
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15ULL) * (b ^ 0xD1B54A32D192ED03ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// The key of the second lane, drawn once per process.
std::uint64_t process_key();

struct Hash128 {
  std::uint64_t order = 0;  // fixed key
  std::uint64_t keyed = 0;  // process key

  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;

  void add(std::uint64_t value) {
    order = mix64(order + 1, value);
    keyed = mix64(keyed ^ process_key(), value + 0x632BE59BD9B4E019ULL);
  }
  void add(const Hash128& other) {
    order = mix64(order + 1, other.order);
    keyed = mix64(keyed ^ process_key(), other.keyed + 0x632BE59BD9B4E019ULL);
  }
};

struct Hash128Hasher {
  std::size_t operator()(const Hash128& h) const { return static_cast<std::size_t>(h.keyed); }
};

inline std::uint64_t hash_words(std::span<const std::uint32_t> words, std::uint64_t seed = 1) {
  std::uint64_t h = seed;
  for (const std::uint32_t word : words) h = mix64(h + 1, word);
  return h;
}

}  // namespace grammaton
