// Making frame masks: the walk of one regular term over a subtree, its exits, its item counts.
#include <algorithm>
#include <array>
#include <tuple>

#include "index/walk.hpp"

namespace grammaton {

namespace {

// Bases with at most this many tokens are kept as a list: 4 kB against 16 kB of bits at 128k
// tokens.
constexpr std::size_t kSparseTokens = 1024;
// Counted bases are kept ready up to this many items; only some 200 of 129k tokens have more.
constexpr std::uint32_t kReadyCounts = 32;

}  // namespace

std::shared_ptr<const FrameMask> Walker::known_frame(Place place, Term t) {
  const auto found = frames_.find({place.trie->uid(), place.node, t});
  if (found != frames_.end()) return found->second;
  std::shared_ptr<const FrameMask> mask =
      index_.find({place.trie->uid(), place.node, store_.node(t).hash});
  if (mask != nullptr) {
    // References kept here outlive an eviction from the vocabulary's cache; they are bounded too.
    if (frame_bytes_ + mask->memory() > limits_.mask_cache_bytes) {
      frames_.clear();
      frame_bytes_ = 0;
    }
    frame_bytes_ += mask->memory();
    frames_.emplace(FrameKey{place.trie->uid(), place.node, t}, mask);
  }
  return mask;
}

std::shared_ptr<const FrameMask> Walker::frame(Place place, Term t) {
  std::shared_ptr<const FrameMask> mask = known_frame(place, t);
  if (mask == nullptr) {
    ++stats_.frames_made;
    mask = index_.keep({place.trie->uid(), place.node, store_.node(t).hash}, study(place, t));
  }
  return mask;
}

std::shared_ptr<const FrameMask> Walker::study(Place place, Term t) {
  const Trie& trie = *place.trie;
  // Items are counted where t is X* q: each transition of t itself begins one, except into q.
  const Counted* form = counted_form(t);
  const bool counting = form != nullptr && form->reference == t && trie.unique();
  ByteSet item_starts;
  if (counting) {
    const Node n = store_.node(t);
    const Term head = n.kind == Kind::Concat ? n.a : t;
    item_starts = store_.class_map(store_.row(store_.node(head).a)).live;
  }

  struct Visit {
    std::uint32_t node;
    Term term;
    std::uint32_t items;
  };
  std::vector<Word> bits(index_.words(), 0);
  std::vector<std::uint32_t> tokens;
  std::vector<Visit> exits;
  ItemCounts counts;
  std::vector<Visit> stack{{place.node, t, 0}};
  const bool restricted = store_.restricted();
  std::array<std::uint8_t, 256> moved;
  while (!stack.empty()) {
    const Visit at = stack.back();
    stack.pop_back();
    const Trie::Node& here = trie.node(at.node);
    const Row row = store_.row(at.term);
    // Only a restricted store computes rows in the loop below, which may move the class maps.
    if (restricted) moved = store_.class_map(row).of;
    const std::uint8_t* of = restricted ? moved.data() : store_.class_map(row).of.data();
    // Last child first onto the stack, so that nodes are visited in the order they lie in memory.
    for (std::uint32_t child = here.child_end; child-- > here.child_begin;) {
      const std::uint8_t byte = trie.byte(child);
      if (of[byte] == 0) continue;
      const Term next = store_.target(row, of[byte]);
      count_nodes(stats_.study_nodes);
      const std::uint32_t items =
          at.items + (counting && at.term == t && item_starts.has(byte) ? 1 : 0);
      const Trie::Node& below = trie.node(child);
      if (below.entry_begin != below.entry_end &&
          (!restricted || store_.at_token_end(next) != kNothing)) {
        for (const Entry& entry : trie.entries_at(child)) {
          if (trie.unique() || !get_bit(bits.data(), entry.token)) tokens.push_back(entry.token);
          set_bit(bits.data(), entry.token);
          if (counting)
            (next == kEmpty ? counts.ending : counts.inside).push_back({items, entry.token});
        }
      }
      if (below.child_begin == below.child_end) continue;
      const Visit visit{child, next, items};
      if (store_.nullable(next)) exits.push_back(visit);
      stack.push_back(visit);
    }
  }

  auto mask = std::make_shared<FrameMask>();
  std::vector<Entry> remainders;
  for (const Visit& exit : exits) {
    const Trie::Node& below = trie.node(exit.node);
    for (const Entry& entry : trie.entries(below.entry_end, below.subtree_entry_end)) {
      // In the base whatever follows, unless counting takes it out again.
      if (!counting && get_bit(bits.data(), entry.token)) continue;
      remainders.push_back({entry.token, entry.start + below.depth, exit.items});
    }
  }
  if (!remainders.empty()) {
    mask->rest = std::make_unique<Trie>(
        std::move(remainders), [this](std::uint32_t token) { return index_.token(token); });
  }
  const bool dense = tokens.size() > kSparseTokens;
  if (counting) {
    std::ranges::sort(counts.inside, [](const ItemCounts::Taken& a, const ItemCounts::Taken& b) {
      return std::tie(b.items, b.token) < std::tie(a.items, a.token);
    });
    if (dense) {
      std::vector<Word> most(index_.words(), 0);
      std::size_t next = counts.inside.size();
      for (std::uint32_t n = 0; n <= kReadyCounts; ++n) {
        for (; next > 0 && (n == kReadyCounts || counts.inside[next - 1].items <= n); --next) {
          set_bit(most.data(), counts.inside[next - 1].token);
        }
        counts.most.push_back(most);
      }
    }
    mask->counts = std::move(counts);
  }
  if (dense) {
    mask->dense = std::move(bits);
  } else {
    mask->sparse = std::move(tokens);
  }
  return mask;
}

}  // namespace grammaton
