// Rows: the whole derivative of a term at once (Brzozowski 1964; symbolic over byte classes).
//
// A row that only appends something to another row's targets (Concat, Repeat) shares its class map.
// `raw_row` may lead to terms with no text (an intersection that cannot be met); `row` has those
// removed, by a breadth-first search that is remembered for every term it settles.
#include <algorithm>
#include <array>

#include "grammar/terms.hpp"

namespace grammaton {

std::uint32_t TermStore::intern_map(const std::array<std::uint8_t, 256>& of) {
  std::uint64_t h = 7;
  for (unsigned i = 0; i < 256; i += 8) {
    std::uint64_t word = 0;
    for (unsigned k = 0; k < 8; ++k) word = (word << 8) | of[i + k];
    h = mix64(h + 1, word);
  }
  const std::uint32_t known = map_lookup_.find(h, [&](std::uint32_t i) { return maps_[i].of == of; });
  if (known != kNone) return known;
  const auto index = static_cast<std::uint32_t>(maps_.size());
  ClassMap map;
  map.of = of;
  for (unsigned b = 0; b < 256; ++b) {
    if (of[b] != 0) map.live.add(b);
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

// A row with the class map of `source` and other targets (targets[0] is class 0).
Row TermStore::map_row(const Row& source, const std::vector<Term>& targets) {
  for (std::size_t c = 1; c < targets.size(); ++c) {
    // Two classes that fell together, or one that died: the map has to be made anew.
    if (targets[c] == kNothing || std::ranges::find(targets.begin() + 1, targets.begin() + static_cast<std::ptrdiff_t>(c), targets[c]) !=
                                      targets.begin() + static_cast<std::ptrdiff_t>(c)) {
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
  std::vector<std::vector<Term>> combinations(1);
  std::array<std::uint32_t, 256> of{};
  std::vector<std::pair<std::uint64_t, std::uint32_t>> extended;
  for (const auto& [row, suffix] : pieces) {
    extended.clear();
    std::vector<Term> targets(row.classes, kNothing);
    for (unsigned c = 1; c < row.classes; ++c) targets[c] = concat(target(row, c), suffix);
    const ClassMap& map = maps_[row.map];
    map.live.each([&](unsigned b) {
      const unsigned cls = map.of[b];
      const std::uint64_t key = (std::uint64_t{of[b]} << 32) | cls;
      for (const auto& [k, id] : extended) {
        if (k == key) {
          of[b] = id;
          return;
        }
      }
      const auto id = static_cast<std::uint32_t>(combinations.size());
      std::vector<Term> more = combinations[of[b]];
      more.push_back(targets[cls]);
      combinations.push_back(std::move(more));
      extended.emplace_back(key, id);
      of[b] = id;
    });
  }
  std::vector<Term> joined(combinations.size(), kNone);
  std::array<Term, 256> target{};
  for (unsigned b = 0; b < 256; ++b) {
    Term& t = joined[of[b]];
    if (t == kNone) t = join(combinations[of[b]]);
    target[b] = t;
  }
  return make_row(target);
}

Row TermStore::intersect_row(std::span<const Term> items) {
  std::vector<Row> rows;
  rows.reserve(items.size());
  for (const Term t : items) rows.push_back(raw_row(t));
  std::array<Term, 256> target{};
  std::vector<std::pair<std::vector<Term>, Term>> known;
  std::vector<Term> residuals(items.size());
  for (unsigned b = 0; b < 256; ++b) {
    bool dead = false;
    for (std::size_t i = 0; i < rows.size() && !dead; ++i) {
      residuals[i] = this->target(rows[i], maps_[rows[i].map].of[b]);
      dead = residuals[i] == kNothing;
    }
    if (dead) continue;
    const auto found = std::ranges::find(known, residuals, &std::pair<std::vector<Term>, Term>::first);
    if (found != known.end()) {
      target[b] = found->second;
    } else {
      target[b] = intersect(residuals);
      known.emplace_back(residuals, target[b]);
    }
  }
  return make_row(target);
}

Row TermStore::compute_row(Term t) {
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::Nothing:
    case Kind::Empty:
    case Kind::Call:
      return make_row({});
    case Kind::Bytes: {
      std::array<Term, 256> target{};
      sets_[n.a].each([&](unsigned b) { target[b] = kEmpty; });
      return make_row(target);
    }
    case Kind::Chars:
      return raw_row(expand_chars(t));
    case Kind::NoSplit:
      return raw_row(n.a);
    case Kind::Concat: {
      // The spine is followed in a loop: a long run of optional parts must not recurse.
      std::vector<std::pair<Row, Term>> pieces;
      Term rest = t;
      while (nodes_[rest].kind == Kind::Concat) {
        const Node link = nodes_[rest];
        pieces.emplace_back(raw_row(link.a), link.b);
        rest = nullable(link.a) ? link.b : kNothing;
      }
      if (rest != kNothing) pieces.emplace_back(raw_row(rest), kEmpty);
      if (pieces.size() > 1) return union_row(pieces);
      std::vector<Term> targets(pieces[0].first.classes, kNothing);
      for (unsigned c = 1; c < targets.size(); ++c) {
        targets[c] = concat(target(pieces[0].first, c), pieces[0].second);
      }
      return map_row(pieces[0].first, targets);
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
      for (unsigned c = 0; c < inner.classes; ++c) targets.push_back(raw_complement(target(inner, c)));
      std::array<Term, 256> target{};
      for (unsigned b = 0; b < 256; ++b) target[b] = targets[maps_[inner.map].of[b]];
      return make_row(target);
    }
    case Kind::Repeat: {
      const Row inner = raw_row(n.a);
      const Term rest = repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1);
      std::vector<Term> targets(inner.classes, kNothing);
      for (unsigned c = 1; c < inner.classes; ++c) targets[c] = concat(target(inner, c), rest);
      return map_row(inner, targets);
    }
    case Kind::Json:
      return json_row(t);
    case Kind::JsonRaw:
      return json_raw_row(t);
  }
  return make_row({});
}

Row TermStore::raw_row(Term t) {
  if (raw_rows_[t].map == kNone) {
    if (depth_ > 400) throw LimitFault("the grammar nests operators more than 400 deep");
    ++depth_;
    try {
      const Row row = compute_row(t);
      --depth_;
      raw_rows_[t] = row;
    } catch (...) {
      --depth_;
      throw;
    }
  }
  return raw_rows_[t];
}

void TermStore::fill_row(Term t) {
  const Row raw = raw_row(t);
  std::vector<Term> targets(raw.classes, kNothing);
  bool changed = false;
  for (unsigned c = 1; c < raw.classes; ++c) {
    const Term u = target(raw, c);
    const bool empty = has(u, kMaybeEmpty) && is_empty(u);
    targets[c] = empty ? kNothing : u;
    changed = changed || empty;
  }
  const Row row = changed ? map_row(raw, targets) : raw;
  rows_[t] = row;
}

bool TermStore::is_empty(Term t) {
  if (t == kNothing) return true;
  if (!has(t, kMaybeEmpty) || nullable(t)) return false;
  if (emptiness_[t] != 0) return emptiness_[t] == 2;
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
      empty = std::ranges::all_of(items, [this](Term u) { return is_empty(u); });
      break;
    }
    case Kind::Repeat:
    case Kind::NoSplit:
      empty = is_empty(n.a);
      break;
    case Kind::Json:
      empty = restricted_ ? search_empty(t) : n.b == 0 && is_empty(n.a);
      break;
    default:
      empty = search_empty(t);
  }
  emptiness_[t] = empty ? 2 : 1;
  return empty;
}

bool TermStore::search_empty(Term start) {
  std::vector<Term> queue{start};
  std::vector<std::uint32_t> parent{0};
  std::unordered_map<Term, bool> visited{{start, true}};
  auto searched = [this](Term u) {
    const Kind kind = nodes_[u].kind;
    return kind == Kind::Intersect || kind == Kind::Complement || kind == Kind::JsonRaw ||
           (kind == Kind::Json && restricted_);
  };
  auto settles = [&](Term u) {
    return nullable(u) || emptiness_[u] == 1 || (!searched(u) && !is_empty(u));
  };
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const Row row = raw_row(queue[i]);
    for (unsigned c = 1; c < row.classes; ++c) {
      const Term u = target(row, c);
      if (emptiness_[u] == 2 || !visited.emplace(u, true).second) continue;
      if (settles(u)) {
        emptiness_[u] = 1;
        for (std::size_t k = i;; k = parent[k]) {  // everything on the way can end too
          emptiness_[queue[k]] = 1;
          if (k == 0) break;
        }
        return false;
      }
      if (!searched(u)) continue;  // settled as empty
      if (queue.size() > limits_.max_step_terms) {
        throw LimitFault("deciding whether an intersection is empty took more than "
                         "max_step_terms = " + std::to_string(limits_.max_step_terms) + " states");
      }
      queue.push_back(u);
      parent.push_back(static_cast<std::uint32_t>(i));
    }
  }
  for (const Term u : queue) emptiness_[u] = 2;
  return true;
}

}  // namespace grammaton
