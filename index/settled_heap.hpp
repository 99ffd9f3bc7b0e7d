// Freed memory that nobody's step waits for.
//
// glibc's allocator leaves small blocks that are freed as they are, and puts them together when a
// large one is next asked for: 0.3 to 0.6 ms after the constraint of a large grammar went, in some
// other sequence's step. So who frees much asks for a large block there and then.
#pragma once

#include <cstdlib>

namespace grammaton {

inline void settle_heap() {
  constexpr std::size_t kLarge = 4096;  // more than any thread keeps for itself
  void* volatile block = std::malloc(kLarge);
  std::free(block);
}

// Does so when it goes: the first member of what frees much.
struct SettledHeap {
  SettledHeap() = default;
  SettledHeap(const SettledHeap&) = delete;
  SettledHeap& operator=(const SettledHeap&) = delete;
  ~SettledHeap() { settle_heap(); }
};

}  // namespace grammaton
