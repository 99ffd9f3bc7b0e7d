// The machine: sets of stacks over the rows of a term store (docs/machine.md).
//
// A *frame* is (term, parents): what is still to be said, then any of the parents. A *set* is an
// interned, sorted list of frames; a *configuration* is a set whose frames have distinct terms, so
// a configuration is one integer, a fork copies it and a rollback pops a list. Frames and sets are
// hash-consed one level deep: merging deeper would be exponential. `kBottom` is the end of the
// text.
//
// While a step is under way the configuration lives as *groups*, pairs (term, parents) that are not
// interned. A step over a byte is: pop what may end, enter what begins with a call, then one row
// look-up a group. With one group and no call in sight that is a DFA step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

using FrameId = std::uint32_t;
using SetId = std::uint32_t;

inline constexpr FrameId kBottom = 0;

struct Frame {
  Term term;
  SetId parents;
};

struct Group {
  Term term;
  SetId parents;
  friend bool operator==(const Group&, const Group&) = default;
};

// A configuration under way. `groups` have distinct terms.
struct Groups {
  std::vector<Group> items;
  bool ended = false;  // the bottom was reached: the text may end here

  void clear() {
    items.clear();
    ended = false;
  }
};

class Machine {
 public:
  Machine(TermStore& store, const Limits& limits);

  TermStore& store() { return store_; }
  static constexpr SetId kEmptySet = 0;
  static constexpr SetId kBottomSet = 1;

  SetId start(Term term);
  std::span<const FrameId> frames(SetId set) const {
    return {members_.data() + sets_[set].first, sets_[set].second};
  }
  Frame frame(FrameId id) const { return frames_[id]; }

  void load(SetId configuration, Groups& out) const;
  SetId intern(Groups& groups);
  // The continuations of a set, as groups.
  void pop(SetId set, Groups& out);

  // Adds what can be reached without a byte: continuations of nullable terms, bodies of calls.
  void close(Groups& groups);
  // One byte from closed groups; `out` is not closed. Groups that die are left out.
  void step(const Groups& closed, unsigned byte, Groups& out);
  // Whether a token may end here: some branch stands at a place where one may.
  bool token_may_end(const Groups& groups);
  // A step may make max_step_terms terms, and as many frames.
  void begin_step();

  SetId push(Term rest, SetId parents);
  std::size_t frame_count() const { return frames_.size(); }
  std::size_t set_count() const { return sets_.size(); }

 private:
  FrameId intern_frame(Term term, SetId parents);
  SetId intern_set(std::span<const FrameId> frames);
  SetId unite(SetId a, SetId b);
  void check_room() const;
  // True when the group is new or its parents grew.
  bool add(Groups& groups, Term term, SetId parents);

  TermStore& store_;
  Limits limits_;
  std::vector<Frame> frames_;
  std::vector<FrameId> members_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sets_;
  InternTable frame_lookup_;
  InternTable set_lookup_;
  std::vector<std::uint32_t> work_;
  std::uint64_t step_end_ = ~std::uint64_t{0};
};

// Follows a text through a machine: the position of one sequence without a vocabulary.
class Recognizer {
 public:
  Recognizer(TermStore& source, Term start, const Limits& limits);

  bool accepts(std::string_view text);
  // How many bytes of `text` begin some text of the language.
  std::size_t longest_prefix(std::string_view text);

 private:
  std::size_t run(std::string_view text, Groups& groups);

  std::unique_ptr<TermStore> store_;
  std::unique_ptr<Machine> machine_;
  SetId start_ = Machine::kEmptySet;
};

}  // namespace grammaton
