#pragma once

#include <nanobind/nanobind.h>

#include "grammar/terms.hpp"

namespace nb = nanobind;

namespace grammaton {

// A grammaton.Limits, or None for the defaults.
Limits limits_of(const nb::object& limits);

void bind_terms(nb::module_& m);
void bind_index(nb::module_& m);

}  // namespace grammaton
