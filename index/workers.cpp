#include "index/workers.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace grammaton {

namespace {

constexpr std::size_t kMostDefaultThreads = 16;

// Outlives its caller in the hands of workers that come too late; `task` is called only for tasks
// that were not taken before, so never after the caller returned.
class Job {
 public:
  Job(std::size_t count, const std::function<void(std::size_t)>& task)
      : count_(count), task_(task) {}

  void work() {
    std::size_t finished = 0;
    for (std::size_t i = next_++; i < count_; i = next_++) {
      task_(i);
      ++finished;
    }
    if (finished == 0) return;
    const std::scoped_lock lock(mutex_);
    finished_ += finished;
    if (finished_ == count_) all_finished_.notify_one();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    all_finished_.wait(lock, [this] { return finished_ == count_; });
  }

 private:
  const std::size_t count_;
  const std::function<void(std::size_t)>& task_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable all_finished_;
  std::size_t finished_ = 0;
};

class Workers {
 public:
  void help(const std::shared_ptr<Job>& job, std::size_t helpers) {
    {
      const std::scoped_lock lock(mutex_);
      if (stopped_) return;
      try {
        while (threads_.size() < helpers) threads_.emplace_back([this] { run(); });
      } catch (const std::system_error&) {
        // The system has no more threads; those that there are do the work.
      }
      helpers = std::min(helpers, threads_.size());
      waiting_.insert(waiting_.end(), helpers, job);
    }
    for (std::size_t i = 0; i < helpers; ++i) wanted_.notify_one();
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      const std::shared_ptr<Job> job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      job->work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::thread> threads_;
  bool stopped_ = false;
};

// Never deleted: a thread that is still inside a job when the process ends may hold it, and a child
// process can't join the threads of its parent.
std::atomic<Workers*> current{nullptr};

Workers& workers() {
#ifndef _WIN32
  // The child's copy may be locked for ever by a thread that the child doesn't have.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current.store(nullptr, std::memory_order_relaxed); });
  static_cast<void>(registered);
#endif
  Workers* found = current.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto fresh = std::make_unique<Workers>();
  if (current.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) {
    found = fresh.release();
  }
  return *found;
}

}  // namespace

std::size_t default_threads() {
  static const std::size_t count =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostDefaultThreads);
  return count;
}

void run_tasks(std::size_t count, std::size_t threads,
               const std::function<void(std::size_t)>& task) {
  const std::size_t helpers = std::min(threads, count);
  if (helpers <= 1) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }
  const auto job = std::make_shared<Job>(count, task);
  workers().help(job, helpers - 1);
  job->work();
  job->wait();
}

void stop_workers() { workers().stop(); }

}  // namespace grammaton
