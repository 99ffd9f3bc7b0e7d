// Bytes by what rows do with them: the classes of a row that is made of others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/term.hpp"

namespace grammaton {

// Splits the bytes further and further: bytes of one cell are in one class of every row so far.
// Costs a look at each run of neighbours that are of one class in all of them, of which most rows
// have some ten.
class Partition {
 public:
  // `live_only`: bytes that the row leads nowhere keep their cell.
  void refine(const ClassMap& map, bool live_only) {
    known_.clear();
    const ByteSet runs = runs_ | map.runs;
    std::uint32_t before = 0;  // the cell of the run at hand
    runs.each([&](unsigned b) {
      if (runs_.has(b)) before = cell_[b];
      cell_[b] = live_only && map.of[b] == 0 ? before : split(before, map.of[b]);
    });
    runs_ = runs;
  }

  // Gives every byte the term that `of_byte` makes of the first byte of its cell.
  template <typename OfByte>
  std::array<Term, 256> fill(OfByte&& of_byte) const {
    std::array<Term, 256> target{};
    std::vector<Term> made(cells_, kNone);
    each_run([&](unsigned begin, unsigned end) {
      Term& t = made[cell_[begin]];
      if (t == kNone) t = of_byte(begin);
      std::fill(target.begin() + begin, target.begin() + end, t);
    });
    return target;
  }

  // The cell of each byte.
  std::array<std::uint8_t, 256> cells() const {
    std::array<std::uint8_t, 256> of{};
    each_run([&](unsigned begin, unsigned end) {
      std::fill(of.begin() + begin, of.begin() + end, static_cast<std::uint8_t>(cell_[begin]));
    });
    return of;
  }

 private:
  std::uint32_t split(std::uint32_t cell, std::uint8_t of) {
    const std::uint64_t key = (std::uint64_t{cell} << 8) | of;
    for (const auto& [k, made] : known_) {
      if (k == key) return made;
    }
    known_.emplace_back(key, cells_);
    return cells_++;
  }

  template <typename Visit>
  void each_run(Visit&& visit) const {
    unsigned begin = 0;
    runs_.each([&](unsigned b) {
      if (b != 0) visit(begin, b);
      begin = b;
    });
    visit(begin, 256);
  }

  ByteSet runs_ = ByteSet::of(0);          // where runs of one cell begin
  std::array<std::uint32_t, 256> cell_{};  // there
  std::uint32_t cells_ = 1;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> known_;
};

}  // namespace grammaton
