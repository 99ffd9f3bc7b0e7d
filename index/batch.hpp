// The masks of many sequences at once, on several threads.
//
// Rows whose mask is finished are copied first, in parallel where that pays. The others are sorted
// by constraint: a constraint makes one mask at a time, so its rows are one task, and different
// constraints run beside each other. Equal rows find what the first of them made. No thread ever
// waits for a lock while there is other work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>

#include "index/constraint.hpp"

namespace grammaton {

// One row to fill.
struct BatchRow {
  std::shared_ptr<Constraint> constraint;
  State state = Constraint::kFinished;
  std::uint32_t* out = nullptr;  // constraint->index().mask_words() words, no other row's
  bool changed = false;          // set when the words in `out` changed
  std::exception_ptr error;      // set when the mask could not be made; the row is then all zero
};

// Fills every row, on at most `threads` threads. With `compare`, rows that hold their mask already
// are not written, and `changed` says which were; without, it is true for all of them.
void fill_batch(std::span<BatchRow> rows, std::size_t threads, bool compare);

}  // namespace grammaton
