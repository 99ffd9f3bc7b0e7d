// A set of triples of words that is emptied often: it keeps its memory, and forgets in no time.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/hash.hpp"

namespace grammaton {

class TripleSet {
 public:
  // Whether the triple is new.
  bool insert(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place({a, b, c})];
    if (slot.round == round_) return false;
    slot = {{a, b, c}, round_};
    ++used_;
    return true;
  }

  void clear() {
    used_ = 0;
    ++round_;
  }

 private:
  struct Slot {
    std::array<std::uint32_t, 3> words{};
    std::uint64_t round = 0;  // the slot is free when it is not that of the set
  };

  std::size_t place(const std::array<std::uint32_t, 3>& words) const {
    const std::uint64_t h = mix64((std::uint64_t{words[0]} << 32) | words[1], words[2]);
    std::size_t i = static_cast<std::size_t>(h) & (slots_.size() - 1);
    while (slots_[i].round == round_ && slots_[i].words != words) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    std::swap(old, slots_);
    for (const Slot& slot : old) {
      if (slot.round == round_) slots_[place(slot.words)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
  std::size_t used_ = 0;
  std::uint64_t round_ = 1;
};

}  // namespace grammaton
