// Frames of bounded length: L(A & X{m,n}) q, one frame mask for all m and n.
//
// A is any regular term ("letters and dots"), X one character, L the lift through JSON's escapes or
// nothing, q a byte that closes the text, or nothing. The *reference* L(A & X*) q is studied once,
// beside a *meter* L(X*) q, which says where items begin. A token that stays inside the reference
// *needs* the items that it has begun and the fewest that must follow; it stays inside the bounded
// frame when that is at most n, and m asks for nothing more where every text can be made longer. A
// token leaves where its items lie between m and n. Almost every token needs as many items as it
// has characters, or a few more ("two capitals somewhere" needs two more), so the base at n is, for
// each such *slack*, the tokens that have it, less those of the vocabulary that have more than
// n - slack characters, and lists of the others.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "index/distances.hpp"
#include "index/path_states.hpp"
#include "index/remainders.hpp"
#include "index/walk.hpp"

namespace grammaton {

namespace {

// So many tokens that need equally more items than they have characters are listed; more are bits.
constexpr std::size_t kListedTokens = 1024;
// Unions of more terms keep their counts: they are enumerations.
constexpr std::size_t kFewOperands = 64;
// All but what so few nodes begin is most of the vocabulary.
constexpr std::size_t kFewNodes = 128;

struct TokenSetBuilder {
  std::vector<ItemCounts::Taken> listed;
  std::vector<Word> bits;  // empty while they are listed

  void take(const ItemCounts::Taken& taken, std::size_t words) {
    if (bits.empty() && listed.size() < kListedTokens) {
      listed.push_back(taken);
      return;
    }
    if (bits.empty()) {
      bits.assign(words, 0);
      for (const ItemCounts::Taken& earlier : listed) set_bit(bits.data(), earlier.token);
      listed.clear();
    }
    set_bit(bits.data(), taken.token);
  }
};

}  // namespace

const Walker::Bounded* Walker::bounded_form(Term t) {
  const auto found = bounded_.find(t);
  const Bounded& form = found != bounded_.end() ? found->second : bounded_[t] = find_bounded(t);
  return form.reference == kNothing ? nullptr : &form;
}

Walker::Bounded Walker::find_bounded(Term t) {
  Bounded form;
  if (store_.restricted() || store_.has(t, kHasCall) || store_.has(t, kHasNoSplit)) return form;
  const Node n = store_.node(t);
  const Term head = n.kind == Kind::Concat ? n.a : t;
  form.rest = n.kind == Kind::Concat ? n.b : kEmpty;
  const Node h = store_.node(head);
  form.lifted = h.kind == Kind::Json && h.b == 0 && h.c == 0;
  const Term inner = form.lifted ? h.a : head;
  std::vector<Term> others;
  Term bound = inner;
  if (store_.node(inner).kind == Kind::Intersect) {
    bound = kNothing;
    for (const Term operand : store_.operands(inner)) {
      const Node& o = store_.node(operand);
      // As many states as the number that it is a multiple of, and few tokens are digits.
      if (o.kind == Kind::Residue) return form;
      if (bound == kNothing && o.kind == Kind::Repeat && o.c != kUnbounded) {
        bound = operand;
      } else {
        others.push_back(operand);
      }
    }
  }
  const Node repeated = store_.node(bound);
  if (repeated.kind != Kind::Repeat || repeated.c == kUnbounded) return form;
  const Node x = store_.node(repeated.a);
  const bool character =
      x.kind == Kind::Chars || (x.kind == Kind::Bytes && store_.byte_set(repeated.a).is_ascii());
  if (!character) return form;
  const Term item = form.lifted ? store_.json(repeated.a) : repeated.a;
  if (!prefix_free(item)) return form;
  const Term any = store_.repeat(repeated.a, 0, kUnbounded);
  others.push_back(any);
  const Term whole = store_.intersect(std::move(others));
  Term reference = form.lifted ? store_.json(whole) : whole;
  Term meter = store_.repeat(item, 0, kUnbounded);
  const Node after = store_.node(form.rest);
  const Term close = after.kind == Kind::Concat ? after.a : form.rest;
  if (store_.node(close).kind == Kind::Bytes &&
      (store_.class_map(store_.row(item)).live & store_.byte_set(close)).empty()) {
    form.closed = true;
    form.rest = after.kind == Kind::Concat ? after.b : kEmpty;
    reference = store_.concat(reference, close);
    meter = store_.concat(meter, close);
  }
  form.empty = !form.closed && form.rest != kEmpty && store_.nullable(head);
  form.low = repeated.b;
  form.high = repeated.c;
  form.meter = meter;
  form.reference = reference;
  return form;
}

// Null when the reference has too many states.
std::shared_ptr<const FrameMask> Walker::bounded_frame(Place place, const Bounded& form) {
  Hash128 hash = store_.node(form.reference).hash;
  hash.add(store_.node(form.meter).hash);
  const TokenIndex::Key key{place.trie->uid(), place.node, hash};
  if (auto known = index_.find(key)) return known;
  if (uncounted_.contains(form.reference)) return nullptr;
  const Distances distances(store_, {form.reference, form.meter}, form.lifted, form.closed);
  if (!distances.complete()) {
    uncounted_.insert(form.reference);
    return nullptr;
  }
  ++stats_.frames_made;
  return index_.keep(
      key, measure(
               place, form, [&](Term term, Term meter) { return distances.of({term, meter}); },
               distances.extensible(), Rests::Others));
}

// As left_out(): the reference has been measured, so it has not too many states.
std::shared_ptr<FrameMask> Walker::measure_going_on(Place place, const Bounded& form) {
  const Distances distances(store_, {form.reference, form.meter}, form.lifted, form.closed,
                            kUnbounded);
  return measure(
      place, form, [&](Term term, Term meter) { return distances.of({term, meter}); },
      distances.extensible(), Rests::GoingOn);
}

std::shared_ptr<FrameMask> Walker::measure(Place place, const Bounded& form,
                                           const std::function<std::uint32_t(Term, Term)>& distance,
                                           bool extensible, Rests rests) {
  const Trie& trie = *place.trie;
  const Trie::Node& top = trie.node(place.node);
  // Characters of whole tokens are known in the trie of the vocabulary only.
  const bool by_characters = &trie == &index_.trie();
  struct Visit {
    std::uint32_t node;
    Term term;
    Term meter;
    std::uint32_t items;
  };
  const std::size_t words = index_.words();
  std::array<TokenSetBuilder, LengthBounds::kSlacks> by_slack;
  LengthBounds bounds;
  bounds.extensible = extensible;
  std::vector<Entry> longest;
  std::vector<Entry> unsure;
  std::vector<Visit> exits;
  // `characters`: of the token, from `place` on.
  const auto take = [&](const Entry& entry, std::uint32_t need, std::uint32_t characters) {
    if (by_characters && need - characters < by_slack.size()) {
      by_slack[need - characters].take({need, entry.token}, words);
    } else {
      bounds.others.push_back({need, entry.token});
    }
    if (!form.closed && need > kLongNeed) {
      longest.push_back({entry.token, entry.start + top.depth, need});
    }
  };
  // Entries that need `more` items and one for each character after `from`.
  const auto take_run = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t more,
                            const Trie::Node& from) {
    const std::uint32_t slack = more + top.characters - from.characters;
    if (by_characters && form.closed && slack < by_slack.size() && !by_slack[slack].bits.empty()) {
      Word* const bits = by_slack[slack].bits.data();
      for (const Entry& entry : trie.entries(begin, end)) set_bit(bits, entry.token);
      return;
    }
    for (std::uint32_t e = begin; e < end; ++e) {
      take(trie.entry(e), more + trie.characters(e) - from.characters,
           trie.characters(e) - top.characters);
    }
  };
  std::unordered_map<Term, LoopedLetters> loops;
  const auto loop = [&](Term term) -> LoopedLetters& {
    const auto [found, fresh] = loops.try_emplace(term);
    if (fresh) found->second = LoopedLetters(store_, term, true);
    return found->second;
  };
  const auto take_looped = [&](const Visit& at, const Letters& letters) {
    if (at.meter != form.meter || (form.lifted && letters.has('\\'))) return false;
    if (!loop(at.term).include(store_, letters)) return false;
    const std::uint32_t more = distance(at.term, at.meter);
    if (more == kNone) return false;
    const Trie::Node& here = trie.node(at.node);
    take_run(here.entry_end, here.subtree_entry_end, at.items + more, here);
    return true;
  };
  std::vector<Visit> stack{{place.node, form.reference, form.meter, 0}};
  const auto visit = [&](const Visit& at, std::uint32_t child, Term term, Term meter) {
    count_nodes(stats_.study_nodes);
    Visit next{child, term, meter, at.items};
    if (at.meter == form.meter && next.meter != kEmpty) ++next.items;
    const Trie::Node& below = trie.node(child);
    const bool ends = form.closed && next.term == kEmpty;
    if (below.entry_begin != below.entry_end) {
      const std::uint32_t more = ends ? 0 : distance(next.term, next.meter);
      for (const Entry& entry : trie.entries_at(child)) {
        if (ends) {
          bounds.ending.push_back({next.items, entry.token});
        } else if (more == kNone) {
          unsure.push_back({entry.token, entry.start + top.depth, 0});
        } else {
          take(entry, next.items + more, below.characters - top.characters);
        }
      }
    }
    if (below.child_begin == below.child_end) return;
    if (store_.nullable(next.term)) exits.push_back(next);
    if (!ends) stack.push_back(next);
  };
  // As in study(): all but what characters begin that are not looped on.
  std::vector<Word>& inside = scratch_->studied;  // all in the reference, in the end
  inside.assign(words, 0);
  Remainders remainders(trie, inside.data(), false, rests);
  std::vector<Entry> passed;
  std::vector<std::uint32_t> others;
  const auto take_but_others = [&](const Visit& at) {
    if (at.meter != form.meter) return false;
    const Letters& looped = loop(at.term).all(store_);
    const std::uint32_t more = distance(at.term, at.meter);
    if (more == kNone || (form.lifted && looped.has('\\'))) return false;
    const bool at_root = by_characters && at.node == Trie::kRoot && more < by_slack.size();
    std::vector<Word> bits;
    const bool cut = at_root && !store_.nullable(at.term) &&
                     index_.cut(looped, store_.class_map(store_.row(at.term)).live, bits, others);
    if (!cut && !trie.find_others(at.node, looped, others)) return false;
    const Trie::Node& here = trie.node(at.node);
    const bool whole = cut || (at_root && others.size() * kFewNodes < trie.size());
    if (whole) {  // before any visit, which may take some of the same slack
      if (!cut) bits = index_.text_bits();
      for (const std::uint32_t other : others) {
        for (const Entry& entry : trie.entries_from(other)) clear_bit(bits.data(), entry.token);
      }
      if (!form.closed) {
        for (std::uint32_t e = here.entry_end; e < here.subtree_entry_end; ++e) {
          const std::uint32_t need = more + trie.characters(e);
          const std::uint32_t token = trie.entry(e).token;
          if (need > kLongNeed && get_bit(bits.data(), token)) longest.push_back({token, 0, need});
        }
      }
      by_slack[more].bits = std::move(bits);
    }
    std::uint32_t done = here.entry_end;
    PathStates<Measured> path({at.term, at.meter, at.items});
    const auto step = [&](const Measured& from, std::uint8_t byte) {
      const Term meter = store_.step(from.meter, byte);
      const bool begins = from.meter == form.meter && meter != kEmpty;
      return Measured{store_.step(from.term, byte), meter, from.items + (begins ? 1 : 0)};
    };
    for (const std::uint32_t other : others) {
      const Trie::Node& below = trie.node(other);
      const std::span<const Entry> entries = trie.entries_from(other);
      if (!whole) take_run(done, below.entry_begin, at.items + more, here);
      done = below.subtree_entry_end;
      const Entry& first = entries.front();
      const auto text =
          index_.token(first.token).substr(first.start + here.depth, below.depth - here.depth);
      path.follow(text.substr(0, text.size() - 1), step);
      pass_exits(store_, path, text, entries, here.depth, remainders, passed,
                 [this](Term t, unsigned byte) { return store_.step(t, byte); });
      const Measured& from = path.states().back();
      const Term next = store_.step(from.term, trie.byte(other));
      if (next == kNothing) continue;
      visit({at.node, from.term, from.meter, from.items}, other, next,
            store_.step(from.meter, trie.byte(other)));
    }
    if (!whole) take_run(done, here.subtree_entry_end, at.items + more, here);
    return true;
  };
  while (!stack.empty()) {
    const Visit at = stack.back();
    stack.pop_back();
    const Trie::Node& here = trie.node(at.node);
    const Letters* letters = trie.letters_below(at.node);
    if (letters != nullptr && take_looped(at, *letters)) continue;
    if (here.subtree_nodes >= kWideSubtree && take_but_others(at)) continue;
    const Row row = store_.row(at.term);
    const Row meter_row = store_.row(at.meter);
    const ClassMap& map = store_.class_map(row);
    const ClassMap& meter_map = store_.class_map(meter_row);
    for (std::uint32_t child = here.child_end; child-- > here.child_begin;) {
      const std::uint8_t byte = trie.byte(child);
      if (map.of[byte] == 0) continue;
      visit(at, child, store_.target(row, map.of[byte]),
            store_.target(meter_row, meter_map.of[byte]));
    }
  }

  for (std::size_t slack = 0; slack < by_slack.size(); ++slack) {
    const TokenSetBuilder& built = by_slack[slack];
    if (!built.bits.empty()) bounds.by_slack[slack] = copy_bits(built.bits);
    bounds.others.insert(bounds.others.end(), built.listed.begin(), built.listed.end());
  }
  for (const TokenSetBuilder& built : by_slack) {
    for (std::size_t i = 0; i < built.bits.size(); ++i) inside[i] |= built.bits[i];
  }
  for (const ItemCounts::Taken& taken : bounds.others) set_bit(inside.data(), taken.token);
  for (const Entry& entry : unsure) set_bit(inside.data(), entry.token);
  auto mask = std::make_shared<FrameMask>();
  for (const Visit& exit : exits)
    remainders.add_exit(exit.node, store_.class_map(store_.row(exit.term)).live, exit.items);
  for (const Entry& entry : passed) remainders.take(entry);
  const auto bytes_of = [this](std::uint32_t token) { return index_.token(token); };
  count_listed(remainders.count());
  remainders.finish(*mask, index_);
  if (rests == Rests::GoingOn) return mask;
  if (!unsure.empty()) bounds.unsure = std::make_unique<Trie>(std::move(unsure), bytes_of);
  if (!longest.empty()) bounds.longest = std::make_unique<Trie>(std::move(longest), bytes_of);
  sort_by_items(bounds.others);
  std::ranges::reverse(bounds.others);
  mask->bounds = std::move(bounds);
  return mask;
}

bool Walker::apply_bounded(Place place, const Group& group, std::size_t level, bool blank,
                           MaskBuilder& out) {
  const Bounded* found = bounded_form(group.term);
  if (found == nullptr || (!found->closed && found->high < kLongNeed)) return false;
  const Bounded form = *found;
  const std::shared_ptr<const FrameMask> mask = bounded_frame(place, form);
  if (mask == nullptr) {
    bounded_[group.term].reference = kNothing;
    return false;
  }
  const LengthBounds& bounds = *mask->bounds;
  if (form.low > 0 && !bounds.extensible) return false;
  ++stats_.counted;
  for (std::size_t slack = 0; slack < bounds.by_slack.size(); ++slack) {
    const Bits& bits = bounds.by_slack[slack];
    if (bits == nullptr || slack > form.high) continue;
    const std::size_t most =
        std::size_t{form.high} + place.trie->node(place.node).characters - slack;
    const std::vector<ItemCounts::Taken>& longer = index_.longer_tokens();
    if (most <= TokenIndex::kReadyCharacters) {
      out.add(index_.shared_bits().meet(bits, index_.at_most_characters(most)));
    } else if (longer.empty() || longer.front().items <= most) {
      out.add(bits);
    } else {
      Part part(*this, out, std::exchange(blank, false));
      part.bits().add(bits);
      for (const ItemCounts::Taken& taken : longer) {
        if (taken.items <= most) break;
        part.bits().unset(taken.token);
      }
      part.join();
    }
    blank = false;
  }
  for (const ItemCounts::Taken& taken : bounds.others) {
    if (taken.items > form.high) break;
    out.set(taken.token);
  }
  for (const ItemCounts::Taken& taken : bounds.ending) {
    if (form.low <= taken.items && taken.items <= form.high) out.set(taken.token);
  }
  if (bounds.unsure) walk_plainly(*bounds.unsure, group, level, {}, out);
  const bool leaves = mask->rest || !mask->exits.empty() || !mask->left_out.empty();
  const SetId after =
      leaves || bounds.longest ? machine_.push(form.rest, group.parents) : Machine::kEmptySet;
  // Those end early where what follows begins with what the frame could go on with.
  if (bounds.longest &&
      !wanted(store_.class_map(store_.row(form.meter)).live, after, level).empty())
    walk_plainly(*bounds.longest, group, level, {form.high + 1, kUnbounded}, out);
  if (leaves) {
    walk_after(*mask, {place, form.reference, &form}, after, level, {form.low, form.high}, out);
  }
  if (form.empty) {
    Groups& groups = groups_at(level);
    groups.clear();
    groups.items.push_back({form.rest, group.parents});
    machine_.close(groups, place.trie->bytes_below(place.node));
    walk(*place.trie, place.node, level, {}, out);
  }
  return true;
}

// Without frames: `trie` has few tokens, and is part of one.
void Walker::walk_plainly(const Trie& trie, const Group& group, std::size_t level, Filter filter,
                          MaskBuilder& out) {
  Groups& groups = groups_at(level);
  groups.clear();
  groups.items.push_back(group);
  plain_ = true;
  walk(trie, Trie::kRoot, level, filter, out);
  plain_ = false;
}

// A term with the same masks whose large counts are unbounded: no token has more items than bytes.
// Right for any counts at once where nothing is subtracted from them.
Term Walker::normalised(Term t) {
  if (t < normalised_.size() && normalised_[t] != kNone) return normalised_[t];
  const Node n = store_.node(t);
  Term result = t;
  switch (n.kind) {
    case Kind::Concat: {
      std::vector<Term> parts;
      Term rest = t;
      for (; store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b)
        parts.push_back(store_.node(rest).a);
      parts.push_back(rest);
      if (normalise_all(parts)) result = store_.concat(parts);
      break;
    }
    case Kind::Union: {
      if (store_.operands(t).size() > kFewOperands) break;
      std::vector<Term> parts(store_.operands(t).begin(), store_.operands(t).end());
      if (normalise_all(parts)) result = store_.join(std::move(parts));
      break;
    }
    case Kind::Intersect: {
      // A complement is one within any text, which says nothing of what is text anyway.
      std::vector<Term> parts(store_.operands(t).begin(), store_.operands(t).end());
      const auto any = std::ranges::find(parts, store_.any_text());
      if (any == parts.end() || store_.restricted()) break;
      parts.erase(any);
      if (std::ranges::any_of(parts, [this](Term part) { return store_.is_text(part); }))
        result = normalised(store_.intersect(std::move(parts)));
      break;
    }
    case Kind::Repeat: {
      const Term item = normalised(n.a);
      std::uint32_t low = n.b;
      std::uint32_t high = n.c;
      if (!store_.nullable(n.a)) {
        const std::size_t bytes = shortest(n.a);
        const std::size_t most = (index_.longest_token() + bytes - 1) / bytes;
        if (low > most) low = static_cast<std::uint32_t>(most);
        if (high >= most) high = kUnbounded;
      }
      if (item != n.a || low != n.b || high != n.c) result = store_.repeat(item, low, high);
      break;
    }
    default:
      break;
  }
  if (t >= normalised_.size()) normalised_.resize(store_.size(), kNone);
  normalised_[t] = result;
  return result;
}

// False when all are as they were: making them anew was an eighth of a first mask at a new place.
bool Walker::normalise_all(std::span<Term> parts) {
  bool changed = false;
  for (Term& part : parts) {
    const Term before = part;
    part = normalised(before);
    changed = changed || part != before;
  }
  return changed;
}

// A lower bound of the bytes of a text of the term, at least 1; the term is not nullable.
std::uint32_t Walker::shortest(Term t) {
  constexpr std::uint32_t kFar = 1 << 16;
  const auto bytes = [&](auto&& self, Term of) -> std::uint32_t {
    if (store_.nullable(of)) return 0;
    const Node& n = store_.node(of);
    switch (n.kind) {
      case Kind::Bytes:
      case Kind::Chars:
        return 1;
      case Kind::Concat:
        return std::min(kFar, self(self, n.a) + self(self, n.b));
      case Kind::Repeat:
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(kFar, std::uint64_t{n.b} * self(self, n.a)));
      case Kind::Union: {
        std::uint32_t least = kFar;
        if (store_.operands(of).size() > kFewOperands) return 0;
        for (const Term operand : store_.operands(of)) least = std::min(least, self(self, operand));
        return least;
      }
      default:
        return 0;
    }
  };
  return std::max(1u, bytes(bytes, t));
}

}  // namespace grammaton
