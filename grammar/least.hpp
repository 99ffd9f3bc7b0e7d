// How near the end of a term seems, by its structure: the bytes of its shortest text at least,
// where nothing has to hold at once; intersections count as if one operand came after the other. It
// orders a search and decides nothing.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "grammar/terms.hpp"

namespace grammaton {

// Of the terms of one store, as long as it lives; each is looked at once.
class LeastBytes {
 public:
  explicit LeastBytes(const TermStore& store) : store_(store) {}
  std::uint32_t of(Term t);

 private:
  std::uint32_t find(Term t);

  const TermStore& store_;
  std::unordered_map<Term, std::uint32_t> known_;
};

}  // namespace grammaton
