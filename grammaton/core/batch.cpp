// fill_masks for Python. Arguments are read and checked under the GIL; rows hold their constraints,
// so the masks are written without it whatever becomes of the list of matchers meanwhile.
#include "index/batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <optional>

#include "grammaton/core/mask_buffer.hpp"
#include "grammaton/core/without_gil.hpp"
#include "index/workers.hpp"

namespace grammaton {

namespace {

using Indices = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

struct Batch {
  std::vector<BatchRow> rows;
  std::vector<std::size_t> numbers;  // of each row in the caller's array
};

std::size_t thread_count(const std::optional<std::int64_t>& threads) {
  if (!threads) return default_threads();
  if (*threads < 1 || static_cast<std::uint64_t>(*threads) > kMostThreads) {
    throw VocabularyFault("threads=" + std::to_string(*threads) + "; it is 1 to " +
                          std::to_string(kMostThreads));
  }
  return static_cast<std::size_t>(*threads);
}

Batch read_rows(const nb::sequence& matchers, const nb::object& out,
                std::optional<MaskBuffer>& buffer) {
  Batch batch;
  const std::size_t count = nb::len(matchers);
  batch.rows.reserve(count);
  batch.numbers.reserve(count);
  std::size_t words = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object item = matchers[i];
    if (item.is_none()) continue;
    Matcher* matcher = nullptr;
    if (!nb::try_cast(item, matcher)) {
      throw VocabularyFault("row " + std::to_string(i) +
                            ": a row is filled for a Matcher, or None, not " +
                            nb::cast<std::string>(item.type().attr("__name__")));
    }
    const std::size_t wanted = matcher->constraint().index().mask_words();
    if (batch.rows.empty()) {
      words = wanted;
      buffer.emplace(out, words);
      if (buffer->is_single()) {
        throw VocabularyFault("fill_masks takes a mask buffer of shape (B, " +
                              std::to_string(words) + "), one row a matcher, not (" +
                              std::to_string(words) + ",)");
      }
      if (buffer->rows() != count) {
        throw VocabularyFault("the mask buffer has " + std::to_string(buffer->rows()) +
                              " rows for " + std::to_string(count) +
                              " matchers; out[:n] is the first n rows");
      }
      if (count > 1 && std::abs(buffer->stride()) < static_cast<std::int64_t>(words))
        throw VocabularyFault("the rows of the mask buffer lie over one another");
    } else if (wanted != words) {
      throw VocabularyFault("row " + std::to_string(i) + ": masks of this matcher have " +
                            std::to_string(wanted) + " words and those of row " +
                            std::to_string(batch.numbers.front()) + " have " +
                            std::to_string(words) + "; a batch has logits of one size");
    }
    batch.rows.push_back(
        {matcher->share_constraint(), matcher->state(), buffer->row(i), false, {}});
    batch.numbers.push_back(i);
  }
  return batch;
}

Indices written_rows(const Batch& batch) {
  std::size_t count = 0;
  for (const BatchRow& row : batch.rows) count += row.changed ? 1 : 0;
  auto* numbers = new std::int64_t[count];
  nb::capsule owner(numbers, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.rows[i].changed) numbers[next++] = static_cast<std::int64_t>(batch.numbers[i]);
  }
  return Indices(numbers, {count}, owner);
}

// One exception for all rows that met a limit; anything else a row met is raised as it is.
void raise_errors(const Batch& batch, const Indices& written) {
  nb::dict errors;
  std::string first;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (!batch.rows[i].error) continue;
    try {
      std::rethrow_exception(batch.rows[i].error);
    } catch (const LimitFault& fault) {
      if (first.empty()) first = "row " + std::to_string(batch.numbers[i]) + ": " + fault.what();
      errors[nb::int_(batch.numbers[i])] = fault.what();
    }
  }
  const std::size_t count = nb::len(errors);
  if (count == 0) return;
  if (count > 1) first += " (and " + std::to_string(count - 1) + " more rows)";
  const nb::object type = nb::module_::import_("grammaton.errors").attr("BatchLimitExceeded");
  const nb::object error = type(first, nb::arg("errors") = errors, nb::arg("written") = written);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace

void bind_batch(nb::module_& m) {
  using nb::arg;
  m.def(
      "fill_masks",
      [](const nb::sequence& matchers, const nb::object& out,
         const std::optional<std::int64_t>& threads, bool changed_only) {
        const std::size_t most = thread_count(threads);
        std::optional<MaskBuffer> buffer;
        Batch batch = read_rows(matchers, out, buffer);
        {
          const WithoutGil release;
          fill_batch(batch.rows, most, changed_only);
        }
        Indices written = written_rows(batch);
        raise_errors(batch, written);
        return written;
      },
      arg("matchers"), arg("out").none(), nb::kw_only(), arg("threads") = nb::none(),
      arg("changed_only") = false);
  // Not from a static object's destructor: on Windows those run where no thread can be waited for.
  Py_AtExit(stop_workers);
}

}  // namespace grammaton
