// Masks applied to rows of scores in CPU memory.
//
// A score whose token is allowed stays and every other one becomes a given value. Scores are moved
// as the integers of their bits, so that every floating type of a size is one case and NaN is
// exact. A word of 32 tokens that allows none or all of them is filled or copied; the others are
// chosen from without a branch a token. A row of 50,000 floats takes 10 to 20 us, what memory
// takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace grammaton {

// Rows of B x V scores; strides count elements.
template <class Lane>
struct ScoreRows {
  const Lane* scores = nullptr;
  std::int64_t score_stride = 0;
  const std::uint32_t* masks = nullptr;
  std::int64_t mask_stride = 0;
  Lane* out = nullptr;  // of another memory than the scores, or the scores themselves
  std::int64_t out_stride = 0;
  std::size_t rows = 0;
  std::size_t size = 0;   // scores a row
  std::size_t words = 0;  // mask words a row; scores past them are excluded
  Lane excluded = 0;
};

// On at most `threads` threads, the caller's among them; fewer where there is little to do.
void apply_masks(const ScoreRows<std::uint16_t>& rows, std::size_t threads);
void apply_masks(const ScoreRows<std::uint32_t>& rows, std::size_t threads);
void apply_masks(const ScoreRows<std::uint64_t>& rows, std::size_t threads);

}  // namespace grammaton
