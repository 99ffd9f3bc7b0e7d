#include "automata/machine.hpp"

#include <algorithm>

#include "grammar/normalise.hpp"

namespace grammaton {

Machine::Machine(TermStore& store, const Limits& limits) : store_(store), limits_(limits) {
  frames_.push_back({kEmpty, kEmptySet});  // kBottom
  intern_set({});
  const FrameId bottom[] = {kBottom};
  intern_set(bottom);
}

void Machine::begin_step() {
  store_.begin_step();
  step_end_ = frames_.size() + sets_.size() + limits_.max_step_terms;
}

void Machine::check_room() const {
  const std::uint64_t used = frames_.size() + sets_.size();
  if (used >= limits_.max_frames || members_.size() >= 4 * limits_.max_frames) {
    throw LimitFault(
        "the stacks need more than max_frames = " + std::to_string(limits_.max_frames) + " frames");
  }
  if (used >= step_end_) {
    throw LimitFault(
        "one step made more than max_step_terms = " + std::to_string(limits_.max_step_terms) +
        " new stack frames; the grammar is too ambiguous to follow");
  }
}

FrameId Machine::intern_frame(Term term, SetId parents) {
  const std::uint64_t h = mix64(term + 1, parents);
  const FrameId known = frame_lookup_.find(
      h, [&](FrameId i) { return frames_[i].term == term && frames_[i].parents == parents; });
  if (known != kNone) return known;
  check_room();
  const auto id = static_cast<FrameId>(frames_.size());
  frames_.push_back({term, parents});
  frame_lookup_.insert(h, id);
  return id;
}

SetId Machine::intern_set(std::span<const FrameId> frames) {
  const std::uint64_t h = hash_words(frames);
  const SetId known =
      set_lookup_.find(h, [&](SetId i) { return std::ranges::equal(this->frames(i), frames); });
  if (known != kNone) return known;
  check_room();
  const auto id = static_cast<SetId>(sets_.size());
  sets_.emplace_back(static_cast<std::uint32_t>(members_.size()),
                     static_cast<std::uint32_t>(frames.size()));
  members_.insert(members_.end(), frames.begin(), frames.end());
  set_lookup_.insert(h, id);
  return id;
}

SetId Machine::unite(SetId a, SetId b) {
  if (a == b || b == kEmptySet) return a;
  if (a == kEmptySet) return b;
  std::vector<FrameId> all;
  std::ranges::set_union(frames(a), frames(b), std::back_inserter(all));
  return intern_set(all);
}

SetId Machine::push(Term rest, SetId parents) {
  if (rest == kEmpty) return parents;  // a tail call pushes nothing
  const FrameId frame = intern_frame(rest, parents);
  return intern_set({&frame, 1});
}

bool Machine::add(Groups& groups, Term term, SetId parents) {
  for (Group& group : groups.items) {
    if (group.term == term) {
      const SetId before = group.parents;
      group.parents = unite(before, parents);
      return group.parents != before;
    }
  }
  groups.items.push_back({term, parents});
  return true;
}

SetId Machine::start(Term term) {
  Groups groups;
  add(groups, term, kBottomSet);
  return intern(groups);
}

void Machine::load(SetId configuration, Groups& out) const {
  out.clear();
  for (const FrameId id : frames(configuration))
    out.items.push_back({frames_[id].term, frames_[id].parents});
}

SetId Machine::intern(Groups& groups) {
  std::vector<FrameId> ids;
  ids.reserve(groups.items.size());
  for (const Group& group : groups.items) ids.push_back(intern_frame(group.term, group.parents));
  std::ranges::sort(ids);
  return intern_set(ids);
}

void Machine::pop(SetId set, Groups& out) {
  const auto [start, count] = sets_[set];
  for (std::uint32_t i = 0; i < count; ++i) {
    const FrameId id = members_[start + i];
    if (id == kBottom) {
      out.ended = true;
    } else {
      add(out, frames_[id].term, frames_[id].parents);
    }
  }
}

void Machine::close(Groups& groups) {
  // A group whose parents grow is visited again. Pops go strictly down the stacks and the left-call
  // graph has no cycle, so this ends.
  work_.clear();
  for (std::size_t i = 0; i < groups.items.size(); ++i) work_.push_back(groups.items[i].term);
  auto added = [&](Term term, SetId parents) {
    if (add(groups, term, parents)) work_.push_back(term);
  };
  while (!work_.empty()) {
    const Term term = work_.back();
    work_.pop_back();
    if (!store_.nullable(term) && !store_.has(term, kFirstCall)) continue;
    const auto found = std::ranges::find(groups.items, term, &Group::term);
    const SetId parents = found->parents;
    if (store_.nullable(term)) {
      const auto [start, count] = sets_[parents];
      for (std::uint32_t i = 0; i < count; ++i) {
        const FrameId id = members_[start + i];
        if (id == kBottom) {
          groups.ended = true;
        } else {
          added(frames_[id].term, frames_[id].parents);
        }
      }
    }
    if (store_.has(term, kFirstCall)) {
      const std::size_t count = store_.first_calls(term).size();
      for (std::size_t i = 0; i < count; ++i) {
        const FirstCall call = store_.first_calls(term)[i];
        added(store_.body(call.rule, call.param), push(call.rest, parents));
      }
    }
  }
}

void Machine::step(const Groups& closed, unsigned byte, Groups& out) {
  out.clear();
  for (const Group& group : closed.items) {
    const Term next = store_.step(group.term, byte);
    if (next != kNothing) add(out, next, group.parents);
  }
}

bool Machine::token_may_end(const Groups& groups) {
  return std::ranges::any_of(groups.items, [this](const Group& group) {
    return store_.at_token_end(group.term) != kNothing;
  });
}

Recognizer::Recognizer(TermStore& source, Term start, const Limits& limits) {
  NormalForm form = normalise(source, start, Spelling{}, limits);
  store_ = std::move(form.store);
  machine_ = std::make_unique<Machine>(*store_, limits);
  start_ = machine_->start(form.start);
}

std::size_t Recognizer::run(std::string_view text, Groups& groups) {
  Groups next;
  machine_->load(start_, groups);
  machine_->begin_step();
  machine_->close(groups);
  for (std::size_t i = 0; i < text.size(); ++i) {
    machine_->begin_step();
    machine_->step(groups, static_cast<unsigned char>(text[i]), next);
    if (next.items.empty()) return i;
    machine_->close(next);
    std::swap(groups, next);
  }
  return text.size();
}

bool Recognizer::accepts(std::string_view text) {
  Groups groups;
  return run(text, groups) == text.size() && groups.ended;
}

std::size_t Recognizer::longest_prefix(std::string_view text) {
  Groups groups;
  return run(text, groups);
}

}  // namespace grammaton
