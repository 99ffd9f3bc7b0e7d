// The extension module grammaton._core: types in _core.pyi, errors in grammaton/errors.py.
#include "grammaton/core/bindings.hpp"

#include <nanobind/stl/string.h>

namespace grammaton {

namespace {

// Raises the Python exception of this name from grammaton.errors. The module is looked up when an
// error happens, so that importing the extension imports nothing else.
void raise(const char* name, const Fault& fault) {
  const nb::object type = nb::module_::import_("grammaton.errors").attr(name);
  const nb::object error = type(fault.what());
  if (!fault.part.empty()) error.attr("part") = fault.part;
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(const std::exception_ptr& error, void* /*payload*/) {
  try {
    std::rethrow_exception(error);
  } catch (const GrammarFault& fault) {
    raise("GrammarError", fault);
  } catch (const UnsatisfiableFault& fault) {
    raise("UnsatisfiableGrammar", fault);
  } catch (const VocabularyFault& fault) {
    raise("VocabularyError", fault);
  } catch (const LimitFault& fault) {
    raise("LimitExceeded", fault);
  }
}

}  // namespace

Limits limits_of(const nb::object& limits) {
  Limits result;
  if (limits.is_none()) return result;
  result.max_terms = nb::cast<std::uint64_t>(limits.attr("max_terms"));
  result.max_step_terms = nb::cast<std::uint64_t>(limits.attr("max_step_terms"));
  result.max_frames = nb::cast<std::uint64_t>(limits.attr("max_frames"));
  result.max_step_links = nb::cast<std::uint64_t>(limits.attr("max_step_links"));
  result.max_walk_nodes = nb::cast<std::uint64_t>(limits.attr("max_walk_nodes"));
  result.max_mask_work = nb::cast<std::uint64_t>(limits.attr("max_mask_work"));
  result.mask_cache_bytes = nb::cast<std::uint64_t>(limits.attr("mask_cache_bytes"));
  result.frame_cache_bytes = nb::cast<std::uint64_t>(limits.attr("frame_cache_bytes"));
  return result;
}

}  // namespace grammaton

NB_MODULE(_core, m) {
  m.doc() = "Compiled core of grammaton: terms, the machine, masks.";
  // Grammars that a cache of someone else's keeps to the end (hypothesis has one) are no leaks.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(grammaton::translate);
  grammaton::bind_terms(m);
  grammaton::bind_index(m);
  grammaton::bind_batch(m);
  grammaton::bind_row_work(m);
  grammaton::bind_end(m);
  grammaton::bind_characters(m);
  grammaton::bind_lalr(m);
  grammaton::bind_simple_schemas(m);
}
