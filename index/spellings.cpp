#include "index/spellings.hpp"

#include <string>

namespace grammaton {

namespace {

constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
constexpr std::string_view kEscapeMeanings = "\"\\/\b\f\n\r\t";

bool continues(char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0) == 0x80; }

std::uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  std::uint32_t code = lead & (0x7Fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) {
    code = (code << 6) | (static_cast<std::uint8_t>(character[i]) & 0x3F);
  }
  return code;
}

class Search {
 public:
  Search(const Trie& trie, std::string_view text, std::vector<std::uint32_t>& out)
      : trie_(trie), text_(text), out_(out) {}

  // Spellings of what follows the first `done` bytes of the text.
  void from(std::uint32_t node, std::size_t done) {
    if (done == text_.size()) {
      out_.push_back(node);
      return;
    }
    std::size_t end = done + 1;
    while (end < text_.size() && continues(text_[end])) ++end;
    const std::string_view character = text_.substr(done, end - done);
    const auto first = static_cast<std::uint8_t>(character[0]);
    if (first >= 0x20 && first != '"' && first != '\\') along(node, character, end);
    const std::uint32_t escape = trie_.child(node, '\\');
    if (escape == Trie::kRoot) return;
    const std::size_t letter = kEscapeMeanings.find(character[0]);
    if (letter != std::string_view::npos) along(escape, kEscapeLetters.substr(letter, 1), end);
    const std::uint32_t code = code_point(character);
    if (code < 0x10000) {
      hexadecimal(escape, code, [&](std::uint32_t at) { from(at, end); });
    } else {
      hexadecimal(escape, 0xD800 + ((code - 0x10000) >> 10), [&](std::uint32_t at) {
        const std::uint32_t second = trie_.child(at, '\\');
        if (second == Trie::kRoot) return;
        hexadecimal(second, 0xDC00 + ((code - 0x10000) & 0x3FF),
                    [&](std::uint32_t last) { from(last, end); });
      });
    }
  }

 private:
  void along(std::uint32_t node, std::string_view bytes, std::size_t done) {
    for (const char byte : bytes) {
      node = trie_.child(node, static_cast<std::uint8_t>(byte));
      if (node == Trie::kRoot) return;
    }
    from(node, done);
  }
  // `u` and four digits, each letter among them in either case.
  template <typename Then>
  void hexadecimal(std::uint32_t node, std::uint32_t unit, Then&& then) {
    node = trie_.child(node, 'u');
    if (node != Trie::kRoot) digits(node, unit, 12, then);
  }
  template <typename Then>
  void digits(std::uint32_t node, std::uint32_t unit, int shift, Then& then) {
    if (shift < 0) {
      then(node);
      return;
    }
    const auto digit = static_cast<std::uint8_t>("0123456789abcdef"[(unit >> shift) & 15]);
    const std::uint32_t lower = trie_.child(node, digit);
    if (lower != Trie::kRoot) digits(lower, unit, shift - 4, then);
    if (digit < 'a') return;
    const std::uint32_t upper = trie_.child(node, static_cast<std::uint8_t>(digit - 'a' + 'A'));
    if (upper != Trie::kRoot) digits(upper, unit, shift - 4, then);
  }

  const Trie& trie_;
  std::string_view text_;
  std::vector<std::uint32_t>& out_;
};

}  // namespace

void find_spellings(const Trie& trie, std::uint32_t node, std::string_view text,
                    std::vector<std::uint32_t>& out) {
  Search(trie, text, out).from(node, 0);
}

}  // namespace grammaton
