#include "index/mask_scratch.hpp"

#include <utility>

namespace grammaton {

namespace {

// Masks with more parts under way at once are rare; their builders are freed.
constexpr std::size_t kMostBuilders = 8;
// More threads than this are not expected to make masks at once, again and again.
constexpr std::size_t kMostIdle = 64;

}  // namespace

MaskScratch::MaskScratch(TokenIndex& index)
    : counted(index), suspects(index.words(), index.shared_bits()), index_(index) {}

MaskBuilder& MaskScratch::take() {
  if (used_ == builders_.size()) builders_.emplace_back(index_.words(), index_.shared_bits());
  MaskBuilder& builder = builders_[used_++];
  builder.clear();
  return builder;
}

void MaskScratch::clean() noexcept {
  while (builders_.size() > kMostBuilders) builders_.pop_back();
  for (MaskBuilder& builder : builders_) builder.clear();
  suspects.clear();
  counted.clear();
  used_ = 0;
}

ScratchPool::ScratchPool() { idle_.reserve(kMostIdle); }  // what ends a loan must not throw

std::unique_ptr<MaskScratch> ScratchPool::take(TokenIndex& index) {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<MaskScratch> scratch = std::move(idle_.back());
      idle_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<MaskScratch>(index);
}

void ScratchPool::keep(std::unique_ptr<MaskScratch> scratch) noexcept {
  scratch->clean();
  const std::scoped_lock lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(scratch));
}

ScratchLoan::ScratchLoan(TokenIndex& index, std::unique_ptr<MaskScratch>& place)
    : index_(index), place_(place), lent_(place == nullptr) {
  if (lent_) place_ = index_.scratch().take(index_);
}

ScratchLoan::~ScratchLoan() {
  if (lent_) index_.scratch().keep(std::move(place_));
}

}  // namespace grammaton
