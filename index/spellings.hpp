// The JSON spellings of a text as paths in a trie: raw, `\n`, `\u000a`, surrogate pairs, any mix.
//
// Where a state differs from a known one by a few texts only (a key that must be none of these), or
// is a few texts (a key that must be one of these), it is enough to visit the trie nodes along
// their spellings: some ten a text, and no term.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/json_escapes.hpp"
#include "index/trie.hpp"

namespace grammaton {

// The first character of a text.
struct Character {
  explicit Character(std::string_view text);
  // Whether a JSON string may hold it as it is.
  bool stands_for_itself() const { return code >= 0x20 && code != '"' && code != '\\'; }

  std::string_view bytes;
  std::uint32_t code = 0;
};

// Calls `pass` with the nodes inside and `done` with the nodes at the end of the spellings of one
// code point with a backslash, starting at `node`.
template <typename Pass, typename Done>
class EscapeSearch {
 public:
  EscapeSearch(const Trie& trie, Pass& pass, Done& done) : trie_(trie), pass_(pass), done_(done) {}

  void run(std::uint32_t node, std::uint32_t code) {
    const std::uint32_t escape = trie_.child(node, '\\');
    if (escape == Trie::kRoot) return;
    pass_(escape);
    if (const unsigned char letter = json_escape_letter(code); letter != 0) {
      const std::uint32_t end = trie_.child(escape, letter);
      if (end != Trie::kRoot) done_(end);
    }
    if (code < 0x10000) {
      unit(escape, code, done_);
      return;
    }
    unit(escape, 0xD800 + ((code - 0x10000) >> 10), [&](std::uint32_t between) {
      pass_(between);
      const std::uint32_t second = trie_.child(between, '\\');
      if (second == Trie::kRoot) return;
      pass_(second);
      unit(second, 0xDC00 + ((code - 0x10000) & 0x3FF), done_);
    });
  }

 private:
  // `u` and four digits, each letter among them in either case.
  template <typename Then>
  void unit(std::uint32_t node, std::uint32_t value, Then&& then) {
    node = trie_.child(node, 'u');
    if (node == Trie::kRoot) return;
    pass_(node);
    digits(node, value, 12, then);
  }
  template <typename Then>
  void digits(std::uint32_t node, std::uint32_t value, int shift, Then& then) {
    const auto digit = static_cast<std::uint8_t>("0123456789abcdef"[(value >> shift) & 15]);
    digit_over(trie_.child(node, digit), value, shift, then);
    if (digit >= 'a') {
      const auto upper = static_cast<std::uint8_t>(digit - 'a' + 'A');
      digit_over(trie_.child(node, upper), value, shift, then);
    }
  }
  template <typename Then>
  void digit_over(std::uint32_t node, std::uint32_t value, int shift, Then& then) {
    if (node == Trie::kRoot) return;
    if (shift == 0) {
      then(node);
    } else {
      pass_(node);
      digits(node, value, shift - 4, then);
    }
  }

  const Trie& trie_;
  Pass& pass_;
  Done& done_;
};

// Adds the nodes of `trie` that spellings of `text` (UTF-8), starting at `node`, lead to.
void find_spellings(const Trie& trie, std::uint32_t node, std::string_view text,
                    std::vector<std::uint32_t>& out);

}  // namespace grammaton
