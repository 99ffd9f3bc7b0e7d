// Characters that a term can't tell apart.
//
// `.*a.{9}[0-9]` knows an `a`, a digit, a line end and anything else; of a million characters, one
// of each class says what all of them do. So a search that goes by classes asks a few questions
// where one by bytes has fifty, and no term that stands inside a character is made.
//
// Costs: some microseconds for a term of a few sets, 60 where one is of all words' characters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/hash.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

// Characters by which of some sets they are in.
class CharacterClasses {
 public:
  // The sets that a term is made of. Nothing where it has parts that don't read characters, or has
  // too many sets.
  static std::optional<CharacterClasses> of(TermStore& store, Term t);

  // Whether each of the sets of a term has all or none of the characters of each class here.
  bool tells(const CharacterClasses& others) const;
  bool has_same_sets(const CharacterClasses& others) const;
  // Says what the classes are.
  void settle();

  static constexpr unsigned kMostClasses = 40;
  bool few() const { return representatives_.size() <= kMostClasses; }
  bool lifted() const { return lifted_; }
  std::size_t count() const { return representatives_.size(); }
  unsigned class_of(std::uint32_t code) const;
  // Of all codes below so many.
  std::vector<std::uint8_t> table(std::uint32_t codes) const;
  // Calls f(begin, end, class) for each run of codes.
  template <typename F>
  void each_interval(F&& f) const {
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const std::uint32_t end = i + 1 < intervals_.size() ? intervals_[i + 1].begin : kEndOfCodes;
      f(intervals_[i].begin, end, intervals_[i].cls);
    }
  }
  // UTF-8 of a character of a class.
  const std::string& representative(unsigned cls) const { return representatives_[cls]; }
  Hash128 hash() const;

 private:
  static constexpr std::uint32_t kEndOfCodes = 0x110000;
  static constexpr std::size_t kMostSets = 128;
  using Signature = std::array<std::uint64_t, kMostSets / 64>;
  struct Interval {
    std::uint32_t begin;  // up to the next one's
    unsigned cls;
  };
  bool collect(TermStore& store, Term start);
  bool add(CodeRanges ranges);

  std::vector<CodeRanges> sets_;
  bool lifted_ = false;
  std::vector<Interval> intervals_;
  std::vector<std::string> representatives_;
};

}  // namespace grammaton
