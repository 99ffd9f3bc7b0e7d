// Bytes by what rows do with them: the classes of a row that is made of others.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/term.hpp"

namespace grammaton {

// Splits the bytes further and further: bytes of one cell are in one class of every row so far.
class Partition {
 public:
  // `only`: bytes outside it keep their cell.
  void refine(const ClassMap& map, bool live_only) {
    known_.clear();
    const auto split = [&](unsigned b) {
      const std::uint64_t key = (std::uint64_t{cell_[b]} << 8) | map.of[b];
      for (const auto& [k, cell] : known_) {
        if (k == key) {
          cell_[b] = cell;
          return;
        }
      }
      known_.emplace_back(key, cells_);
      cell_[b] = cells_++;
    };
    if (live_only) {
      map.live.each(split);
    } else {
      for (unsigned b = 0; b < 256; ++b) split(b);
    }
  }
  // Gives every byte the term that `of_byte` makes of the first byte of its cell.
  template <typename OfByte>
  std::array<Term, 256> fill(OfByte&& of_byte) const {
    std::array<Term, 256> target{};
    std::vector<Term> made(cells_, kNone);
    for (unsigned b = 0; b < 256; ++b) {
      Term& t = made[cell_[b]];
      if (t == kNone) t = of_byte(b);
      target[b] = t;
    }
    return target;
  }

  // The cell of each byte.
  std::array<std::uint8_t, 256> cells() const {
    std::array<std::uint8_t, 256> of{};
    for (unsigned b = 0; b < 256; ++b) of[b] = static_cast<std::uint8_t>(cell_[b]);
    return of;
  }

 private:
  std::array<std::uint32_t, 256> cell_{};
  std::uint32_t cells_ = 1;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> known_;
};

}  // namespace grammaton
