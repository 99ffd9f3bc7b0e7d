#include "index/letters.hpp"

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

// Whether every character that begins with what was read leads from `from` back to `to`; `last` of
// its bytes are still to come, the next between `low` and `high`.
class ReturnSearch {
 public:
  ReturnSearch(TermStore& store, Term to) : store_(store), to_(to) {}
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

 private:
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
    if (after == kNothing) continue;
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (search.all(after, low, high, lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3)) {
      letters_.add(Letters::lead(lead));
    }
  }
}

}  // namespace grammaton
