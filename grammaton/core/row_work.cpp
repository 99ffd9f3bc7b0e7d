// What a logits processor does to whole rows, for Python: masks applied to scores, ids compared.
// Arrays are checked under the GIL; scores are worked on without it.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "grammaton/core/mask_buffer.hpp"
#include "grammaton/core/without_gil.hpp"
#include "index/apply_mask.hpp"
#include "index/workers.hpp"

namespace grammaton {

namespace {

using Scores = nb::ndarray<nb::ro, nb::device::cpu, nb::ndim<2>>;
using Masks = nb::ndarray<const std::int32_t, nb::device::cpu, nb::ndim<2>>;
using Out = nb::ndarray<nb::device::cpu, nb::ndim<2>>;

void need(bool holds, const char* what) {
  if (!holds) throw VocabularyFault(what);
}

// The bytes from the first of an array's to the last.
template <class Array>
std::pair<std::uintptr_t, std::uintptr_t> extent(const Array& array) {
  const auto rows = static_cast<std::int64_t>(array.shape(0));
  if (rows == 0 || array.shape(1) == 0) return {0, 0};
  const std::int64_t last = (rows - 1) * array.stride(0);
  const auto itemsize = static_cast<std::int64_t>(array.itemsize());
  const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
  const auto at = [&](std::int64_t items) {
    return begin + static_cast<std::uintptr_t>(items * itemsize);
  };
  return {at(std::min<std::int64_t>(last, 0)),
          at(std::max<std::int64_t>(last, 0) + static_cast<std::int64_t>(array.shape(1)))};
}

bool same_or_apart(const Scores& scores, const Out& out) {
  if (scores.data() == out.data() && scores.stride(0) == out.stride(0)) return true;
  const auto [begin, end] = extent(scores);
  const auto [out_begin, out_end] = extent(out);
  return end <= out_begin || out_end <= begin;
}

template <class Lane>
void apply(const Scores& scores, const Masks& masks, const Out& out, std::int64_t excluded,
           std::size_t threads) {
  const ScoreRows<Lane> rows{
      static_cast<const Lane*>(scores.data()),
      scores.stride(0),
      reinterpret_cast<const std::uint32_t*>(masks.data()),
      masks.stride(0),
      static_cast<Lane*>(out.data()),
      out.stride(0),
      scores.shape(0),
      scores.shape(1),
      masks.shape(1),
      static_cast<Lane>(excluded),
  };
  const WithoutGil release;
  apply_masks(rows, threads);
}

void apply_any(const Scores& scores, const Masks& masks, const Out& out, std::int64_t excluded,
               std::int64_t threads) {
  need(scores.dtype().code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int) &&
           scores.dtype() == out.dtype(),
       "scores and out are the integers of their bits, of one dtype");
  need(scores.shape(0) == out.shape(0) && scores.shape(1) == out.shape(1) &&
           scores.shape(0) == masks.shape(0),
       "scores and out are (B, V), masks are (B, W)");
  if (out.shape(0) == 0 || out.shape(1) == 0) return;
  const auto contiguous = [](const auto& array) {
    return array.shape(1) <= 1 || array.stride(1) == 1;
  };
  need(contiguous(scores) && contiguous(out) && contiguous(masks), "rows must be contiguous");
  need(out.shape(0) <= 1 || std::abs(out.stride(0)) >= static_cast<std::int64_t>(out.shape(1)),
       "the rows of out lie over one another");
  need(same_or_apart(scores, out), "out is other memory than the scores, or the scores themselves");
  need(threads >= 1 && static_cast<std::uint64_t>(threads) <= kMostThreads, "threads is 1 to 256");
  const auto most = static_cast<std::size_t>(threads);
  switch (scores.dtype().bits) {
    case 16:
      return apply<std::uint16_t>(scores, masks, out, excluded, most);
    case 32:
      return apply<std::uint32_t>(scores, masks, out, excluded, most);
    case 64:
      return apply<std::uint64_t>(scores, masks, out, excluded, most);
    default:
      throw VocabularyFault("scores have 16, 32 or 64 bits");
  }
}

using Ids = nb::ndarray<const std::int64_t, nb::device::cpu, nb::ndim<2>>;

bool same_rows(const Ids& a, const Ids& b, std::int64_t columns) {
  const std::size_t rows = a.shape(0);
  const auto count = static_cast<std::size_t>(columns);
  need(columns >= 0 && count <= a.shape(1) && count <= b.shape(1) && rows == b.shape(0),
       "rows to compare are as many, and have that many columns");
  if (rows == 0 || count == 0) return true;
  need(count == 1 || (a.stride(1) == 1 && b.stride(1) == 1), "rows must be contiguous");
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const std::int64_t* first = a.data() + row * a.stride(0);
    if (!std::equal(first, first + count, b.data() + row * b.stride(0))) return false;
  }
  return true;
}

}  // namespace

void bind_row_work(nb::module_& m) {
  using nb::arg;
  m.def("apply_masks", apply_any, arg("scores"), arg("masks"), arg("out"), nb::kw_only(),
        arg("excluded"), arg("threads") = 1);
  m.def("same_rows", same_rows, arg("a"), arg("b"), arg("columns"));
}

}  // namespace grammaton
