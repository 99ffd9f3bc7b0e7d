// Raw schemas as Python has them: dicts, lists and strings, looked at in place.
#pragma once

#include <optional>
#include <string_view>

#include "grammaton/core/bindings.hpp"

namespace grammaton {

// The UTF-8 of a str without lone surrogates.
inline std::optional<std::string_view> text_of(nb::handle item) {
  if (!PyUnicode_Check(item.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
  if (data == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(data, static_cast<std::size_t>(size));
}
inline bool is_dict(nb::handle item) { return PyDict_Check(item.ptr()); }

inline nb::handle found(const nb::dict& dict, nb::handle key) {
  PyObject* value = PyDict_GetItemWithError(dict.ptr(), key.ptr());
  if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}
}  // namespace grammaton
