// What holds of rules and terms of a front end's store because it holds of their parts.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

// The first terms and rules of a store, of which everything is known (Kept in normalise.hpp).
struct Known {
  std::size_t terms = 0;
  std::size_t rules = 0;
};

// The rules a term reaches that are not known, callees before callers where there is no cycle.
// Throws GrammarFault when one is not defined.
std::vector<Rule> reachable_rules(TermStore& store, Term start, const Known& known = {});

// The least set of terms that holds: a union when one of its parts does, a call when the rule's
// body does, a sequence when all of its parts do (or any, see below). Linear in the terms reached.
class LeastFixpoint {
 public:
  // Whether a term holds, where that needs no look at its parts. It must settle calls of templates.
  using Settle = std::function<std::optional<bool>(Term)>;
  enum class Sequences {
    AllParts,  // and a repetition that may be empty holds of itself
    AnyPart,
  };

  LeastFixpoint(TermStore& store, std::span<const Term> roots, Sequences sequences,
                const Settle& settle);

  // Of the roots, and what they reach through terms that were not settled.
  bool holds(Term t) const { return yes_[t]; }

 private:
  void visit(TermStore& store, Term t, Sequences sequences, const Settle& settle);
  void depend(Term user, Term part);

  struct Use {
    Term user;
    std::uint32_t next;  // of the same part
  };
  std::vector<bool> visited_;
  std::vector<bool> yes_;
  std::vector<std::uint32_t> open_;  // by term: how many parts must still hold
  std::vector<std::uint32_t> uses_of_;
  std::vector<Use> uses_;
  std::vector<Term> queue_;    // holds, and its users have not been told
  std::vector<Term> pending_;  // to be visited
};

// Which rules' bodies contain the empty text.
class NullableRules {
 public:
  NullableRules(TermStore& store, Term start, const std::vector<Rule>& order,
                const Known& known = {});
  bool rule(Rule rule) const;
  bool holds(Term t) const;  // of the start term, and what the rules are made of

 private:
  TermStore& store_;
  LeastFixpoint nullable_;
};

// Throws GrammarFault unless every Distinct stands right in a scope: in the body of a scoped rule,
// or of a rule that such a body ends with, and so on.
void check_scopes(TermStore& store, Term start, const std::vector<Rule>& order);

// A term and the bodies of the plain rules among `order`.
std::vector<Term> roots_of(TermStore& store, Term start, const std::vector<Rule>& order);

}  // namespace grammaton
