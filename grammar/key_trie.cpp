// JSON-lifted literals, each with its own continuation: the declared keys of an object, an enum.
//
// json(k1)·r1 | json(k2)·r2 | ... is one term, Keys, over a list of edges (byte, residual): a trie
// whose nodes are terms. `\` leads to the same edges after a backslash, `\u` to the candidates
// (code point, residual) that the digits so far leave over. Kept as a union of lifts, each state of
// fifteen keys took about a thousand terms on its first visit; as a trie it takes one a character
// that is looked at. Only the stores of machines have it (merge_keys()), because it is not made for
// printing.
#include <algorithm>
#include <map>

#include "grammar/json_escapes.hpp"
#include "grammar/terms.hpp"
#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kAfterBackslash = 1;  // b of a Keys term; 0 between characters
constexpr std::size_t kMostTexts = 256;       // of one lift; larger enums stay lifts
constexpr std::size_t kMostExcluded = 4096;
// So many exclusions are remembered: each beginning of an undeclared key has its own.
constexpr std::size_t kMostExclusions = 256;
constexpr std::size_t kMostChoices = 64;
constexpr std::size_t kLongestKey = 200;  // the trie is built recursively; longer ones stay lifts

// What follows the backslash when a code point is spelled in hexadecimal.
std::string hex_spelling(std::uint32_t code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  const auto unit = [&](std::uint32_t u) {
    text += 'u';
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[(u >> shift) & 15];
  };
  if (code < 0x10000) {
    unit(code);
  } else {
    unit(0xD800 + ((code - 0x10000) >> 10));
    text += '\\';
    unit(0xDC00 + ((code - 0x10000) & 0x3FF));
  }
  return text;
}

bool continuation_byte(unsigned byte) { return byte >= 0x80 && byte < 0xC0; }

}  // namespace

// Appends the one byte or character that a term stands for; false when it stands for more.
bool TermStore::append_single(Term t, std::string& text) const {
  const Node& n = nodes_[t];
  if (n.kind == Kind::Bytes && sets_[n.a].size() == 1) {
    text += static_cast<char>(sets_[n.a].first());
    return true;
  }
  if (n.kind != Kind::Chars || n.b != 0 || ranges_[n.a].size() != 1 ||
      ranges_[n.a][0].low != ranges_[n.a][0].high) {
    return false;
  }
  append_character(ranges_[n.a][0].low, text);
  return true;
}

// Appends the one text that a term stands for, if it is not long; false when it stands for more.
bool TermStore::append_literal(Term t, std::string& text) const {
  for (; nodes_[t].kind == Kind::Concat; t = nodes_[t].b) {
    if (!append_single(nodes_[t].a, text) || text.size() > kLongestKey) return false;
  }
  return t == kEmpty || (append_single(t, text) && text.size() <= kLongestKey);
}

// The bytes or characters that a term stands for; none when it is more, or more than `most`.
std::vector<std::string> TermStore::choices(Term t, std::size_t most) const {
  std::vector<std::string> result;
  const Node& n = nodes_[t];
  most = std::min(most, kMostChoices);
  if (n.kind == Kind::Bytes && sets_[n.a].size() <= most) {
    sets_[n.a].each([&](unsigned byte) { result.emplace_back(1, static_cast<char>(byte)); });
  } else if (n.kind == Kind::Chars && n.b == 0) {
    for (const CodeRange& r : ranges_[n.a]) {
      for (std::uint32_t c = r.low; c <= r.high; ++c) {
        if (result.size() == most) return {};
        append_character(c, result.emplace_back());
      }
    }
  }
  return result;
}

// How many texts list_texts() would find, or `most` + 1 when more, or when it would find none. It
// costs a look at each head where listing costs one at each text: 200 us for eight classes in a
// row, in every state.
std::size_t TermStore::count_texts(Term t, std::size_t most) const {
  std::size_t count = 1;
  for (; count <= most; t = nodes_[t].b) {
    const Node& n = nodes_[t];
    if (t == kEmpty) return count;
    if (n.kind == Kind::Union) {
      std::size_t sum = 0;
      for (const Term item : list(n.a)) {
        sum += count_texts(item, most);
        if (sum > most) break;
      }
      return std::min(count * sum, most + 1);
    }
    if (n.kind == Kind::Repeat && n.b == 0 && n.c == 1)
      return std::min(count * (1 + count_texts(n.a, most)), most + 1);
    const Node& head = n.kind == Kind::Concat ? nodes_[n.a] : n;
    if (head.kind == Kind::Bytes) {
      count *= sets_[head.a].size();
    } else if (head.kind == Kind::Chars && head.b == 0) {
      std::size_t size = 0;
      for (const CodeRange& r : ranges_[head.a]) size += r.high - r.low + 1;
      count *= size;
    } else {
      return most + 1;
    }
    if (n.kind != Kind::Concat) return std::min(count, most + 1);
  }
  return most + 1;
}

// Adds the texts of t, each after `prefix`: a union of literals, as literals() makes them. False
// when it is anything else, or when there are more than `most`.
bool TermStore::list_texts(Term t, std::string prefix, std::size_t most,
                           std::vector<std::string>& out) const {
  for (;;) {
    if (out.size() >= most || prefix.size() > kLongestKey) return false;
    const Node& n = nodes_[t];
    if (t == kEmpty) {
      out.push_back(std::move(prefix));
      return true;
    }
    if (n.kind == Kind::Union) {
      for (const Term item : list(n.a)) {
        if (!list_texts(item, prefix, most, out)) return false;
      }
      return true;
    }
    if (n.kind == Kind::Repeat && n.b == 0 && n.c == 1) {
      out.push_back(prefix);
      t = n.a;
      continue;
    }
    const bool more = n.kind == Kind::Concat;
    const Term first = more ? n.a : t;
    t = more ? n.b : kEmpty;
    if (append_single(first, prefix)) continue;
    const std::vector<std::string> heads = choices(first, most - out.size());
    for (const std::string& head : heads) {
      if (!list_texts(t, prefix + head, most, out)) return false;
    }
    return !heads.empty();
  }
}

std::optional<AllBut> TermStore::all_but(Term t) {
  if (!has(t, kStepwise)) return std::nullopt;
  return all_but_lifted(
      t,
      [this](Term x) -> std::optional<Exclusion> {
        Exclusion found{any_text_, {}};
        if (!list_texts(excluded_from_any(x), {}, kMostExcluded, found.texts)) return std::nullopt;
        return found;
      },
      exclusions_[0]);
}

std::optional<AllBut> TermStore::all_but_of_some(Term t) {
  return all_but_lifted(t, [this](Term x) { return find_exclusion(x); }, exclusions_[1]);
}

template <typename Find>
std::optional<AllBut> TermStore::all_but_lifted(Term t, Find&& find, Exclusions& known) {
  const Node whole = nodes_[t];
  const Node lift = whole.kind == Kind::Concat ? nodes_[whole.a] : whole;
  if (lift.kind != Kind::Json || lift.b != 0 || lift.c != 0) return std::nullopt;
  auto found = known.find(lift.a);
  if (found == known.end()) {
    if (known.size() == kMostExclusions) known.clear();
    std::shared_ptr<const Exclusion> kept;
    if (std::optional<Exclusion> made = find(lift.a))
      kept = std::make_shared<const Exclusion>(*std::move(made));
    found = known.emplace(lift.a, std::move(kept)).first;
  }
  if (found->second == nullptr) return std::nullopt;
  return AllBut{lift.a, found->second, whole.kind == Kind::Concat ? whole.b : kEmpty};
}

std::optional<Exclusion> TermStore::find_exclusion(Term x) {
  Exclusion result;
  const auto parts_of = [this](Term whole, Kind kind) {
    if (nodes_[whole].kind != kind) return std::vector{whole};
    return std::vector<Term>(operands(whole).begin(), operands(whole).end());
  };
  std::vector<Term> others;
  for (const Term part : parts_of(x, Kind::Intersect)) {
    if (nodes_[part].kind != Kind::Complement) {
      others.push_back(part);
      continue;
    }
    std::vector<Term> endless;  // ~(u | y) is ~u & ~y
    for (const Term item : parts_of(nodes_[part].a, Kind::Union)) {
      if (has(item, kEndless)) {
        endless.push_back(item);
      } else if (!list_texts(item, {}, kMostExcluded, result.texts)) {
        return std::nullopt;
      }
    }
    if (!endless.empty()) others.push_back(raw_complement(join(std::move(endless))));
  }
  if (result.texts.empty() || others.empty()) return std::nullopt;
  result.base = intersect(std::move(others));
  return result;
}

bool TermStore::may_be_keys(Term t) const {
  const Node& n = nodes_[t];
  const Node& lift = nodes_[n.kind == Kind::Concat ? n.a : t];
  return lift.kind == Kind::Json && lift.b == 0 && lift.c == 0 && !has(lift.a, kEndless);
}

// Takes a term apart if it is json(x)·rest for at most so many texts x. False when it is not.
bool TermStore::add_entries(Term t, std::size_t most, std::vector<KeyEntry>& entries) const {
  if (!may_be_keys(t)) return false;
  const Node& n = nodes_[t];
  const Node& lift = nodes_[n.kind == Kind::Concat ? n.a : t];
  const Term rest = n.kind == Kind::Concat ? n.b : kEmpty;
  if (std::string text; append_literal(lift.a, text)) {
    if (text.empty()) return false;
    entries.push_back({std::move(text), rest, lift.a});
    return true;
  }
  std::vector<std::string> texts;
  if (count_texts(lift.a, most) > most || !list_texts(lift.a, {}, most, texts)) return false;
  // An empty text leaves no edge to follow.
  if (std::ranges::any_of(texts, [](const std::string& text) { return text.empty(); }))
    return false;
  const Term literal = texts.size() == 1 ? lift.a : kNothing;
  for (std::string& text : texts) {
    entries.push_back({std::move(text), rest, literal});
  }
  return true;
}

// Replaces two or more lifted literals among a union's items by one Keys term.
bool TermStore::merge_lifts(std::vector<Term>& items) {
  if (!merge_keys_) return false;
  std::vector<KeyEntry> entries;
  std::vector<Term> kept;
  for (const Term t : items) {
    if (between_key_characters(t) || is_members(t)) {
      entries.push_back({{}, t, kNothing});
    } else if (!add_entries(t, 1, entries)) {
      kept.push_back(t);
    }
  }
  if (entries.size() < 2) return false;
  for (KeyEntry& entry : entries) {
    if (entry.text.empty()) entry.rest = as_keys(entry.rest);
  }
  kept.push_back(key_trie(std::move(entries)));
  items = std::move(kept);
  return true;
}

Term TermStore::as_keys(Term t) {
  if (between_key_characters(t)) return t;
  if (!is_members(t) && (!merge_keys_ || !may_be_keys(t))) return kNothing;
  if (const auto found = as_keys_.find(t); found != as_keys_.end()) return found->second;
  std::vector<KeyEntry> entries;
  Term result = kNothing;
  if (is_members(t)) {
    result = keys(member_edges(members(t)), 0);
  } else if (!add_entries(t, kMostTexts, entries)) {
    // remembered too: 200 us for a pattern of 2^20 texts
  } else if (entries.size() > 1) {
    result = key_trie(std::move(entries));
  } else {
    const Term edge[] = {static_cast<unsigned char>(entries[0].text[0]), key_tail(entries[0], 1)};
    result = keys(edge, 0);
  }
  as_keys_.emplace(t, result);
  return result;
}

std::optional<KeyText> TermStore::key_text(Term t) const {
  std::vector<KeyEntry> entries;
  if (!merge_keys_ || !add_entries(t, 1, entries)) return std::nullopt;
  return KeyText{std::move(entries[0].text), entries[0].rest};
}

// What is left of an entry after so many bytes, as a lifted literal again: most of a trie of keys
// is such tails, and most of them are never looked at.
Term TermStore::key_tail(const KeyEntry& entry, std::size_t depth) {
  const std::string& text = entry.text;
  std::size_t end = depth;  // of the character under way
  while (end < text.size() && continuation_byte(static_cast<unsigned char>(text[end]))) ++end;
  Term suffix = entry.literal;
  if (suffix == kNothing) {
    suffix = literal(std::string_view(text).substr(end));
  } else {
    for (std::size_t at = 0; at < end;) {
      const Node& n = nodes_[suffix];
      const bool more = n.kind == Kind::Concat;
      std::string character;
      append_single(more ? n.a : suffix, character);
      at += character.size();
      suffix = more ? n.b : kEmpty;
    }
  }
  Term residual = concat(json(suffix), entry.rest);
  for (std::size_t i = end; i-- > depth;) {
    const Term edge[] = {static_cast<unsigned char>(text[i]), residual};
    residual = keys(edge, 0);
  }
  return residual;
}

// The trie of entries; those without text are Keys terms whose edges join its root.
Term TermStore::key_trie(std::vector<KeyEntry> entries) {
  std::ranges::sort(entries, {}, &KeyEntry::text);
  const auto first =
      std::ranges::find_if(entries, [](const KeyEntry& e) { return !e.text.empty(); });
  std::map<std::uint32_t, std::vector<Term>> residuals;  // by byte, of the tries that are there
  for (auto trie = entries.begin(); trie != first; ++trie) {
    const std::span<const Term> edges = list(nodes_[trie->rest].a);
    for (std::size_t i = 0; i < edges.size(); i += 2) residuals[edges[i]].push_back(edges[i + 1]);
  }
  std::vector<Term> edges = key_edges({first, entries.end()}, 0);
  if (residuals.empty()) return keys(edges, 0);
  for (std::size_t i = 0; i < edges.size(); i += 2) residuals[edges[i]].push_back(edges[i + 1]);
  edges.clear();
  for (auto& [byte, terms] : residuals) {
    edges.push_back(byte);
    edges.push_back(join(std::move(terms)));
  }
  return keys(edges, 0);
}

// The edges, (byte, residual), of sorted entries that agree on their first `depth` bytes.
std::vector<Term> TermStore::key_edges(std::span<const KeyEntry> entries, std::size_t depth) {
  std::vector<Term> edges;
  for (std::size_t i = 0; i < entries.size();) {
    const char byte = entries[i].text[depth];
    std::vector<Term> terms;
    for (; i < entries.size() && entries[i].text.size() == depth + 1 &&
           entries[i].text[depth] == byte;
         ++i) {
      terms.push_back(entries[i].rest);
    }
    std::size_t end = i;
    while (end < entries.size() && entries[end].text[depth] == byte) ++end;
    if (end == i + 1) {
      terms.push_back(key_tail(entries[i], depth + 1));
    } else if (end > i) {
      terms.push_back(keys(key_edges(entries.subspan(i, end - i), depth + 1), 0));
    }
    i = end;
    edges.push_back(static_cast<unsigned char>(byte));
    edges.push_back(terms.size() == 1 ? terms[0] : join(std::move(terms)));
  }
  return edges;
}

Term TermStore::keys(std::span<const Term> edges, std::uint32_t phase) {
  if (edges.empty()) return kNothing;
  std::uint8_t flags = 0;
  for (std::size_t i = 1; i < edges.size(); i += 2) {
    flags |=
        static_cast<std::uint8_t>(nodes_[edges[i]].flags & (kHasCall | kMaybeEmpty | kEndless));
  }
  return intern(Kind::Keys, flags, intern_list(edges), phase, 0);
}

Term TermStore::key_digits(std::span<const Term> candidates, std::uint32_t position) {
  std::uint8_t flags = 0;
  for (std::size_t i = 1; i < candidates.size(); i += 2) {
    flags |= static_cast<std::uint8_t>(nodes_[candidates[i]].flags &
                                       (kHasCall | kMaybeEmpty | kEndless));
  }
  return intern(Kind::KeyDigits, flags, intern_list(candidates), position, 0);
}

// The characters that can come next, as (code point, residual): through the edges' whole sequences.
void TermStore::add_key_characters(Term t, std::uint32_t code, unsigned more,
                                   std::vector<Term>& out) const {
  const std::span<const Term> edges = list(nodes_[t].a);
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    const std::uint32_t byte = edges[i];
    const Term residual = edges[i + 1];
    if (more == 0) {
      const unsigned width = byte < 0x80 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      if (width == 0) {
        out.push_back(byte);
        out.push_back(residual);
      } else {
        add_key_characters(residual, byte & (0x3Fu >> width), width, out);
      }
    } else if (more == 1) {
      out.push_back((code << 6) | (byte & 0x3F));
      out.push_back(residual);
    } else {
      add_key_characters(residual, (code << 6) | (byte & 0x3F), more - 1, out);
    }
  }
}

std::vector<Term> TermStore::key_characters(Term t) const {
  std::vector<Term> characters;
  add_key_characters(t, 0, 0, characters);
  return characters;
}

Row TermStore::keys_row(Term t) {
  const std::vector<Term> edges(operands(t).begin(), operands(t).end());
  std::vector<std::pair<unsigned, Term>> targets;  // by byte, in order
  if (nodes_[t].b == kAfterBackslash) {
    for (std::size_t i = 0; i < edges.size(); i += 2) {
      const unsigned char letter = json_escape_letter(edges[i]);
      if (letter != 0) targets.emplace_back(letter, edges[i + 1]);
    }
    targets.emplace_back('u', key_digits(key_characters(t), 1));
    std::ranges::sort(targets);
  } else {
    bool escaped = !at_key_character(t);
    for (std::size_t i = 0; i < edges.size(); i += 2) {
      if (!escaped && edges[i] >= '\\') {
        targets.emplace_back('\\', keys(edges, kAfterBackslash));
        escaped = true;
      }
      if (edges[i] >= 0x20 && edges[i] != '"' && edges[i] != '\\')
        targets.emplace_back(edges[i], edges[i + 1]);
    }
    if (!escaped) targets.emplace_back('\\', keys(edges, kAfterBackslash));
  }
  return row_of(targets);
}

Row TermStore::key_digits_row(Term t) {
  const std::vector<Term> candidates(operands(t).begin(), operands(t).end());
  const std::uint32_t position = nodes_[t].b;
  std::map<char, std::vector<Term>> left;  // by the next character
  std::vector<std::pair<unsigned, Term>> targets;
  const auto put = [&](char c, Term residual) {
    targets.emplace_back(static_cast<unsigned char>(c), residual);
    if (c >= 'a' && c <= 'f')
      targets.emplace_back(static_cast<unsigned char>(c - 'a' + 'A'), residual);
  };
  for (std::size_t i = 0; i < candidates.size(); i += 2) {
    const std::string spelling = hex_spelling(candidates[i]);
    if (position + 1 == spelling.size()) {
      put(spelling[position], candidates[i + 1]);
    } else {
      left[spelling[position]].insert(left[spelling[position]].end(),
                                      {candidates[i], candidates[i + 1]});
    }
  }
  for (const auto& [c, rest] : left) put(c, key_digits(rest, position + 1));
  std::ranges::sort(targets);
  return row_of(targets);
}

Row TermStore::row_of(std::span<const std::pair<unsigned, Term>> targets) {
  if (targets.size() <= kSparseBytes) return make_sparse_row(targets);
  std::array<Term, 256> target{};
  for (const auto& [byte, residual] : targets) target[byte] = residual;
  return make_row(target);
}

}  // namespace grammaton
