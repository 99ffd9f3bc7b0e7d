#include "index/item_counts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace grammaton {

namespace {

// So few tokens between two counted bases are listed. A base for each number of items was half a
// megabyte, most of a hexadecimal frame's 0.7 ms.
constexpr std::size_t kListedCounts = 128;
// After so many bases twice as many tokens are listed, and so on. No real vocabulary has so many.
constexpr std::size_t kManyCountedBases = 32;

}  // namespace

void CountedTokens::clear() {
  list_.clear();
  bulk_.clear();
  in_bulk_ = 0;
}

void CountedTokens::take_characters(std::uint32_t more, std::vector<Word> tokens) {
  more_ = more;
  bulk_ = std::move(tokens);
  for (const auto& [characters, token] : index_.longer_tokens()) {
    if (!get_bit(bulk_.data(), token)) continue;
    take(more + characters, token);
    clear_bit(bulk_.data(), token);
  }
  for (const Word word : bulk_) in_bulk_ += static_cast<std::size_t>(std::popcount(word));
}

void CountedTokens::add_to(std::span<Word> bits) const {
  for (std::size_t i = 0; i < bulk_.size(); ++i) bits[i] |= bulk_[i];
  for (const ItemCounts::Taken& taken : list_) set_bit(bits.data(), taken.token);
}

void CountedTokens::finish(ItemCounts& counts, bool bases) {
  sort_by_items(list_);
  const auto ready = static_cast<std::uint32_t>(TokenIndex::kReadyCharacters);
  std::uint32_t most = bulk_.empty() ? 0 : more_ + ready;
  if (!list_.empty()) most = std::max(most, list_.front().items);
  std::vector<Word> bits(index_.words(), 0);   // of tokens with at most so many items
  std::vector<Word> fresh(index_.words(), 0);  // and of those of the bulk with no fewer
  std::size_t since = 0;
  std::size_t left = list_.size();
  for (std::uint32_t items = 0; items <= most; ++items) {
    const std::size_t end = left;
    while (left > 0 && list_[left - 1].items == items) --left;
    const std::span<const ItemCounts::Taken> listed(list_.data() + left, list_.data() + end);
    const bool in_bulk = !bulk_.empty() && more_ <= items && items <= more_ + ready;
    std::size_t size = listed.size();
    if (in_bulk) {
      const Word* const short_ones = index_.at_most_characters(items - more_).get();
      for (std::size_t i = 0; i < bits.size(); ++i) {
        fresh[i] = bulk_[i] & short_ones[i] & ~bits[i];
        size += static_cast<std::size_t>(std::popcount(fresh[i]));
        bits[i] |= fresh[i];
      }
    }
    if (size == 0) continue;
    for (const ItemCounts::Taken& taken : listed) set_bit(bits.data(), taken.token);
    since += size;
    if (bases && since >= kListedCounts << counts.at_most.size() / kManyCountedBases) {
      counts.at_most.push_back({items, copy_bits(bits)});
      since = 0;
      continue;
    }
    counts.inside.insert(counts.inside.end(), listed.begin(), listed.end());
    for (std::size_t i = 0; in_bulk && i < fresh.size(); ++i) {
      for (Word word = fresh[i]; word != 0; word &= word - 1)
        counts.inside.push_back({items, static_cast<std::uint32_t>(i * 64) +
                                            static_cast<std::uint32_t>(std::countr_zero(word))});
    }
  }
  std::ranges::reverse(counts.inside);
}

}  // namespace grammaton
