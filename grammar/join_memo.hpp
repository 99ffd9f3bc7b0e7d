// What unions came to, by the list of what was joined.
//
// Factoring goes down common beginnings: `a·x | a·y` is `a·(x | y)`, whose tails are joined in
// turn. Where alternatives share their tails, as the passes of `(a|ab|(b|)c){1,12}` do, the same
// tails meet under every head of every level: joined anew each time, that is as many joins as there
// are ways down (3 s of CPU for a byte), instead of as many as there are lists of tails.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/hash.hpp"

namespace grammaton {

class JoinMemo {
 public:
  // The result for these operands, or InternTable::kFree.
  std::uint32_t find(std::span<const std::uint32_t> items) const {
    const std::uint32_t known = lookup_.find(hash_words(items), [&](std::uint32_t i) {
      const Entry& e = entries_[i];
      return std::ranges::equal(std::span(operands_).subspan(e.begin, e.size), items);
    });
    return known == InternTable::kFree ? known : entries_[known].result;
  }
  void insert(std::span<const std::uint32_t> items, std::uint32_t result) {
    if (operands_.size() + items.size() > kMostOperands) *this = JoinMemo();
    lookup_.insert(hash_words(items), static_cast<std::uint32_t>(entries_.size()));
    entries_.push_back({static_cast<std::uint32_t>(operands_.size()),
                        static_cast<std::uint32_t>(items.size()), result});
    operands_.insert(operands_.end(), items.begin(), items.end());
  }

 private:
  struct Entry {
    std::uint32_t begin, size, result;
  };
  // 1 MiB; then everything is forgotten, which costs time and nothing else.
  static constexpr std::size_t kMostOperands = std::size_t{1} << 18;

  InternTable lookup_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> operands_;  // of all entries, one after another
};

}  // namespace grammaton
