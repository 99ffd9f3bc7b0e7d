// The JSON spellings of a text as paths in a trie: raw, `\n`, `\u000a`, surrogate pairs, any mix.
//
// Where a state differs from a known one by a few texts only (a key that must be none of these),
// it is enough to visit the trie nodes where those texts end: some ten nodes a text, and no term.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "index/trie.hpp"

namespace grammaton {

// Adds the nodes of `trie` that spellings of `text` (UTF-8), starting at `node`, lead to.
void find_spellings(const Trie& trie, std::uint32_t node, std::string_view text,
                    std::vector<std::uint32_t>& out);

}  // namespace grammaton
