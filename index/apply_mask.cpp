#include "index/apply_mask.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "index/workers.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kWordBits = 32;
constexpr std::size_t kBytesWorthAThread = 1 << 19;  // waking one takes as long as moving 20 kB

// Where the mask leaves out no more of a word, its scores are set one by one.
constexpr int kFew = 6;

// Scores are fetched so many mask words ahead where the mask excludes much: from memory, 33 MB of
// floats then take 3.6 ms and not 5.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kCachedBytes = 1 << 21;  // less than this was likely just written

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

// Asks for both halves because words with a short run of excluded tokens, of which a string's mask
// has many, would be a branch that no one can foresee: a third of the time of a row in the cache.
bool excludes_much(std::uint32_t word) { return (~word & 0xFFFF) != 0 && ~word >> 16 != 0; }

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
void apply_row(const ScoreRows<Lane>& rows, std::size_t row) {
  const auto at = static_cast<std::int64_t>(row);
  const Lane* scores = rows.scores + at * rows.score_stride;
  const std::uint32_t* mask = rows.masks + at * rows.mask_stride;
  Lane* out = rows.out + at * rows.out_stride;
  const std::size_t whole = std::min(rows.words, rows.size / kWordBits);
  const bool far = rows.rows * rows.size * sizeof(Lane) > kCachedBytes && whole > kAhead;
  const std::size_t fetched = far ? whole - kAhead : 0;
  for (std::size_t i = 0; i < whole; ++i, scores += kWordBits, out += kWordBits) {
    if (i < fetched && excludes_much(mask[i + kAhead])) fetch(out + kAhead * kWordBits);
    if (mask[i] == 0) {
      std::fill_n(out, kWordBits, rows.excluded);
    } else if (mask[i] == ~std::uint32_t{0}) {
      if (out != scores) std::memcpy(out, scores, kWordBits * sizeof(Lane));
    } else if (out == scores && std::popcount(~mask[i]) <= kFew) {
      exclude_few(mask[i], out, rows.excluded);
    } else {
      choose(mask[i], scores, out, rows.excluded);
    }
  }
  const std::uint32_t last = whole < rows.words ? mask[whole] : 0;
  for (std::size_t i = 0; i < rows.size - whole * kWordBits; ++i) {
    out[i] = i < kWordBits && (last >> i & 1) != 0 ? scores[i] : rows.excluded;
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
