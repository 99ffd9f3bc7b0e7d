// The declared keys of an object, as a list of its rule's alternatives.
//
// What may follow a member is a union over all members that are left, json(k)·"·(its value and what
// follows), and each place in an object has its own. Made as a union it took ten terms a key and a
// microsecond each, at every place: 100 us of the 150 for a mask in an object of a hundred keys, of
// which a text looks at one. So the texts of keys are read once, when the rule is defined, and a
// body has one term, Members: which alternatives are left, a range of them in the order of their
// texts, and how many bytes of those are behind. Its row is that of one node of the trie of keys
// (key_trie.cpp), whose residuals are Members again; masks walk along the texts and make no term
// (index/key_walk.cpp). The rest of a member is made when its key is complete.
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
    if (has_cut_ && !can_end(alternative.next, param)) continue;
    left.keys.push_back(i);
  }
  if (left.keys.empty()) return kNothing;
  const auto size = static_cast<std::uint32_t>(left.keys.size());
  member_lists_.push_back(std::move(left));
  std::vector<Term> items = rules_[rule].members[group].prefix;
  items.push_back(members_term({static_cast<std::uint32_t>(member_lists_.size() - 1), 0, size, 0}));
  return concat(items);
}

Term TermStore::members_term(Members m) {
  if (m.end - m.begin == 1) {
    const MemberGroup::Key& key = member_key(m, m.begin);
    return key_tail({key.text, after_key(m, m.begin), key.literal}, m.depth);
  }
  return intern(Kind::Members, kHasCall | kEndless, m.list, m.begin | (m.end << 16), m.depth);
}

const MemberGroup::Key& TermStore::member_key(const Members& m, std::uint32_t i) const {
  const MemberList& list = member_lists_[m.list];
  return rules_[list.rule].members[list.group].keys[list.keys[i]];
}

Term TermStore::after_key(const Members& m, std::uint32_t i) {
  const MemberList& list = member_lists_[m.list];
  const RuleInfo& info = rules_[list.rule];
  const Term quote = info.members[list.group].quote;
  return concat(quote, call(info.alternatives[member_key(m, i).alternative].next, list.param));
}

// Members whose last byte is behind, all of which had it: complete, or to be gone on with.
Term TermStore::members_after(Members m) {
  std::vector<Term> terms;
  for (; m.begin < m.end && member_text(m, m.begin).empty(); ++m.begin)
    terms.push_back(after_key(m, m.begin));
  if (m.begin < m.end) {
    // Inside a character, residuals are tries: escapes are read off them (key_characters()).
    const bool inside = m.end - m.begin > 1 && continues_character(member_text(m, m.begin)[0]);
    terms.push_back(inside ? keys(member_edges(m), 0) : members_term(m));
  }
  return terms.size() == 1 ? terms[0] : join(std::move(terms));
}

// Those whose next byte is that of the first.
Members TermStore::alike(Members m) const {
  const char byte = member_text(m, m.begin)[0];
  const std::uint32_t end = m.end;
  for (m.end = m.begin + 1; m.end < end && member_text(m, m.end)[0] == byte;) ++m.end;
  return m;
}

std::vector<Term> TermStore::member_edges(Members m) {
  std::vector<Term> edges;
  while (m.begin < m.end) {
    const Members same = alike(m);
    edges.push_back(static_cast<unsigned char>(member_text(m, m.begin)[0]));
    edges.push_back(members_after({same.list, same.begin, same.end, same.depth + 1}));
    m.begin = same.end;
  }
  return edges;
}

Term TermStore::step_members(Term t, unsigned char byte) {
  for (Members m = members(t); m.begin < m.end;) {
    const Members same = alike(m);
    if (static_cast<unsigned char>(member_text(m, m.begin)[0]) == byte)
      return members_after({same.list, same.begin, same.end, same.depth + 1});
    m.begin = same.end;
  }
  return kNothing;
}

}  // namespace grammaton
