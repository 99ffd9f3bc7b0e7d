// How many texts a regular term has.
#pragma once

#include <cstdint>

#include "grammar/terms.hpp"

namespace grammaton {

// At most `most`; infinitely many count as that.
std::uint64_t count_texts(TermStore& store, Term term, std::uint64_t most);

}  // namespace grammaton
