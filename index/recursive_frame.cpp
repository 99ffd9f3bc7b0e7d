// Frames with calls.
//
// What a group (t, K) says before K does not depend on K, also where t calls rules: the tokens
// inside t, what it calls included, and the remainders of those in which it ends. Such a mask is
// made by walking (t, bottom) and noting where the bottom is reached. Walks put it together from
// the masks of shorter places: below "(" an expression begins like anywhere else. It belongs to a
// constraint, since rules have no name outside of one; the tries of remainders are the
// vocabulary's.
//
// Remainders are of two kinds, as those of other frames (remainders.hpp). Of those that the frame
// could go on with, only such are listed as begin with a byte that is wanted: after a name and
// before a comma that may be the last, commas, and no letters.
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
// Sets of bytes that are told apart, with none and all of them.
constexpr std::size_t kMostWanted = 24;
constexpr std::uint32_t kAllWanted = 1;

}  // namespace

struct Walker::Ends {
  Ends(Walker& walker, const ByteSet& wanted)
      : wanted(wanted), walker_(walker), outer_(walker.ends_) {
    walker.ends_ = this;
  }
  ~Ends() { walker_.ends_ = outer_; }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  ByteSet wanted;  // remainders that begin so are, also where the frame could go on with them
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
    const std::uint8_t byte = trie.byte(child);
    if (live.has(byte) && !ends_->wanted.has(byte)) {
      ends_->left_out.add(byte);
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

// The bytes of those that a frame left out with which what follows can begin.
ByteSet Walker::wanted(const ByteSet& left_out, SetId parents, std::size_t level) {
  if (left_out.empty()) return {};
  const Follow follow = first_bytes(parents, level);
  ByteSet live = follow.live;
  if (ends_ != nullptr && follow.ended) {
    live = live | ends_->wanted;
    ends_->left_out = ends_->left_out | left_out.without(ends_->wanted);
  }
  return left_out & live;
}

Walker::WantedId Walker::wanted_id(const ByteSet& bytes) {
  const auto known = std::ranges::find(wanted_, bytes);
  if (known == wanted_.end() && wanted_.size() >= kMostWanted) return kAllWanted;
  const auto id = static_cast<WantedId>(known - wanted_.begin());
  if (known == wanted_.end()) wanted_.push_back(bytes);
  return id;
}

// Puts in what a frame with calls decides by itself and what follows it; `find` has its masks, by
// what is wanted.
template <typename Find>
bool Walker::apply_found(Find&& find, SetId parents, std::size_t level, MaskBuilder& out) {
  std::shared_ptr<const RecursiveMask> mask = find(0);
  if (mask == nullptr) return false;
  if (const ByteSet more = wanted(mask->left_out, parents, level); !more.empty()) {
    mask = find(wanted_id(more));
    if (mask == nullptr) return false;
  }
  blank_ = false;
  out.add(mask->inside);
  if (mask->rest) walk_rest(*mask->rest, parents, level, {}, out);
  return true;
}

bool Walker::apply_recursive(Place place, const Group& group, Scope scope, std::size_t level,
                             MaskBuilder& out) {
  if (!rehearsed_) return false;
  const auto find = [&](WantedId wanted) {
    const RecursiveKey key{place.trie->uid(), place.node, group.term, scope, wanted};
    return recursive_frame(*place.trie, key, level);
  };
  return apply_found(find, group.parents, level, out);
}

// A body that counts blanks from its level on has another form at each: two of them tell.
void Walker::note_form(const FirstCall& call, const Hash128& hash) {
  const auto [place, is_new] = forms_at_levels_.try_emplace(call.rule, hash, call.param);
  FormAtLevels& form = place->second;
  if (!is_new && form.param != call.param && !form.same) form.same = form.hash == hash;
}

// The same of a call, as far as masks are known of its body at another level of indentation: it is
// not instantiated.
bool Walker::apply_at_levels(Place place, const FirstCall& call, SetId parents, std::size_t level,
                             MaskBuilder& out) {
  if (!store_.alike_at_levels(call.rule, call.param)) return false;
  const auto form = forms_at_levels_.find(call.rule);
  if (form == forms_at_levels_.end() || !form->second.same.value_or(false)) return false;
  const auto find = [&](WantedId wanted) -> std::shared_ptr<const RecursiveMask> {
    const auto known = levelless_.find(
        SharedKey{place.trie->uid(), place.node, form->second.hash, Scope::Calls, wanted});
    return known == levelless_.end() ? nullptr : known->second;
  };
  return apply_found(find, parents, level, out);
}

// For so many bytes more of what is kept of frames with calls; all of it goes at once.
void Walker::make_recursive_room(std::size_t bytes) {
  if (recursive_bytes_ + bytes > limits_.mask_cache_bytes) {
    recursive_.clear();
    levelless_.clear();
    calling_.clear();
    items_.clear();
    recursive_bytes_ = 0;
    ++emptied_;
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
  const SharedKey shared{key.trie, key.node, form.hash, key.scope, key.wanted};
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
  Ends ends(*this, wanted_[key.wanted]);
  const Part part(*this);
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
    const bool begins = store_.rule_info(call.rule).is_template
                            ? machine_.may_begin(store_.body(call.rule, call.param), below)
                            : machine_.may_begin(call, below);
    if (!begins) continue;
    const SetId parents = machine_.push(call.rest, Machine::kBottomSet);
    if (apply_at_levels(place, call, parents, level + 1, out)) continue;
    const Term body = machine_.enter(call.rule, call.param);
    const Group called{body, parents};
    // What differs by level is put together from what does not.
    const Levelless form = store_.without_levels(body);
    const Scope scope = form.levels ? Scope::Calls : Scope::Flat;
    if (form.exact && form.levels && store_.alike_at_levels(call.rule, call.param))
      note_form(call, form.hash);
    if (!apply_recursive(place, called, scope, level + 1, out)) machine_.add_group(groups, called);
  }
  machine_.close_calls(groups, below);
  // Its own bytes.
  if (!store_.class_map(store_.row(t)).live.empty())
    machine_.add_group(groups, {t, Machine::kBottomSet});
}

}  // namespace grammaton
