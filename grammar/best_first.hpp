// The states of a search for a text, and which of them is looked at next.
//
// Where the least is left to say an end is found at once (an address of at most 1,024 characters: 4
// states instead of 400); breadth first takes over, because a counter can make the way there very
// long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/least.hpp"

namespace grammaton {

class BestFirst {
 public:
  BestFirst(const TermStore& store, Term start) : least_(store) { add(start, 0, 0); }

  std::size_t size() const { return terms_.size(); }
  Term term(std::size_t i) const { return terms_[i]; }
  const std::vector<Term>& terms() const { return terms_; }
  std::size_t expanded() const { return expanded_; }
  bool has_next() const { return expanded_ < terms_.size(); }
  std::size_t next() {
    std::size_t i = 0;
    if (expanded_ < kBestFirst) {
      i = kNone - open_.top().second;
      open_.pop();
    } else {
      while (done_[first_]) ++first_;
      i = first_;
    }
    ++expanded_;
    done_[i] = true;
    return i;
  }
  // Whether a term is met for the first time.
  bool visit(Term t) { return visited_.insert(t).second; }
  // `over`: a byte, or the like, by which it is reached from another.
  void add(Term t, std::size_t from, std::uint8_t over) {
    if (terms_.empty()) visited_.insert(t);
    if (expanded_ <= kBestFirst) {
      const std::uint32_t least = terms_.empty() ? 0 : least_.of(t);
      open_.emplace(least, kNone - static_cast<std::uint32_t>(terms_.size()));
    }
    terms_.push_back(t);
    parent_.push_back(static_cast<std::uint32_t>(from));
    over_.push_back(over);
    done_.push_back(false);
  }
  // From the i-th state back to the start.
  template <typename F>
  void each_back(std::size_t i, F&& f) const {
    for (;; i = parent_[i]) {
      f(terms_[i]);
      if (i == 0) return;
    }
  }
  // What leads from the start to the i-th state.
  std::vector<std::uint8_t> way(std::size_t i) const {
    std::vector<std::uint8_t> way;
    for (; i != 0; i = parent_[i]) way.push_back(over_[i]);
    std::ranges::reverse(way);
    return way;
  }

 private:
  static constexpr std::size_t kBestFirst = 256;          // states
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // least bytes, index from the end

  LeastBytes least_;
  std::vector<Term> terms_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::uint8_t> over_;
  std::vector<bool> done_;
  std::unordered_set<Term> visited_;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> open_;
  std::size_t first_ = 0;  // none before it is open
  std::size_t expanded_ = 0;
};

}  // namespace grammaton
