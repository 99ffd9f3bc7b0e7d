#include "grammaton/core/mask_buffer.hpp"

#include <string>

namespace grammaton {

namespace {

bool writable(const nb::object& out) {
  // numpy alone tells; DLPack before version 1 has no word for it.
  if (!nb::hasattr(out, "flags") || !nb::hasattr(out.attr("flags"), "writeable")) return true;
  return nb::cast<bool>(out.attr("flags").attr("writeable"));
}

}  // namespace

MaskBuffer mask_buffer(const nb::object& out, std::size_t words) {
  if (!out.is_none() && !writable(out)) throw VocabularyFault("the mask buffer is read-only");
  const std::string wanted = "a writable int32 array of shape (" + std::to_string(words) +
                             ",) or (B, " + std::to_string(words) + ") in CPU memory";
  nb::ndarray<> array;
  if (!nb::try_cast(out, array)) throw VocabularyFault("a mask buffer must be " + wanted);
  const auto fail = [&](const std::string& what) {
    throw VocabularyFault("the mask buffer " + what + "; it must be " + wanted +
                          " with contiguous rows");
  };
  if (array.device_type() != nb::device::cpu::value) fail("is not in CPU memory");
  if (array.dtype() != nb::dtype<std::int32_t>()) fail("has another dtype than int32");
  if (array.ndim() != 1 && array.ndim() != 2)
    fail("has " + std::to_string(array.ndim()) + " dimensions");
  const std::size_t last = array.ndim() - 1;
  if (array.shape(last) != words)
    fail("has rows of " + std::to_string(array.shape(last)) + " words");
  if (array.stride(last) != 1 && words > 1)
    fail("has rows with a stride of " + std::to_string(array.stride(last)));
  const bool single = array.ndim() == 1;
  const std::size_t rows = single ? 1 : array.shape(0);
  const std::int64_t stride = single ? 0 : array.stride(0);
  return {std::move(array), rows, stride};
}

}  // namespace grammaton
