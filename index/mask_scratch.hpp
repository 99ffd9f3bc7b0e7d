// What masks are put together in, lent by the vocabulary while one is made.
//
// The builders of a mask and its parts and the bits of a frame under study are 64 kB at 128k
// tokens. Each constraint used to have its own: half of what it held, and pages that each new one
// was the first to touch. A loan costs two locks, some 30 ns of a cold mask's 3,000.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "index/item_counts.hpp"

namespace grammaton {

class MaskScratch {
 public:
  explicit MaskScratch(TokenIndex& index);

  // An empty builder beside those that are taken. It stays where it is.
  MaskBuilder& take();
  // The one that was taken last.
  void give_back() { --used_; }
  void give_all_back() { used_ = 0; }
  // Lets go of all that masks share.
  void clean() noexcept;

  std::vector<Word> studied;  // the frame mask under way
  CountedTokens counted;      // and its counts
  MaskBuilder suspects;       // tokens to be tried one by one

 private:
  TokenIndex& index_;
  std::deque<MaskBuilder> builders_;
  std::size_t used_ = 0;
};

// Scratch that no mask is made in right now.
class ScratchPool {
 public:
  ScratchPool();
  std::unique_ptr<MaskScratch> take(TokenIndex& index);
  void keep(std::unique_ptr<MaskScratch> scratch) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<MaskScratch>> idle_;
};

// Has scratch at a place for as long as it lives. Within another loan it changes nothing.
class ScratchLoan {
 public:
  ScratchLoan(TokenIndex& index, std::unique_ptr<MaskScratch>& place);
  ~ScratchLoan();
  ScratchLoan(const ScratchLoan&) = delete;
  ScratchLoan& operator=(const ScratchLoan&) = delete;

 private:
  TokenIndex& index_;
  std::unique_ptr<MaskScratch>& place_;
  bool lent_;
};

}  // namespace grammaton
