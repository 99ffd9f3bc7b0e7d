#include "index/walk.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "index/spellings.hpp"

namespace grammaton {

namespace {

// What follows a frame is remembered from so many nodes of remainders on.
constexpr std::size_t kWideRest = 2048;
// Sets whose first bytes are remembered.
constexpr std::size_t kMostFirstBytes = 65'536;
// A pair walk that differs in more nodes than this is no shortcut.
constexpr std::size_t kPairBudget = 1024;
// Nor is one that takes out more tokens than this, at 2 ns each: where half of the characters can't
// begin, what is left is soon walked, and kept.
constexpr std::uint64_t kMostCleared = 16384;

// A term that takes more of one letter before it comes back is not looked at further.
constexpr std::size_t kLongestLoop = 16;
// Places of exclusions whose ends are remembered: undeclared keys make new ones for ever.
constexpr std::size_t kMostSpelled = 1024;

void set_entries(std::span<const Entry> entries, MaskBuilder& out) {
  for (const Entry& entry : entries) out.set(entry.token);
}

void clear_entries(std::span<const Entry> entries, MaskBuilder& out) {
  for (const Entry& entry : entries) out.unset(entry.token);
}

}  // namespace

Walker::Walker(Machine& machine, TokenIndex& index, const Limits& limits)
    : machine_(machine),
      store_(machine.store()),
      index_(index),
      limits_(limits),
      keeping_(store_, static_cast<std::uint32_t>(index.longest_token())) {
  begin_counting();
}

Groups& Walker::groups_at(std::size_t level) {
  while (levels_.size() <= level) levels_.emplace_back();
  return levels_[level];
}

void Walker::count_nodes(std::uint64_t& counter) {
  ++counter;
  if (++visited_ > checked_at_) check_work();
}

Walker::Part::Part(Walker& walker, MaskBuilder& whole, bool blank)
    : walker_(walker), whole_(&whole), bits_(blank ? whole : walker.scratch_->take()) {}

Walker::Part::Part(Walker& walker)
    : walker_(walker), whole_(nullptr), bits_(walker.scratch_->take()) {}

Walker::Part::~Part() {
  if (&bits_ != whole_) walker_.scratch_->give_back();
}

void Walker::Part::join() {
  if (&bits_ != whole_) whole_->add(bits_);
}

FinishedMask Walker::mask(State state) {
  begin_counting();
  blank_ = true;
  const ScratchLoan loan(index_, scratch_);
  scratch_->give_all_back();
  MaskBuilder& out = scratch_->take();
  plain_ = false;
  machine_.begin_step();
  const std::uint64_t values_read = machine_.values_read();
  if (store_.remembers()) scratch_->suspects.clear();
  Groups& groups = groups_at(0);
  const std::vector<IdRange> tokens = first_tokens(state);
  machine_.load(state, groups);
  open({&index_.trie(), Trie::kRoot}, 0, {}, out);
  const bool ended = groups.ended;
  walk(index_.trie(), Trie::kRoot, 0, {}, out);
  if (ended) {
    for (const std::uint32_t id : index_.eos()) out.set(id);
  }
  if (store_.remembers()) take_suspects(state, out);
  by_text_ = machine_.values_read() != values_read;
  for (const IdRange& range : tokens) {
    for (std::uint32_t id = range.low; id <= range.high; ++id) out.set(id);
  }
  return rehearsed_ && !rehearsing_ ? bases_.finish(out) : out.finish();
}

// The tokens that can come next as letters of their own.
std::vector<IdRange> Walker::first_tokens(State state) {
  std::vector<IdRange> found;
  if (!store_.has_tokens()) return found;
  Groups& groups = groups_at(0);
  machine_.load(state, groups);
  machine_.close(groups);
  for (const Group& group : groups.items) {
    for (const FirstToken& first : store_.first_tokens(group.term)) {
      const std::vector<IdRange>& ids = store_.token_set(first.set).ids;
      found.insert(found.end(), ids.begin(), ids.end());
    }
  }
  return found;
}

// Walks the strict subtree of `node` from the closed groups at `level`.
void Walker::walk(const Trie& trie, std::uint32_t node, std::size_t level, Filter filter,
                  MaskBuilder& out) {
  const Trie::Node& here = trie.node(node);
  if (here.child_begin == here.child_end || given_up()) return;
  if (levels_[level].cut)
    set_entries(trie.entries(here.entry_end, here.subtree_entry_end), suspects());
  if (!filter.open()) {
    const Trie::ItemRange items = trie.items(node);
    if (items.low > filter.high || items.high < filter.low) return;
    if (items.low >= filter.low && items.high <= filter.high) filter = {};
  }
  if (filter.open()) {
    // Keys and frames leave the group list; what remains is walked together.
    const bool long_walk = !plain_ && here.subtree_nodes >= kShortWalk;
    bool blank = std::exchange(blank_, false);
    if (long_walk && levels_[level].items.size() >= kFewAlike &&
        apply_alike({&trie, node}, level, blank, out))
      blank = false;
    for (std::size_t i = 0; i < levels_[level].items.size();) {
      if (store_.has_meters())
        levels_[level].items[i].term = store_.without_meter(levels_[level].items[i].term);
      const Group group = levels_[level].items[i];
      MaskBuilder& target = target_of(group, out);
      if (apply_keys({&trie, node}, group, level + 1, target) ||
          (long_walk &&
           (store_.has(group.term, kHasCall)
                ? apply_counted({&trie, node}, group, level + 1, target) ||
                      apply_recursive({&trie, node}, group, Scope::Own, level + 1, target)
                : apply_frame({&trie, node}, group, level + 1, blank && &target == &out,
                              target)))) {
        blank = false;
        levels_[level].items.erase(levels_[level].items.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  descend(trie, node, level, filter, out);
}

void Walker::descend(const Trie& trie, std::uint32_t node, std::size_t level, Filter filter,
                     MaskBuilder& out) {
  groups_at(level + 1);
  if (levels_[level].items.empty()) return;
  const Trie::Node& here = trie.node(node);
  ByteSet live;
  for (const Group& group : levels_[level].items) {
    live = live | store_.class_map(store_.row(group.term)).live;
  }
  auto visit = [&](std::uint32_t child, unsigned byte) {
    count_nodes(stats_.walk_nodes);
    machine_.step(levels_[level], byte, levels_[level + 1]);
    if (!levels_[level + 1].items.empty()) enter(trie, child, level + 1, filter, out);
  };
  if (live.size() * 4 < here.child_end - here.child_begin) {
    live.each([&](unsigned byte) {
      const std::uint32_t child = trie.child(node, static_cast<std::uint8_t>(byte));
      if (child != Trie::kRoot) visit(child, byte);
    });
  } else {
    for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
      if (live.has(trie.byte(child))) visit(child, trie.byte(child));
    }
  }
}

// Takes the tokens that end at `child` and goes on below it; the groups at `level` are not closed.
void Walker::enter(const Trie& trie, std::uint32_t child, std::size_t level, Filter filter,
                   MaskBuilder& out) {
  const Trie::Node& here = trie.node(child);
  if (here.entry_begin != here.entry_end) {
    if (MaskBuilder* const target = end_target(levels_[level], out)) {
      for (const Entry& entry : trie.entries_at(child)) {
        if (filter.low <= entry.items && entry.items <= filter.high) target->set(entry.token);
      }
    }
  }
  if (here.child_begin == here.child_end) return;
  open({&trie, child}, level, filter, out);
  walk(trie, child, level, filter, out);
}

// How many nodes lie below the children over some bytes: a bound on the walk.
std::uint64_t Walker::reach(Place place, const ByteSet& live) const {
  const Trie::Node& here = place.trie->node(place.node);
  std::uint64_t nodes = 0;
  for (std::uint32_t c = here.child_begin; c < here.child_end; ++c) {
    if (live.has(place.trie->byte(c))) nodes += 1 + place.trie->node(c).subtree_nodes;
  }
  return nodes;
}

// How many tokens lie below the children that a row leads to and another one does not.
std::uint64_t Walker::lost(Place place, const Row& from, const Row& to) const {
  const ByteSet& before = store_.class_map(from).live;
  const ByteSet& after = store_.class_map(to).live;
  const Trie::Node& here = place.trie->node(place.node);
  std::uint64_t tokens = 0;
  for (std::uint32_t c = here.child_begin; c < here.child_end; ++c) {
    const std::uint8_t byte = place.trie->byte(c);
    if (!before.has(byte) || after.has(byte)) continue;
    const Trie::Node& below = place.trie->node(c);
    tokens += below.subtree_entry_end - below.entry_begin;
  }
  return tokens;
}

bool Walker::apply_frame(Place place, const Group& written, std::size_t level, bool blank,
                         MaskBuilder& out) {
  if (store_.node(written.term).kind == Kind::Without)
    return apply_without(place, written, level, blank, out);
  const Group group{normalised(written.term), written.parents};
  std::shared_ptr<const FrameMask> mask = known_frame(place, group.term);
  if (mask == nullptr) {
    // What takes tokens out again can't tell where it ended.
    if (place.trie->unique() && ends_ == nullptr && apply_all_but(place, group, level, blank, out))
      return true;
    const std::uint64_t nodes = reach(place, store_.class_map(store_.row(group.term)).live);
    if (nodes < kShortWalk) return false;
    if (place.trie->unique()) {
      if (apply_counted(place, group, level, out)) return true;
      if (apply_bounded(place, group, level, blank, out)) return true;
      if (nodes >= kPairBudget && ends_ == nullptr &&
          (apply_beside(place, group, level, blank, out) ||
           apply_but_few(place, group, level, blank, out)))
        return true;
    }
    const Follow& follow = first_bytes(group.parents, level);
    mask = frame(place, group.term, follow.live.empty() && ends_ == nullptr && !alone_);
  }
  apply(*mask, {place, group.term}, group.parents, level, out);
  return true;
}

void Walker::apply(const FrameMask& mask, const Source& source, SetId parents, std::size_t level,
                   MaskBuilder& out) {
  if (mask.dense) out.add(mask.dense);
  for (const std::uint32_t token : mask.sparse) out.set(token);
  walk_after(mask, source, parents, level, {}, out);
}

// What follows the frame, in the tokens that run past its end; with the empty set, nothing.
void Walker::walk_after(const FrameMask& mask, const Source& source, SetId parents,
                        std::size_t level, Filter filter, MaskBuilder& out) {
  if (parents == Machine::kEmptySet) return;
  const auto walk_listed = [&](const FrameMask& listed) {
    if (listed.rest) walk_rest(*listed.rest, parents, level, filter, out);
    for (const Exit& exit : listed.exits) {
      if (filter.low <= exit.items && exit.items <= filter.high)
        add_known({source.place.trie, exit.node}, parents, level, out);
    }
  };
  walk_listed(mask);
  if (!wanted(mask.left_out, parents, level).empty())
    walk_listed(*left_out(source, mask.leaves_all_out));
}

void Walker::walk_rest(const Trie& rest, SetId parents, std::size_t level, Filter filter,
                       MaskBuilder& out) {
  const Place place{&rest, Trie::kRoot};
  if (!filter.open()) {
    const Trie::ItemRange items = rest.items(Trie::kRoot);
    if (items.low > filter.high || items.high < filter.low) return;
    if (items.low >= filter.low && items.high <= filter.high) filter = {};
  }
  // Frames with calls are of all remainders: so those that are too many are taken out again. A
  // token that has one only can't be there by another.
  if (!filter.open() && rehearsed_ && ends_ == nullptr && rest.unique() && !store_.remembers() &&
      rest.size() >= kShortWalk) {
    Part part(*this, out, false);
    walk_rest(rest, parents, level, {}, part.bits());
    for (const Entry& entry : rest.entries_from(Trie::kRoot)) {
      if (entry.items < filter.low || entry.items > filter.high) part.bits().unset(entry.token);
    }
    part.join();
    return;
  }
  if (filter.open() && rest.size() >= kWideRest && ends_ == nullptr) {
    add_known(place, parents, level, out);
  } else {
    walk_parents(place, parents, level, filter, out);
  }
}

const Walker::Follow& Walker::first_bytes(SetId parents, std::size_t level) {
  const auto known = first_bytes_.find(parents);
  if (known != first_bytes_.end()) {
    if (known->second.by_level) machine_.tell_level();
    return known->second;
  }
  const std::uint64_t told = machine_.levels_told();
  if (first_bytes_.size() >= kMostFirstBytes) first_bytes_.clear();
  Groups& groups = groups_at(level);
  groups.clear();
  machine_.pop(parents, groups);
  machine_.close_pops(groups);
  Follow follow;
  follow.ended = groups.ended;
  for (const Group& group : groups.items) follow.live = follow.live | first_live(group.term);
  follow.by_level = machine_.levels_told() != told;
  return first_bytes_[parents] = follow;
}

// What follows in many tokens is remembered: the next mask often has the same parents.
void Walker::add_known(Place place, SetId parents, std::size_t level, MaskBuilder& out) {
  if (ends_ != nullptr) {
    walk_parents(place, parents, level, {}, out);
    return;
  }
  const FrameKey key{place.trie->uid(), place.node, parents};
  const auto found = after_.find(key);
  if (found != after_.end()) {
    out.add(found->second);
    return;
  }
  Part part(*this, out, false);
  const std::uint64_t suspected = suspected_;
  walk_parents(place, parents, level, {}, part.bits());
  part.join();
  if (suspected_ != suspected) return;  // more than the mask was found
  FinishedMask made = part.bits().finish();
  const std::size_t bytes = made.memory() + (made.base() ? index_.words() * sizeof(Word) : 0);
  if (after_bytes_ + bytes > limits_.mask_cache_bytes) {
    after_.clear();
    after_bytes_ = 0;
    ++emptied_;
  }
  after_bytes_ += bytes;
  after_.emplace(key, std::move(made));
}

void Walker::walk_parents(Place place, SetId parents, std::size_t level, Filter filter,
                          MaskBuilder& out) {
  Groups& groups = groups_at(level);
  groups.clear();
  machine_.pop(parents, groups);
  open(place, level, filter, out);
  walk(*place.trie, place.node, level, filter, out);
}

bool Walker::prefix_free(Term item) {
  const auto found = prefix_free_.find(item);
  if (found != prefix_free_.end()) return found->second;
  // Every text of the item leads to the empty residual, and nowhere else it may end.
  std::vector<Term> queue{item};
  std::unordered_map<Term, bool> seen{{item, true}};
  bool result = !store_.nullable(item);
  for (std::size_t i = 0; result && i < queue.size(); ++i) {
    const Row row = store_.row(queue[i]);
    for (unsigned c = 1; result && c < row.classes; ++c) {
      const Term next = store_.target(row, c);
      if (next == kEmpty) continue;
      result = !store_.nullable(next) && queue.size() < 256;
      if (seen.emplace(next, true).second) queue.push_back(next);
    }
  }
  prefix_free_.emplace(item, result);
  return result;
}

bool Walker::apply_all_but(Place place, const Group& group, std::size_t level, bool blank,
                           MaskBuilder& out) {
  std::optional<AllBut> form = store_.all_but(group.term);
  if (!form && !store_.restricted()) form = store_.all_but_of_some(group.term);
  if (!form) return false;
  const Node tail = store_.node(form->tail);
  const Term quote = tail.kind == Kind::Concat ? tail.a : form->tail;
  if (quote != store_.byte('"')) return false;
  const Term base = form->of->base;
  const bool of_any = base == store_.any_text();
  if (!of_any && !goes_on_along(*form)) return false;
  const SetId after =
      tail.kind == Kind::Concat ? machine_.push(tail.b, group.parents) : group.parents;
  ++stats_.left_out;
  Part part(*this, out, blank);
  const Term any =
      of_any ? store_.any_json_then(quote) : normalised(store_.concat(store_.json(base), quote));
  apply(*frame(place, any), {place, any}, after, level, part.bits());
  // Any of the texts can still grow into another one; only its end is forbidden.
  for (const std::uint32_t closed : spelled_ends(place, *form)) {
    clear_entries(place.trie->entries_from(closed), part.bits());
  }
  part.join();
  return true;
}

// The nodes at which one of the texts has been spelled and closed.
const std::vector<std::uint32_t>& Walker::spelled_ends(Place place, const AllBut& form) {
  if (spelled_ends_.size() == kMostSpelled) spelled_ends_.clear();
  const auto [found, fresh] =
      spelled_ends_.try_emplace({place.trie->uid(), place.node, form.lifted});
  std::vector<std::uint32_t>& closed = found->second;
  if (!fresh) return closed;
  const Trie& trie = *place.trie;
  std::vector<std::uint32_t> ends;
  for (const std::string& text : form.of->texts) find_spellings(trie, place.node, text, ends);
  for (const std::uint32_t end : ends) {
    const std::uint32_t child = trie.child(end, '"');
    if (child != Trie::kRoot) closed.push_back(child);
  }
  return closed;
}

// Whether a text of the base that is under way can always still grow into others than the few,
// which is to say for as long as one likes: asked wherever one of the few is under way.
bool Walker::goes_on_along(const AllBut& form) {
  const auto [found, fresh] = goes_on_along_.try_emplace(form.lifted, false);
  if (!fresh) return found->second;
  for (const std::string& text : form.of->texts) {
    Term at = form.of->base;
    if (!grows(at)) return false;
    for (const char c : text) {
      at = store_.step(at, static_cast<std::uint8_t>(c));
      if (at == kNothing) break;
      if (!grows(at)) return false;
    }
  }
  return goes_on_along_[form.lifted] = true;
}

// Whether a term can take one letter after another without an end. False as well where this letter
// is the wrong one.
bool Walker::grows(Term t) {
  const auto [found, fresh] = grows_.emplace(t, false);
  if (!fresh) return found->second;
  std::vector<Term> passed{t};
  bool grows = false;
  while (!grows && passed.size() < kLongestLoop) {
    const Term next = store_.step(passed.back(), 'a');
    if (next == kNothing) break;
    grows = std::ranges::find(passed, next) != passed.end();
    passed.push_back(next);
  }
  return grows_[t] = grows;
}

// The residual that most bytes lead to.
Term Walker::main_target(Term t) {
  const Row row = store_.row(t);
  std::array<std::uint16_t, 256> sizes{};
  const ClassMap& map = store_.class_map(row);
  for (unsigned b = 0; b < 256; ++b) ++sizes[map.of[b]];
  unsigned best = 0;
  for (unsigned c = 1; c < row.classes; ++c) {
    if (best == 0 || sizes[c] > sizes[best]) best = c;
  }
  return store_.target(row, best);
}

bool Walker::apply_beside(Place place, const Group& group, std::size_t level, bool blank,
                          MaskBuilder& out) {
  const Term reference = main_target(group.term);
  if (reference == kNothing || reference == group.term || store_.nullable(reference) ||
      store_.nullable(group.term) || main_target(reference) != reference) {
    return false;
  }
  const Row own = store_.row(group.term);
  if (lost(place, store_.row(reference), own) > kMostCleared) return false;
  const std::shared_ptr<const FrameMask> mask = frame(place, reference);
  ++stats_.pair_walks;
  Part part(*this, out, blank);
  apply(*mask, {place, reference}, group.parents, level, part.bits());
  std::size_t budget = kPairBudget;
  correct(*place.trie, place.node, group.term, reference, group.parents, level, budget,
          part.bits());
  if (budget == 0) {
    part.drop();
  } else {
    part.join();
  }
  return budget != 0;
}

// Makes `out` right below `node`, where it holds the reference's tokens: t and the reference differ
// here. Everything set or cleared lies in the subtree.
void Walker::correct(const Trie& trie, std::uint32_t node, Term t, Term reference, SetId parents,
                     std::size_t level, std::size_t& budget, MaskBuilder& out) {
  // The rows are compared whole: most nodes have many children and few of them differ.
  const Row row = store_.row(t);
  const Row other_row = store_.row(reference);
  const ClassMap map = store_.class_map(row);  // by value: what is made below may move them
  const ClassMap other_map = store_.class_map(other_row);
  const ByteSet either = map.live | other_map.live;
  const Trie::Node& here = trie.node(node);
  for (std::uint32_t child = here.child_begin; child < here.child_end && budget > 0; ++child) {
    const unsigned byte = trie.byte(child);
    if (!either.has(byte)) continue;
    const Term next = store_.target(row, map.of[byte]);
    const Term other = store_.target(other_row, other_map.of[byte]);
    if (next == other) continue;
    --budget;
    count_nodes(stats_.pair_nodes);
    if (next != kNothing && other != kNothing && !store_.nullable(next) &&
        !store_.nullable(other)) {
      const std::span<const Entry> ending = trie.entries_at(child);
      if (!ending.empty() && store_.at_token_end(next) == kNothing) {
        clear_entries(ending, out);
      } else {
        set_entries(ending, out);
      }
      correct(trie, child, next, other, parents, level, budget, out);
      continue;
    }
    const Trie::Node& below = trie.node(child);
    if (other != kNothing)
      clear_entries(trie.entries(below.entry_begin, below.subtree_entry_end), out);
    if (next != kNothing) {
      Groups& groups = groups_at(level);
      groups.clear();
      groups.items.push_back({next, parents});
      enter(trie, child, level, {}, out);
    }
  }
}

}  // namespace grammaton
