// Rules that begin with themselves, rewritten so that none does.
//
// With A -> B r for "a text of A may be a text of B, then one of r", the rules that reach each
// other that way form a *knot*. A text of A begins with a text of some B of the knot that begins
// outside of it, and goes on with one of tail(A, B): the texts r1 r2 ... rn along a way from B up
// to A. tail(A, B) is a union over B <- C of r tail(A, C), and the empty text when B is A:
// right-recursive. For a rule that only begins with itself, A: A r | s, the tail is r*, and A
// becomes s r*. This is the left-corner transform; it is exact for ambiguous rules too, and for `a:
// a | "x"`.
#pragma once

#include <unordered_map>

#include "grammar/terms.hpp"

namespace grammaton {

// The texts of a term but the empty one.
class WithoutEmpty {
 public:
  explicit WithoutEmpty(TermStore& store) : store_(store) {}
  Term of(Term t);

 private:
  Term make(Term t);

  TermStore& store_;
  std::unordered_map<Term, Term> known_;
};

// Defines the plain rules: bodies[r] is r's body, kNone where there is none. No body contains the
// empty text, and none does after it. Where rules are left-recursive those that `start` does not
// reach any more stay undefined. Throws GrammarFault where a template is left-recursive: its tails
// would depend on two parameters.
void define_without_left_recursion(TermStore& store, const std::vector<Term>& bodies, Term start,
                                   WithoutEmpty& without_empty);

}  // namespace grammaton
