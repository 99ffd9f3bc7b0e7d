#include "index/shared_bits.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace grammaton {

namespace {

// Words of 32 bits in which bits differ, as far as `most` and some.
std::size_t differing(std::span<const Word> a, const Word* b, std::size_t most) {
  constexpr std::size_t kPiece = 64;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size() && count <= most;) {
    for (const std::size_t end = std::min(i + kPiece, a.size()); i < end; ++i) {
      const Word different = a[i] ^ b[i];
      count += (static_cast<std::uint32_t>(different) != 0 ? 1U : 0U) +
               ((different >> 32) != 0 ? 1U : 0U);
    }
  }
  return count;
}

}  // namespace

SharedBits::SharedBits(std::size_t words, std::size_t most_bytes)
    : words_(words),
      most_(std::max<std::size_t>(1,
                                  most_bytes / (std::max<std::size_t>(1, words) * sizeof(Word)))) {}

Bits SharedBits::combine(const Bits& a, const Bits& b, bool joined) {
  if (a == b) return a;
  const bool in_order = std::less<const Word*>{}(a.get(), b.get());
  const Pair pair{in_order ? a.get() : b.get(), in_order ? b.get() : a.get(), joined};
  {
    const std::scoped_lock lock(mutex_);
    const auto found = made_.find(pair);
    if (found != made_.end()) return found->second.result;
  }
  const std::shared_ptr<Word[]> made(new Word[words_]);
  Word beyond_a = 0;
  Word beyond_b = 0;
  for (std::size_t i = 0; i < words_; ++i) {
    made[i] = joined ? a[i] | b[i] : a[i] & b[i];
    beyond_a |= made[i] ^ a[i];
    beyond_b |= made[i] ^ b[i];
  }
  Bits result = beyond_a == 0 ? a : beyond_b == 0 ? b : Bits(made);
  std::unordered_map<Pair, Made, PairHasher> forgotten;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  if (made_.size() >= most_) made_.swap(forgotten);
  return made_.emplace(pair, Made{{a, b}, std::move(result)}).first->second.result;
}

SharedBits::Sample SharedBits::sample(std::span<const Word> bits) const {
  Sample found{};
  if (bits.empty()) return found;
  for (std::size_t i = 0; i < kSampled; ++i) found[i] = bits[i * bits.size() / kSampled];
  return found;
}

Bits SharedBits::like(std::span<const Word> bits, std::size_t most) {
  const Sample sampled = sample(bits);
  std::array<Bits, kMostTried> nearest;  // by their samples
  {
    const std::scoped_lock lock(mutex_);
    std::array<std::pair<std::size_t, std::size_t>, kMostHeld> found;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      std::size_t count = 0;
      for (std::size_t k = 0; k < kSampled; ++k) count += sampled[k] != samples_[i][k] ? 1U : 0U;
      found[i] = {count, i};
    }
    const std::size_t tried = std::min(kMostTried, held_.size());
    std::partial_sort(found.data(), found.data() + tried, found.data() + held_.size());
    for (std::size_t i = 0; i < tried; ++i) nearest[i] = held_[found[i].second];
  }
  for (const Bits& held : nearest) {
    if (held && differing(bits, held.get(), most) <= most) return held;
  }
  return nullptr;
}

void SharedBits::hold(const Bits& bits) {
  const Sample kept = sample({bits.get(), words_});
  Bits dropped;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  if (held_.size() < kMostHeld) {
    samples_.push_back(kept);
    held_.push_back(bits);
  } else {
    samples_[oldest_] = kept;
    dropped = std::exchange(held_[oldest_], bits);
    oldest_ = (oldest_ + 1) % kMostHeld;
  }
}

bool SharedBits::holds(const Bits& bits) {
  const std::scoped_lock lock(mutex_);
  return std::ranges::find(held_, bits) != held_.end();
}

}  // namespace grammaton
