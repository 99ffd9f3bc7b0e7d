// What a piece of a key leaves of it, in one go.
//
// Stepped byte by byte, a key makes a row a byte, and each row has terms for the spellings with a
// backslash, which hardly any text goes on with: 4 us a byte beside fifteen declared keys. Bytes
// that stand for themselves can be compared with the texts instead.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

bool TermStore::is_key(Term t) const {
  const Node& n = nodes_[t];
  const Node& lift = nodes_[n.kind == Kind::Concat ? n.a : t];
  if (lift.kind == Kind::Keys) return lift.b == 0;
  return lift.kind == Kind::Json && lift.b == 0 && lift.c == 0 &&
         (has(t, kStepwise) || !has(lift.a, kEndless));
}

std::optional<Term> TermStore::leap(Term t, std::string_view text) {
  if (!is_key(t)) return leap_bytewise(t, text);
  std::string key(text);
  key.append(reinterpret_cast<const char*>(&t), sizeof t);
  if (const auto found = leaps_.find(key); found != leaps_.end()) return found->second;
  const std::optional<Term> after = leap_key(t, text);
  if (after && *after != kNothing) leaps_.emplace(std::move(key), *after);
  return after;
}

std::optional<Term> TermStore::leap_bytewise(Term t, std::string_view text) {
  for (std::size_t i = 0; i < text.size() && t != kNothing; ++i) {
    if (i > 0 && (nullable(t) || has(t, kFirstCall))) return std::nullopt;
    t = step(t, static_cast<unsigned char>(text[i]));
  }
  return t;
}

std::optional<Term> TermStore::leap_key(Term t, std::string_view text) {
  if (const std::optional<AllBut> form = all_but(t)) {
    const Node& tail = nodes_[form->tail];
    if ((tail.kind == Kind::Concat ? tail.a : form->tail) != byte('"')) return std::nullopt;
    std::vector<std::string> left;
    for (const std::string& excluded : form->texts) {
      if (excluded.starts_with(text)) left.push_back(excluded.substr(text.size()));
    }
    if (left.empty()) return any_json_then(form->tail);
    return concat(json(intersect({any_text(), raw_complement(literals(std::move(left)))})),
                  form->tail);
  }
  Term after = t;
  std::size_t at = 0;
  while (at < text.size() && between_key_characters(after)) {
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
