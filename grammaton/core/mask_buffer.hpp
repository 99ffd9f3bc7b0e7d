// The arrays that callers want masks written into, checked before the GIL is released.
//
// What has Python's buffer protocol, as NumPy's arrays do, is read through it (0.1 us), anything
// else through DLPack (0.5 us a PyTorch tensor). Both keep the array where it is while masks are
// written without the GIL, and have to be let go with it.
#pragma once

#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <string>

#include "grammaton/core/bindings.hpp"

namespace grammaton {

class MaskBuffer {
 public:
  // A writable int32 array of shape (words,), one row, or (B, words), with contiguous rows in CPU
  // memory; VocabularyFault otherwise.
  MaskBuffer(const nb::object& out, std::size_t words);

  // Whether it is of shape (words,).
  bool is_single() const { return single_; }
  std::size_t rows() const { return rows_; }
  // Words from a row to the next.
  std::int64_t stride() const { return stride_; }
  std::uint32_t* row(std::size_t i) const {
    return first_ + static_cast<std::int64_t>(i) * stride_;
  }

 private:
  struct View : Py_buffer {
    View() : Py_buffer{} {}  // nobody's: there is nothing to release until it is filled in
    ~View() { PyBuffer_Release(this); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
  };
  // One dimension: how many items it has, and the bytes from one to the next.
  struct Dimension {
    std::int64_t size;
    std::int64_t stride;
  };
  struct Layout {
    void* data = nullptr;
    std::size_t count = 0;  // of dimensions; the first two are told
    std::array<Dimension, 2> dimensions{};
  };
  bool view(const nb::object& out, Layout& layout);
  void import(const nb::object& out, Layout& layout);
  void use(const Layout& layout);
  std::string wanted() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::size_t words_;
  View view_;
  nb::ndarray<> array_;
  std::uint32_t* first_ = nullptr;
  std::size_t rows_ = 0;
  std::int64_t stride_ = 0;
  bool single_ = false;
};

}  // namespace grammaton
