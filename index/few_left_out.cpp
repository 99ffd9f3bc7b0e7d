// Names but keywords: a regular term less a few texts, where it may end after any letter.
//
// `X & ~A` has the mask of X but on the paths along texts of A, mostly some keywords. A pair walk
// (walk.cpp) can't tell, since both may end on the way and go on with what follows. So only where
// one may end and the other may not, all that the tokens below make of the term is found anew.
#include "index/walk.hpp"

namespace grammaton {

namespace {

// Nodes where the two differ, and those below which the mask is made anew: with more of them the
// term is worth a frame of its own.
constexpr std::size_t kMostDiffering = 512;
constexpr std::size_t kMostRedone = 12;

}  // namespace

bool Walker::apply_but_few(Place place, const Group& group, std::size_t level, bool blank,
                           MaskBuilder& out) {
  if (store_.node(group.term).kind != Kind::Intersect) return false;
  std::vector<Term> kept;
  for (const Term operand : store_.operands(group.term)) {
    const Node n = store_.node(operand);
    if (n.kind != Kind::Complement || store_.has(n.a, kEndless)) kept.push_back(operand);
  }
  if (kept.empty() || kept.size() == store_.operands(group.term).size()) return false;
  const Term reference = store_.intersect(std::move(kept));
  const Trie& trie = *place.trie;
  struct Pair {
    std::uint32_t node;
    Term term;
    Term other;
  };
  std::vector<Pair> stack{{place.node, group.term, reference}};
  std::vector<std::uint32_t> redone;
  for (std::size_t differing = 0; !stack.empty();) {
    const Pair at = stack.back();
    stack.pop_back();
    const Row row = store_.row(at.term);
    const Row other_row = store_.row(at.other);
    const ClassMap map = store_.class_map(row);  // by value: what is made below may move them
    const ClassMap other_map = store_.class_map(other_row);
    const Trie::Node& here = trie.node(at.node);
    for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
      const unsigned byte = trie.byte(child);
      const Term next = store_.target(row, map.of[byte]);
      const Term other = store_.target(other_row, other_map.of[byte]);
      if (next == other) continue;
      if (++differing > kMostDiffering) return false;
      count_nodes(stats_.pair_nodes);
      const bool alike =
          next != kNothing && other != kNothing &&
          store_.nullable(next) == store_.nullable(other) &&
          (store_.at_token_end(next) == kNothing) == (store_.at_token_end(other) == kNothing);
      if (alike) {
        stack.push_back({child, next, other});
      } else {
        redone.push_back(child);
        if (redone.size() > kMostRedone) return false;
      }
    }
  }
  Part part(*this, out, blank);
  if (!apply_frame(place, {reference, group.parents}, level, true, part.bits())) {
    part.drop();
    return false;
  }
  ++stats_.pair_walks;
  for (const std::uint32_t node : redone) redo(place, node, group, level, part.bits());
  part.join();
  return true;
}

// Makes `out` below a node, itself included, what the group makes of it.
void Walker::redo(Place place, std::uint32_t node, const Group& group, std::size_t level,
                  MaskBuilder& out) {
  const Trie& trie = *place.trie;
  const Trie::Node& below = trie.node(node);
  for (const Entry& entry : trie.entries(below.entry_begin, below.subtree_entry_end))
    out.unset(entry.token);
  const Entry& any = trie.entry(below.entry_begin);
  const std::size_t depth = trie.node(place.node).depth;
  const std::string_view path =
      index_.token(any.token).substr(any.start + depth, below.depth - depth);
  groups_at(level + 1);
  Groups& groups = levels_[level];
  groups.clear();
  groups.items.push_back(group);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    if (i > 0) machine_.close(groups, ByteSet::of(byte));
    machine_.step(groups, byte, levels_[level + 1]);
    std::swap(groups, levels_[level + 1]);
  }
  if (!groups.items.empty()) enter(trie, node, level, {}, out);
}

}  // namespace grammaton
