#include "grammaton/core/without_gil.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <atomic>
#include <chrono>
#include <thread>

namespace grammaton {

namespace {

// Changed by threads that have the GIL; atomic for interpreters that have none.
std::atomic<int> away{0};
std::atomic<bool> ending{false};

void wait_for_all() {
  ending = true;
  while (away > 0) {
    PyThreadState* state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    PyEval_RestoreThread(state);
  }
}

}  // namespace

WithoutGil::WithoutGil() {
  ++away;
  if (ending) {
    --away;
    return;
  }
  state_ = PyEval_SaveThread();
}

WithoutGil::~WithoutGil() {
  if (state_ == nullptr) return;
  PyEval_RestoreThread(state_);
  --away;
}

void bind_end(nb::module_& m) {
  m.def("_wait_for_all", wait_for_all);
  nb::module_::import_("atexit").attr("register")(m.attr("_wait_for_all"));
#ifndef _WIN32
  // A child process has none of its parent's threads that were away.
  pthread_atfork(nullptr, nullptr, [] { away = 0; });
#endif
}

}  // namespace grammaton
