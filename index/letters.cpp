#include "index/letters.hpp"

#include <algorithm>

#include "index/letter_classes.hpp"

namespace grammaton {

void Wellformed::require(std::uint8_t byte, const Wellformed& below) {
  const std::uint8_t next = below.states_;
  auto goes_to = [next](State state) { return (next & state) != 0; };
  std::uint8_t from = 0;
  auto allow = [&from](State state, bool allowed) {
    if (allowed) from = static_cast<std::uint8_t>(from | state);
  };
  if (byte < 0x80) {
    allow(kBoundary, goes_to(kBoundary));
  } else if (byte < 0xC0) {
    allow(kNeed1, goes_to(kBoundary));
    allow(kNeed2, goes_to(kNeed1));
    allow(kNeed3, goes_to(kNeed2));
    allow(kAfterE0, byte >= 0xA0 && goes_to(kNeed1));
    allow(kAfterED, byte < 0xA0 && goes_to(kNeed1));
    allow(kAfterF0, byte >= 0x90 && goes_to(kNeed2));
    allow(kAfterF4, byte < 0x90 && goes_to(kNeed2));
  } else if (byte >= 0xC2 && byte <= 0xF4) {
    const State after = byte < 0xE0    ? kNeed1
                        : byte == 0xE0 ? kAfterE0
                        : byte == 0xED ? kAfterED
                        : byte < 0xF0  ? kNeed2
                        : byte == 0xF0 ? kAfterF0
                        : byte == 0xF4 ? kAfterF4
                                       : kNeed3;
    allow(kBoundary, goes_to(after));
  }
  states_ &= from;
}

namespace {

Letters all_letters() {
  Letters all = Letters::ascii();
  for (unsigned byte = Letters::kFirstLead; byte <= Letters::kLastLead; ++byte) all.add_byte(byte);
  return all;
}

// A region of more terms is not looked at further,
constexpr std::size_t kMostReached = 24;
// unless there are no more of any length, up to so many characters; of fewer than kDeep it is of no
// use.
constexpr std::size_t kMostAlongside = 2;
constexpr std::uint32_t kDeepest = 40;
constexpr std::uint32_t kDeep = 12;
// After so many terms classes are looked for, or at once where terms may be empty.
constexpr unsigned kFewAsked = 8;

// Whether every character that begins with what was read leads from `from` to `to`; `last` of
// its bytes are still to come, the next between `low` and `high`.
class ReturnSearch {
 public:
  ReturnSearch(TermStore& store, Term to) : store_(store), to_(to) {}
  bool all(Term from, const Lead& lead) { return all(from, lead.low, lead.high, lead.more); }

 private:
  bool all(Term from, unsigned low, unsigned high, unsigned last) {
    Term before = kNothing;
    for (unsigned b = low; b <= high; ++b) {
      const Term next = store_.step(from, b);
      if (b != low && next == before) continue;
      if (last == 1 ? next != to_ : next == kNothing || !rest(next, last - 1)) return false;
      before = next;
    }
    return true;
  }

  // The characters of one lead byte share most of their middles, and so do leads.
  bool rest(Term from, unsigned last) {
    for (const Known& known : known_) {
      if (known.from == from && known.last == last) return known.returns;
    }
    const bool returns = all(from, 0x80, 0xBF, last);
    known_.push_back({from, last, returns});
    return returns;
  }

  struct Known {
    Term from;
    unsigned last;
    bool returns;
  };
  TermStore& store_;
  Term to_;
  std::vector<Known> known_;
};

}  // namespace

std::size_t LetterRegions::most(std::uint32_t characters) const {
  return kMostReached + (deep_ ? characters * kMostAlongside : 0);
}

LoopedLetters::LoopedLetters(TermStore& store, Term t, bool beyond_ascii)
    : term_(t), beyond_ascii_(beyond_ascii) {
  const Row row = store.row(t);
  for (unsigned c = 1; c < row.classes; ++c) {
    if (store.target(row, c) != t) continue;
    const ClassMap& map = store.class_map(row);
    for (unsigned b = 0; b < 0x80; ++b) {
      if (map.of[b] == c) letters_.add(b);
    }
  }
}

void LoopedLetters::add_beyond_ascii(TermStore& store) {
  ReturnSearch search(store, term_);
  for (unsigned lead = Letters::kFirstLead; lead <= Letters::kLastLead; ++lead) {
    const Term after = store.step(term_, lead);
    if (after != kNothing && search.all(after, Lead(lead))) letters_.add(Letters::lead(lead));
  }
}

void LetterEdges::add(Term to, unsigned letter) {
  auto edge = std::ranges::find(edges, to, &Edge::to);
  if (edge == edges.end()) edge = edges.insert(edge, Edge{to, {}});
  edge->over.add(letter);
  live.add(letter);
}

void LetterEdges::ask(TermStore& store, Term t, const Letters& letters) {
  Letters fresh = letters;
  fresh.remove(asked_);
  asked_.add(letters);
  fresh.each_ascii([&](unsigned letter) {
    const Term to = store.step_lazily(t, letter);
    if (to == kNothing) {
      dead.add(letter);
    } else {
      add(to, letter);
    }
  });
}

// What is known of the letters of a term, these among them.
const LetterRegions::LetterRow& LetterRegions::row(Term t, const Letters& letters) {
  LetterRow& made = rows_[t];
  made.ask(store_, t, store_.has(t, kMaybeEmpty) ? letters : Letters::ascii());
  if (!letters.only_ascii() && !made.beyond_ascii) {
    made.beyond_ascii = true;
    add_beyond_ascii(made, t);
  }
  return made;
}

// Null where there are none, or they are not worth it yet.
const LetterClasses* LetterRegions::classes_for(Term t) {
  if (!classes_sought_ && (store_.has(t, kMaybeEmpty) || ++asked_ > kFewAsked)) {
    classes_sought_ = true;
    classes_ = known_.letters_of(store_, start_);
  }
  return classes_.get();
}

void LetterRegions::add_beyond_ascii(LetterRow& row, Term t) {
  if (const LetterClasses* const classes = classes_for(t)) {
    classes->add_edges(store_, t, row, row.lives_on);
    return;
  }
  row.lives_on = store_.class_map(store_.row(t)).live;
  Term asked = kNothing;  // the one before, which most are like
  Lead asked_lead(0);
  Term to = kNothing;
  for (unsigned byte = Letters::kFirstLead; byte <= Letters::kLastLead; ++byte) {
    const Term after = store_.step(t, byte);
    if (after == kNothing) continue;
    const Lead lead(byte);
    if (after != asked || !(lead == asked_lead)) {
      asked = after;
      asked_lead = lead;
      // Where one of the characters leads, all have to.
      to = store_.step(after, lead.low);
      for (unsigned i = 1; i < lead.more; ++i) to = store_.step(to, 0x80);
      if (to != kNothing && !ReturnSearch(store_, to).all(after, lead)) to = kNothing;
    }
    if (to != kNothing) row.add(to, Letters::lead(byte));
  }
}

std::uint32_t LetterRegions::kept(Term t, const Letters& letters, std::uint32_t characters) {
  reached_.assign(1, {t, 0});
  const std::uint32_t most_characters = deep_ ? std::min(characters, kDeepest) : characters;
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    const Reached at = reached_[i];
    if (store_.has(at.term, kHasNoSplit)) return 0;
    if (reached_.size() > most(at.characters)) return at.characters;
    if (at.characters == most_characters) return most_characters;
    const LetterRow& from = row(at.term, letters);
    if (!letters.within(from.live)) return at.characters;
    for (const LetterEdges::Edge& edge : from.edges) {
      if (letters.meets(edge.over) && !is_reached(edge.to))
        reached_.push_back({edge.to, at.characters + 1});
    }
  }
  return characters;
}

const LetterRegions::Keeping* LetterRegions::keeping(Term t) {
  const auto [found, fresh] = keeping_.try_emplace(t);
  if (fresh) found->second = find_keeping(t);
  return found->second ? &*found->second : nullptr;
}

std::optional<LetterRegions::Keeping> LetterRegions::find_keeping(Term t) {
  Keeping keeping{row(t, all_letters()).live, true, false, {}, longest_};
  if (deep_) keeping.characters = std::min(longest_, kDeepest);
  Letters& letters = keeping.letters;
  bool closed = true;  // they lead back to one another
  reached_.assign(1, {t, 0});
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    const Reached at = reached_[i];
    if (store_.has(at.term, kHasNoSplit)) return std::nullopt;
    keeping.ends = keeping.ends || store_.nullable(at.term);
    if (at.characters == keeping.characters) {
      closed = false;
      continue;
    }
    const LetterRow& from = row(at.term, all_letters());
    letters.keep(from.live);
    keeping.live = keeping.live | from.lives_on;
    from.live.each_ascii([&](unsigned byte) { keeping.live.add(byte); });
    for (const LetterEdges::Edge& edge : from.edges) {
      if (!letters.meets(edge.over) || is_reached(edge.to)) continue;
      if (reached_.size() < most(at.characters) &&
          wanted_.within(row(edge.to, all_letters()).live)) {
        reached_.push_back({edge.to, at.characters + 1});
      } else if (deep_ && at.characters >= kDeep) {
        keeping.characters = at.characters + 1;  // where it lives still
        closed = false;
      } else {
        letters.remove(edge.over);
      }
    }
    if (!wanted_.within(letters)) return std::nullopt;
  }
  if (closed) keeping.characters = longest_;
  keeping.loops = reached_.size() == 1;
  return keeping;
}

}  // namespace grammaton
