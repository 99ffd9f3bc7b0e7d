// JSON's two-character escapes (RFC 8259, section 7).
#pragma once

#include <cstdint>

namespace grammaton {

struct JsonEscape {
  char letter;
  char meaning;
};
inline constexpr JsonEscape kJsonEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                              {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};

// The letter after the backslash that spells a code point, or 0.
constexpr unsigned char json_escape_letter(std::uint32_t code) {
  for (const JsonEscape& escape : kJsonEscapes) {
    if (static_cast<unsigned char>(escape.meaning) == code)
      return static_cast<unsigned char>(escape.letter);
  }
  return 0;
}

}  // namespace grammaton
