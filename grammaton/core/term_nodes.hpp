// One level of a term as a tuple, for printing: what `TermStore.node` and `Constraint.node` return.
#pragma once

#include "grammaton/core/bindings.hpp"

namespace grammaton {

nb::tuple term_node(const TermStore& store, Term t);
// (names, ids, negated)
nb::tuple token_set_tuple(const TokenSet& set);
// None for kUnbounded.
nb::object optional_count(std::uint32_t value);
// A float from its bits; None for kNone.
nb::object temperature_of(std::uint32_t bits);

}  // namespace grammaton
