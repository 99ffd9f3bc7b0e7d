// Which characters can't kill a term: subtrees taken whole without the terms in between.
//
// Bytes lead from `.*a.{20}` to some thousand terms, one for every set of places where an `a` was,
// but whatever letters come, `.*a.{20}` is among what is left, so something is. A *form* of a term
// is a language C that lies in all that certain letters leave of it, as long as they are no more
// than so many. C is found operand by operand: an operand that lies in what any of the letters
// leaves of it stays as it is (`.*x`); a count `.{m,n}` becomes `.{m,n-k}` for texts of k
// characters; `~r` becomes `~(all that a text leaves of r)`, or is looked at for the characters
// without which no text of r is complete. Operands for which nothing of the kind is known may vary:
// they are followed letter by letter through a few terms (*no text with `ab` in it* is back after
// `ax`), each of which has to meet C.
//
// Costs: some 50 us a form, one for each term that a study asks about; 0.1 us a question after
// that.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "index/letters.hpp"

namespace grammaton {

class Keeping {
 public:
  // `longest`: the most characters that anyone asks about.
  Keeping(TermStore& store, std::uint32_t longest) : store_(store), longest_(longest) {}

  // What is asked here is what lies below a node with so many nodes below: a form is looked for
  // when it is likely to save more than it costs.
  //
  // Letters of which any text of at most `characters` leaves something of a term.
  struct Kept {
    Letters letters;
    std::uint32_t characters = 0;
  };
  const Kept& kept(Term t, std::uint32_t nodes) { return known(t, nodes).fixed.kept; }
  // Whether every text of at most so many of these letters leaves something of the term; false as
  // well when that takes long to see.
  bool keeps(Term t, const Letters& letters, std::uint32_t characters, std::uint32_t nodes);
  // To be called before a study: it may ask about so many terms in vain.
  void begin_study();

 private:
  static constexpr unsigned kCredit = 16;
  struct Form {
    Kept kept;
    Term constant = kNothing;
    Term varying = kNone;  // none varies
  };
  struct Known {
    Form fixed;                 // with nothing that varies
    Form varied;                // with what varies
    bool looked = false;        // for forms
    std::uint32_t asked = 0;    // nodes before that
    unsigned credit = kCredit;  // questions about it that may still fail
  };
  struct Bound {  // what is below an operand
    Term constant = kNothing;
    Letters letters;
    bool counted = false;  // `constant` is X{m,n}, which letters take from
  };
  struct LetterRow : LetterEdges {
    Letters beyond_ascii;  // those that are in it
  };

  Known& known(Term t, std::uint32_t nodes);
  bool is_within(Term a, Term b);
  Known find(Term t);
  Known find_inner(Term x, bool lifted);
  Bound below(Term operand);
  Bound below_complement(Term operand);
  void settle(Form& form, const std::vector<Bound>& bounds);
  Letters growing(Term t, bool shrinking);
  std::vector<Letters> needed(Term t, unsigned& budget);
  bool region_keeps(const Form& form, const Letters& letters);
  const LetterRow& row(Term t, const Letters& letters);
  bool step_letter(Term t, unsigned letter, std::vector<Term>& out);

  TermStore& store_;
  std::uint32_t longest_;
  std::size_t failures_ = 0;
  std::size_t spent_ = 0;  // terms made
  unsigned regions_ = 0;   // that may still be followed in vain
  std::unordered_map<Term, Known> known_;
  std::unordered_map<Term, LetterRow> rows_;
  std::unordered_map<Term, Bound> below_;
  std::unordered_map<std::uint64_t, bool> within_;
  std::vector<Term> reached_;  // of region_keeps(), for its memory
};

}  // namespace grammaton
