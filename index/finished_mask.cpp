#include "index/finished_mask.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/shared_bits.hpp"

namespace grammaton {

static_assert(std::endian::native == std::endian::little,
              "masks are little-endian words and are copied as they are");

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint32_t);
// With more than one word in so many different, a base of its own takes hardly more memory and is
// copied faster.
constexpr std::size_t kMostDifferent = 8;
// So many bases stay in a core's own cache with what else a step reads.
constexpr std::size_t kFewBases = 32;

bool all_zero(std::span<const std::uint32_t> words) {
  return std::ranges::all_of(words, [](std::uint32_t word) { return word == 0; });
}

}  // namespace

Bits copy_bits(std::span<const Word> words) {
  const std::shared_ptr<Word[]> copy(new Word[words.size()]);
  std::ranges::copy(words, copy.get());
  return copy;
}

void FinishedMask::write(std::span<std::uint32_t> out) const {
  if (base_) {
    std::memcpy(out.data(), base_.get(), out.size_bytes());
  } else {
    std::memset(out.data(), 0, out.size_bytes());
  }
  for (const Difference& difference : differences_) out[difference.word] = difference.bits;
}

bool FinishedMask::equals(std::span<const std::uint32_t> out) const {
  std::size_t at = 0;  // the words before it are equal
  const auto same_until = [&](std::size_t end) {
    const std::span<const std::uint32_t> piece = out.subspan(at, end - at);
    if (!base_) return all_zero(piece);
    const auto* base = reinterpret_cast<const unsigned char*>(base_.get());
    return std::memcmp(piece.data(), base + at * kWordBytes, piece.size_bytes()) == 0;
  };
  for (const Difference& difference : differences_) {
    if (!same_until(difference.word) || out[difference.word] != difference.bits) return false;
    at = difference.word + 1;
  }
  return same_until(out.size());
}

void MaskBuilder::clear() {
  base_ = nullptr;
  fleeting_ = false;
  std::ranges::fill(touched_, 0);
}

void MaskBuilder::join(const Bits& bits, bool fleeting) {
  if (bits) {
    each_touched([&](std::size_t i) { words_[i] |= bits[i]; });
    if (base_ == nullptr) {
      base_ = bits;
      fleeting_ = fleeting;
    } else if (base_ != bits && (fleeting_ || fleeting)) {
      for (std::size_t i = 0; i < size_; ++i) {
        if ((bits[i] & ~value(i)) != 0) word(i) |= bits[i];
      }
    } else {
      base_ = shared_->join(base_, bits);
    }
  }
  for (const auto& [i, value] : apart_) word(i) = value;
}

void MaskBuilder::add(const Bits& bits) {
  apart_.clear();
  join(bits, false);
}

void MaskBuilder::add(const MaskBuilder& part) {
  apart_.clear();
  part.each_touched([&](std::size_t i) { apart_.emplace_back(i, value(i) | part.words_[i]); });
  join(part.base_, part.fleeting_);
}

void MaskBuilder::add(const MaskBuilder& part, const Bits& within) {
  for (std::size_t i = 0; i < size_; ++i) {
    const Word more = part.value(i) & within[i];
    if ((more & ~value(i)) != 0) word(i) |= more;
  }
}

void MaskBuilder::add(const FinishedMask& part) {
  apart_.clear();
  for (auto next = part.differences_.begin(); next != part.differences_.end();) {
    const std::size_t i = next->word / 2;
    Word more = part.base_ ? part.base_[i] : 0;
    for (; next != part.differences_.end() && next->word / 2 == i; ++next) {
      const unsigned shift = next->word % 2 * 32;
      more &= ~(Word{0xFFFFFFFF} << shift);
      more |= Word{next->bits} << shift;
    }
    apart_.emplace_back(i, value(i) | more);
  }
  join(part.base_, part.fleeting_);
}

FinishedMask MaskBuilder::finish(Use use) {
  const std::size_t most = size_ * 2 / kMostDifferent;
  find_differences(most);
  const bool near = found_.size() <= most;
  const bool others = use == Use::Written && !(near && (!base_ || shared_->holds(base_)));
  if (!near || others) {
    for (std::size_t i = 0; i < size_; ++i) word(i);
    if (Bits like = others ? shared_->like(words(), most) : nullptr) {
      base_ = std::move(like);
      fleeting_ = true;
      find_differences(most);
    } else {
      if (!near) {
        base_ = copy_bits(words());
        fleeting_ = true;
        found_.clear();
      }
      if (others) shared_->hold(base_);
    }
  }
  FinishedMask mask;
  mask.base_ = base_;
  mask.fleeting_ = fleeting_;
  mask.differences_.assign(found_.begin(), found_.end());
  return mask;
}

void MaskBuilder::find_differences(std::size_t most) {
  found_.clear();
  each_touched([&](std::size_t i) {
    const Word different = words_[i] ^ (base_ ? base_[i] : 0);
    for (unsigned half = 0; half < 2 && found_.size() <= most; ++half) {
      const unsigned shift = half * 32;
      if (static_cast<std::uint32_t>(different >> shift) == 0) continue;
      found_.push_back({static_cast<std::uint32_t>(i * 2 + half),
                        static_cast<std::uint32_t>(words_[i] >> shift)});
    }
  });
}

FinishedMask Bases::finish(MaskBuilder& mask) {
  if (first_.size() >= kFewBases) return mask.finish(MaskBuilder::Use::Written);
  FinishedMask made = mask.finish();
  if (made.base() && std::ranges::find(first_, made.base().get()) == first_.end())
    first_.push_back(made.base().get());
  return made;
}

}  // namespace grammaton
