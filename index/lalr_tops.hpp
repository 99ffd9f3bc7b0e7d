// Values by cores, kept for all that are alike on top of their stacks (automata/lalr_machine.hpp).
//
// What follows a core depends on its lex state and context, and on as much of the parser's stack as
// is read to find it: after an operand in the argument of a call the same tokens may follow
// wherever the call stands. So a value is found along the states of the stack, from the top down,
// after as many of them as were read when it was made. The core that waits in a slot has a stack of
// its own, most of which it shares with the first: what it has above that is told in full.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "automata/lalr_machine.hpp"

namespace grammaton {

template <typename Value>
class LalrTops {
 public:
  static constexpr std::uint32_t kMostRead = 64;  // states

  explicit LalrTops(LalrMachine& machine) : machine_(machine) {}

  // Whether values are kept for a core: where no core waits for another that waits.
  bool takes(CoreId core) const {
    for (std::uint32_t slot = 0; slot < machine_.slots(core); ++slot) {
      const CoreId next = machine_.after_slot(core, slot);
      if (next != LalrMachine::kDeadCore && machine_.slots(next) > 0) return false;
    }
    return machine_.slots(core) <= kMostSlots;
  }

  // Null when there is none; else it tells how far the stack was read. Valid until the next add().
  // `of`: what the value is of, besides.
  const Value* find(std::uint64_t of, CoreId core, ContextId context) {
    StackId at = machine_.stack(core);
    const std::uint32_t all = machine_.length(at) + 1;
    std::uint32_t place = root(of, core, context);
    for (std::uint32_t read = 0; read <= kMostRead; ++read, at = machine_.below(at)) {
      if (values_of_[place] != kNone) {
        machine_.tell_read(all - read);
        return &values_[values_of_[place]];
      }
      const std::uint32_t* const next = next_.find(edge(place, at));
      if (next == nullptr) return nullptr;
      place = *next;
    }
    return nullptr;
  }

  // `read`: the length of the stack where reading it stopped, 0 for the bottom.
  void add(std::uint64_t of, CoreId core, ContextId context, std::uint32_t read, Value value) {
    StackId at = machine_.stack(core);
    const std::uint32_t all = machine_.length(at) + 1;
    if (all > read + kMostRead) return;
    std::uint32_t place = root(of, core, context);
    for (std::uint32_t left = all; left > read; --left) {
      const auto [next, is_new] =
          next_.try_emplace(edge(place, at), static_cast<std::uint32_t>(values_of_.size()));
      if (is_new) values_of_.push_back(kNone);
      place = next;
      at = machine_.below(at);
    }
    values_of_[place] = static_cast<std::uint32_t>(values_.size());
    values_.push_back(std::move(value));
  }

  void clear() {
    roots_ = {};
    root_places_.clear();
    next_ = {};
    values_of_.clear();
    values_.clear();
  }
  std::size_t size() const { return values_.size(); }
  std::size_t memory() const {
    return roots_.memory() + next_.memory() + values_of_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::uint32_t kMostSlots = 4;

  std::uint64_t edge(std::uint32_t place, StackId stack) const {
    const std::uint32_t state = stack == LalrMachine::kNoStack ? kNone : machine_.top(stack);
    return (std::uint64_t{place} << 32) | state;
  }

  // Where the stack has not been read yet.
  std::uint32_t root(std::uint64_t of, CoreId core, ContextId context) {
    words_.assign({static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(of >> 32),
                   machine_.lex(core), context});
    for (std::uint32_t slot = 0; slot < machine_.slots(core); ++slot) {
      const CoreId next = machine_.after_slot(core, slot);
      if (next == LalrMachine::kDeadCore) {
        words_.push_back(kNone);
        continue;
      }
      words_.push_back(machine_.lex(next));
      StackId own = machine_.stack(core);
      StackId other = machine_.stack(next);
      const std::uint32_t length = machine_.length(own);
      const std::size_t count = words_.size();
      words_.push_back(0);
      while (own != other) {
        if (machine_.length(other) < machine_.length(own)) {
          own = machine_.below(own);
        } else {
          words_.push_back(machine_.top(other));
          other = machine_.below(other);
        }
      }
      words_[count] = length - machine_.length(own);
      words_.push_back(kNone);
    }
    const std::uint32_t id = roots_.intern(words_);
    while (root_places_.size() <= id) {
      root_places_.push_back(static_cast<std::uint32_t>(values_of_.size()));
      values_of_.push_back(kNone);
    }
    return root_places_[id];
  }

  LalrMachine& machine_;
  ListPool roots_;  // `of`, lex state, context, and the cores of slots
  std::vector<std::uint32_t> root_places_;
  FlatMap<std::uint32_t> next_;           // by place and parser state
  std::vector<std::uint32_t> values_of_;  // by place; kNone where there is more to read
  std::deque<Value> values_;
  std::vector<std::uint32_t> words_;
};

}  // namespace grammaton
