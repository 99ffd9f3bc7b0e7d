// The declared keys of an object, as a list of its rule's alternatives.
//
// What may follow a member is a union over all members that are left, json(k)·"·(its value and what
// follows), and each place in an object has its own. Made as a union it took ten terms a key and a
// microsecond each, at every place: 100 us of the 150 for a mask in an object of a hundred keys, of
// which a text looks at one. So the texts of keys are read once, when the rule is defined, and a
// body has one term, Members: which alternatives are left, a range of them in the order of their
// texts, and how many bytes of those are behind. Its row is that of one node of the trie of keys
// (key_trie.cpp), whose residuals are Members again; the rest of a member is made when its key is
// complete.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kMostMembers = 0xFFFF;  // a range is two halves of a word

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

// Takes the alternatives that begin with the same terms and then a key together; split_after_key()
// has been there.
void TermStore::group_members(RuleInfo& info) const {
  for (std::uint32_t i = 0; i < info.alternatives.size(); ++i) {
    const Alternative& alternative = info.alternatives[i];
    if (alternative.next == kNone || alternative.tail != kEmpty || !alternative.updates.empty())
      continue;
    std::vector<Term> prefix;
    Term rest = alternative.head;
    std::optional<KeyText> key;
    for (; nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b) {
      key = key_text(nodes_[rest].a);
      if (key) break;
      prefix.push_back(nodes_[rest].a);
    }
    if (!key || nodes_[nodes_[rest].b].kind != Kind::Bytes) continue;
    auto group = std::ranges::find_if(info.members, [&](const MemberGroup& g) {
      return g.prefix == prefix && g.quote == nodes_[rest].b;
    });
    if (group == info.members.end()) {
      group = info.members.insert(group, MemberGroup{std::move(prefix), nodes_[rest].b, {}});
    }
    if (group->keys.size() == kMostMembers) continue;
    group->keys.push_back({std::move(key->text), nodes_[nodes_[rest].a].a, i});
  }
  std::erase_if(info.members, [](const MemberGroup& g) { return g.keys.size() < 2; });
  for (MemberGroup& group : info.members) {
    std::ranges::sort(group.keys, {}, &MemberGroup::Key::text);
    for (const MemberGroup::Key& key : group.keys) info.alternatives[key.alternative].listed = true;
  }
}

// The members of a group that are left with a parameter.
Term TermStore::members_left(Rule rule, Param param, std::uint32_t group) {
  MemberList left{rule, param, group, {}};
  const std::size_t count = rules_[rule].members[group].keys.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Alternative& alternative =
        rules_[rule].alternatives[rules_[rule].members[group].keys[i].alternative];
    if (!holds(alternative, param)) continue;
    if (check_templates_ && !can_end(alternative.next, param)) continue;
    left.keys.push_back(i);
  }
  if (left.keys.empty()) return kNothing;
  const auto size = static_cast<std::uint32_t>(left.keys.size());
  member_lists_.push_back(std::move(left));
  const Term members =
      this->members(static_cast<std::uint32_t>(member_lists_.size() - 1), {0, size}, 0);
  std::vector<Term> items = rules_[rule].members[group].prefix;
  items.push_back(members);
  return concat(items);
}

Term TermStore::members(std::uint32_t list, KeyRange range, std::uint32_t depth) {
  if (range.end - range.begin == 1) {
    const MemberGroup::Key& key = member_key(list, range.begin);
    return key_tail({key.text, after_key(list, range.begin), key.literal}, depth);
  }
  return intern(Kind::Members, kHasCall | kEndless, list, range.begin | (range.end << 16), depth);
}

const MemberGroup::Key& TermStore::member_key(std::uint32_t list, std::uint32_t i) const {
  const MemberList& members = member_lists_[list];
  return rules_[members.rule].members[members.group].keys[members.keys[i]];
}

// What follows the text of a key.
Term TermStore::after_key(std::uint32_t list, std::uint32_t i) {
  const MemberList& members = member_lists_[list];
  const Rule rule = members.rule;
  const Term quote = rules_[rule].members[members.group].quote;
  const std::uint32_t alternative = member_key(list, i).alternative;
  return concat(quote, call(rules_[rule].alternatives[alternative].next, members.param));
}

// What is left of members after a byte that all of the range have next, their texts being `depth`
// long with it.
Term TermStore::members_after(std::uint32_t list, KeyRange range, std::uint32_t depth) {
  std::vector<Term> terms;
  for (; range.begin < range.end && member_key(list, range.begin).text.size() == depth;
       ++range.begin) {
    terms.push_back(after_key(list, range.begin));
  }
  if (range.begin < range.end) {
    // Inside a character, residuals are tries: escapes are read off them (key_characters()).
    const bool inside = range.end - range.begin > 1 &&
                        continues_character(member_key(list, range.begin).text[depth]);
    terms.push_back(inside ? keys(member_edges(list, range, depth), 0)
                           : members(list, range, depth));
  }
  return terms.size() == 1 ? terms[0] : join(std::move(terms));
}

// The members of a range whose next byte is that of the first.
TermStore::KeyRange TermStore::alike(std::uint32_t list, KeyRange range,
                                     std::uint32_t depth) const {
  const char byte = member_key(list, range.begin).text[depth];
  std::uint32_t end = range.begin + 1;
  while (end < range.end && member_key(list, end).text[depth] == byte) ++end;
  return {range.begin, end};
}

std::vector<Term> TermStore::member_edges(std::uint32_t list, KeyRange range, std::uint32_t depth) {
  std::vector<Term> edges;
  while (range.begin < range.end) {
    const KeyRange same = alike(list, range, depth);
    edges.push_back(static_cast<unsigned char>(member_key(list, range.begin).text[depth]));
    edges.push_back(members_after(list, same, depth + 1));
    range.begin = same.end;
  }
  return edges;
}

std::vector<std::string_view> TermStore::member_texts(Term t) const {
  const Node& n = nodes_[t];
  std::vector<std::string_view> texts;
  for (std::uint32_t i = n.b & 0xFFFF; i < n.b >> 16; ++i)
    texts.push_back(std::string_view(member_key(n.a, i).text).substr(n.c));
  return texts;
}

// A Members term as one node of the trie of its keys.
Term TermStore::members_as_keys(Term t) {
  const Node n = nodes_[t];
  return keys(member_edges(n.a, {n.b & 0xFFFF, n.b >> 16}, n.c), 0);
}

Term TermStore::step_members(Term t, unsigned char byte) {
  const Node n = nodes_[t];
  KeyRange range{n.b & 0xFFFF, n.b >> 16};
  while (range.begin < range.end) {
    const KeyRange same = alike(n.a, range, n.c);
    if (static_cast<unsigned char>(member_key(n.a, same.begin).text[n.c]) == byte)
      return members_after(n.a, same, n.c + 1);
    range.begin = same.end;
  }
  return kNothing;
}

}  // namespace grammaton
