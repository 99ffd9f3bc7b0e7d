// Rows: the whole derivative of a term at once (Brzozowski 1964; symbolic over byte classes).
//
// A row that only appends something to another row's targets (Concat, Repeat) shares its class map.
// `raw_row` may lead to terms with no text (an intersection that cannot be met); `row` has those
// removed, by a search that is remembered for every term it settles.
#include <algorithm>
#include <array>
#include <cstring>

#include "grammar/best_first.hpp"
#include "grammar/partition.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

std::uint32_t TermStore::intern_map(const std::array<std::uint8_t, 256>& of) {
  // Four lanes, because one chain of 32 multiplications was a tenth of the time of a cold mask.
  std::array<std::uint64_t, 32> words;
  std::memcpy(words.data(), of.data(), sizeof(words));
  std::array<std::uint64_t, 4> lanes{7, 11, 13, 17};
  for (unsigned i = 0; i < 32; i += 4) {
    for (unsigned k = 0; k < 4; ++k) lanes[k] = mix64(lanes[k] + 1, words[i + k]);
  }
  const std::uint64_t h = mix64(mix64(lanes[0], lanes[1]), mix64(lanes[2] + 1, lanes[3]));
  const std::uint32_t known =
      map_lookup_.find(h, [&](std::uint32_t i) { return maps_[i].of == of; });
  if (known != kNone) return known;
  const auto index = static_cast<std::uint32_t>(maps_.size());
  ClassMap map;
  map.of = of;
  for (unsigned b = 0; b < 256; ++b) {
    if (of[b] != 0) map.live.add(b);
    if (b == 0 || of[b] != of[b - 1]) map.runs.add(b);
  }
  maps_.push_back(map);
  map_lookup_.insert(h, index);
  return index;
}

Row TermStore::make_row(const std::array<Term, 256>& target) {
  std::array<std::uint8_t, 256> of{};
  std::vector<Term> classes{kNothing};
  std::size_t last = 0;
  for (unsigned b = 0; b < 256; ++b) {
    const Term t = target[b];
    if (classes[last] != t) {
      last = static_cast<std::size_t>(std::ranges::find(classes, t) - classes.begin());
      if (last == classes.size()) classes.push_back(t);
    }
    of[b] = static_cast<std::uint8_t>(last);
  }
  if (classes.size() > 256) {
    // 256 live targets and no dead byte: class 0 is free for one of them only if none is Nothing,
    // and it is Nothing by convention; such a term cannot be stepped on with 8-bit classes.
    throw LimitFault("a term distinguishes all 256 bytes");
  }
  Row row;
  row.map = intern_map(of);
  row.targets = static_cast<std::uint32_t>(targets_.size());
  row.classes = static_cast<std::uint32_t>(classes.size());
  targets_.insert(targets_.end(), classes.begin(), classes.end());
  return row;
}

// The same for few live bytes, given in order: most states of a literal have one or two.
Row TermStore::make_sparse_row(std::span<const std::pair<unsigned, Term>> targets) {
  std::array<std::uint8_t, kSparseBytes> classes;
  std::array<Term, kSparseBytes + 1> distinct{kNothing};
  std::uint8_t count = 1;
  std::uint64_t h = 13;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::uint8_t cls = 1;
    while (cls < count && distinct[cls] != targets[i].second) ++cls;
    if (cls == count) distinct[count++] = targets[i].second;
    classes[i] = cls;
    h = mix64(h + 1, (targets[i].first << 8) | cls);
  }
  std::uint32_t map = sparse_map_lookup_.find(h, [&](std::uint32_t id) {
    const ClassMap& known = maps_[id];
    if (known.live.size() != targets.size()) return false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (known.of[targets[i].first] != classes[i]) return false;
    }
    return true;
  });
  if (map == kNone) {
    // Not interned with the others: their hash is of 256 bytes, and few have so few live ones.
    map = static_cast<std::uint32_t>(maps_.size());
    ClassMap& made = maps_.emplace_back();
    made.runs.add(0);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const unsigned byte = targets[i].first;
      made.of[byte] = classes[i];
      made.live.add(byte);
      made.runs.add(byte);
      if (byte != 255) made.runs.add(byte + 1);
    }
    sparse_map_lookup_.insert(h, map);
  }
  Row row;
  row.map = map;
  row.targets = static_cast<std::uint32_t>(targets_.size());
  row.classes = count;
  targets_.insert(targets_.end(), distinct.begin(), distinct.begin() + count);
  return row;
}

// A row with the class map of `source` and other targets (targets[0] is class 0).
Row TermStore::map_row(const Row& source, const std::vector<Term>& targets) {
  for (std::size_t c = 1; c < targets.size(); ++c) {
    // Two classes that fell together, or one that died: the map has to be made anew.
    if (targets[c] == kNothing ||
        std::ranges::find(targets.begin() + 1, targets.begin() + static_cast<std::ptrdiff_t>(c),
                          targets[c]) != targets.begin() + static_cast<std::ptrdiff_t>(c)) {
      std::array<Term, 256> target{};
      for (unsigned b = 0; b < 256; ++b) target[b] = targets[maps_[source.map].of[b]];
      return make_row(target);
    }
  }
  Row row = source;
  row.targets = static_cast<std::uint32_t>(targets_.size());
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  return row;
}

// The union of rows, each with a suffix appended to its targets.
Row TermStore::union_row(std::span<const std::pair<Row, Term>> pieces) {
  ByteSet live;
  for (const auto& [row, suffix] : pieces) live = live | maps_[row.map].live;
  std::vector<Term> residuals;
  const auto of_byte = [&](unsigned b) {
    residuals.clear();
    for (const auto& [row, suffix] : pieces) {
      const Term residual = target(row, maps_[row.map].of[b]);
      if (residual != kNothing) residuals.push_back(concat(residual, suffix));
    }
    return residuals.empty() ? kNothing : residuals.size() == 1 ? residuals[0] : join(residuals);
  };
  if (live.size() <= kSparseBytes) return sparse_row(live, of_byte);
  Partition partition;
  for (const auto& [row, suffix] : pieces) partition.refine(maps_[row.map], true);
  return make_row(partition.fill(of_byte));
}

Row TermStore::intersect_row(std::span<const Term> items) {
  std::vector<Row> rows;
  rows.reserve(items.size());
  ByteSet live = ByteSet::range(0, 255);
  for (const Term t : items) {
    rows.push_back(raw_row(t));
    live = live & maps_[rows.back().map].live;
  }
  std::vector<Term> residuals(items.size());
  const auto of_byte = [&](unsigned b) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      residuals[i] = target(rows[i], maps_[rows[i].map].of[b]);
      if (residuals[i] == kNothing) return kNothing;
    }
    return intersect(residuals);
  };
  if (live.size() <= kSparseBytes) return sparse_row(live, of_byte);
  Partition partition;
  for (const Row& row : rows) partition.refine(maps_[row.map], false);
  return make_row(partition.fill(of_byte));
}

Row TermStore::compute_row(Term t) {
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Nothing:
    case Kind::Empty:
    case Kind::Call:
    case Kind::Token:
    case Kind::Margin:
    case Kind::Distinct:
    case Kind::Take:
    case Kind::Seen:
      return make_sparse_row({});
    case Kind::Bytes: {
      if (sets_[n.a].size() <= kSparseBytes)
        return sparse_row(sets_[n.a], [](unsigned) { return kEmpty; });
      std::array<Term, 256> target{};
      sets_[n.a].each([&](unsigned b) { target[b] = kEmpty; });
      return make_row(target);
    }
    case Kind::Chars:
      return raw_row(expand_chars(t));
    case Kind::NoSplit:
      return raw_row(n.a);
    case Kind::Concat: {
      if (const Term as_trie = as_keys(t); as_trie != kNothing) return raw_row(as_trie);
      const Row head = raw_row(n.a);
      if (!nullable(n.a)) {
        std::vector<Term> targets(head.classes, kNothing);
        for (unsigned c = 1; c < targets.size(); ++c) targets[c] = concat(target(head, c), n.b);
        return map_row(head, targets);
      }
      // The spine is followed in a loop: a long run of optional parts must not recurse.
      std::vector<std::pair<Row, Term>> pieces{{head, n.b}};
      Term rest = n.b;
      while (nodes_[rest].kind == Kind::Concat) {
        const Node link = nodes_[rest];
        pieces.emplace_back(raw_row(link.a), link.b);
        rest = nullable(link.a) ? link.b : kNothing;
      }
      if (rest != kNothing) pieces.emplace_back(raw_row(rest), kEmpty);
      return union_row(pieces);
    }
    case Kind::Union: {
      const std::vector<Term> items(list(n.a).begin(), list(n.a).end());
      std::vector<std::pair<Row, Term>> pieces;
      for (const Term item : items) pieces.emplace_back(raw_row(item), kEmpty);
      return union_row(pieces);
    }
    case Kind::Intersect: {
      const std::vector<Term> items(list(n.a).begin(), list(n.a).end());
      return intersect_row(items);
    }
    case Kind::Complement: {
      const Row inner = raw_row(n.a);
      std::vector<Term> targets;
      for (unsigned c = 0; c < inner.classes; ++c)
        targets.push_back(raw_complement(target(inner, c)));
      std::array<Term, 256> target{};
      for (unsigned b = 0; b < 256; ++b) target[b] = targets[maps_[inner.map].of[b]];
      return make_row(target);
    }
    case Kind::Repeat: {
      const Row inner = raw_row(n.a);
      const Term rest =
          repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1);
      std::vector<Term> targets(inner.classes, kNothing);
      for (unsigned c = 1; c < inner.classes; ++c) targets[c] = concat(target(inner, c), rest);
      return map_row(inner, targets);
    }
    case Kind::Json: {
      const Term as_trie = as_keys(t);
      return as_trie != kNothing ? raw_row(as_trie) : json_row(t);
    }
    case Kind::JsonRaw:
      return json_raw_row(t);
    case Kind::Metered: {
      const Row inner = raw_row(n.a);
      std::vector<Term> targets(inner.classes, kNothing);
      for (unsigned c = 1; c < inner.classes; ++c) targets[c] = metered(target(inner, c), n.b, n.c);
      return map_row(inner, targets);
    }
    case Kind::Residue:
      return residue_row(t);
    case Kind::Keys:
      return keys_row(t);
    case Kind::Members:
      return raw_row(as_keys(t));
    case Kind::KeyDigits:
      return key_digits_row(t);
    case Kind::Without:
      return without_row(t);
  }
  return make_row({});
}

Row TermStore::raw_row(Term t) {
  if (facts_[t].raw_row.map == kNone) {
    if (depth_ > 400) throw LimitFault("the grammar nests operators more than 400 deep");
    ++depth_;
    try {
      const Row row = compute_row(t);
      --depth_;
      facts_[t].raw_row = row;
    } catch (...) {
      --depth_;
      throw;
    }
  }
  return facts_[t].raw_row;
}

void TermStore::fill_row(Term t) {
  const Row raw = raw_row(t);
  std::vector<Term> targets;  // none as long as they are those of the raw row
  for (unsigned c = 1; c < raw.classes; ++c) {
    const Term u = target(raw, c);
    if (!has(u, kMaybeEmpty) || !is_empty(u)) continue;
    if (targets.empty()) {
      const auto first = targets_.begin() + raw.targets;
      targets.assign(first, first + raw.classes);
    }
    targets[c] = kNothing;
  }
  const Row row = targets.empty() ? raw : map_row(raw, targets);
  facts_[t].row = row;
}

bool TermStore::is_empty(Term t) {
  if (t == kNothing) return true;
  if (!has(t, kMaybeEmpty) || nullable(t)) return false;
  if (facts_[t].emptiness != 0) return facts_[t].emptiness == 2;
  const Node n = nodes_[t];
  bool empty = false;
  switch (n.kind) {
    case Kind::Concat: {
      Term rest = t;
      for (; !empty && nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b) {
        empty = is_empty(nodes_[rest].a);
      }
      empty = empty || is_empty(rest);
      break;
    }
    case Kind::Union: {
      const std::vector<Term> items(list(n.a).begin(), list(n.a).end());
      // Those that can't be empty are asked first: the others take a search.
      empty = std::ranges::all_of(items, [this](Term u) { return has(u, kMaybeEmpty); }) &&
              std::ranges::all_of(items, [this](Term u) { return is_empty(u); });
      break;
    }
    case Kind::Repeat:
    case Kind::NoSplit:
    case Kind::Metered:
      empty = is_empty(n.a);
      break;
    case Kind::Keys:
    case Kind::KeyDigits: {
      const std::vector<Term> edges(operands(t).begin(), operands(t).end());
      empty = true;
      for (std::size_t i = 1; i < edges.size() && empty; i += 2) empty = is_empty(edges[i]);
      break;
    }
    case Kind::Intersect:
      if (const Ending ending = residue_ending(t); ending != Ending::Unknown) {
        empty = ending == Ending::None;
        break;
      }
      empty = all_but_few(t) == kNothing && search_empty(t);
      break;
    case Kind::Json:
      empty = n.c != 0 ? search_empty(t) : n.b == 0 && is_empty(n.a);
      break;
    case Kind::Without:
      empty = !goes_beyond(n.a, n.b) && search_empty(t);
      break;
    default:
      empty = search_empty(t);
  }
  facts_[t].emptiness = empty ? 2 : 1;
  return empty;
}

// For t = r & ~u with u finite and r ending in any text ("a key that is none of these"): r;
// otherwise nothing. Such a t is not empty; a search would make the rows of all its residuals, most
// of which no walk visits.
Term TermStore::all_but_few(Term t) const {
  const std::span<const Term> items = list(nodes_[t].a);
  if (items.size() != 2) return kNothing;
  const bool first = nodes_[items[0]].kind == Kind::Complement;
  const Node& excluded = nodes_[items[first ? 0 : 1]];
  Term rest = items[first ? 1 : 0];
  if (excluded.kind != Kind::Complement || has(excluded.a, kEndless) || has(rest, kMaybeEmpty))
    return kNothing;
  Term last = rest;
  while (nodes_[last].kind == Kind::Concat) last = nodes_[last].b;
  return last == any_text_ ? rest : kNothing;
}

bool TermStore::search_empty(Term start) {
  const std::optional<bool> found = search_empty(start, limits_.max_step_terms);
  if (found) return *found;
  throw LimitFault("deciding whether an intersection is empty took more than max_step_terms = " +
                   std::to_string(limits_.max_step_terms) + " states, or " +
                   std::to_string(kStepOperands) + " times as many operands of them");
}

bool TermStore::ends_within(Term t, std::size_t states) {
  if (t == kNothing) return false;
  if (!has(t, kMaybeEmpty) || nullable(t)) return true;
  if (facts_[t].emptiness == 0) {
    const std::optional<bool> found = search_empty(t, states);
    if (found) facts_[t].emptiness = *found ? 2 : 1;
  }
  return facts_[t].emptiness == 1;
}

namespace {

const std::string kNoText;

// The first byte of a class.
std::uint8_t a_byte_of(const ClassMap& map, unsigned cls) {
  return static_cast<std::uint8_t>(std::ranges::find(map.of, cls) - map.of.begin());
}

}  // namespace

// Operands of unions that one dive may join: what grows along it is no short cut.
constexpr std::uint64_t kDiveOperands = 20'000;

// Whether a term ends after some of one letter: lengths that three counts agree on are a thousand
// characters apart, and one residual of each term on the way is enough to see it.
bool TermStore::dive(Term t, unsigned byte, std::size_t& budget) {
  const std::uint64_t most_operands = operands_ + kDiveOperands;
  std::vector<Term> passed;
  for (; budget > 0 && operands_ < most_operands && t != kNothing && facts_[t].emptiness != 2;
       --budget) {
    if (nullable(t) || facts_[t].emptiness == 1 || !has(t, kMaybeEmpty)) {
      for (const Term u : passed) facts_[u].emptiness = 1;
      return true;
    }
    passed.push_back(t);
    t = residual(t, byte);
    if (t == passed.back()) return false;
  }
  return false;
}

// Nothing when it takes more states, or too many operands: those of a thousand patterns at once are
// a thousand a state.
std::optional<bool> TermStore::search_empty(Term start, std::size_t states) {
  if (witnesses_.find(*this, start) != nullptr) return false;
  const std::uint64_t most_operands = lists_.size() + kStepOperands * (max_tries() / 10);
  BestFirst search(*this, start);
  // Every residual is explored here, whatever its kind: a nested question could come back to this
  // one.
  auto settles = [&](Term u) {
    return nullable(u) || facts_[u].emptiness == 1 || !has(u, kMaybeEmpty) ||
           (nodes_[u].kind == Kind::Without && goes_beyond(nodes_[u].a, nodes_[u].b));
  };
  constexpr std::size_t kDive = 24;
  constexpr std::size_t kDiveSteps = 2500;
  bool by_characters = true;
  const auto mark = [&](std::size_t from) {  // everything on the way can end too
    search.each_back(from, [this](Term t) { facts_[t].emptiness = 1; });
  };
  while (search.has_next()) {
    const std::size_t before = search.expanded();
    if (before == kDive) {
      std::size_t budget = kDiveSteps;
      for (std::size_t k = 0; k < kDive; ++k) {
        if (!dive(search.term(k), 'a', budget)) continue;
        mark(k);
        return false;
      }
      // From where it began: most of what it has come to stands inside characters.
      const Search found = search_by_characters(start, states / 4);
      if (found == Search::Ends || found == Search::Empty) return found == Search::Empty;
      by_characters = found != Search::InVain;
    }
    const std::size_t i = search.next();
    if (before >= kDive && by_characters) {  // it is harder than most
      // A state costs as much as some that stand inside characters.
      const Search found = search_by_characters(search.term(i), states / 4);
      by_characters = found != Search::InVain;
      if (found == Search::Ends) {
        mark(i);
        return false;
      }
      if (found == Search::Empty) continue;
    }
    const Row row = raw_row(search.term(i));
    for (unsigned c = 1; c < row.classes; ++c) {
      const Term u = target(row, c);
      if (facts_[u].emptiness == 2 || !search.visit(u)) continue;
      const Ending ending = residue_ending(u);
      if (ending != Ending::Unknown) facts_[u].emptiness = ending == Ending::Some ? 1 : 2;
      if (ending == Ending::None) continue;
      const std::string* rest = nullable(u) ? &kNoText : witnesses_.find(*this, u);
      if (rest != nullptr || settles(u)) {
        facts_[u].emptiness = 1;
        mark(i);
        if (rest != nullptr) {
          const std::vector<std::uint8_t> way = search.way(i);
          std::string text(way.begin(), way.end());
          text.push_back(static_cast<char>(a_byte_of(maps_[row.map], c)));
          witnesses_.keep(text + *rest);
        }
        return false;
      }
      if (search.size() > states || lists_.size() > most_operands) return std::nullopt;
      search.add(u, i, a_byte_of(maps_[row.map], c));
    }
  }
  for (const Term u : search.terms()) facts_[u].emptiness = 2;
  return true;
}

}  // namespace grammaton
