// A bound on the work of one mask, in force while it lives: so many times max_mask_work.
#pragma once

#include "index/walk.hpp"

namespace grammaton {

struct Walker::OutOfWork : LimitFault {
  using LimitFault::LimitFault;
};

class Walker::WorkBound {
 public:
  explicit WorkBound(Walker& walker, std::uint64_t times = 1) : walker_(walker) {
    const std::uint64_t most = walker_.limits_.max_mask_work;
    if (most != 0) walker_.work_end_ = walker_.work() + most * times;
    walker_.begin_counting();
  }
  ~WorkBound() {
    walker_.work_end_ = kUnbounded64;
    walker_.begin_counting();
  }
  WorkBound(const WorkBound&) = delete;
  WorkBound& operator=(const WorkBound&) = delete;

 private:
  Walker& walker_;
};

}  // namespace grammaton
