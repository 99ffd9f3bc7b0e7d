#include "index/character_tokens.hpp"

#include <bit>

namespace grammaton {

namespace {

// Fewer tokens than one in so many words are listed: each clears a word of its own, from a list
// that is shorter than a row.
constexpr std::size_t kListedWords = 2;

std::uint64_t ones(unsigned size) {
  return size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
}

}  // namespace

Letters CharacterTokens::letters_in(std::string_view text) {
  Letters letters;
  for (const char c : text) letters.add_byte(static_cast<unsigned char>(c));
  return letters;
}

void CharacterTokens::build(const std::vector<Letters>& letters) {
  std::array<std::size_t, kLetters> count{};
  const auto each = [&letters](auto&& f) {
    for (std::uint32_t id = 0; id < letters.size(); ++id) {
      for (unsigned i = 0; i < kLetters / 64; ++i) {
        for (std::uint64_t left = letters[id].word(i); left != 0; left &= left - 1)
          f(i * 64 + static_cast<unsigned>(std::countr_zero(left)), id);
      }
    }
  };
  each([&count](unsigned letter, std::uint32_t) { ++count[letter]; });
  std::uint32_t rows = 0;
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    blocks_[k].resize(kLetters / kSizes[k]);
    for (unsigned letter = 0; letter < kLetters; letter += kSizes[k]) {
      std::size_t tokens = 0;
      for (unsigned i = 0; i < kSizes[k]; ++i) tokens += count[letter + i];
      if (tokens * kListedWords > words_) blocks_[k][letter / kSizes[k]].row = rows++;
    }
  }
  rows_.assign(rows * words_, 0);
  each([this](unsigned letter, std::uint32_t id) {
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      Block& block = blocks_[k][letter / kSizes[k]];
      if (block.row == kNone) {
        block.tokens.push_back(id);
      } else {
        set_bit(rows_.data() + block.row * words_, id);
      }
    }
  });
  for (unsigned letter = 0; letter < kLetters; ++letter) {
    if (count[letter] == 0) absent_.add(letter);
  }
}

void CharacterTokens::clear(const Letters& letters, std::span<Word> bits) const {
  if (words_ == 0) return;
  Letters with_absent = letters;
  with_absent.add(absent_);
  // The largest block that has no other letters, then what is beside it.
  const auto clear_in = [&](auto& self, std::size_t k, unsigned begin, unsigned end) -> void {
    for (unsigned letter = begin; letter < end; letter += kSizes[k]) {
      const std::uint64_t wanted = with_absent.word(letter / 64) >> letter % 64 & ones(kSizes[k]);
      if (wanted == ones(kSizes[k])) {
        clear_block(blocks_[k][letter / kSizes[k]], bits);
      } else if (wanted != 0) {
        self(self, k + 1, letter, letter + kSizes[k]);
      }
    }
  };
  clear_in(clear_in, 0, 0, kLetters);
}

void CharacterTokens::clear_block(const Block& block, std::span<Word> bits) const {
  for (const std::uint32_t token : block.tokens) clear_bit(bits.data(), token);
  if (block.row == kNone) return;
  const Word* const row = rows_.data() + block.row * words_;
  for (std::size_t i = 0; i < words_; ++i) bits[i] &= ~row[i];
}

}  // namespace grammaton
