// Texts that were found in intersections, and which of them other terms take.
//
// Stepping over an intersection or a complement makes new terms, each of which has to be shown not
// to be empty. A search for one of its texts makes the rows of all that it passes; but mostly the
// text that was found for the term before is one of this one's as well, and that can be seen
// without new rows: `a & b` takes the texts that both take, `~a` those that a does not, and a and b
// are operands of a thousand terms. So which of the texts an operand takes is kept as one word, and
// a term is asked by some operations on words.
//
// Costs: 2 ns an operand that was asked before; otherwise a step a byte of each text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/term.hpp"

namespace grammaton {

class TermStore;

class Witnesses {
 public:
  static constexpr std::size_t kTexts = 64;
  static constexpr std::size_t kLongestText = 255;

  // One of the texts that is in the term; null when none is seen to be. Valid until keep().
  const std::string* find(TermStore& store, Term t);
  // Keeps a text of some term; some that were of no use for longest go when there are too many.
  void keep(std::string text);

 private:
  using Some = std::uint64_t;  // texts, by number
  struct Known {
    Some asked = 0;
    Some taken = 0;
  };
  struct Query {  // one question: what may be spent on it
    std::uint32_t left;
    std::uint32_t depth = 0;
    bool given_up = false;
  };
  Some taken(TermStore& store, Term t, Some some, Query& query);
  bool takes(TermStore& store, Term t, std::size_t text, std::size_t from, Query& query);
  bool takes_inside(TermStore& store, Term t, std::size_t text, std::size_t from, Query& query);
  void make_room();

  std::array<std::string, kTexts> texts_;
  std::array<std::uint32_t, kTexts> serial_{};  // one for each text that ever was
  std::array<std::uint64_t, kTexts> used_{};    // when last
  Some kept_ = 0;                               // places with a text
  std::uint32_t serials_ = 0;
  std::uint64_t now_ = 0;
  unsigned asking_ = 0;       // questions under way: one may ask another
  std::vector<Known> known_;  // by term
  // Of a term, the serial number of a text and where in it.
  std::unordered_map<std::uint64_t, bool> inside_;
};

}  // namespace grammaton
