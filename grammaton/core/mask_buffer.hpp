// The arrays that callers want masks written into, checked before the GIL is released.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>

#include "grammaton/core/bindings.hpp"

namespace grammaton {

// The array keeps the buffer where it is while masks are written without the GIL.
struct MaskBuffer {
  nb::ndarray<> array;
  std::size_t rows = 0;
  std::int64_t stride = 0;  // words from a row to the next

  std::uint32_t* row(std::size_t i) const {
    return static_cast<std::uint32_t*>(array.data()) + static_cast<std::int64_t>(i) * stride;
  }
};

// A writable int32 array of shape (words,), one row, or (B, words), with contiguous rows in CPU
// memory; VocabularyFault otherwise.
MaskBuffer mask_buffer(const nb::object& out, std::size_t words);

}  // namespace grammaton
