// Work without the GIL, also while the process ends.
//
// A thread that wants the GIL back from an interpreter that is being taken down never returns:
// CPython ends it where it stands, which inside of C++ aborts the process. Daemon threads come to
// that. So a hook of `atexit`, which runs while every thread can still have the GIL, waits for the
// calls that are without it, and calls that begin later keep it.
#pragma once

#include "grammaton/core/bindings.hpp"

namespace grammaton {

// Gives the GIL up for as long as it lives; the thread must have it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

}  // namespace grammaton
