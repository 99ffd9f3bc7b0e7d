// Terms as bytes, and back: what a saved constraint holds of its grammar.
//
// Everything is a varint (LEB128), texts with their length before them: token sets, parameters,
// rules, then the terms in the order of their making, so that a term's parts come before it and are
// told by how far back they are; then bodies, and the start. Reading makes every term with the
// constructor that made it first, so nothing is taken on trust: a number out of range, text that is
// not whole UTF-8 characters, or more terms than the limits allow is a typed error. About 20 ns a
// term to write, 100 ns to read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/terms.hpp"

namespace grammaton {

// A term of a front end's store, with the rules it reaches. GrammarFault for a residual, or a rule
// without a body.
std::string write_terms(TermStore& store, Term start);

struct ReadTerms {
  std::unique_ptr<TermStore> store;
  Term start = kNothing;
};

// GrammarFault for bytes that write_terms() never makes, LimitFault for more than the limits allow.
ReadTerms read_terms(std::string_view bytes, const Limits& limits);

}  // namespace grammaton
