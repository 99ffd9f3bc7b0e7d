// How long a thread has worked: what bounds on time are in, so that a busy machine makes nothing
// less. Where threads have no clock of their own, time as it passes.
#pragma once

#include <chrono>
#include <ctime>

namespace grammaton {

inline std::chrono::nanoseconds thread_time() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  std::timespec now{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
#endif
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace grammaton
