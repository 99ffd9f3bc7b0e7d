// Frames with calls.
//
// What a group (t, K) says before K does not depend on K, also where t calls rules: the tokens
// inside t, what it calls included, and the remainders of those in which it ends. Such a mask is
// made by walking (t, bottom) and noting where the bottom is reached. Walks put it together from
// the masks of shorter places: below "(" an expression begins like anywhere else. It belongs to a
// constraint, since rules have no name outside of one; the tries of remainders are the
// vocabulary's.
//
// A term that differs from another in the levels of indentation only has the same mask, as long as
// no margin was entered to find it (grammar/levels.cpp): so a block further in is a block.
//
// Without it, every new set of stacks would be walked anew, some microseconds a node where an
// operand may begin in eighty ways. But a mask that is used once is dearer than a walk, and schemas
// are full of places that are met once; so it is for grammars that were written as such, and those
// are rehearsed when they are compiled (rehearsal.cpp).
#include <algorithm>
#include <utility>

#include "index/walk.hpp"

namespace grammaton {

namespace {

// Remainders of one frame; with more of them it is walked.
constexpr std::size_t kMostEnds = 4096;
constexpr std::size_t kRecursiveBytes = 96;  // of a mask that is kept, its tokens apart

}  // namespace

struct Walker::Ends {
  Ends(Walker& walker, bool all) : all(all), walker_(walker), outer_(walker.ends_) {
    walker.ends_ = this;
  }
  ~Ends() { walker_.ends_ = outer_; }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  bool all;  // remainders that the frame could go on with, too
  std::vector<Entry> found;
  ByteSet left_out;

 private:
  Walker& walker_;
  Ends* outer_;
};

void Walker::open(Place place, std::size_t level, Filter filter, MaskBuilder& out) {
  Groups& groups = levels_[level];
  if (!rehearsed_) {
    machine_.close(groups);
    return;
  }
  machine_.close_pops(groups);
  if (ends_ != nullptr && groups.ended) note_end(place, groups, filter);
  if (std::ranges::none_of(
          groups.items, [this](const Group& group) { return store_.has(group.term, kFirstCall); }))
    return;
  // 256 edges at the root of a vocabulary, 0.2 us: to be asked for where it may tell something.
  const ByteSet below = place.trie->bytes_below(place.node);
  const Trie::Node& here = place.trie->node(place.node);
  const bool long_walk = !plain_ && filter.open() && here.subtree_nodes >= kShortWalk;
  std::erase_if(groups.items, [&](const Group& group) {
    if (!store_.has(group.term, kFirstCall)) return false;
    if (!machine_.may_begin(group.term, below)) return true;
    return long_walk && (apply_counted(place, group, level + 1, out) ||
                         apply_recursive(place, group, Scope::Calls, level + 1, out));
  });
  machine_.close_calls(groups, below);
}

// The bottom is reached at a node, from which the groups go on.
void Walker::note_end(Place place, const Groups& groups, Filter filter) {
  if (given_up()) return;
  ByteSet live;
  for (const Group& group : groups.items) live = live | first_live(group.term);
  const Trie& trie = *place.trie;
  const Trie::Node& here = trie.node(place.node);
  for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
    if (!ends_->all && live.has(trie.byte(child))) {
      ends_->left_out.add(trie.byte(child));
      continue;
    }
    const Trie::Node& below = trie.node(child);
    for (const Entry& entry : trie.entries(below.entry_begin, below.subtree_entry_end)) {
      if (filter.low <= entry.items && entry.items <= filter.high)
        ends_->found.push_back({entry.token, entry.start + here.depth, 0});
    }
    if (given_up()) return;
  }
}

// A frame that leaves too many remainders is given up, so nothing more of it is looked at.
bool Walker::given_up() const { return ends_ != nullptr && ends_->found.size() > kMostEnds; }

// Whether remainders that begin with such bytes matter to what follows.
bool Walker::goes_on(const ByteSet& left_out, SetId parents, std::size_t level) {
  if (left_out.empty()) return false;
  const Follow follow = first_bytes(parents, level);
  if (ends_ != nullptr && follow.ended) {
    if (ends_->all) return true;
    ends_->left_out = ends_->left_out | left_out;
  }
  return !(left_out & follow.live).empty();
}

bool Walker::apply_recursive(Place place, const Group& group, Scope scope, std::size_t level,
                             MaskBuilder& out) {
  if (!rehearsed_) return false;
  RecursiveKey key{place.trie->uid(), place.node, group.term, scope, false};
  std::shared_ptr<const RecursiveMask> mask = recursive_frame(*place.trie, key, level);
  if (mask == nullptr) return false;
  if (goes_on(mask->left_out, group.parents, level)) {
    key.all = true;
    mask = recursive_frame(*place.trie, key, level);
    if (mask == nullptr) return false;
  }
  blank_ = false;
  out.add(mask->inside);
  if (mask->rest) walk_rest(*mask->rest, group.parents, level, {}, out);
  return true;
}

// For so many bytes more of what is kept of frames with calls; all of it goes at once.
void Walker::make_recursive_room(std::size_t bytes) {
  if (recursive_bytes_ + bytes > limits_.mask_cache_bytes) {
    recursive_.clear();
    levelless_.clear();
    calling_.clear();
    items_.clear();
    recursive_bytes_ = 0;
  }
  recursive_bytes_ += bytes;
}

std::shared_ptr<const Walker::RecursiveMask> Walker::recursive_frame(const Trie& trie,
                                                                     const RecursiveKey& key,
                                                                     std::size_t level) {
  if (const auto known = recursive_.find(key); known != recursive_.end()) {
    if (known->second.by_level) machine_.tell_level();
    return known->second.mask;
  }
  const Levelless& form = store_.without_levels(key.term);
  const bool sharable = form.levels && form.exact;
  const SharedKey shared{key.trie, key.node, form.hash, key.scope, key.all};
  if (sharable) {
    if (const auto known = levelless_.find(shared); known != levelless_.end()) return known->second;
  }
  const std::uint64_t told = machine_.levels_told();
  std::shared_ptr<const RecursiveMask> made;
  std::size_t bytes = kRecursiveBytes;
  const ByteSet live =
      key.scope != Scope::Own ? first_live(key.term) : store_.class_map(store_.row(key.term)).live;
  if (reach({&trie, key.node}, live) >= kShortWalk) made = study_recursive(trie, key, level);
  if (made != nullptr) {
    bytes += made->inside.memory();
    if (made->inside.base()) bytes += index_.words() * sizeof(Word);
  }
  make_recursive_room(bytes);
  const bool by_level = machine_.levels_told() != told;
  if (sharable && !by_level) {
    levelless_.emplace(shared, made);
  } else {
    recursive_.emplace(key, KeptRecursive{made, by_level});
  }
  return made;
}

// Where the term may be empty, what follows stands beside it as a group of its own.
std::shared_ptr<const Walker::RecursiveMask> Walker::study_recursive(const Trie& trie,
                                                                     const RecursiveKey& key,
                                                                     std::size_t level) {
  Ends ends(*this, key.all);
  MaskBuilder blank(index_.words(), index_.shared_bits());
  Part part(*this, blank, false);
  Groups& groups = groups_at(level);
  groups.clear();
  groups.text = kNoText;
  ++stats_.frames_made;
  if (key.scope == Scope::Calls) {
    apply_called({&trie, key.node}, key.term, level, part.bits());
  } else {
    groups.items.push_back({key.term, Machine::kBottomSet});
    if (key.scope == Scope::Flat) machine_.close_calls(groups, trie.bytes_below(key.node));
  }
  if (key.scope == Scope::Own) {
    descend(trie, key.node, level, {}, part.bits());
  } else {
    walk(trie, key.node, level, {}, part.bits());
  }
  std::vector<Entry>& found = ends.found;
  noted_ += found.size();
  if (found.size() > kMostEnds) return nullptr;
  std::erase_if(found, [&](const Entry& entry) { return part.bits().has(entry.token); });
  const auto place = [](const Entry& entry) {
    return (std::uint64_t{entry.token} << 32) | entry.start;
  };
  std::ranges::sort(found, {}, place);
  const auto twins = std::ranges::unique(found, {}, place);
  found.erase(twins.begin(), twins.end());
  auto mask = std::make_shared<RecursiveMask>();
  mask->inside = part.bits().finish();
  mask->left_out = ends.left_out;
  if (!found.empty()) mask->rest = index_.keep_trie(std::move(found));
  return mask;
}

// What a term's calls say at a place, before the bottom; the groups of the level are what is left.
void Walker::apply_called(Place place, Term t, std::size_t level, MaskBuilder& out) {
  const ByteSet below = place.trie->bytes_below(place.node);
  Groups& groups = levels_[level];
  for (std::size_t i = 0; i < store_.first_calls(t).size(); ++i) {
    const FirstCall call = store_.first_calls(t)[i];
    if (!machine_.may_begin(store_.body(call.rule, call.param), below)) continue;
    const Term body = machine_.enter(call.rule, call.param);
    const Group called{body, machine_.push(call.rest, Machine::kBottomSet)};
    // What differs by level is put together from what does not.
    const Scope scope = store_.without_levels(body).levels ? Scope::Calls : Scope::Flat;
    if (!apply_recursive(place, called, scope, level + 1, out)) machine_.add_group(groups, called);
  }
  machine_.close_calls(groups, below);
  // Its own bytes.
  if (!store_.class_map(store_.row(t)).live.empty())
    machine_.add_group(groups, {t, Machine::kBottomSet});
}

}  // namespace grammaton
