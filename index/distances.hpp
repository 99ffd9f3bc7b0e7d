// How many characters a text of a bounded frame still needs (bounded_frame.cpp).
//
// Costs: a step over each byte from each state, some microseconds a state, kMostStates at most; and
// no more than kMostTerms, since a state of wide classes has hundreds.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

// A place in a reference, beside the meter that says where items begin.
struct Measured {
  Term term = kNothing;     // residual of the reference
  Term meter = kNothing;    // of the meter
  std::uint32_t items = 0;  // begun before
};

// The residuals of a reference with the fewest items that end each. Escapes that write a character
// which can stand for itself are left out: they need as many items. So states inside an escape are
// not known.
class Distances {
 public:
  static constexpr std::size_t kMostTerms = 5000;
  Distances(TermStore& store, Measured start, bool lifted, bool closed,
            std::size_t most_terms = kMostTerms);

  // False when there are too many states, or they have too many terms.
  bool complete() const { return complete_; }
  // Whether every text that was begun can be made longer, one item at a time.
  bool extensible() const { return extensible_; }
  // kNone when the state is not known.
  std::uint32_t of(Measured state) const;

 private:
  // References with more states than this are not measured.
  static constexpr std::size_t kMostStates = 500;
  // Of those that have not, after so many no more lead on: of 4,000 real schemas at most 22 did.
  static constexpr std::size_t kSurveyed = 64;
  static constexpr std::size_t kMostOpen = 32;

  struct Edge {
    std::uint32_t from;
    std::uint32_t items;
  };

  static std::uint64_t key(Measured s) { return (std::uint64_t{s.term} << 32) | s.meter; }
  std::uint32_t add(Measured state);
  void connect(std::uint32_t from, Measured to, std::uint32_t items);
  void expand(std::uint32_t from);
  void write(std::uint32_t from, unsigned code);
  bool is_end(Measured s) const { return closed_ ? s.term == kEmpty : store_.nullable(s.term); }
  void measure();
  void find_growing();

  TermStore& store_;
  Term meter_;
  bool lifted_;
  bool closed_;
  bool complete_ = true;
  bool extensible_ = true;
  std::vector<Measured> states_;
  std::vector<std::vector<Edge>> into_;
  std::vector<bool> loops_;
  std::vector<std::uint32_t> distance_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
};

}  // namespace grammaton
