// How many items of X a text of P X* q has begun: an automaton that counts by its edges.
//
// P is what is left of an item under way, or any regular term; q is a byte of a set that closes the
// run, or nothing. A *thread* is one way to read a text: where in an item it stands, or at the
// *boundary* between two, and how many items it has begun. A state is the set of all threads, their
// items counted from the least of them, so each text leads to one state, and its edges tell by how
// much the least grows. For a character X there are as many states as places inside one; where
// items begin other items, as `a` does `a-z`, a state has several threads. X may call rules: a
// place in it is then a configuration of the machine above a bottom that is the item's end.
//
// Costs: 2 kB a state; an edge is made when first asked for, 0.1 us of a regular X, some us else.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "automata/machine.hpp"
#include "index/letters.hpp"

namespace grammaton {

class ItemAutomaton {
 public:
  using StateId = std::uint32_t;
  static constexpr StateId kDead = 0xFFFFFFFF;
  static constexpr StateId kStart = 0;

  // `prefix` is regular. X is `item`, not nullable; `closing` is empty where nothing closes the
  // run.
  ItemAutomaton(Machine& machine, Term prefix, Term item, const ByteSet& closing);

  struct Edge {
    StateId to = kDead;
    std::uint32_t items = 0;  // more than before, in the thread with the least
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  // An edge over a byte; where the run is closed by it, that is no edge.
  Edge step(StateId state, std::uint8_t byte) {
    const Edge known = states_[state].edges[byte];
    return known.to == kUnknown ? make(state, byte) : known;
  }
  // False once it has grown too large: what is asked for then is of no meaning.
  bool complete() const { return complete_; }
  // The items begun in each thread that stands between two, beyond the state's least.
  std::span<const std::uint32_t> boundaries(StateId state) const {
    return states_[state].boundaries;
  }
  // Whether nothing closes the run: it may end at each boundary.
  bool open() const { return closing_.empty(); }
  bool closes(std::uint8_t byte) const { return closing_.has(byte); }
  // The least items, likewise, of a thread in which a token may end; kNone when none may.
  std::uint32_t token_end(StateId state) const { return states_[state].token_end; }
  // The bytes that items go on with.
  ByteSet live(StateId state);
  // Whether any text of these letters stays inside, and each of them begins `items` more, 0 or 1,
  // none of them ending the run.
  bool counts(StateId state, const Letters& letters, std::uint32_t items);
  struct Counting {
    Letters letters;
    ByteSet live;  // bytes on which the state lives, or one that they lead to; closing ones, too
  };
  // Letters of which that is so, with one item each; null when not of all that are `wanted`.
  const Counting* counted(StateId state, const Letters& wanted);
  std::size_t memory() const { return states_.size() * sizeof(State); }

 private:
  static constexpr StateId kUnknown = 0xFFFFFFFE;
  static constexpr std::uint32_t kBoundary = 0xFFFFFFFF;

  struct Thread {
    std::uint32_t at;  // a term, or a set of the machine, or kBoundary
    std::uint32_t items;
    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  struct State {
    std::vector<Thread> threads;
    std::vector<std::uint32_t> boundaries;
    std::uint32_t token_end = kNone;
    std::array<Edge, 256> edges;
  };
  struct LetterEdge {
    StateId to;
    Letters over;
  };
  struct LetterRow {
    std::vector<LetterEdge> edges;
    Letters live;
    bool beyond_ascii = false;  // they are in it
    bool fresh = true;
  };
  struct Place {  // in an item
    std::uint32_t at = 0;
    bool ends = false;
    bool goes_on = false;
  };

  Edge make(StateId state, std::uint8_t byte);
  StateId intern(std::vector<Thread> threads, std::uint32_t& least);
  Place after(std::uint32_t at, std::uint8_t byte);
  const LetterRow& row(StateId state, std::uint32_t items, bool beyond_ascii);
  Edge over_all(StateId from, unsigned low, unsigned high, unsigned more);
  bool ends_inside(StateId state) const;

  Machine& machine_;
  TermStore& store_;
  bool regular_;
  std::uint32_t item_;  // where it begins
  ByteSet closing_;
  bool complete_ = true;
  std::size_t made_ = 0;  // edges
  std::vector<State> states_;
  std::map<std::vector<Thread>, StateId> known_;
  std::unordered_map<std::uint64_t, Place> after_;  // by place and byte, where X calls rules
  std::deque<LetterRow> rows_;                      // two a state: of no item a letter, and of one
  std::map<std::array<std::uint32_t, 4>, Edge> over_all_;
  std::unordered_map<StateId, std::optional<Counting>> counted_;
  std::unordered_map<StateId, ByteSet> live_;
  std::vector<StateId> reached_;  // of counts(), for its memory
  Groups groups_;
  Groups next_;
};

}  // namespace grammaton
