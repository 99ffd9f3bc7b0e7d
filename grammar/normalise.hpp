// From the store a front end filled to the store a machine runs on.
//
// The copy is made once per constraint and establishes what the machine relies on
// (docs/machine.md): no rule body is nullable (N becomes N' | empty), every term and rule can end,
// no rule begins with a call that leads back to it (left_recursion.hpp), and every character can be
// spelled by the vocabulary. About 100 ns a term.
#pragma once

#include "grammar/terms.hpp"

namespace grammaton {

// Which characters a vocabulary spells. `whole`: each UTF-8 byte is a token. `joined`: the
// character itself is a token. `all`: every character is whole, so nothing is restricted.
struct Spelling {
  bool all = true;
  CodeRanges whole;
  CodeRanges joined;
};

struct NormalForm {
  std::unique_ptr<TermStore> store;
  Term start = kNothing;
};

// The normal form of a store, kept so that its copies need not be normalised from the start: front
// ends begin with a copy of what every grammar of theirs needs. Made by keep().
struct Kept {
  std::unique_ptr<TermStore> store;
  std::vector<Term> terms;  // in `store`, by the term they come from
  std::vector<Rule> rules;
};

// Normalises all that is in a store. Its rules must be plain, able to end, and not contain the
// empty text (GrammarFault). normalise() starts a copy of the store from there where the vocabulary
// spells every character.
void keep(TermStore& store);

// Throws GrammarFault (undefined rule, left recursion through a template), UnsatisfiableFault (no
// text is left).
NormalForm normalise(TermStore& source, Term start, const Spelling& spelling, const Limits& limits);

// Copies a term and the rules it reaches from one store into another, unchanged.
Term import_term(TermStore& target, TermStore& source, Term term);

// Whether a term of a front end's store contains the empty text, or no text, calls included.
bool accepts_empty(TermStore& store, Term term);
bool accepts_nothing(TermStore& store, Term term);

}  // namespace grammaton
