// What the captured rules of a grammar matched in a text that was read.
//
// Machines forget which rule they are in: rules that begin with themselves are rewritten, tail
// calls push nothing, stacks merge. So captures are found afterwards, by an exact parse of what was
// read with the grammar as it was written (Earley 1970, its items made of residual terms). Where a
// text can be read in several ways, the one that was found first counts: the same each time.
//
// Costs: nothing before it is asked for, but for a list of what was read. Then linear in the text
// for grammars that are close to deterministic, quadratic for right-recursive lists, at most cubic.
#pragma once

#include <string>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

// One thing that was read: a token, or text that no token is known of.
struct ReadPiece {
  std::uint32_t token = kNone;
  std::string text;
};

struct Captured {
  std::string name;
  std::string text;
};

// In the order in which they begin, outer ones first. What is not over yet is left out. `source` is
// the grammar as it was written, tokens resolved; the pieces must be a text's beginning.
std::vector<Captured> find_captures(TermStore& source, Term start,
                                    const std::vector<ReadPiece>& pieces);

}  // namespace grammaton
