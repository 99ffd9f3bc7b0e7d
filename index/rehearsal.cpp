// The rehearsal of a grammar: masks that are made before the first text, for what they leave
// behind.
//
// What a mask is put together from is kept: frame masks, which take a millisecond, the masks of
// frames with calls, and what follows them. First the terms of all rules are taken for a state
// each, with nothing below: so every frame is made with the frames it is put together from. Then
// the states near the start are visited, breadth first, each *shape* once: what is on top of the
// stacks, whatever lies further down, and however many items of a run are left. Last come the
// residuals of regular terms, as far as a budget goes. A mask that takes more than max_mask_work
// ends there: a term's is left, that of one of the first states is an error.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "index/settled_heap.hpp"
#include "index/thread_time.hpp"
#include "index/walk.hpp"
#include "index/work_bound.hpp"

namespace grammaton {

namespace {

// A rehearsal's work, in nodes of a study, and as measured in them: a node of a walk, a call
// entered, a remainder, a term or state, a byte stepped over.
constexpr std::uint64_t kRehearsal = 3'000'000;
constexpr std::uint64_t kWalkCost = 10;
constexpr std::uint64_t kCallCost = 5;
constexpr std::uint64_t kNotedCost = 2;
constexpr std::uint64_t kTermCost = 50;
constexpr std::uint64_t kStepCost = 5;
// That is some 100 ms, which only large grammars take, and this is the end whatever it was spent
// on: late, since on a busy machine time passes without work.
constexpr std::chrono::milliseconds kLongestRehearsal{250};
// It uses this part of the bounds on terms and stacks at most.
constexpr std::uint64_t kRehearsalPart = 8;
// So many states at most, each some 5 to 20 us.
constexpr std::size_t kMostStates = 400;
// The first of them are looked at whatever was spent before, and only their masks may be errors:
// how many others are looked at depends on the machine.
constexpr std::size_t kTriedStates = 8;
// What they take is taken once, here, and kept: so it may be more. Sentences of ten words, with
// ignored blanks, take 100 ms, and then no mask over 25.
constexpr std::uint64_t kTriedTimes = 20;
// How far down the stacks states differ, and how many frames of a set are looked at.
constexpr unsigned kShapeDepth = 2;
constexpr std::size_t kShapeFrames = 8;

}  // namespace

struct Walker::Rehearsal {
  std::chrono::nanoseconds begun = thread_time();
  std::uint64_t terms = 0;
  std::uint64_t steps = 0;
  std::vector<Term> calling;  // terms that call rules
  std::vector<Term> regular;
  std::vector<bool> seen;
  std::vector<State> states;
  std::unordered_set<std::uint64_t> shapes;
  std::unordered_set<std::uint64_t> levelless;

  void add(TermStore& store, Term t) {
    if (t == kEmpty || t == kNothing) return;
    if (t >= seen.size()) seen.resize(store.size());
    if (seen[t]) return;
    seen[t] = true;
    // One level of indentation is like another.
    const Levelless& form = store.without_levels(t);
    if (form.levels && form.exact && !levelless.insert(form.hash.keyed).second) return;
    (store.has(t, kHasCall) ? calling : regular).push_back(t);
  }
};

void Walker::rehearse(Term start) {
  if (store_.remembers() || store_.has_meters()) {
    try_states(start);
    return;
  }
  rehearsed_ = rehearsing_ = true;
  rehearse_all(start);
  rehearsing_ = false;
  settle_heap();
}

void Walker::rehearse_all(Term start) {
  const ScratchLoan loan(index_, scratch_);
  Rehearsal work;
  work.add(store_, start);
  const State first = machine_.start(start);
  work.states.push_back(first);
  alone_ = true;
  try {
    for (std::size_t i = 0; i < work.calling.size() && has_room(work); ++i)
      rehearse_term(work, work.calling[i]);
  } catch (const LimitFault&) {
    // Whoever comes to where it was met will be told.
  }
  alone_ = false;
  rehearse_state(work, first, kTriedTimes);  // everyone comes to this one
  try {
    for (std::size_t i = 1; i < std::min(work.states.size(), kMostStates); ++i) {
      if (i < kTriedStates) {
        rehearse_state(work, work.states[i], kTriedTimes);
        continue;
      }
      if (!has_room(work)) break;
      try {
        rehearse_state(work, work.states[i], 1);
      } catch (const OutOfWork&) {
        work.terms += limits_.max_mask_work / kTermCost;
      }
    }
    alone_ = true;
    for (std::size_t i = 0; i < work.regular.size() && has_room(work); ++i)
      rehearse_term(work, work.regular[i]);
  } catch (const OutOfWork&) {
    throw;
  } catch (const LimitFault&) {
    // As above.
  }
  alone_ = false;
  machine_.make_room();
}

// Masks of the first states, for what they take.
void Walker::try_states(Term start) {
  Rehearsal work;
  work.states.push_back(machine_.start(start));
  for (std::size_t i = 0; i < std::min(work.states.size(), kTriedStates); ++i)
    rehearse_state(work, work.states[i], kTriedTimes);
}

bool Walker::has_room(Rehearsal& work) const {
  const std::size_t frames = machine_.frame_count() + machine_.set_count();
  const std::uint64_t cost = stats_.walk_nodes * kWalkCost + stats_.study_nodes +
                             noted_ * kNotedCost + machine_.call_count() * kCallCost +
                             work.steps * kStepCost + work.terms++ * kTermCost;
  return cost < kRehearsal && thread_time() - work.begun < kLongestRehearsal &&
         frames < limits_.max_frames / kRehearsalPart &&
         store_.size() < limits_.max_terms / kRehearsalPart;
}

void Walker::rehearse_term(Rehearsal& work, Term t) {
  scratch_->give_all_back();
  machine_.begin_step();
  const Row row = store_.row(t);
  for (unsigned c = 1; c < row.classes; ++c) work.add(store_, store_.target(row, c));
  for (std::size_t i = 0; i < store_.first_calls(t).size(); ++i) {
    const FirstCall call = store_.first_calls(t)[i];
    if (call.rule == kDistinct) continue;
    work.add(store_, store_.body(call.rule, call.param));
    work.add(store_, call.rest);
  }
  const WorkBound bound(*this);
  MaskBuilder& out = scratch_->take();
  Groups& groups = groups_at(0);
  groups.clear();
  groups.text = kNoText;
  groups.items.push_back({t, Machine::kBottomSet});
  try {
    open({&index_.trie(), Trie::kRoot}, 0, {}, out);
    walk(index_.trie(), Trie::kRoot, 0, {}, out);
  } catch (const OutOfWork&) {
    // Maybe it never begins a token.
    work.terms += limits_.max_mask_work / kTermCost;
  }
}

void Walker::rehearse_state(Rehearsal& work, State state, std::uint64_t times) {
  mask_within_bound(state, "near the start", times);
  Groups groups;
  machine_.load(state, groups);
  machine_.close(groups);
  // Of bytes that are of one class in every group, one is enough.
  std::map<std::string, unsigned> bytes;
  std::string classes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    classes.clear();
    bool live = false;
    for (const Group& group : groups.items) {
      const std::uint8_t of = store_.class_map(store_.row(group.term)).of[byte];
      classes.push_back(static_cast<char>(of));
      live = live || of != 0;
    }
    if (live) bytes.emplace(classes, byte);
  }
  Groups next;
  for (const auto& [of, byte] : bytes) {
    ++work.steps;
    machine_.step(groups, byte, next);
    if (!next.items.empty() && work.shapes.insert(shape(next.items)).second)
      work.states.push_back(machine_.intern(next));
  }
}

// Equal numbers for states that are likely to need the same.
std::uint64_t Walker::shape(std::span<const Group> groups) {
  std::uint64_t sum = 0;  // in any order
  for (const Group& group : groups)
    sum += mix64(shape_of(group.term), shape(group.parents, kShapeDepth));
  return sum;
}

std::uint64_t Walker::shape(SetId parents, unsigned depth) {
  if (depth == 0) return 1;
  std::vector<FrameId> frames = machine_.frames(parents);
  if (frames.size() > kShapeFrames) frames.resize(kShapeFrames);
  std::uint64_t sum = depth;
  for (const FrameId id : frames) {
    if (id == kBottom) continue;
    const Frame frame = machine_.frame(id);
    sum += mix64(shape_of(frame.term), shape(frame.parents, depth - 1));
  }
  return sum;
}

// What stands for terms that share their frames.
Term Walker::shape_of(Term t) {
  const Term reduced = store_.has(t, kHasCall) ? t : normalised(t);
  if (const Counted* const form = counted_form(reduced)) return form->reference;
  if (const Bounded* const form = bounded_form(reduced)) return form->reference;
  if (store_.node(reduced).kind != Kind::Intersect) return reduced;
  std::vector<Term> kept;
  for (const Term operand : store_.operands(reduced)) {
    const Node n = store_.node(operand);  // of a few keywords, as in few_left_out.cpp
    if (n.kind != Kind::Complement || store_.has(n.a, kEndless)) kept.push_back(operand);
  }
  if (kept.empty() || kept.size() == store_.operands(reduced).size()) return reduced;
  return shape_of(store_.intersect(std::move(kept)));
}

}  // namespace grammaton
