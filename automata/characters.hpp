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
    SetId target;
  };

  // Throws as `normalise` does.
  CharacterMachine(TermStore& source, Term start, const Limits& limits);

  SetId start() const { return start_; }
  std::size_t state_count() const { return machine_->set_count(); }
  bool is_final(SetId state);
  // In order of the first character.
  std::vector<Arc> arcs(SetId state);
  std::uint32_t shortest(SetId state);

 private:
  struct Piece {
    std::uint32_t low, high;  // what the bytes to come add to a code point, inclusive
    SetId target;
  };
  using Pieces = std::vector<Piece>;

  std::vector<SetId> byte_targets(SetId set, unsigned low, unsigned high);
  Pieces continuations(SetId set, unsigned count);

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
  SetId start_ = Machine::kEmptySet;

  bool settling_ = false;  // lengths of terms with calls are not final yet
  std::unordered_map<Term, std::uint32_t> lengths_;
  std::unordered_map<std::uint64_t, std::uint32_t> call_lengths_;  // by (rule, param)
  std::unordered_map<SetId, std::uint32_t> set_lengths_;
  std::unordered_map<Term, std::vector<std::pair<Term, std::uint32_t>>> exits_;
};

}  // namespace grammaton
