// Walking a trie of keys beside the trie of the vocabulary (grammar/key_trie.cpp has the former).
//
// A group that may only spell a few texts, each with its own continuation, is followed along those
// spellings: no row and no term is made before a text is complete, where the ordinary walk goes on.
#include "index/spellings.hpp"
#include "index/walk.hpp"

namespace grammaton {

bool Walker::apply_keys(Place place, const Group& group, std::size_t level, MaskBuilder& out) {
  if (const std::optional<KeyText> key = store_.key_text(group.term)) {
    const KeyPlace at{*place.trie, group.parents, level, out};
    walk_text(at, place.node, key->text, key->rest);
    return true;
  }
  if (store_.is_members(group.term)) {
    walk_members({*place.trie, group.parents, level, out}, place.node, store_.members(group.term));
    return true;
  }
  const Term keys = store_.as_keys(group.term);
  if (keys == kNothing) return false;
  walk_keys({*place.trie, group.parents, level, out}, place.node, keys);
  return true;
}

void Walker::walk_keys(const KeyPlace& at, std::uint32_t node, Term keys) {
  const std::size_t count = store_.operands(keys).size();
  for (std::size_t i = 0; i < count; i += 2) {
    // Fetched anew each time: the walk of a continuation makes terms.
    const std::uint32_t byte = store_.operands(keys)[i];
    const Term residual = store_.operands(keys)[i + 1];
    if (byte < 0x20 || byte == '"' || byte == '\\' || store_.is_empty(residual)) continue;
    const std::uint32_t child = at.trie.child(node, static_cast<std::uint8_t>(byte));
    if (child != Trie::kRoot) enter_key(at, child, residual);
  }
  if (!store_.at_key_character(keys) || at.trie.child(node, '\\') == Trie::kRoot) return;
  const std::vector<Term> characters = store_.key_characters(keys);
  auto pass = [&](std::uint32_t inside) { take_inside(at, inside); };
  for (std::size_t i = 0; i < characters.size(); i += 2) {
    if (store_.is_empty(characters[i + 1])) continue;
    auto done = [&](std::uint32_t end) { enter_key(at, end, characters[i + 1]); };
    EscapeSearch(at.trie, pass, done).run(node, characters[i]);
  }
}

// Takes the tokens that end inside a character's spellings; `done` is called where one is complete.
template <typename Done>
void Walker::walk_character(const KeyPlace& at, std::uint32_t node, const Character& character,
                            bool escapes, Done&& done) {
  if (character.stands_for_itself()) {
    std::uint32_t child = node;
    for (std::size_t i = 0; i < character.bytes.size(); ++i) {
      if (i > 0) take_inside(at, child);
      child = at.trie.child(child, static_cast<std::uint8_t>(character.bytes[i]));
      if (child == Trie::kRoot) break;
    }
    if (child != Trie::kRoot) done(child);
  }
  if (!escapes) return;
  auto pass = [&](std::uint32_t inside) { take_inside(at, inside); };
  EscapeSearch(at.trie, pass, done).run(node, character.code);
}

// The same for one text, of which nothing has to be made.
void Walker::walk_text(const KeyPlace& at, std::uint32_t node, std::string_view text, Term rest) {
  const Character first(text);
  // Only the raw rest of a character that is under way counts.
  const bool escapes = (static_cast<std::uint8_t>(text[0]) & 0xC0) != 0x80;
  walk_character(at, node, first, escapes, [&](std::uint32_t end) {
    if (first.bytes.size() == text.size()) {
      enter_key(at, end, rest);
    } else {
      take_inside(at, end);
      walk_text(at, end, text.substr(first.bytes.size()), rest);
    }
  });
}

// The same for members, a character at a time; they stand before one.
void Walker::walk_members(const KeyPlace& at, std::uint32_t node, Members members) {
  const bool escapes = at.trie.child(node, '\\') != Trie::kRoot;
  while (members.begin < members.end) {
    const Character next(store_.member_text(members, members.begin));
    Members same = members;
    while (++members.begin < members.end &&
           store_.member_text(members, members.begin).starts_with(next.bytes)) {
    }
    same.end = members.begin;
    same.depth += static_cast<std::uint32_t>(next.bytes.size());
    walk_character(at, node, next, escapes,
                   [&](std::uint32_t end) { enter_members(at, end, same); });
  }
}

// Goes on at `child`, where some of the members may be complete.
void Walker::enter_members(const KeyPlace& at, std::uint32_t child, Members members) {
  for (; members.begin < members.end && store_.member_text(members, members.begin).empty();
       ++members.begin) {
    enter_residual(at, child, store_.after_key(members, members.begin));
  }
  if (members.begin == members.end) return;
  take_inside(at, child);
  const Trie::Node& here = at.trie.node(child);
  if (here.child_begin != here.child_end) walk_members(at, child, members);
}

// Takes the tokens that end inside a text.
void Walker::take_inside(const KeyPlace& at, std::uint32_t node) {
  count_nodes(stats_.walk_nodes);
  for (const Entry& entry : at.trie.entries_at(node)) at.out.set(entry.token);
}

// Takes the tokens that end at `child`, where `residual` is left, and goes on below it.
void Walker::enter_key(const KeyPlace& at, std::uint32_t child, Term residual) {
  if (store_.is_members(residual)) {
    enter_members(at, child, store_.members(residual));
    return;
  }
  if (store_.between_key_characters(residual)) {
    take_inside(at, child);
    walk_keys(at, child, residual);
    return;
  }
  if (const std::optional<KeyText> key = store_.key_text(residual)) {
    take_inside(at, child);
    const Trie::Node& here = at.trie.node(child);
    if (here.child_begin != here.child_end) walk_text(at, child, key->text, key->rest);
    return;
  }
  if (store_.node(residual).kind == Kind::Union) {  // one key begins another
    const std::size_t count = store_.operands(residual).size();
    for (std::size_t i = 0; i < count; ++i) {
      enter_key(at, child, store_.operands(residual)[i]);
    }
    return;
  }
  enter_residual(at, child, residual);
}

void Walker::enter_residual(const KeyPlace& at, std::uint32_t child, Term residual) {
  count_nodes(stats_.walk_nodes);
  Groups& groups = groups_at(at.level);
  groups.clear();
  groups.items.push_back({residual, at.parents});
  enter(at.trie, child, at.level, {}, at.out);
}

}  // namespace grammaton
