#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace nb = nanobind;

namespace grammaton {

// A grammaton.Limits, or None for the defaults.
Limits limits_of(const nb::object& limits);

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Ranges of token ids; a reversed one is a GrammarFault.
std::vector<IdRange> id_ranges(const Ranges& ranges);

// One level of a term's structure, a parameter's bits and counters, a rule's name: for printing.
// Terms and rules of the caller are checked (GrammarFault).
nb::tuple node_tuple(const TermStore& store, std::uint64_t term);
nb::tuple param_tuple(const TermStore& store, std::uint64_t param);
std::string rule_name(const TermStore& store, std::uint64_t rule);

void bind_terms(nb::module_& m);
void bind_index(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_row_work(nb::module_& m);
void bind_end(nb::module_& m);
void bind_characters(nb::module_& m);
void bind_lalr(nb::module_& m);
void bind_simple_schemas(nb::module_& m);

}  // namespace grammaton
