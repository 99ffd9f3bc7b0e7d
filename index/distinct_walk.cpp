// Masks where values must differ (grammar/distinct.cpp).
//
// What may be said of a value is a term A without the texts of the values seen. Its mask is that of
// A, a frame like any other, corrected along those texts: a few trie nodes each, and none once the
// text so far begins none of them.
//
// A token that ends one value and goes on into the next one of its scope is *suspect*: its
// remainder alone does not tell the first value, which the second may equal. Such tokens are few.
// They are gathered beside the mask and tried one by one, with the text that the state has.
#include <utility>

#include "index/walk.hpp"

namespace grammaton {

MaskBuilder* Walker::end_target(const Groups& groups, MaskBuilder& out) {
  if (!store_.remembers()) return machine_.token_may_end(groups) ? &out : nullptr;
  MaskBuilder* target = nullptr;
  for (const Group& group : groups.items) {
    if (!machine_.token_may_end(group)) continue;
    if (!machine_.is_suspect(group)) return &out;
    target = &suspects();
  }
  return target;
}

bool Walker::apply_without(Place place, const Group& group, std::size_t level, bool blank,
                           MaskBuilder& out) {
  // A bit that is cleared must not be another remainder's of the same token.
  if (!place.trie->unique()) return false;
  const Node n = store_.node(group.term);
  Part part(*this, out, blank);
  if (!apply_frame(place, {n.a, group.parents}, level, true, part.bits())) return false;
  leave_out({*place.trie, group.parents, level, part.bits()}, place.node, n.a, n.b);
  part.join();
  return true;
}

// Corrects the mask of `all` below `node` to that of `all` without `out`.
void Walker::leave_out(const KeyPlace& at, std::uint32_t node, Term all, Term out) {
  const ByteSet live = store_.class_map(store_.row(out)).live;
  live.each([&](unsigned byte) {
    const std::uint32_t child = at.trie.child(node, static_cast<std::uint8_t>(byte));
    if (child == Trie::kRoot) return;
    const Term left = store_.step(all, byte);
    const Term seen = store_.step(out, byte);
    if (left == kNothing || seen == kNothing) return;
    count_nodes(stats_.pair_nodes);
    if (!store_.nullable(left) && !store_.nullable(seen) && !store_.has(left, kHasNoSplit) &&
        store_.goes_beyond(left, seen)) {
      leave_out(at, child, left, seen);  // tokens that end here can go on, whatever was seen
      return;
    }
    const Trie::Node& below = at.trie.node(child);
    for (const Entry& entry : at.trie.entries(below.entry_begin, below.subtree_entry_end))
      at.out.unset(entry.token);
    const Term rest = store_.without(left, seen);
    if (store_.is_empty(rest)) return;
    Groups& groups = groups_at(at.level);
    groups.clear();
    groups.items.push_back({rest, at.parents});
    enter(at.trie, child, at.level, {}, at.out);
  });
}

// Tries the tokens that are not allowed for sure.
void Walker::take_suspects(State state, MaskBuilder& out) {
  Groups& here = groups_at(0);
  Groups& next = groups_at(1);
  scratch_->suspects.each([&](std::uint32_t token) {
    if (out.has(token)) return;
    machine_.load(state, here);
    for (const char c : index_.token(token)) {
      const auto byte = static_cast<unsigned char>(c);
      machine_.close(here, ByteSet::of(byte));
      machine_.step(here, byte, next);
      std::swap(here, next);
      if (here.items.empty()) return;
    }
    if (machine_.token_may_end(here)) out.set(token);
  });
}

}  // namespace grammaton
