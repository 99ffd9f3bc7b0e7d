#include "index/batch.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "index/workers.hpp"

namespace grammaton {

namespace {

// Copying this much takes some 20 us, several times what waking a thread does.
constexpr std::size_t kTaskBytes = std::size_t{1} << 20;

std::size_t row_bytes(const BatchRow& row) {
  return row.constraint->index().mask_words() * sizeof(std::uint32_t);
}

void write(BatchRow& row, const FinishedMask& mask, bool compare) {
  const std::span<std::uint32_t> out(row.out, row.constraint->index().mask_words());
  if (compare && mask.equals(out)) return;
  mask.write(out);
  row.changed = true;
}

void clear(BatchRow& row, bool compare) { write(row, FinishedMask(), compare); }

// False when the mask has to be made.
bool copy_finished(BatchRow& row, bool compare) {
  if (row.state == Constraint::kFinished) {
    clear(row, compare);
    return true;
  }
  const std::shared_ptr<const FinishedMask> mask = row.constraint->find_mask(row.state);
  if (mask == nullptr) return false;
  write(row, *mask, compare);
  return true;
}

void make(BatchRow& row, bool compare) {
  try {
    write(row, *row.constraint->mask(row.state), compare);
  } catch (...) {
    row.error = std::current_exception();
    clear(row, compare);
  }
}

}  // namespace

void fill_batch(std::span<BatchRow> rows, std::size_t threads, bool compare) {
  if (rows.empty()) return;
  std::vector<std::uint8_t> unfinished(rows.size(), 0);
  const std::size_t chunk =
      std::max<std::size_t>(1, kTaskBytes / std::max<std::size_t>(1, row_bytes(rows.front())));
  run_tasks((rows.size() + chunk - 1) / chunk, threads, [&](std::size_t task) {
    const std::size_t end = std::min(rows.size(), (task + 1) * chunk);
    for (std::size_t i = task * chunk; i < end; ++i)
      unfinished[i] = copy_finished(rows[i], compare) ? 0 : 1;
  });

  std::vector<BatchRow*> left;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (unfinished[i] != 0) left.push_back(&rows[i]);
  }
  if (left.empty()) return;
  // Stable, so that what a batch does doesn't depend on where constraints lie in memory.
  std::ranges::stable_sort(left, std::less<>{},
                           [](const BatchRow* row) { return row->constraint.get(); });
  std::vector<std::size_t> begins;  // of the rows of each constraint
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (i == 0 || left[i]->constraint != left[i - 1]->constraint) begins.push_back(i);
  }
  begins.push_back(left.size());
  run_tasks(begins.size() - 1, threads, [&](std::size_t task) {
    for (std::size_t i = begins[task]; i < begins[task + 1]; ++i) make(*left[i], compare);
  });
}

}  // namespace grammaton
