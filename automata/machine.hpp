// The machine: sets of stacks over the rows of a term store (docs/machine.md).
//
// A *frame* is (term, parents): what is still to be said, then any of the parents. A *set* of
// frames is interned as a list, newest frame first: a *link* is a frame and the set of the others,
// so sets that grow or shrink at the top share their links, and a step of an ambiguous grammar with
// thousands of stacks costs a few links. A *configuration* is a set whose frames have distinct
// terms, so a configuration is one integer, a fork copies it and a rollback pops a list. Frames and
// sets are hash-consed one level deep: merging deeper would be exponential. `kBottom` is the end of
// the text.
//
// While a step is under way the configuration lives as *groups*, pairs (term, parents) that are not
// interned. A step over a byte is: pop what may end, enter what begins with a call, then one row
// look-up a group. With one group and no call in sight that is a DFA step. Each call of a term is
// pushed once a step, with all its parents, so a text of n bytes makes O(n) frames, whatever the
// grammar; following them costs at most O(n) links a frame.
//
// Where values must differ (grammar/distinct.cpp) the *text* of those that are being said is part
// of the state: a list of bytes, hash-consed, so that a byte more is one link. A scope is a frame
// of its own, a Seen term, right below the one that speaks of it: what was seen, and the text at
// which the value under way began. Everywhere else the text is empty. In the walk of a mask the
// text may be unknown, since a token's remainder does not tell what it is the remainder of: values
// are then taken for new ones, and `suspect` and `cut` tell what has to be looked at again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

using FrameId = std::uint32_t;
using SetId = std::uint32_t;
using TextId = std::uint32_t;
// Where a sequence stands between two bytes: a configuration, and above it the text.
using State = std::uint64_t;

inline constexpr FrameId kBottom = 0;
inline constexpr TextId kNoText = 0;
inline constexpr TextId kUnknownText = 0xFFFFFFFF;

inline constexpr SetId set_of(State state) { return static_cast<SetId>(state & 0xFFFFFFFF); }
inline constexpr TextId text_of(State state) { return static_cast<TextId>(state >> 32); }

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
  bool cut = false;    // a second value of unknown text was said in one scope, and left out
  TextId text = kUnknownText;

  void clear() {
    items.clear();
    ended = false;
    cut = false;
    text = kUnknownText;
  }
};

class Machine {
 public:
  Machine(TermStore& store, const Limits& limits);

  TermStore& store() { return store_; }
  static constexpr SetId kEmptySet = 0;
  static constexpr SetId kBottomSet = 1;

  State start(Term term);
  std::vector<FrameId> frames(SetId set) const;  // oldest first
  Frame frame(FrameId id) const { return frames_[id]; }
  void load(State state, Groups& out) const;
  State intern(Groups& groups);
  // The continuations of a set, as groups; of a large set, with those that close() would add.
  void pop(SetId set, Groups& out);

  // Adds what can be reached without a byte: continuations of nullable terms, bodies of calls. The
  // second form leaves out calls that none of the bytes in `next` can begin (closing.cpp).
  void close(Groups& groups) { close(groups, nullptr); }
  void close(Groups& groups, const ByteSet& next) { close(groups, &next); }
  // The two halves of it, in this order.
  void close_pops(Groups& groups);
  void close_calls(Groups& groups, const ByteSet& next) { close_calls(groups, &next); }
  // The bytes that a term can begin with, calls included. `Loose`: at least those, without the rows
  // of templates and of what is stepped by single bytes, which lead to all that is declared, and of
  // what may be empty: the ends of all that 256 sorts of keys begin with took 25 ms.
  enum class Reading : std::uint8_t { Exact, Loose };
  const ByteSet& first_bytes(Term term, Reading reading);
  bool may_begin(Term term, const ByteSet& next) {
    return !(first_bytes(term, Reading::Loose) & next).empty();
  }
  bool may_begin(const FirstCall& call, const ByteSet& next);
  // One byte from closed groups; `out` is not closed. Groups that die are left out.
  void step(const Groups& closed, unsigned byte, Groups& out);
  // Many bytes at once (TermStore::leap). False when they have to be taken one by one.
  bool leap(const Groups& closed, std::string_view text, Groups& out);
  // Whether it pays, for some group.
  bool leaps(const Groups& groups) const;
  // One token as a letter of its own, from closed groups; adds to `out`.
  void step_token(const Groups& closed, std::uint32_t token, Groups& out);
  // Adds the groups of a state to `out`.
  void merge(State state, Groups& out);
  // Counts a token where tokens are counted, at its end.
  void end_token(Groups& groups);
  // Whether a token may end here: some branch stands at a place where one may.
  bool token_may_end(const Groups& groups) {
    return std::ranges::any_of(groups.items, [this](const Group& g) { return token_may_end(g); });
  }
  bool token_may_end(const Group& group) { return store_.at_token_end(group.term) != kNothing; }
  // Whether a group says a value in a scope that has seen an unknown one, maybe the same.
  bool is_suspect(const Group& group) const;
  // How often a value was read from a known text.
  std::uint64_t values_read() const { return values_read_; }
  // A step may make max_step_terms terms, and follow or make max_step_links links.
  void begin_step();

  void add_group(Groups& groups, const Group& group) {
    indexed_ = false;
    add(groups, group.term, group.parents);
  }
  SetId push(Term rest, SetId parents);
  // Makes the tables larger now, so that none grows in the middle of a text: 0.5 ms for 10,000
  // sets.
  void make_room() {
    frame_lookup_.make_room();
    link_lookup_.make_room();
    frames_.reserve(frames_.size() * 2);
    links_.reserve(links_.size() * 2);
    popped_of_.reserve(popped_of_.size() * 2);
    popped_groups_.reserve(popped_groups_.size() * 2);
  }
  std::size_t frame_count() const { return frames_.size(); }
  std::size_t set_count() const { return links_.size(); }
  std::size_t text_count() const { return texts_.size(); }
  // Calls entered so far.
  std::uint64_t call_count() const { return call_count_; }
  // How often something was found that differs by levels of indentation (grammar/levels.cpp).
  std::uint64_t levels_told() const { return levels_told_; }
  void tell_level() { ++levels_told_; }
  // The body of a call that is entered.
  Term enter(Rule rule, Param param) {
    if (store_.tells_level(rule, param)) ++levels_told_;
    return store_.body(rule, param);
  }

 private:
  struct Link {
    FrameId frame;  // newer than all of `rest`
    SetId rest;
  };
  // A set's continuations, closed under popping: items [begin, begin + count) of popped_groups_.
  struct Popped {
    std::uint32_t begin;
    std::uint32_t count;
    bool ended;
  };
  // What a machine knows of a term that can begin with a call, or end a frame.
  struct TermFacts {
    std::uint32_t rank = kNone;  // above the ranks of the bodies it calls first
    bool rank_has_templates = false;
    Term absorbed = kNone;  // see absorbed()
    // Its index among many groups, in the round (below) that found it.
    std::pair<std::uint32_t, std::uint32_t> place{0, 0};
    std::array<std::uint32_t, 2> first_bytes{kNone, kNone};  // by Reading: an index
    std::array<bool, 2> begins_by_level{false, false};       // these tell levels apart
  };

  struct TextLink {
    TextId before;
    std::uint8_t byte;
  };
  SetId intern_scope(Term seen, SetId parents);
  void begin_value(const FirstCall& call, SetId parents, TextId text, Groups& groups);
  void take_values(Groups& groups);
  void take_value(Group group, Groups& groups);
  bool is_saying(const Group& group) const;
  TextId text_after(const Groups& before, std::string_view bytes, const Groups& after);
  TextId extended(TextId text, unsigned byte);
  std::string text_between(TextId from, TextId to) const;

  FrameId intern_frame(Term term, SetId parents);
  SetId intern_link(FrameId frame, SetId rest);
  SetId unite(SetId a, SetId b);
  SetId unite_all(std::span<const Group> parts);
  bool is_subset_but(SetId set, FrameId left_out, SetId of);
  void pop_closed(SetId set, Groups& out);
  void close(Groups& groups, const ByteSet* next);
  void close_calls(Groups& groups, const ByteSet* next);
  const ByteSet& first_bytes_of(const FirstCall& call, Reading reading);
  bool is_blank_margin(Rule rule) const;
  Popped popped(SetId set);
  Popped gather(SetId set);
  std::uint32_t rank(Term term);
  Term absorbed(Term term);
  TermFacts& facts(Term term);
  void check_room() const;
  void follow_links(std::size_t count);
  // The index of the group; parents are merged into an old one.
  std::size_t add(Groups& groups, Term term, SetId parents);

  TermStore& store_;
  Limits limits_;
  std::vector<Frame> frames_;
  std::vector<Link> links_;
  InternTable frame_lookup_;
  InternTable link_lookup_;
  std::vector<std::uint32_t> popped_of_;  // by set: an index into popped_
  std::vector<Popped> popped_;
  std::vector<Group> popped_groups_;
  std::vector<TermFacts> term_facts_;
  std::vector<ByteSet> first_bytes_;
  std::vector<std::uint32_t> ranks_at_levels_;  // of bodies that are alike at all, by rule
  // Of such bodies, by rule and Reading: indices of first_bytes_.
  std::vector<std::array<std::uint32_t, 2>> first_bytes_at_levels_;
  std::vector<TextLink> texts_{TextLink{kNoText, 0}};
  InternTable text_lookup_;
  std::uint64_t values_read_ = 0;
  std::uint64_t step_links_ = 0;
  std::uint64_t call_count_ = 0;
  std::uint64_t levels_told_ = 0;
  bool indexed_ = false;  // whether the groups that grow have their places in term_facts_
  std::uint32_t index_round_ = 0;
  // Scratch of one call, kept for its memory.
  std::vector<std::pair<std::uint32_t, std::size_t>> calling_;
  std::vector<FrameId> path_;
  std::vector<std::pair<FrameId, SetId>> merging_;
  std::vector<Group> gathered_;
  Groups ended_;
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
  State start_ = Machine::kEmptySet;
};

}  // namespace grammaton
