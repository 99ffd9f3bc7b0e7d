// Values that must differ, in the machine: scopes, the text under way, and the ends of values.
//
// A Distinct begins in each scope right below it, and leaves a frame that begins with Take; when
// that frame is popped, the value is read from the text and the scope's frame made anew. Costs: a
// byte of a value one link of text, a value some frames and its length.
#include <algorithm>
#include <string>
#include <string_view>

#include "automata/machine.hpp"

namespace grammaton {

// Pops look for what is below a frame that may be empty, as push() sees to.
SetId Machine::intern_scope(Term seen, SetId parents) {
  popped(parents);
  return intern_link(intern_frame(seen, parents), kEmptySet);
}

TextId Machine::extended(TextId text, unsigned byte) {
  if (text == kUnknownText) return text;
  const std::uint64_t h = mix64(text + 1, byte);
  const TextId known = text_lookup_.find(
      h, [&](TextId i) { return texts_[i].before == text && texts_[i].byte == byte; });
  if (known != kNone) return known;
  check_room();
  const auto id = static_cast<TextId>(texts_.size());
  texts_.push_back({text, static_cast<std::uint8_t>(byte)});
  text_lookup_.insert(h, id);
  return id;
}

// The text of what is said after some bytes more; none where no value is said.
TextId Machine::text_after(const Groups& before, std::string_view bytes, const Groups& after) {
  const bool saying =
      std::ranges::any_of(after.items, [this](const Group& group) { return is_saying(group); });
  if (!saying) return kNoText;
  TextId text = before.text;
  for (const char c : bytes) text = extended(text, static_cast<unsigned char>(c));
  return text;
}

std::string Machine::text_between(TextId from, TextId to) const {
  std::string text;
  for (; to != from && to != kNoText; to = texts_[to].before)
    text.push_back(static_cast<char>(texts_[to].byte));
  std::ranges::reverse(text);
  return text;
}

// Whether the end of a group's term ends a value.
bool Machine::is_saying(const Group& group) const {
  for (SetId set = group.parents; set != kEmptySet; set = links_[set].rest) {
    if (store_.has(frames_[links_[set].frame].term, kTaking)) return true;
  }
  return false;
}

bool Machine::is_suspect(const Group& group) const {
  for (SetId set = group.parents; set != kEmptySet; set = links_[set].rest) {
    const Frame& frame = frames_[links_[set].frame];
    if (!store_.has(frame.term, kTaking)) continue;
    for (SetId scope = frame.parents; scope != kEmptySet; scope = links_[scope].rest) {
      if (store_.node(frames_[links_[scope].frame].term).c != 0) return true;
    }
  }
  return false;
}

// Enters a Distinct in each of its scopes, which may have seen different values.
void Machine::begin_value(const FirstCall& call, SetId parents, TextId text, Groups& groups) {
  for (const FrameId id : frames(parents)) {
    const Frame scope = frames_[id];
    const Node seen = store_.node(scope.term);
    const Term body = store_.distinct_body(call.param, seen.a);
    if (body == kNothing) continue;
    const SetId marked = intern_scope(store_.seen(seen.a, text, seen.c != 0), scope.parents);
    add(groups, body, push(call.rest, marked));
  }
}

// Adds what follows the values that end here. What follows may be empty and end something else, so
// this goes on until nothing is new.
void Machine::take_values(Groups& groups) {
  std::vector<Group> taken;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < groups.items.size(); ++i) {
      const Group group = groups.items[i];
      if (!store_.has(group.term, kTaking) || std::ranges::find(taken, group) != taken.end()) {
        continue;
      }
      taken.push_back(group);
      take_value(group, groups);
      changed = true;
    }
  }
}

void Machine::take_value(Group group, Groups& groups) {
  const Node n = store_.node(group.term);
  const bool more = n.kind == Kind::Concat;
  const Written written{more ? store_.node(n.a).a : n.a};
  const Term rest = more ? n.b : kEmpty;
  for (const FrameId id : frames(group.parents)) {
    const Frame scope = frames_[id];
    const Node seen = store_.node(scope.term);
    if (seen.c != 0) {
      groups.cut = true;
      continue;
    }
    SeenId set = seen.a;
    const bool known = groups.text != kUnknownText && seen.b != kUnknownText;
    if (known) {
      ++values_read_;
      set = store_.remember(set, text_between(seen.b, groups.text), written);
    }
    const SetId parents = intern_scope(store_.seen(set, kNoText, !known), scope.parents);
    add(groups, rest, parents);
    if (store_.nullable(rest)) pop_closed(parents, groups);
  }
}

}  // namespace grammaton
