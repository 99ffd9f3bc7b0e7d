// Walking a trie of keys beside the trie of the vocabulary (grammar/key_trie.cpp has the former).
//
// A group that may only spell a few texts, each with its own continuation, is followed along those
// spellings: no row and no term is made before a text is complete, where the ordinary walk goes on.
#include "index/spellings.hpp"
#include "index/walk.hpp"

namespace grammaton {

bool Walker::apply_keys(Place place, const Group& group, std::size_t level, Word* out) {
  if (!store_.between_key_characters(group.term)) return false;
  walk_keys(*place.trie, place.node, group.term, group.parents, level, out);
  return true;
}

void Walker::walk_keys(const Trie& trie, std::uint32_t node, Term keys, SetId parents,
                       std::size_t level, Word* out) {
  const std::size_t count = store_.operands(keys).size();
  for (std::size_t i = 0; i < count; i += 2) {
    // Fetched anew each time: the walk of a continuation makes terms.
    const std::uint32_t byte = store_.operands(keys)[i];
    const Term residual = store_.operands(keys)[i + 1];
    if (byte < 0x20 || byte == '"' || byte == '\\' || store_.is_empty(residual)) continue;
    const std::uint32_t child = trie.child(node, static_cast<std::uint8_t>(byte));
    if (child != Trie::kRoot) enter_key(trie, child, residual, parents, level, out);
  }
  if (!store_.at_key_character(keys) || trie.child(node, '\\') == Trie::kRoot) return;
  const std::vector<Term> characters = store_.key_characters(keys);
  auto pass = [&](std::uint32_t inside) {
    count_nodes(stats_.walk_nodes);
    for (const Entry& entry : trie.entries_at(inside)) set_bit(out, entry.token);
  };
  for (std::size_t i = 0; i < characters.size(); i += 2) {
    if (store_.is_empty(characters[i + 1])) continue;
    auto done = [&](std::uint32_t end) {
      enter_key(trie, end, characters[i + 1], parents, level, out);
    };
    EscapeSearch(trie, pass, done).run(node, characters[i]);
  }
}

// Takes the tokens that end at `child`, where `residual` is left, and goes on below it.
void Walker::enter_key(const Trie& trie, std::uint32_t child, Term residual, SetId parents,
                       std::size_t level, Word* out) {
  count_nodes(stats_.walk_nodes);
  if (store_.between_key_characters(residual)) {
    for (const Entry& entry : trie.entries_at(child)) set_bit(out, entry.token);
    const Trie::Node& here = trie.node(child);
    if (here.child_begin != here.child_end) {
      walk_keys(trie, child, residual, parents, level, out);
    }
    return;
  }
  if (store_.node(residual).kind == Kind::Union) {  // one key begins another
    const std::size_t count = store_.operands(residual).size();
    for (std::size_t i = 0; i < count; ++i) {
      enter_key(trie, child, store_.operands(residual)[i], parents, level, out);
    }
    return;
  }
  Groups& groups = groups_at(level);
  groups.clear();
  groups.items.push_back({residual, parents});
  enter(trie, child, level, {}, out);
}

}  // namespace grammaton
