// The tokens that a character occurs in, by letter (letters.hpp).
//
// A class such as [a-z0-9-] loses every token with any other character, most of a vocabulary. Found
// by its nodes in the trie these are tens of thousands, 0.3 ms at 128k tokens; here they are a few
// rows of bits, 1 us each, since letters that are neighbours share rows. Making the rows takes 2 ms
// and 2 MB at 128k tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "index/letters.hpp"
#include "index/shared_bits.hpp"

namespace grammaton {

class CharacterTokens {
 public:
  // Of nothing.
  CharacterTokens() = default;
  // `text(token)` of every id below `tokens`, empty for those that are no text; rows of `words`.
  template <typename TextOf>
  CharacterTokens(std::size_t tokens, std::size_t words, TextOf&& text) : words_(words) {
    std::vector<Letters> letters(tokens);
    for (std::size_t id = 0; id < tokens; ++id) letters[id] = letters_in(text(id));
    build(letters);
  }

  // Takes the tokens out of `bits` that any of the letters occurs in. Bytes that are no character
  // count for nothing, so kMalformed takes none.
  void clear(const Letters& letters, std::span<Word> bits) const;

 private:
  static constexpr unsigned kLetters = Letters::kMalformed + 1;
  static constexpr unsigned kSizes[] = {64, 8, 1};  // letters of a block; blocks are nested
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // What a block of letters occurs in: a row of bits, or a list.
  struct Block {
    std::uint32_t row = kNone;
    std::vector<std::uint32_t> tokens;
  };

  static Letters letters_in(std::string_view text);
  void build(const std::vector<Letters>& letters);
  void clear_block(const Block& block, std::span<Word> bits) const;

  std::size_t words_ = 0;
  std::array<std::vector<Block>, std::size(kSizes)> blocks_;
  std::vector<Word> rows_;
  Letters absent_;  // occur nowhere
};

}  // namespace grammaton
