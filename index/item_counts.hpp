// Tokens by how many items they take: what the mask of X* tells about X{m,n}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/token_index.hpp"

namespace grammaton {

// Under way. A list of the 126,000 tokens of a JSON string had to be sorted, and touched a megabyte
// of fresh pages: most of the 1.6 ms that its study took.
class CountedTokens {
 public:
  explicit CountedTokens(const TokenIndex& index) : index_(index) {}

  void clear();
  // No token is to be taken twice.
  void take(std::uint32_t items, std::uint32_t token) { list_.push_back({items, token}); }
  // Tokens that take an item a character, and so many more. To be said once.
  void take_characters(std::uint32_t more, std::vector<Word> tokens);
  // All of them.
  std::size_t size() const { return list_.size() + in_bulk_; }
  void add_to(std::span<Word> bits) const;
  // Makes `inside`, and if there are to be `bases`, `at_most`. To be asked once.
  void finish(ItemCounts& counts, bool bases);

 private:
  const TokenIndex& index_;
  std::vector<ItemCounts::Taken> list_;
  std::vector<Word> bulk_;  // no longer tokens than index_ has ready; empty for none
  std::uint32_t more_ = 0;
  std::size_t in_bulk_ = 0;
};

}  // namespace grammaton
