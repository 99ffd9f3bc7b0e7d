// Patterns of ECMA-262 that need no analysis: characters, classes, groups, counts, and `^` and `$`
// at the ends of a branch. Nine patterns of ten in schemas are such.
//
// grammar/regex reads every pattern and says what is wrong with those that can't be read; what is
// read here is what it makes of a lenient pattern that is searched for, in the same terms (its
// parser, edge_term() and Terms). 1 us for a pattern of ten characters, and its terms.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/terms.hpp"

namespace grammaton {

// The texts in which a pattern is found; nothing when the pattern is another, or wrong.
std::optional<Term> plain_pattern(TermStore& store, std::string_view pattern);

}  // namespace grammaton
