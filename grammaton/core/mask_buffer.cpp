#include "grammaton/core/mask_buffer.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

namespace grammaton {

namespace {

constexpr std::int64_t kWordBytes = sizeof(std::int32_t);

// A format of the struct module: one signed integer of the machine's byte order.
bool is_int32(const Py_buffer& view) {
  std::string_view format = view.format == nullptr ? "B" : view.format;
  constexpr char kNative = std::endian::native == std::endian::little ? '<' : '>';
  if (format.starts_with('@') || format.starts_with('=') || format.starts_with(kNative))
    format.remove_prefix(1);
  return view.itemsize == kWordBytes && (format == "i" || format == "l");
}

// PyTorch makes a capsule in 0.3 us by itself, and in 2.2 through Tensor.__dlpack__.
nb::object capsule_of(const nb::object& out) {
  const nb::object module = nb::getattr(out.type(), "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module)) return out;
  if (PyUnicode_CompareWithASCIIString(module.ptr(), "torch") != 0) return out;
  const nb::handle made = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.utils.dlpack");
  if (!made.is_valid()) return out;
  try {
    return made.attr("to_dlpack")(out);
  } catch (const nb::python_error&) {
    return out;  // a sparse one, say
  }
}

}  // namespace

MaskBuffer::MaskBuffer(const nb::object& out, std::size_t words) : words_(words) {
  Layout layout;
  if (!view(out, layout)) import(out, layout);
  use(layout);
}

std::string MaskBuffer::wanted() const {
  const std::string words = std::to_string(words_);
  return "a writable int32 array of shape (" + words + ",) or (B, " + words + ") in CPU memory";
}

void MaskBuffer::fail(const std::string& what) const {
  throw VocabularyFault("the mask buffer " + what + "; it must be " + wanted() +
                        " with contiguous rows");
}

// False when it has no buffers, or none of this kind.
bool MaskBuffer::view(const nb::object& out, Layout& layout) {
  if (PyObject_CheckBuffer(out.ptr()) == 0) return false;
  if (PyObject_GetBuffer(out.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  if (view_.readonly != 0) throw VocabularyFault("the mask buffer is read-only");
  if (!is_int32(view_)) fail("has another dtype than int32");
  layout.data = view_.buf;
  layout.count = static_cast<std::size_t>(view_.ndim);
  std::int64_t apart = kWordBytes;  // from an item to the next, where it isn't told (ctypes)
  for (std::size_t i = layout.count; i-- > 0;) {
    const std::int64_t size = view_.shape[i];
    if (i < layout.dimensions.size())
      layout.dimensions[i] = {size, view_.strides != nullptr ? view_.strides[i] : apart};
    if (view_.strides == nullptr) apart *= size;
  }
  return true;
}

void MaskBuffer::import(const nb::object& out, Layout& layout) {
  if (!nb::try_cast(capsule_of(out), array_))
    throw VocabularyFault("a mask buffer must be " + wanted());
  if (array_.device_type() != nb::device::cpu::value) fail("is not in CPU memory");
  if (array_.dtype() != nb::dtype<std::int32_t>()) fail("has another dtype than int32");
  layout.data = array_.data();
  layout.count = array_.ndim();
  for (std::size_t i = 0; i < std::min(layout.count, layout.dimensions.size()); ++i) {
    layout.dimensions[i] = {static_cast<std::int64_t>(array_.shape(i)),
                            array_.stride(i) * kWordBytes};
  }
}

void MaskBuffer::use(const Layout& layout) {
  if (layout.count != 1 && layout.count != 2)
    fail("has " + std::to_string(layout.count) + " dimensions");
  const Dimension& last = layout.dimensions[layout.count - 1];
  if (static_cast<std::size_t>(last.size) != words_)
    fail("has rows of " + std::to_string(last.size) + " words");
  if (last.stride != kWordBytes && words_ > 1)
    fail("has rows with a stride of " + std::to_string(last.stride) + " bytes");
  single_ = layout.count == 1;
  rows_ = single_ ? 1 : static_cast<std::size_t>(layout.dimensions[0].size);
  const std::int64_t stride = single_ ? 0 : layout.dimensions[0].stride;
  if (stride % kWordBytes != 0 || reinterpret_cast<std::uintptr_t>(layout.data) % kWordBytes != 0)
    fail("has rows that don't begin at multiples of " + std::to_string(kWordBytes) + " bytes");
  stride_ = stride / kWordBytes;
  first_ = static_cast<std::uint32_t*>(layout.data);
}

}  // namespace grammaton
