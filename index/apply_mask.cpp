#include "index/apply_mask.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "index/workers.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kWordBits = 32;
constexpr std::uint32_t kAll = ~std::uint32_t{0};
constexpr std::size_t kBytesWorthAThread = 1 << 19;  // waking one takes as long as moving 20 kB

// Where the mask leaves out no more of a word, its scores are set one by one.
constexpr int kFew = 6;

// Scores are fetched so many words that exclude something ahead: from memory, 33 MB of
// floats then take 3.6 ms and not 5.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kCachedBytes = 1 << 21;  // less than this was likely just written

// So many words of a mask at a time. Where at least half of them allow everything, the others are
// listed first: as branches they could not be foreseen, and a string's mask has one in six.
constexpr std::size_t kBlock = 512;

// For each byte of a mask, eight lanes of ones and zeros.
template <class Lane>
constexpr std::array<std::array<Lane, 8>, 256> kKept = [] {
  std::array<std::array<Lane, 8>, 256> kept{};
  for (std::size_t byte = 0; byte < kept.size(); ++byte) {
    for (std::size_t i = 0; i < 8; ++i)
      kept[byte][i] = (byte >> i & 1) != 0 ? static_cast<Lane>(~Lane{0}) : Lane{0};
  }
  return kept;
}();

// Through an array of its own: the compiler then knows that reading and writing do not meet, also
// where they are the same row, and makes a few vector instructions of it.
template <class Lane>
void choose(std::uint32_t word, const Lane* scores, Lane* out, Lane excluded) {
  std::array<Lane, kWordBits> chosen;
  std::memcpy(chosen.data(), scores, sizeof chosen);
  for (std::size_t first = 0; first < kWordBits; first += 8) {
    const std::array<Lane, 8>& kept = kKept<Lane>[word >> first & 0xFF];
    for (std::size_t i = 0; i < 8; ++i) {
      const Lane other = excluded & static_cast<Lane>(~kept[i]);
      chosen[first + i] = static_cast<Lane>((chosen[first + i] & kept[i]) | other);
    }
  }
  std::memcpy(out, chosen.data(), sizeof chosen);
}

template <class Lane>
void fetch(const Lane* scores) {
  constexpr std::size_t kLine = kLineBytes / sizeof(Lane);
  for (std::size_t i = 0; i < kWordBits; i += kLine) __builtin_prefetch(scores + i, 1);
}

// In place, where the mask leaves out few.
template <class Lane>
void exclude_few(std::uint32_t word, Lane* scores, Lane excluded) {
  for (std::uint32_t left = ~word; left != 0; left &= left - 1)
    scores[std::countr_zero(left)] = excluded;
}

template <class Lane>
void apply_word(std::uint32_t word, const Lane* scores, Lane* out, Lane excluded) {
  if (word == 0) {
    std::fill_n(out, kWordBits, excluded);
  } else if (out == scores && std::popcount(~word) <= kFew) {
    exclude_few(word, out, excluded);
  } else {
    choose(word, scores, out, excluded);
  }
}

template <class Lane>
void apply_row(const ScoreRows<Lane>& rows, std::size_t row) {
  const auto at = static_cast<std::int64_t>(row);
  const Lane* scores = rows.scores + at * rows.score_stride;
  const std::uint32_t* mask = rows.masks + at * rows.mask_stride;
  Lane* out = rows.out + at * rows.out_stride;
  const std::size_t whole = std::min(rows.words, rows.size / kWordBits);
  const bool far = rows.rows * rows.size * sizeof(Lane) > kCachedBytes;
  const auto apply_at = [&](std::size_t i) {
    apply_word(mask[i], scores + i * kWordBits, out + i * kWordBits, rows.excluded);
  };
  std::array<std::uint32_t, kBlock> changed;
  for (std::size_t begin = 0; begin < whole; begin += kBlock) {
    const std::span<const std::uint32_t> block(mask + begin, std::min(kBlock, whole - begin));
    if (static_cast<std::size_t>(std::ranges::count(block, kAll)) * 2 < block.size()) {
      for (std::size_t i = begin; i < begin + block.size(); ++i) {
        if (far && i + kAhead < whole) fetch(out + (i + kAhead) * kWordBits);
        apply_at(i);
      }
      continue;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      changed[count] = static_cast<std::uint32_t>(begin + i);
      count += block[i] != kAll ? 1 : 0;
    }
    if (out != scores) {
      std::copy_n(scores + begin * kWordBits, block.size() * kWordBits, out + begin * kWordBits);
    }
    for (std::size_t k = 0; k < count; ++k) {
      if (k + kAhead < count) fetch(out + changed[k + kAhead] * kWordBits);
      apply_at(changed[k]);
    }
  }
  const std::uint32_t last = whole < rows.words ? mask[whole] : 0;
  for (std::size_t i = whole * kWordBits; i < rows.size; ++i) {
    const std::size_t bit = i - whole * kWordBits;
    out[i] = bit < kWordBits && (last >> bit & 1) != 0 ? scores[i] : rows.excluded;
  }
}

template <class Lane>
void apply_rows(const ScoreRows<Lane>& rows, std::size_t threads) {
  const std::size_t bytes = rows.rows * rows.size * sizeof(Lane);
  const std::size_t useful = std::max<std::size_t>(1, bytes / kBytesWorthAThread);
  run_tasks(rows.rows, std::min(threads, useful), [&](std::size_t row) { apply_row(rows, row); });
}

}  // namespace

void apply_masks(const ScoreRows<std::uint16_t>& rows, std::size_t threads) {
  apply_rows(rows, threads);
}

void apply_masks(const ScoreRows<std::uint32_t>& rows, std::size_t threads) {
  apply_rows(rows, threads);
}

void apply_masks(const ScoreRows<std::uint64_t>& rows, std::size_t threads) {
  apply_rows(rows, threads);
}

}  // namespace grammaton
