// Strings that are told apart by what is in them, all at once.
//
// The keys of an object with overlapping patternProperties fall into sorts, one for each set of the
// patterns that are found in them: groups json(a & b & ~c)·"·rest, each with a value of its own to
// follow. None of them has a mask that is worth having. But together they are mostly any string,
// since a key with a pattern and one without it are both a key; so the groups are written as
// products of *atoms*, the patterns and the complements of them, products that differ by one
// atom are put together, and the tokens that stay inside all of them are those of what is left,
// which is one frame, and often one that every schema has. Where a quote closes the string inside
// a token, the atoms say which groups it ends: they are stepped beside each other along the paths
// with a quote below, some thousand nodes of a vocabulary.
//
// Costs: 0.2 to 1 ms a mask, where a frame for each of 256 groups was 300.
#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "index/walk.hpp"

namespace grammaton {

namespace {

// As many have more than any text before and after what is found in them.
constexpr std::ptrdiff_t kFewLifted = 2;
// Whether all of these have frames already is asked.
constexpr std::size_t kFewKnown = 16;
constexpr std::size_t kMostAtoms = 64;
// Products that are put together; and those that are left, each to be an operand of one frame.
constexpr std::size_t kMostProducts = 1024;
constexpr std::size_t kMostLeft = 16;
// Products that are looked at to leave out atoms.
constexpr std::size_t kMostCompared = 100'000;

using Atoms = std::uint64_t;

// Of texts in which all atoms of `with` are found, and none of `without`.
struct Product {
  Atoms with = 0;
  Atoms without = 0;
  friend auto operator<=>(const Product&, const Product&) = default;
};

// A group L(x)·"·rest: x, and where in JSON's spelling of a character it stands.
struct Lifted {
  Term text = kNothing;
  std::uint32_t phase = 0;
  Term rest = kEmpty;
};

bool covers(const Product& all, const Product& some) {
  return (all.with & some.with) == all.with && (all.without & some.without) == all.without;
}

// Whether every text of `product` is seen to be one of the others; looks at so many of them.
bool is_covered(const Product& product, std::span<const Product> by, std::size_t& budget) {
  std::vector<Product> meeting;
  for (const Product& other : by) {
    if (covers(other, product)) return true;
    if ((other.with & product.without) == 0 && (other.without & product.with) == 0)
      meeting.push_back(other);
  }
  if (meeting.empty() || budget < by.size()) return false;
  budget -= by.size();
  const Product& first = meeting.front();
  const Atoms open = (first.with | first.without) & ~(product.with | product.without);
  const Atoms atom = open & ~(open - 1);
  return is_covered({product.with | atom, product.without}, meeting, budget) &&
         is_covered({product.with, product.without | atom}, meeting, budget);
}

// The same texts in fewer products.
std::vector<Product> put_together(const std::vector<Product>& given) {
  std::set<Product> products(given.begin(), given.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < kMostAtoms; ++i) {
      const Atoms atom = Atoms{1} << i;
      for (auto at = products.begin(); at != products.end();) {
        const Product product = *at;
        const auto twin = (product.with & atom) == 0
                              ? products.end()
                              : products.find({product.with & ~atom, product.without | atom});
        if (twin == products.end()) {
          ++at;
          continue;
        }
        products.erase(twin);
        products.erase(at);
        products.insert({product.with & ~atom, product.without & ~atom});
        at = products.begin();
        changed = true;
      }
    }
  }
  const std::vector<Product> left(products.begin(), products.end());
  std::vector<Product> kept;
  std::size_t budget = kMostCompared;
  for (Product product : left) {
    if (std::ranges::any_of(kept, [&](const Product& k) { return covers(k, product); })) continue;
    // Without the atoms that say nothing beside the other products.
    for (Atoms open = product.with | product.without; open != 0; open &= open - 1) {
      const Atoms atom = open & ~(open - 1);
      const Product wider{product.with & ~atom, product.without & ~atom};
      if (is_covered(wider, left, budget)) product = wider;
    }
    kept.push_back(product);
  }
  return kept;
}

}  // namespace

struct Walker::AlikeStrings {
  AlikeStrings(TermStore& store, std::uint32_t phase) : store(store), phase(phase) {}

  void add(const Lifted& lifted, SetId parents);
  bool settle();
  Term together();

  TermStore& store;
  std::uint32_t phase;
  std::vector<Term> texts;
  std::vector<Group> groups;      // what follows each of them
  std::vector<Product> products;  // they are
  std::vector<Term> atoms;
  Term domain = kNothing;  // any text, of which all the others are a part; nothing: not there

 private:
  bool add_product(Term text);
  std::optional<Atoms> bit_of(Term atom);
  std::optional<Atoms> parts_of(Term removed);

  std::unordered_map<Term, std::optional<Atoms>> parts_;
  std::vector<std::vector<Term>> alternatives_;  // of the atoms of `with`
};

namespace {

// What a term is the intersection of.
std::vector<Term> factors(const TermStore& store, Term t) {
  if (store.node(t).kind != Kind::Intersect) return {t};
  return {store.operands(t).begin(), store.operands(t).end()};
}

// What is any text, or what follows the beginning of a character in it.
bool is_domain(TermStore& store, Term t) {
  while (store.node(t).kind == Kind::Concat) {
    const Term head = store.node(t).a;
    if (store.node(head).kind != Kind::Bytes ||
        !(store.byte_set(head) & ByteSet::range(0, 0x7F)).empty())
      return false;
    t = store.node(t).b;
  }
  return t == store.any_text();
}

// Adds terms, the union of which is before·t.
void add_alternatives(TermStore& store, Term before, Term t, std::vector<Term>& out) {
  const Node n = store.node(t);
  if (out.size() > kMostAtoms) {
    out.push_back(store.concat(before, t));
  } else if (n.kind == Kind::Union) {
    const std::vector<Term> parts(store.operands(t).begin(), store.operands(t).end());
    for (const Term part : parts) add_alternatives(store, before, part, out);
  } else if (n.kind == Kind::Concat) {
    add_alternatives(store, store.concat(before, n.a), n.b, out);
  } else {
    out.push_back(store.concat(before, t));
  }
}

// Whether a quote is strictly below a node.
bool has_quote_below(const Trie& trie, std::uint32_t node) {
  if (const Letters* const letters = trie.letters_below(node)) return letters->has('"');
  const Trie::Node& here = trie.node(node);
  for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
    if (trie.byte(child) == '"' || has_quote_below(trie, child)) return true;
  }
  return false;
}

std::optional<Lifted> as_lifted(TermStore& store, Term t) {
  const Term quote = store.byte('"');
  const Term character = store.node(store.node(store.any_json_then(quote)).a).a;
  Lifted lifted;
  std::vector<Term> heads;
  Term rest = t;
  for (;;) {
    const Node n = store.node(rest);
    const Term head = n.kind == Kind::Concat ? n.a : rest;
    if (head == quote) {
      if (heads.empty()) return std::nullopt;
      lifted.rest = n.kind == Kind::Concat ? n.b : kEmpty;
      lifted.text = store.concat(heads);
      return lifted;
    }
    if (n.kind != Kind::Concat || lifted.phase != 0) return std::nullopt;
    const Node h = store.node(head);
    if (h.kind == Kind::Json && h.c == 0 && (h.b == 0 || heads.empty())) {
      heads.push_back(h.a);
      lifted.phase = h.b;
    } else if (head == character) {
      heads.push_back(store.any_char());
    } else if (h.kind == Kind::Repeat && h.a == character) {
      heads.push_back(store.repeat(store.any_char(), h.b, h.c));
    } else if (h.kind == Kind::Bytes && (store.byte_set(head) & ByteSet::range(0, 0x7F)).empty()) {
      heads.push_back(head);
    } else {
      return std::nullopt;
    }
    rest = n.b;
  }
}

}  // namespace

void Walker::AlikeStrings::add(const Lifted& lifted, SetId parents) {
  texts.push_back(lifted.text);
  groups.push_back({lifted.rest, parents});
}

// Nothing when there are too many.
std::optional<Atoms> Walker::AlikeStrings::bit_of(Term atom) {
  const auto found = std::ranges::find(atoms, atom);
  const auto index = static_cast<std::size_t>(found - atoms.begin());
  if (index == kMostAtoms) return std::nullopt;
  if (found == atoms.end()) atoms.push_back(atom);
  return Atoms{1} << index;
}

// Finds the atoms and the products of them; false where they are too many, or can't be told.
bool Walker::AlikeStrings::settle() {
  for (const Term text : texts) {
    for (const Term part : factors(store, text)) {
      if (store.node(part).kind == Kind::Complement) continue;
      if (!is_domain(store, part)) {
        if (!bit_of(part)) return false;
      } else if (domain == kNothing) {
        domain = part;
      } else if (domain != part) {
        return false;
      }
    }
  }
  for (const Term atom : atoms) {
    // A part of the domain, or not known to be one.
    if (domain != kNothing && !store.within(atom, domain)) return false;
    alternatives_.emplace_back();
    add_alternatives(store, kEmpty, atom, alternatives_.back());
  }
  return std::ranges::all_of(texts, [this](Term text) { return add_product(text); });
}

bool Walker::AlikeStrings::add_product(Term text) {
  Product product;
  bool in_domain = false;
  for (const Term part : factors(store, text)) {
    const Node n = store.node(part);
    if (n.kind == Kind::Complement) {
      const auto [found, fresh] = parts_.try_emplace(n.a);
      if (fresh) found->second = parts_of(n.a);
      if (!found->second) return false;
      product.without |= *found->second;
    } else if (part == domain) {
      in_domain = true;
    } else {
      product.with |= *bit_of(part);
    }
  }
  products.push_back(product);
  return in_domain || product.with != 0;
}

// Atoms, the union of which is a term: as far as may be, those that other groups ask for. Unions
// are written with what their operands have in common said once.
std::optional<Atoms> Walker::AlikeStrings::parts_of(Term removed) {
  std::vector<Term> left;
  add_alternatives(store, kEmpty, removed, left);
  Atoms some = 0;
  std::vector<Term> found;
  for (std::size_t i = 0; i < alternatives_.size(); ++i) {
    const std::vector<Term>& those = alternatives_[i];
    const auto is_left = [&](Term u) { return std::ranges::find(left, u) != left.end(); };
    if (!std::ranges::all_of(those, is_left) && !store.within(atoms[i], removed)) continue;
    some |= Atoms{1} << i;
    found.push_back(atoms[i]);
  }
  if (store.join(found) == removed) return some;
  for (const Term u : left) {
    const auto has = [&](const std::vector<Term>& those) {
      return std::ranges::find(those, u) != those.end();
    };
    bool told = false;
    for (std::size_t i = 0; i < alternatives_.size() && !told; ++i)
      told = ((some >> i) & 1) != 0 && has(alternatives_[i]);
    if (told) continue;
    const std::optional<Atoms> bit = bit_of(u);
    if (!bit) return std::nullopt;
    some |= *bit;
  }
  return some;
}

// What all groups are together, as a text; nothing when that is no simpler.
Term Walker::AlikeStrings::together() {
  const std::vector<Product> left = put_together(products);
  if (left.size() > kMostLeft) return kNothing;
  std::vector<Term> texts;
  for (const Product& product : left) {
    std::vector<Term> parts;
    std::vector<Term> removed;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
      const Atoms atom = Atoms{1} << i;
      if ((product.with & atom) != 0) parts.push_back(atoms[i]);
      if ((product.without & atom) != 0) removed.push_back(atoms[i]);
    }
    if (domain != kNothing) parts.push_back(domain);
    if (parts.empty()) return kNothing;
    if (!removed.empty()) parts.push_back(store.raw_complement(store.join(std::move(removed))));
    texts.push_back(store.intersect(std::move(parts)));
  }
  return store.join(std::move(texts));
}

bool Walker::apply_alike(Place place, std::size_t level, bool blank, MaskBuilder& out) {
  if (ends_ != nullptr || store_.remembers() || store_.restricted()) return false;
  // Most sets of groups are the beginnings of a value, to be told at once.
  const auto is_lifted = [&](const Group& group) {
    const Node& n = store_.node(group.term);
    return n.kind == Kind::Concat && store_.node(n.a).kind == Kind::Json;
  };
  if (std::ranges::count_if(levels_[level].items, is_lifted) < kFewLifted) return false;
  const std::vector<Group> given = levels_[level].items;
  std::optional<AlikeStrings> alike;
  std::vector<bool> taken(given.size());
  std::size_t known = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (store_.has(given[i].term, kHasNoSplit)) continue;
    const std::optional<Lifted> lifted = as_lifted(store_, given[i].term);
    if (!lifted || (alike && alike->phase != lifted->phase)) continue;
    if (!alike) alike.emplace(store_, lifted->phase);
    alike->add(*lifted, given[i].parents);
    taken[i] = true;
    if (given.size() <= kFewKnown && known_frame(place, normalised(given[i].term)) != nullptr)
      ++known;
  }
  if (!alike || alike->groups.size() < kFewAlike || alike->groups.size() > kMostProducts ||
      known == alike->groups.size() || !alike->settle())
    return false;
  const Term together = alike->together();
  if (together == kNothing) return false;
  const Term whole = store_.concat(store_.json_within(together, alike->phase), store_.byte('"'));
  // Nothing follows: that depends on the group.
  if (!apply_frame(place, {whole, Machine::kEmptySet}, level + 1, blank, out)) return false;
  std::vector<Term> states;
  for (const Term atom : alike->atoms) states.push_back(store_.json_within(atom, alike->phase));
  if (alike->domain != kNothing) states.push_back(store_.json_within(alike->domain, alike->phase));
  walk_closings({*place.trie, Machine::kEmptySet, level + 1, out}, place.node, *alike, states);
  std::vector<Group>& items = levels_[level].items;
  items.clear();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!taken[i]) items.push_back(given[i]);
  }
  return true;
}

// Where a quote closes the string below a node, goes on with what follows the groups that it ends.
// `states`: what is left of each atom, in JSON's spelling, and of the domain.
void Walker::walk_closings(const KeyPlace& at, std::uint32_t node, const AlikeStrings& alike,
                           const std::vector<Term>& states) {
  const Trie::Node& here = at.trie.node(node);
  std::vector<Term> after(states.size());
  for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
    const Trie::Node& below = at.trie.node(child);
    if (below.child_begin == below.child_end) continue;
    const std::uint8_t byte = at.trie.byte(child);
    if (byte == '"') close_alike(at, child, alike, states);
    if (!has_quote_below(at.trie, child)) continue;
    count_nodes(stats_.pair_nodes);
    bool live = false;
    for (std::size_t i = 0; i < states.size(); ++i) {
      after[i] = states[i] == kNothing ? kNothing : store_.step(states[i], byte);
      live = live || after[i] != kNothing;
    }
    if (live) walk_closings(at, child, alike, after);
  }
}

void Walker::close_alike(const KeyPlace& at, std::uint32_t child, const AlikeStrings& alike,
                         const std::vector<Term>& states) {
  Atoms found = 0;
  for (std::size_t i = 0; i < alike.atoms.size(); ++i) {
    if (store_.nullable(states[i])) found |= Atoms{1} << i;
  }
  if (alike.domain != kNothing && !store_.nullable(states.back())) return;
  Groups& groups = groups_at(at.level);
  groups.clear();
  for (std::size_t i = 0; i < alike.products.size(); ++i) {
    const Product& product = alike.products[i];
    if ((product.with & ~found) == 0 && (product.without & found) == 0)
      machine_.add_group(groups, alike.groups[i]);
  }
  if (!groups.items.empty()) enter(at.trie, child, at.level, {}, at.out);
}

}  // namespace grammaton
