// A pool of threads that help whoever asks, and never have to.
//
// A *job* is tasks 0 to n - 1. The caller works through them itself; idle workers that wake up in
// time take some of them. So a job is never later than without workers, and no one waits for a
// worker that hasn't begun. Threads start when they are first wanted (some 50 us each) and then
// sleep between jobs; waking one costs the caller 2 to 5 us. A child process after fork() has none
// of its parent's threads: it starts a pool of its own when it first wants one.
#pragma once

#include <cstddef>
#include <functional>

namespace grammaton {

// The most threads that may work on one job, the caller among them.
inline constexpr std::size_t kMostThreads = 256;

// CPUs this process may use, at most 16: memory is what copying masks runs out of.
std::size_t default_threads();

// Calls task(0) to task(count - 1), each once, on at most `threads` threads, the caller's among
// them; returns when all are done. `task` must not throw. Any number of threads may call this at
// once.
void run_tasks(std::size_t count, std::size_t threads,
               const std::function<void(std::size_t)>& task);

// Ends the threads and waits for them; later jobs run on their callers alone. For the end of the
// process.
void stop_workers();

}  // namespace grammaton
