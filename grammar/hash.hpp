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
#include <vector>

#ifdef _MSC_VER
#include <intrin.h>
#endif

namespace grammaton {

inline std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  // Folded 64x64 -> 128 multiplication: two operations and full avalanche.
  a ^= 0x9E3779B97F4A7C15ULL;
  b ^= 0xD1B54A32D192ED03ULL;
#ifdef _MSC_VER
  return (a * b) ^ __umulh(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#endif
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

// Finds ids by content: open addressing over (hash, id), the caller compares and stores contents.
class InternTable {
 public:
  // The id with this hash for which `same(id)` holds, or `none`.
  template <typename Same>
  std::uint32_t find(std::uint64_t hash, Same&& same) const {
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      const Slot& slot = slots_[i];
      if (slot.id == kFree) return kFree;
      if (slot.tag == tag && same(slot.id)) return slot.id;
    }
  }
  void insert(std::uint64_t hash, std::uint32_t id) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    place({static_cast<std::uint32_t>(hash >> 32), id, hash});
    ++used_;
  }

  // So that twice as many ids fit before it grows again.
  void make_room() { grow(); }

  static constexpr std::uint32_t kFree = 0xFFFFFFFF;

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id = kFree;
    std::uint64_t hash = 0;
  };
  std::size_t mask() const { return slots_.size() - 1; }
  void place(const Slot& slot) {
    std::size_t i = slot.hash & mask();
    while (slots_[i].id != kFree) i = (i + 1) & mask();
    slots_[i] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * (slots_.size() < 1024 ? 4 : 2));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id != kFree) place(slot);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::size_t used_ = 0;
};

}  // namespace grammaton
