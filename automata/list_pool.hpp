// Lists of 32-bit words, hash-consed: equal lists have equal ids, and the empty one is 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/hash.hpp"

namespace grammaton {

class ListPool {
 public:
  ListPool() { intern({}); }

  std::uint32_t intern(std::span<const std::uint32_t> words) {
    const std::uint64_t h = hash_words(words);
    const std::uint32_t known =
        lookup_.find(h, [&](std::uint32_t id) { return std::ranges::equal((*this)[id], words); });
    if (known != InternTable::kFree) return known;
    const auto id = static_cast<std::uint32_t>(begins_.size() - 1);
    words_.insert(words_.end(), words.begin(), words.end());
    begins_.push_back(words_.size());
    lookup_.insert(h, id);
    return id;
  }
  // Valid until the next intern().
  std::span<const std::uint32_t> operator[](std::uint32_t id) const {
    return {words_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }
  std::vector<std::uint32_t> copy(std::uint32_t id) const {
    const auto words = (*this)[id];
    return {words.begin(), words.end()};
  }
  std::size_t size() const { return begins_.size() - 1; }
  std::size_t memory() const {
    return words_.capacity() * sizeof(std::uint32_t) + begins_.capacity() * sizeof(std::size_t) +
           size() * 32;
  }

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> begins_{0};
  InternTable lookup_;
};

}  // namespace grammaton
