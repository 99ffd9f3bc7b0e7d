// What a piece of text leaves of a key or a counted string, in one go.
//
// Stepped byte by byte, a key makes a row a byte, and each row has terms for the spellings with a
// backslash, which hardly any text goes on with: 4 us a byte beside fifteen declared keys. Bytes
// that stand for themselves can be compared with the texts instead. X{m,n} q makes a row a byte
// too, with terms for characters of many bytes (2.5 us); bytes that are each an X can be counted.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

// Pieces of keys whose ends are remembered; undeclared keys make new ones for ever.
constexpr std::size_t kMostKept = 4096;

}  // namespace

bool TermStore::leaps(Term t) const {
  const Node& n = nodes_[t];
  const Node& head = nodes_[n.kind == Kind::Concat ? n.a : t];
  if (head.kind == Kind::Members) return true;
  if (head.kind == Kind::Keys) return head.b == 0;
  if (head.kind == Kind::Repeat) return head.b != 0 || head.c != kUnbounded;
  return head.kind == Kind::Json && head.b == 0 && head.c == 0 &&
         (has(t, kStepwise) || !has(head.a, kEndless));
}

std::optional<Term> TermStore::leap(Term t, std::string_view text) {
  if (!leaps(t)) return leap_bytewise(t, text);
  const Node& n = nodes_[t];
  if (nodes_[n.kind == Kind::Concat ? n.a : t].kind == Kind::Repeat) return leap_items(t, text);
  std::string key(text);
  key.append(reinterpret_cast<const char*>(&t), sizeof t);
  if (const auto found = leapt_.find(key); found != leapt_.end()) return found->second;
  const std::optional<Term> after = leap_key(t, text);
  if (leapt_.size() == kMostKept) leapt_.clear();
  if (after) leapt_.emplace(std::move(key), *after);
  return after;
}

std::optional<Term> TermStore::leap_bytewise(Term t, std::string_view text) {
  for (std::size_t i = 0; i < text.size() && t != kNothing; ++i) {
    if (i > 0 && (nullable(t) || has(t, kFirstCall))) return std::nullopt;
    t = step_lazily(t, static_cast<unsigned char>(text[i]));
  }
  return t;
}

std::optional<Term> TermStore::leap_items(Term t, std::string_view text) {
  const Node n = nodes_[t];
  const Node items = nodes_[n.kind == Kind::Concat ? n.a : t];
  const Term rest = n.kind == Kind::Concat ? n.b : kEmpty;
  const bool bounded = items.c != kUnbounded;
  // It must not end, or begin with a call, before all of the text is taken.
  if ((bounded && items.c < text.size()) || nullable(rest) || has(rest, kFirstCall)) {
    return leap_bytewise(t, text);
  }
  const ByteSet elsewhere = class_map(row(rest)).live;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (elsewhere.has(byte) || step(items.a, byte) != kEmpty) return leap_bytewise(t, text);
  }
  const auto count = static_cast<std::uint32_t>(text.size());
  return concat(
      repeat(items.a, items.b - std::min(items.b, count), bounded ? items.c - count : kUnbounded),
      rest);
}

std::optional<Term> TermStore::leap_key(Term t, std::string_view text) {
  if (const std::optional<AllBut> form = all_but(t)) {
    const Node& tail = nodes_[form->tail];
    if ((tail.kind == Kind::Concat ? tail.a : form->tail) != byte('"')) return std::nullopt;
    std::vector<std::string> left;
    for (const std::string& excluded : form->of->texts) {
      if (excluded.starts_with(text)) left.push_back(excluded.substr(text.size()));
    }
    if (left.empty()) return any_json_then(form->tail);
    return concat(json(intersect({any_text(), raw_complement(literals(std::move(left)))})),
                  form->tail);
  }
  Term after = t;
  std::size_t at = 0;
  while (at < text.size() && (between_key_characters(after) || is_members(after))) {
    if (is_members(after)) {
      after = step_members(after, static_cast<unsigned char>(text[at++]));
      continue;
    }
    const std::span<const Term> edges = operands(after);
    std::size_t i = 0;
    while (i < edges.size() && edges[i] != static_cast<unsigned char>(text[at])) i += 2;
    if (i == edges.size()) return kNothing;
    after = edges[i + 1];
    ++at;
  }
  text.remove_prefix(at);
  if (!text.empty()) {
    if (nullable(after) || has(after, kFirstCall)) return std::nullopt;
    std::vector<KeyEntry> entries;
    if (!merge_keys_ || !add_entries(after, 1, entries)) return leap_bytewise(after, text);
    const std::string& key = entries[0].text;
    if (key.size() < text.size()) return leap_bytewise(after, text);
    if (!key.starts_with(text)) return kNothing;
    after = key.size() == text.size() ? entries[0].rest : key_tail(entries[0], text.size());
  }
  return has(after, kMaybeEmpty) && is_empty(after) ? kNothing : after;
}

}  // namespace grammaton
