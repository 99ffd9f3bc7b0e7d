// A machine stepped by whole characters: for exploring a language instead of following one text.
//
// A *state* is a configuration of the machine that stands between characters. States are integers,
// made when first reached; from each an end can be reached. As the machine is deterministic, every
// text of the language is exactly one path; a regular language has finitely many states.
//
// The *length* of a state is the number of characters of the shortest text that ends from it. That
// of a term is found by its structure, and by a search over residuals below `&`, `~` and json;
// calls are the least fixpoint over the rules that they reach.
//
// Where values must differ (grammar/distinct.cpp) each character of one leads to a state of its
// own. An arc's target then is that of one of its characters, which has the same arcs and no more:
// step() tells the others. Lengths are those of texts in which values need not differ.
//
// Costs: the arcs of a state 10 to 100 us; a length less than that once those nearby are known.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "automata/machine.hpp"

namespace grammaton {

class CharacterMachine {
 public:
  // The characters that lead from a state to another, sorted; an arc's target is no other arc's.
  struct Arc {
    CodeRanges characters;
    State target;
  };

  // Throws as `normalise` does.
  CharacterMachine(TermStore& source, Term start, const Limits& limits);

  State start() const { return start_; }
  bool has(State state) const {
    return set_of(state) < machine_->set_count() && text_of(state) < machine_->text_count();
  }
  bool is_final(State state);
  // In order of the first character.
  std::vector<Arc> arcs(State state);
  // Where one character leads; kEmptySet when nowhere.
  State step(State state, std::uint32_t code_point);
  // Whether an arc's target is that of one of its characters only.
  bool remembers() const { return store_->remembers(); }
  std::uint32_t shortest(State state);

 private:
  struct Piece {
    std::uint32_t low, high;  // what the bytes to come add to a code point, inclusive
    State target;
  };
  using Pieces = std::vector<Piece>;

  std::vector<State> byte_targets(State state, unsigned low, unsigned high);
  Pieces continuations(State state, unsigned count);

  std::uint32_t length(Term t);
  std::uint32_t search_length(Term t);
  // Where a trie of keys ends, and after how many characters at least.
  const std::vector<std::pair<Term, std::uint32_t>>& exits(Term keys);
  void settle(Term t);
  void collect_calls(Term t, std::vector<std::uint64_t>& out);
  // What a call may say: sums of terms, and of a call for templates.
  struct Way {
    Term head, tail;
    std::uint64_t next;  // a call, or kNoCall
  };
  static constexpr std::uint64_t kNoCall = ~std::uint64_t{0};
  std::vector<Way> ways_of(std::uint64_t call);

  std::unique_ptr<TermStore> store_;
  std::unique_ptr<Machine> machine_;
  State start_ = Machine::kEmptySet;

  bool settling_ = false;  // lengths of terms with calls are not final yet
  std::unordered_map<Term, std::uint32_t> lengths_;
  std::unordered_map<std::uint64_t, std::uint32_t> call_lengths_;  // by (rule, param)
  std::unordered_map<SetId, std::uint32_t> set_lengths_;
  std::unordered_map<Term, std::vector<std::pair<Term, std::uint32_t>>> exits_;
};

}  // namespace grammaton
