// Letters beyond ASCII, by what a term can tell apart.
//
// All characters that begin with one byte are one letter (letters.hpp): up to 262,144 of them, of
// which a term knows a few classes. Where the classes lead says where the letter does, and takes
// three steps for each, where a look at all bytes of all characters makes a hundred terms, each of
// which may have no text.
//
// Costs: some microseconds for the classes of a term, 60 where one is of all words' characters.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/character_classes.hpp"
#include "index/letters.hpp"

namespace grammaton {

class LetterClasses {
 public:
  explicit LetterClasses(const CharacterClasses& classes);

  // Where the letters beyond ASCII lead from what is left of the term: an edge for each of which
  // all characters lead to one. Adds their first bytes to `live` where some character lives.
  void add_edges(TermStore& store, Term t, LetterEdges& out, ByteSet& live) const;

 private:
  static constexpr unsigned kLeads = Letters::kLastLead - Letters::kFirstLead + 1;
  std::vector<std::string> characters_;          // one of each class
  std::array<std::uint64_t, kLeads> classes_{};  // by first byte: which of them are there
};

// The classes that were found last, since the residuals of a term have the same.
class KnownClasses {
 public:
  // As CharacterClasses::of(), and settled, until the next question; null where there are none, or
  // not few.
  const CharacterClasses* of(TermStore& store, Term t);
  // Null likewise.
  std::shared_ptr<const LetterClasses> letters_of(TermStore& store, Term t);

 private:
  static constexpr std::size_t kMost = 4;
  struct Known {
    CharacterClasses classes;
    std::shared_ptr<const LetterClasses> letters;
  };
  Known& keep(CharacterClasses classes);
  std::vector<Known> known_;  // the latest first
};

}  // namespace grammaton
