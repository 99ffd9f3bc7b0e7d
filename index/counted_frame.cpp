// Counted frames: P X{m,n} q, one frame mask for all m and n.
//
// X is any term that is not nullable, P what is left of one before or any regular term, q a byte
// that closes the run, or nothing. The *reference* P X* q is studied once, through an automaton
// that tells how many items a text has begun (item_automaton.hpp). A token stays inside the counted
// frame when some way to read it begins at most n items, since whatever is missing may follow; it
// leaves where its items lie between m and n, in some reading.
//
// X may call rules, as a statement or a piece of a pattern does: then the mask belongs to the
// constraint, as those of frames with calls do (recursive_frame.cpp). Without it each count would
// be put together anew from the masks of all places where an item may begin.
#include <algorithm>
#include <array>
#include <utility>

#include "index/item_automaton.hpp"
#include "index/item_counts.hpp"
#include "index/path_states.hpp"
#include "index/remainders.hpp"
#include "index/walk.hpp"

namespace grammaton {

namespace {

// Items that begin with more bytes are *wide* where any may be the last: the remainders that go on
// would be several times the vocabulary. So what follows must not begin so, and where all that is
// wanted are runs without a bound, there is no counting.
constexpr unsigned kFewItems = 16;
// Added to the hash of a wide frame that counts.
constexpr std::uint64_t kCounting = 2;
// To find where the letters of a state lead costs as much as to visit so many nodes.
constexpr std::uint32_t kRegion = 128;
// What precedes the items is looked for no deeper.
constexpr std::size_t kLongestPrefix = 8;

}  // namespace

const Walker::Counted* Walker::counted_form(Term t) {
  auto found = counted_.find(t);
  if (found == counted_.end()) {
    const std::uint64_t told = machine_.levels_told();
    Counted made = find_counted(t);
    made.by_level = machine_.levels_told() != told;
    found = counted_.insert_or_assign(t, made).first;
  } else if (found->second.by_level) {
    machine_.tell_level();
  }
  const Counted& form = found->second;
  return form.reference == kNothing ? nullptr : &form;
}

Walker::Counted Walker::find_counted(Term t) {
  std::array<Term, kLongestPrefix> parts{};
  std::size_t at = 0;  // of the repetition
  Term after = kNone;  // what follows it
  Term left = t;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Node n = store_.node(left);
    const bool last = n.kind != Kind::Concat;
    const Term part = last ? left : n.a;
    const Node p = store_.node(part);
    const bool many = p.kind == Kind::Repeat && p.c > 1;
    if (p.kind == Kind::Repeat && (many || after == kNone)) {
      at = i;
      after = last ? kEmpty : n.b;
    }
    parts[i] = part;
    if (last || many || store_.has(part, kHasCall)) break;
    left = n.b;
  }
  if (after == kNone) return {};
  const Node repeated = store_.node(parts[at]);
  Counted form;
  form.item = repeated.a;
  form.low = repeated.b;
  form.high = repeated.c;
  form.calls = store_.has(form.item, kHasCall);
  if (store_.nullable(form.item)) return {};
  // Without a bound, what follows is walked as it is.
  if (form.calls && (!rehearsed_ || at > 0 || form.high == kUnbounded)) return {};
  if (after != kEmpty) {
    const Node n = store_.node(after);
    form.close = n.kind == Kind::Concat ? n.a : after;
    form.rest = n.kind == Kind::Concat ? n.b : kEmpty;
    if (store_.node(form.close).kind != Kind::Bytes || store_.has(form.rest, kHasNoSplit))
      return {};
  }
  const ByteSet first = first_live(form.item);
  if (form.close != kEmpty && !(first & store_.byte_set(form.close)).empty()) return {};
  form.wide = form.close == kEmpty && first.size() > kFewItems;
  // Frames of bounded length are made faster.
  if (form.wide && !form.calls && form.high >= kLongNeed && !first.is_ascii() &&
      bounded_form(t) != nullptr)
    return {};
  form.prefix = store_.concat(std::span<const Term>(parts).first(at));
  form.reference = store_.concat(
      form.prefix, store_.concat(store_.repeat(form.item, 0, kUnbounded), form.close));
  if (form.wide && form.reference == t) return {};
  if (form.calls || form.wide || form.reference == t) return form;
  // Made anew it may be read otherwise: a text before the items can become one of them.
  const Counted* const same = counted_form(form.reference);
  return same != nullptr && same->reference == form.reference && same->prefix == form.prefix
             ? form
             : Counted{};
}

bool Walker::apply_counted(Place place, const Group& group, std::size_t level, MaskBuilder& out) {
  const Counted* found = counted_form(group.term);
  if (found == nullptr || (!found->calls && found->reference == group.term)) return false;
  // Of what is optional there is one count, unless it is the last of a run.
  if (found->calls && found->high == 1 && !items_.contains(found->reference)) return false;
  const Counted form = *found;
  if (form.calls && store_.without_levels(form.reference).levels) machine_.tell_level();
  const std::shared_ptr<const FrameMask> mask = form.calls  ? calling_frame(place, form)
                                                : form.wide ? wide_frame(place, form)
                                                            : frame(place, form.reference);
  if (mask == nullptr || !mask->counts) return false;
  const bool leaves = mask->rest || !mask->exits.empty() || !mask->left_out.empty();
  const SetId parents = leaves ? machine_.push(form.rest, group.parents) : Machine::kEmptySet;
  if ((form.calls || form.wide) && !wanted(mask->left_out, parents, level).empty()) return false;
  ++stats_.counted;
  blank_ = false;
  const ItemCounts& counts = *mask->counts;
  const auto more = [&](const auto& some) { return some.items > form.high; };
  std::uint32_t added = 0;
  auto ready = std::ranges::find_if(counts.at_most, more);
  if (ready != counts.at_most.begin()) {
    --ready;
    out.add(ready->tokens);
    added = ready->items + 1;
  }
  const std::vector<ItemCounts::Taken>& inside = counts.inside;
  for (auto taken = std::ranges::partition_point(inside, more);
       taken != inside.end() && taken->items >= added; ++taken) {
    out.set(taken->token);
  }
  for (const ItemCounts::Taken& taken : counts.ending) {
    if (form.low <= taken.items && taken.items <= form.high) out.set(taken.token);
  }
  if (leaves)
    walk_after(*mask, {place, form.reference}, parents, level, {form.low, form.high}, out);
  return true;
}

// Null when items can't be counted there.
std::shared_ptr<const FrameMask> Walker::calling_frame(Place place, const Counted& form) {
  const FrameKey key{place.trie->uid(), place.node, form.reference};
  if (const auto known = calling_.find(key); known != calling_.end()) return known->second;
  const auto [items, fresh] =
      items_.try_emplace(form.reference, machine_, form.prefix, form.item,
                         form.close == kEmpty ? ByteSet{} : store_.byte_set(form.close));
  const std::size_t before = fresh ? 0 : items->second.memory();
  std::shared_ptr<FrameMask> made;
  if (items->second.complete()) made = study_items(place, items->second, Rests::Others);
  std::size_t bytes = items->second.memory() - before;
  if (made != nullptr) {
    ++stats_.frames_made;
    made->bytes = made->memory(index_.words());
    bytes += made->bytes;
  }
  make_recursive_room(bytes);
  return calling_.emplace(key, std::move(made)).first->second;
}

// Null likewise.
std::shared_ptr<const FrameMask> Walker::wide_frame(Place place, const Counted& form) {
  Hash128 hash = store_.node(form.reference).hash;
  hash.add(kCounting);
  const TokenIndex::Key key{place.trie->uid(), place.node, hash};
  if (auto known = index_.find(key)) return known;
  if (uncounted_.contains(form.reference)) return nullptr;
  std::shared_ptr<FrameMask> made = study_counted(place, form, Rests::Others);
  if (made == nullptr) {
    uncounted_.insert(form.reference);
    return nullptr;
  }
  ++stats_.frames_made;
  return index_.keep(key, std::move(made));
}

std::shared_ptr<FrameMask> Walker::study_counted(Place place, const Counted& form, Rests rests) {
  ItemAutomaton items(machine_, form.prefix, form.item,
                      form.close == kEmpty ? ByteSet{} : store_.byte_set(form.close));
  return study_items(place, items, rests);
}

// Null when the automaton grew too large.
std::shared_ptr<FrameMask> Walker::study_items(Place place, ItemAutomaton& automaton, Rests rests) {
  using StateId = ItemAutomaton::StateId;
  const Trie& trie = *place.trie;
  struct Visit {
    std::uint32_t node;
    StateId state;
    std::uint32_t items;
  };
  struct Leaving {
    Visit at;
    bool closed;
  };
  std::vector<Word>& bits = scratch_->studied;
  bits.assign(index_.words(), 0);
  ItemCounts counts;
  CountedTokens& inside = scratch_->counted;
  inside.clear();
  std::vector<Leaving> exits;
  std::vector<Visit> stack{{place.node, ItemAutomaton::kStart, 0}};
  const auto visit = [&](const Visit& at, std::uint32_t child) {
    const std::uint8_t byte = trie.byte(child);
    const Trie::Node& below = trie.node(child);
    if (automaton.closes(byte)) {
      for (const std::uint32_t more : automaton.boundaries(at.state)) {
        const Visit next{child, at.state, at.items + more};
        for (const Entry& entry : trie.entries_at(child)) {
          set_bit(bits.data(), entry.token);
          counts.ending.push_back({next.items, entry.token});
        }
        if (below.child_begin != below.child_end) exits.push_back({next, true});
      }
    }
    const ItemAutomaton::Edge edge = automaton.step(at.state, byte);
    if (edge.to == ItemAutomaton::kDead) return;
    count_nodes(stats_.study_nodes);
    const Visit next{child, edge.to, at.items + edge.items};
    if (const std::uint32_t more = automaton.token_end(edge.to); more != kNone) {
      for (const Entry& entry : trie.entries_at(child)) inside.take(next.items + more, entry.token);
    }
    if (below.child_begin == below.child_end) return;
    if (automaton.open()) {
      for (const std::uint32_t more : automaton.boundaries(edge.to))
        exits.push_back({{child, edge.to, next.items + more}, false});
    }
    stack.push_back(next);
  };
  // Tokens that begin `each` items a character from a node on.
  const auto take_run = [&](const Visit& at, std::uint32_t begin, std::uint32_t end,
                            std::uint32_t each) {
    const std::uint32_t before = trie.node(at.node).characters;
    for (std::uint32_t e = begin; e < end; ++e)
      inside.take(at.items + each * (trie.characters(e) - before), trie.entry(e).token);
  };
  const auto take_region = [&](const Visit& at, const Letters& letters) {
    if (store_.restricted() && !letters.only_ascii()) return false;
    const Trie::Node& here = trie.node(at.node);
    for (const std::uint32_t each : {1u, 0u}) {
      if (!automaton.counts(at.state, letters, each)) continue;
      take_run(at, here.entry_end, here.subtree_entry_end, each);
      return true;
    }
    return false;
  };
  std::vector<std::uint32_t> others;
  std::vector<Word> cut;
  const auto take_but_others = [&](const Visit& at) {
    const ItemAutomaton::Counting* const kept = automaton.counted(at.state, Trie::common_letters());
    if (kept == nullptr) return false;
    const bool whole = at.node == Trie::kRoot && &trie == &index_.trie() &&
                       index_.cut(kept->letters, kept->live, cut, others);
    if (!whole && !trie.find_others(at.node, kept->letters, others)) return false;
    if (whole) {
      for (const std::uint32_t other : others)
        for (const Entry& entry : trie.entries_from(other)) clear_bit(cut.data(), entry.token);
      inside.take_characters(at.items, std::move(cut));
    }
    const Trie::Node& here = trie.node(at.node);
    std::uint32_t done = here.entry_end;
    PathStates<Visit> path(at);
    const auto step = [&](const Visit& from, std::uint8_t byte) {
      if (from.state == ItemAutomaton::kDead) return from;
      const ItemAutomaton::Edge edge = automaton.step(from.state, byte);
      return Visit{from.node, edge.to, from.items + edge.items};
    };
    for (const std::uint32_t other : others) {
      const Trie::Node& below = trie.node(other);
      if (!whole) take_run(at, done, below.entry_begin, 1);
      done = below.subtree_entry_end;
      const Entry& first = trie.entry(below.entry_begin);
      const auto text =
          index_.token(first.token).substr(first.start + here.depth, below.depth - here.depth);
      path.follow(text.substr(0, text.size() - 1), step);
      if (!automaton.complete()) return true;
      if (path.states().back().state != ItemAutomaton::kDead) visit(path.states().back(), other);
    }
    if (!whole) take_run(at, done, here.subtree_entry_end, 1);
    return true;
  };
  while (!stack.empty() && automaton.complete()) {
    const Visit at = stack.back();
    stack.pop_back();
    const Trie::Node& here = trie.node(at.node);
    const Letters* const letters = trie.letters_below(at.node);
    if (letters != nullptr && here.subtree_nodes >= kRegion && take_region(at, *letters)) continue;
    if (here.subtree_nodes >= kWideSubtree && !store_.restricted() && take_but_others(at)) continue;
    // Last child first onto the stack, so that nodes are visited in the order they lie in memory.
    for (std::uint32_t child = here.child_end; child-- > here.child_begin;) visit(at, child);
  }
  if (!automaton.complete()) return nullptr;

  inside.add_to(bits);
  auto mask = std::make_shared<FrameMask>();
  Remainders remainders(trie, bits.data(), true, rests);
  for (const auto& [at, closed] : exits)
    remainders.add_exit(at.node, closed ? ByteSet{} : automaton.live(at.state), at.items);
  count_listed(remainders.count());
  remainders.finish(*mask, index_);
  if (rests == Rests::GoingOn) return mask;
  const bool dense = inside.size() + counts.ending.size() > kSparseTokens;
  inside.finish(counts, dense);
  if (dense) {
    mask->dense = copy_bits(bits);
  } else {
    for (const ItemCounts::Taken& taken : counts.inside) mask->sparse.push_back(taken.token);
    for (const ItemCounts::Taken& taken : counts.ending) mask->sparse.push_back(taken.token);
  }
  mask->counts = std::move(counts);
  return mask;
}

}  // namespace grammaton
