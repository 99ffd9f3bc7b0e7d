#include "index/shared_bits.hpp"

#include <algorithm>
#include <functional>

namespace grammaton {

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

}  // namespace grammaton
