// Steps that were taken before: where a token leads from a state.
//
// A step goes byte by byte and enters rules on the way, a microsecond or two each; in generation
// the same states are left by the same tokens again and again, by every sequence on a constraint.
// So steps are remembered, in a table that grows with what it is asked to keep. A step has four
// places in a row; where all are taken, the first one's step goes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/hash.hpp"

namespace grammaton {

class StepMemo {
 public:
  // Null when the step is not known.
  const std::uint64_t* find(std::uint64_t state, std::uint32_t token) const {
    if (steps_.empty()) return nullptr;
    const std::uint64_t hash = mix64(state, token);
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const Step& step = steps_[place(hash, i)];
      if (step.token == token && step.state == state) return &step.next;
    }
    return nullptr;
  }

  void keep(std::uint64_t state, std::uint32_t token, std::uint64_t next) {
    if (kept_ >= steps_.size() / 2 && steps_.size() < kMostSteps) grow();
    const std::uint64_t hash = mix64(state, token);
    std::size_t i = 0;
    while (i < kPlaces && steps_[place(hash, i)].token != kFree) ++i;
    if (i < kPlaces) ++kept_;
    steps_[place(hash, i % kPlaces)] = {state, next, token};
  }

  std::size_t memory() const { return steps_.capacity() * sizeof(Step); }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFF;  // no token id: those fit into a mask
  static constexpr std::size_t kPlaces = 4;
  static constexpr std::size_t kFewSteps = 128;
  static constexpr std::size_t kMostSteps = 131'072;  // 3 MB
  struct Step {
    std::uint64_t state = 0;
    std::uint64_t next = 0;
    std::uint32_t token = kFree;
  };

  std::size_t place(std::uint64_t hash, std::size_t i) const {
    return (static_cast<std::size_t>(hash) + i) & (steps_.size() - 1);
  }

  void grow() {
    std::vector<Step> old(steps_.empty() ? kFewSteps : steps_.size() * 4);
    std::swap(old, steps_);
    kept_ = 0;
    for (const Step& step : old) {
      if (step.token != kFree) keep(step.state, step.token, step.next);
    }
  }

  std::vector<Step> steps_;  // a power of two
  std::size_t kept_ = 0;
};

}  // namespace grammaton
