#include "automata/machine.hpp"

#include <algorithm>
#include <tuple>

#include "grammar/normalise.hpp"

namespace grammaton {

namespace {

// Larger sets are popped through the memo.
constexpr int kFewFrames = 4;
// Larger groups are looked up by term.
constexpr std::size_t kFewGroups = 16;
// From here on it pays to remember the continuations of a part of a set.
constexpr std::uint64_t kManyLinks = 16;

}  // namespace

Machine::Machine(TermStore& store, const Limits& limits) : store_(store), limits_(limits) {
  frames_.push_back({kEmpty, kEmptySet});  // kBottom
  links_.push_back({kBottom, kEmptySet});  // kEmptySet: never followed
  popped_of_.push_back(kNone);
  intern_link(kBottom, kEmptySet);
}

void Machine::begin_step() {
  store_.begin_step();
  step_links_ = 0;
}

void Machine::follow_links(std::size_t count) {
  step_links_ += count;
  if (step_links_ > limits_.max_step_links) {
    throw LimitFault(
        "one step followed more than max_step_links = " + std::to_string(limits_.max_step_links) +
        " links between stack frames; the grammar is too ambiguous to follow");
  }
}

void Machine::check_room() const {
  if (frames_.size() + links_.size() + popped_groups_.size() + texts_.size() >=
      limits_.max_frames) {
    throw LimitFault("the stacks need more than max_frames = " +
                     std::to_string(limits_.max_frames) + " frames and links");
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

SetId Machine::intern_link(FrameId frame, SetId rest) {
  const std::uint64_t h = mix64(frame + 1, rest);
  const SetId known = link_lookup_.find(
      h, [&](SetId i) { return links_[i].frame == frame && links_[i].rest == rest; });
  if (known != kNone) return known;
  check_room();
  follow_links(1);
  const auto id = static_cast<SetId>(links_.size());
  links_.push_back({frame, rest});
  popped_of_.push_back(kNone);
  link_lookup_.insert(h, id);
  return id;
}

SetId Machine::unite(SetId a, SetId b) {
  if (a == b || b == kEmptySet) return a;
  if (a == kEmptySet) return b;
  path_.clear();
  while (a != b && a != kEmptySet && b != kEmptySet) {
    const Link x = links_[a];
    const Link y = links_[b];
    path_.push_back(std::max(x.frame, y.frame));
    if (x.frame >= y.frame) a = x.rest;
    if (y.frame >= x.frame) b = y.rest;
  }
  follow_links(path_.size());
  SetId result = a == kEmptySet ? b : a;
  for (std::size_t i = path_.size(); i-- > 0;) result = intern_link(path_[i], result);
  return result;
}

SetId Machine::unite_all(std::span<const Group> parts) {
  if (parts.size() == 1) return parts[0].parents;
  if (parts.size() == 2) return unite(parts[0].parents, parts[1].parents);
  path_.clear();
  merging_.clear();
  for (const Group& part : parts) {
    if (part.parents != kEmptySet) merging_.emplace_back(links_[part.parents].frame, part.parents);
  }
  std::ranges::make_heap(merging_);
  const auto take = [this] {
    std::ranges::pop_heap(merging_);
    const auto taken = merging_.back();
    merging_.pop_back();
    return taken;
  };
  SetId result = kEmptySet;
  std::size_t followed = 0;
  while (!merging_.empty()) {
    const auto [frame, set] = take();
    ++followed;
    while (!merging_.empty() && merging_.front().second == set) take();
    if (merging_.empty()) {
      result = set;
      break;
    }
    if (path_.empty() || path_.back() != frame) path_.push_back(frame);
    const SetId rest = links_[set].rest;
    if (rest == kEmptySet) continue;
    merging_.emplace_back(links_[rest].frame, rest);
    std::ranges::push_heap(merging_);
  }
  follow_links(followed);
  if (!path_.empty() && result != kEmptySet && links_[result].frame == path_.back())
    result = links_[result].rest;
  for (std::size_t i = path_.size(); i-- > 0;) result = intern_link(path_[i], result);
  return result;
}

// Whether all frames of `set` except `left_out` are in `of`.
bool Machine::is_subset_but(SetId set, FrameId left_out, SetId of) {
  std::size_t followed = 0;
  bool result = true;
  for (; result && set != kEmptySet && set != of; set = links_[set].rest, ++followed) {
    const FrameId frame = links_[set].frame;
    if (frame == left_out) continue;
    for (; of != kEmptySet && links_[of].frame > frame; of = links_[of].rest) ++followed;
    result = of != kEmptySet && links_[of].frame == frame;
  }
  follow_links(followed);
  return result;
}

// What may follow `term` again and again without leaving its language: r* after a term that ends in
// r*, and what left recursion leaves of a rule. kNothing when nothing.
Term Machine::absorbed(Term term) {
  TermFacts& known = facts(term);
  if (known.absorbed == kNone) {
    Term last = term;
    while (store_.node(last).kind == Kind::Concat) last = store_.node(last).b;
    const Node& n = store_.node(last);
    known.absorbed = kNothing;
    if (n.kind == Kind::Repeat && n.b == 0 && n.c == kUnbounded) {
      known.absorbed = last;
    } else if (n.kind == Kind::Call) {
      known.absorbed = store_.rule_info(n.a).loop;
    } else if (n.kind == Kind::Union && store_.operands(last).size() == 2) {
      // The empty text or a call.
      for (const Term t : store_.operands(last)) {
        if (t != kEmpty && store_.node(t).kind == Kind::Call && store_.nullable(last))
          known.absorbed = store_.rule_info(store_.node(t).a).loop;
      }
    }
  }
  return known.absorbed;
}

SetId Machine::push(Term rest, SetId parents) {
  if (rest == kEmpty) return parents;  // a tail call pushes nothing
  const Term loop = absorbed(rest);
  while (loop != kNothing) {
    // Onto a frame (loop, P) and other frames that are all in P: the same texts follow from P.
    std::size_t followed = 0;
    SetId at = parents;
    for (; at != kEmptySet && frames_[links_[at].frame].term != loop; at = links_[at].rest)
      ++followed;
    follow_links(followed);
    if (at == kEmptySet) break;
    const FrameId frame = links_[at].frame;
    if (!is_subset_but(parents, frame, frames_[frame].parents)) break;
    parents = frames_[frame].parents;
  }
  // A frame that may be empty will be popped with what is below it, which is quick to find now.
  if (store_.nullable(rest)) popped(parents);
  return intern_link(intern_frame(rest, parents), kEmptySet);
}

std::size_t Machine::add(Groups& groups, Term term, SetId parents) {
  const std::size_t count = groups.items.size();
  std::size_t at = count;
  if (count < kFewGroups) {
    for (at = 0; at < count && groups.items[at].term != term;) ++at;
  } else {
    if (!indexed_) {
      indexed_ = true;
      if (++index_round_ == 0) {  // four billion rounds on, old places could seem new
        for (TermFacts& known : term_facts_) known.place = {0, 0};
        index_round_ = 1;
      }
      for (std::size_t i = 0; i < count; ++i)
        facts(groups.items[i].term).place = {index_round_, static_cast<std::uint32_t>(i)};
    }
    auto& place = facts(term).place;
    if (place.first == index_round_) {
      at = place.second;
    } else {
      place = {index_round_, static_cast<std::uint32_t>(count)};
    }
  }
  if (at == count) {
    groups.items.push_back({term, parents});
  } else {
    groups.items[at].parents = unite(groups.items[at].parents, parents);
  }
  return at;
}

State Machine::start(Term term) {
  Groups groups;
  groups.items.push_back({term, kBottomSet});
  groups.text = kNoText;
  return intern(groups);
}

std::vector<FrameId> Machine::frames(SetId set) const {
  std::vector<FrameId> found;
  for (; set != kEmptySet; set = links_[set].rest) found.push_back(links_[set].frame);
  std::ranges::reverse(found);
  return found;
}

void Machine::load(State state, Groups& out) const {
  out.clear();
  out.text = text_of(state);
  for (SetId set = set_of(state); set != kEmptySet; set = links_[set].rest) {
    const Frame& frame = frames_[links_[set].frame];
    out.items.push_back({frame.term, frame.parents});
  }
}

State Machine::intern(Groups& groups) {
  path_.clear();
  for (const Group& group : groups.items) path_.push_back(intern_frame(group.term, group.parents));
  std::ranges::sort(path_);
  SetId result = kEmptySet;
  for (const FrameId frame : path_) result = intern_link(frame, result);
  return result == kEmptySet ? State{kEmptySet} : State{groups.text} << 32 | result;
}

void Machine::pop(SetId set, Groups& out) {
  indexed_ = false;
  int count = 0;
  for (SetId at = set; at != kEmptySet && count <= kFewFrames; at = links_[at].rest) ++count;
  if (count > kFewFrames) {
    pop_closed(set, out);
    return;
  }
  for (SetId at = set; at != kEmptySet; at = links_[at].rest) {
    const FrameId id = links_[at].frame;
    if (id == kBottom) {
      out.ended = true;
    } else {
      add(out, frames_[id].term, frames_[id].parents);
    }
  }
}

// The continuations of a set, and of those that may be empty, and so on.
void Machine::pop_closed(SetId set, Groups& out) {
  if (set == kBottomSet) {
    out.ended = true;
    return;
  }
  const Link top = links_[set];
  if (top.rest == kEmptySet && !store_.nullable(frames_[top.frame].term)) {
    add(out, frames_[top.frame].term, frames_[top.frame].parents);
    return;
  }
  const Popped known = popped(set);
  out.ended = out.ended || known.ended;
  for (std::uint32_t i = 0; i < known.count; ++i) {
    const Group group = popped_groups_[known.begin + i];
    add(out, group.term, group.parents);
  }
}

// Remembered for every set it is asked of, and for what a large one holds below its top, which is
// where the next step's set often joins. Not for all that it passes: so memory stays linear in the
// number of steps, and a set that shares its links with one popped before costs the difference.
Machine::Popped Machine::popped(SetId set) {
  if (popped_of_[set] != kNone) return popped_[popped_of_[set]];
  const std::uint64_t before = step_links_;
  const Popped result = gather(set);
  const SetId rest = links_[set].rest;
  if (step_links_ - before > kManyLinks && popped_of_[rest] == kNone) gather(rest);
  return result;
}

Machine::Popped Machine::gather(SetId set) {
  Popped result{static_cast<std::uint32_t>(popped_groups_.size()), 0, false};
  gathered_.clear();
  const auto take = [&](SetId of) {
    const Popped& part = popped_[popped_of_[of]];
    const auto begin = popped_groups_.begin() + part.begin;
    gathered_.insert(gathered_.end(), begin, begin + part.count);
    result.ended = result.ended || part.ended;
  };
  for (SetId at = set; at != kEmptySet; at = links_[at].rest) {
    if (popped_of_[at] != kNone) {
      take(at);
      break;
    }
    const FrameId id = links_[at].frame;
    if (id == kBottom) {
      result.ended = true;
      continue;
    }
    gathered_.push_back({frames_[id].term, frames_[id].parents});
    if (store_.nullable(frames_[id].term)) take(frames_[id].parents);  // known since push()
  }
  follow_links(gathered_.size() + 1);
  std::ranges::sort(gathered_, [](const Group& x, const Group& y) {
    return std::tie(x.term, x.parents) < std::tie(y.term, y.parents);
  });
  gathered_.erase(std::unique(gathered_.begin(), gathered_.end()), gathered_.end());
  for (std::size_t i = 0; i < gathered_.size();) {
    std::size_t j = i + 1;
    while (j < gathered_.size() && gathered_[j].term == gathered_[i].term) ++j;
    const SetId parents = unite_all({gathered_.data() + i, j - i});
    popped_groups_.push_back({gathered_[i].term, parents});
    ++result.count;
    i = j;
  }
  popped_of_[set] = static_cast<std::uint32_t>(popped_.size());
  popped_.push_back(result);
  return result;
}

Machine::TermFacts& Machine::facts(Term term) {
  if (term >= term_facts_.size())
    term_facts_.resize(std::max<std::size_t>(term + 1, store_.size()));
  return term_facts_[term];
}

void Machine::step(const Groups& closed, unsigned byte, Groups& out) {
  out.clear();
  indexed_ = false;
  for (const Group& group : closed.items) {
    // A token passes by most residuals of an intersection once.
    const Term next = store_.step_lazily(group.term, byte);
    if (next != kNothing) add(out, next, group.parents);
  }
  const char c = static_cast<char>(byte);
  out.text = store_.remembers() ? text_after(closed, {&c, 1}, out) : kNoText;
}

bool Machine::leap(const Groups& closed, std::string_view text, Groups& out) {
  if (text.empty()) return false;
  out.clear();
  indexed_ = false;
  for (const Group& group : closed.items) {
    const std::optional<Term> next = store_.leap(group.term, text);
    if (!next) return false;
    if (*next != kNothing) add(out, *next, group.parents);
  }
  out.text = store_.remembers() ? text_after(closed, text, out) : kNoText;
  return true;
}

bool Machine::leaps(const Groups& groups) const {
  return std::ranges::any_of(groups.items,
                             [this](const Group& group) { return store_.leaps(group.term); });
}

void Machine::step_token(const Groups& closed, std::uint32_t token, Groups& out) {
  indexed_ = false;
  for (const Group& group : closed.items) {
    for (const FirstToken& first : store_.first_tokens(group.term)) {
      if (store_.token_set(first.set).has(token)) add(out, first.rest, group.parents);
    }
  }
}

void Machine::merge(State state, Groups& out) {
  indexed_ = false;
  if (text_of(state) != kNoText) out.text = text_of(state);
  for (SetId set = set_of(state); set != kEmptySet; set = links_[set].rest) {
    const Frame frame = frames_[links_[set].frame];
    add(out, frame.term, frame.parents);
  }
}

void Machine::end_token(Groups& groups) {
  if (!store_.has_meters()) return;
  ended_.clear();
  ended_.text = groups.text;
  indexed_ = false;
  for (const Group& group : groups.items) {
    const Term left = store_.after_token(group.term);
    if (left != kNothing) add(ended_, left, group.parents);
  }
  std::swap(groups, ended_);
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
  for (std::size_t i = 0; i < text.size(); ++i) {
    machine_->begin_step();
    const auto byte = static_cast<unsigned char>(text[i]);
    machine_->close(groups, ByteSet::of(byte));
    machine_->step(groups, byte, next);
    if (next.items.empty()) return i;
    std::swap(groups, next);
  }
  machine_->close_pops(groups);
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
