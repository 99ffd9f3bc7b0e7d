// A machine behind a constraint other than the one over terms (automata/machine.hpp).
//
// A *state* is an integer that stands for a position in some text; every state a source hands out
// has a future. Calls are made under the constraint's lock.
#pragma once

#include <string>
#include <string_view>

#include "automata/machine.hpp"
#include "index/finished_mask.hpp"
#include "index/walk.hpp"

namespace grammaton {

class StateSource {
 public:
  static constexpr SetId kNoState = 0xFFFFFFFE;

  StateSource() = default;
  StateSource(const StateSource&) = delete;
  StateSource& operator=(const StateSource&) = delete;
  virtual ~StateSource() = default;

  virtual SetId start() = 0;
  virtual FinishedMask mask(SetId state) = 0;
  // The state after a token's text, or kNoState when it is not allowed.
  virtual SetId follow(SetId state, std::string_view text) = 0;
  virtual bool may_end(SetId state) = 0;
  // The text that has to follow, at most `most` bytes of it.
  virtual std::string forced_bytes(SetId state, std::size_t most) = 0;

  virtual std::size_t memory() const = 0;
  struct Sizes {
    std::size_t terms, frames, sets;
  };
  virtual Sizes sizes() const = 0;
  virtual const WalkStats& walk_stats() const = 0;
};

}  // namespace grammaton
