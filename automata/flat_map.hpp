// A map from 64-bit keys to small values in one array: found in one or two cache lines, and kept
// without an allocation a key. For what a step asks hundreds of times.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/hash.hpp"

namespace grammaton {

template <typename Value>
class FlatMap {
 public:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no key

  // Null when there is none; valid until the next key is added.
  const Value* find(std::uint64_t key) const {
    const Slot& slot = slots_[place(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  // The value of a key, `value` if it has none yet; and whether it had none.
  std::pair<Value, bool> try_emplace(std::uint64_t key, Value value) {
    Slot* slot = &slots_[place(key)];
    if (slot->key == key) return {slot->value, false};
    if ((used_ + 1) * 2 > slots_.size()) {
      grow();
      slot = &slots_[place(key)];
    }
    *slot = {key, value};
    ++used_;
    return {value, true};
  }

  std::size_t size() const { return used_; }
  std::size_t memory() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Value value{};
  };

  // Where a key is, or would be.
  std::size_t place(std::uint64_t key) const {
    std::size_t i = static_cast<std::size_t>(mix64(key, 0)) & (slots_.size() - 1);
    while (slots_[i].key != key && slots_[i].key != kFree) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    std::swap(old, slots_);
    for (const Slot& slot : old) {
      if (slot.key != kFree) slots_[place(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
  std::size_t used_ = 0;
};

}  // namespace grammaton
