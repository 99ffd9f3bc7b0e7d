#include "index/keeping.hpp"

#include <algorithm>
#include <utility>

namespace grammaton {

namespace {

// All but kMalformed.
constexpr unsigned kLetters = Letters::lead(Letters::kLastLead) + 1;
// A region of more terms is not looked at further.
constexpr std::size_t kMostReached = 24;
// Texts are looked for in so many states; a form is of no use if none is found.
constexpr std::size_t kSearched = 300;
// After as many terms without a form, a study asks no more.
constexpr unsigned kMostFailures = 12;
// Unions of more operands are not looked through.
constexpr std::size_t kMostOperands = 48;
// A form costs as much as a walk of so many nodes.
constexpr std::uint32_t kWorthAForm = 400;
// A region as one of so many.
constexpr std::uint32_t kWorthARegion = 400;
// Terms that a study may make to find forms.
constexpr std::size_t kMostTerms = 4000;
constexpr unsigned kMostNeeded = 400;
constexpr std::size_t kMostChoices = 6;
// Regions that a study may follow in vain: each takes as long as a walk of some hundred nodes. One
// that was of use makes good for so many.
constexpr unsigned kRegions = 8;
constexpr unsigned kRegionsGained = 2;
// What is remembered of so many terms.
constexpr std::size_t kMostKnown = 20'000;

Letters all_letters() {
  Letters all;
  for (unsigned letter = 0; letter < kLetters; ++letter) all.add(letter);
  return all;
}

unsigned first_byte(unsigned letter) {
  return letter < 0x80 ? letter : letter - 128 + Letters::kFirstLead;
}

unsigned size(const Letters& letters) {
  unsigned count = 0;
  for (unsigned letter = 0; letter < kLetters; ++letter) count += letters.has(letter);
  return count;
}

// How many texts are kept: few tokens have more than 32 characters.
std::uint32_t use(const Keeping::Kept& kept) {
  return size(kept.letters) * std::min(kept.characters, 32U);
}

// The first byte of a character's UTF-8, as a letter.
unsigned letter_of(std::uint32_t code) {
  if (code < 0x80) return code;
  if (code < 0x800) return Letters::lead(0xC0 | (code >> 6));
  if (code < 0x10000) return Letters::lead(0xE0 | (code >> 12));
  return Letters::lead(0xF0 | (code >> 18));
}

Letters letters_of(const CodeRanges& ranges) {
  Letters letters;
  for (const CodeRange& r : ranges) {
    for (unsigned letter = letter_of(r.low); letter <= letter_of(r.high); ++letter)
      letters.add(letter);
  }
  return letters;
}

Letters letters_of(const ByteSet& set) {
  Letters letters;
  set.each([&](unsigned b) { letters.add_byte(b); });
  return letters;
}

}  // namespace

// What all characters of a letter lead to; false when one of them kills the term, or there is more
// to it.
bool Keeping::step_letter(Term t, unsigned letter, std::vector<Term>& out) {
  constexpr std::size_t kMostEnds = 6;
  out.clear();
  const unsigned byte = first_byte(letter);
  const Term after = store_.step_lazily(t, byte);
  if (after == kNothing) return false;
  if (letter < 0x80) {
    out.push_back(after);
    return true;
  }
  std::vector<Term> level{after};
  const Lead lead(byte);
  for (unsigned i = 0; i < lead.more; ++i) {
    out.clear();
    for (const Term from : level) {
      const unsigned low = i == 0 ? lead.low : 0x80;
      const unsigned high = i == 0 ? lead.high : 0xBF;
      for (unsigned b = low; b <= high; ++b) {
        const Term to = store_.step_lazily(from, b);
        if (to == kNothing) return false;
        if (std::ranges::find(out, to) == out.end()) out.push_back(to);
        if (out.size() > kMostEnds) return false;
      }
    }
    level = out;
  }
  return true;
}

// What is known of the letters of a term, these among them. Characters beyond ASCII take a walk
// through a hundred terms, and are looked at when asked for.
const Keeping::LetterRow& Keeping::row(Term t, const Letters& letters) {
  LetterRow* made = &rows_[t];
  made->ask(store_, t, letters);
  if (letters.others_within(made->beyond_ascii)) return *made;
  std::vector<Term> ends;
  for (unsigned letter = 0x80; letter < kLetters; ++letter) {
    if (!letters.has(letter) || made->beyond_ascii.has(letter)) continue;
    made->beyond_ascii.add(letter);
    if (store_.step_lazily(t, first_byte(letter)) == kNothing) made->dead.add(letter);
    if (!step_letter(t, letter, ends)) continue;
    for (const Term to : ends) made->add(to, letter);
  }
  return *made;
}

// The letters that leave at least the term of it; `shrinking`: at most the term.
Letters Keeping::growing(Term t, bool shrinking) {
  Letters letters;
  for (const bool beyond_ascii : {false, true}) {
    const LetterRow& from = row(t, beyond_ascii ? all_letters() : Letters::ascii());
    Letters taken;
    for (const LetterEdges::Edge& edge : from.edges) {
      if (shrinking ? !store_.within(edge.to, t) : !store_.within(t, edge.to)) taken.add(edge.over);
    }
    // What dies has shrunk. Of a letter that some characters die over nothing is known.
    Letters told = from.live;
    if (shrinking) told.add(from.dead);
    told.remove(taken);
    letters.add(told);
    if (size(letters) == 0) break;
  }
  return letters;
}

// Sets of letters of each of which every text of the term has one, the smallest that are easily
// seen.
std::vector<Letters> Keeping::needed(Term t, unsigned& budget) {
  if (budget == 0 || store_.nullable(t)) return {};
  --budget;
  const Node n = store_.node(t);
  std::vector<Letters> found;
  switch (n.kind) {
    case Kind::Bytes: {
      // A continuation byte is no letter.
      const ByteSet& set = store_.byte_set(t);
      if (!(set & ByteSet::range(0x80, Letters::kFirstLead - 1)).empty()) return {};
      return {letters_of(set)};
    }
    case Kind::Chars:
      return {letters_of(store_.code_ranges(t))};
    case Kind::Repeat:
      return needed(n.a, budget);
    case Kind::Concat:
      for (Term rest = t;; rest = store_.node(rest).b) {
        const bool last = store_.node(rest).kind != Kind::Concat;
        const std::vector<Letters> more = needed(last ? rest : store_.node(rest).a, budget);
        found.insert(found.end(), more.begin(), more.end());
        if (last) break;
      }
      break;
    case Kind::Intersect:
    case Kind::Union: {
      const std::vector<Term> items(store_.operands(t).begin(), store_.operands(t).end());
      for (std::size_t i = 0; i < items.size(); ++i) {
        const std::vector<Letters> more = needed(items[i], budget);
        if (n.kind == Kind::Intersect || i == 0) {
          found.insert(found.end(), more.begin(), more.end());
          continue;
        }
        if (more.empty()) return {};
        for (Letters& all : found) {  // with what adds least to it
          const auto added = [&](const Letters& some) {
            Letters sum = all;
            sum.add(some);
            return size(sum);
          };
          all.add(*std::ranges::min_element(more, {}, added));
        }
      }
      break;
    }
    default:
      return {};
  }
  std::ranges::stable_sort(found, {}, [](const Letters& letters) { return size(letters); });
  if (found.size() > kMostChoices) found.resize(kMostChoices);
  return found;
}

Keeping::Bound Keeping::below_complement(Term operand) {
  const Term removed = store_.node(operand).a;
  Bound bound;
  if (const std::optional<Term> rests = store_.rests(removed)) {
    const Term left = store_.raw_complement(*rests);
    if (store_.ends_within(store_.intersect({store_.any_text(), left}), kSearched)) {
      bound.constant = left;
      bound.letters = all_letters();
      return bound;
    }
  }
  bound.constant = operand;
  bound.letters = growing(removed, true);
  unsigned budget = kMostNeeded;
  const std::vector<Letters> choices = needed(removed, budget);
  if (choices.empty()) return bound;
  const Letters without = choices.front();
  Letters others;
  CodeRanges ranges;
  for (unsigned letter = 0; letter < kLetters; ++letter) {
    if (without.has(letter)) continue;
    others.add(letter);
    if (letter < 0x80) ranges.push_back({letter, letter});
  }
  if (size(others) > size(bound.letters)) {
    bound.constant = store_.repeat(store_.chars(std::move(ranges)), 0, kUnbounded);
    bound.letters = others;
  }
  return bound;
}

Keeping::Bound Keeping::below(Term operand) {
  if (const auto found = below_.find(operand); found != below_.end()) return found->second;
  const Node n = store_.node(operand);
  Bound bound;
  if (n.kind == Kind::Complement) {
    bound = below_complement(operand);
  } else if (n.kind == Kind::Repeat && n.c != kUnbounded &&
             (store_.node(n.a).kind == Kind::Chars || store_.node(n.a).kind == Kind::Bytes)) {
    bound = {operand, row(n.a, all_letters()).live, true};
  } else if (n.kind == Kind::Union && store_.operands(operand).size() <= kMostOperands) {
    const std::vector<Term> items(store_.operands(operand).begin(), store_.operands(operand).end());
    bound = {operand, growing(operand, false), false};
    for (const Term u : items) {
      const Bound found = below(u);
      if (!found.counted && size(found.letters) > size(bound.letters)) bound = found;
    }
  } else {
    bound = {operand, growing(operand, false), false};
  }
  below_.emplace(operand, bound);
  return bound;
}

// Puts the bounds together.
void Keeping::settle(Form& form, const std::vector<Bound>& bounds) {
  form.kept.letters = all_letters();
  std::uint32_t most = longest_;
  std::vector<Term> parts;
  for (const Bound& bound : bounds) {
    form.kept.letters.keep(bound.letters);
    if (!bound.counted) {
      parts.push_back(bound.constant);
    } else {
      const Node n = store_.node(bound.constant);
      most = std::min(most, n.c - n.b);
    }
  }
  if (size(form.kept.letters) == 0) return;
  const bool counted = std::ranges::any_of(bounds, &Bound::counted);
  // The more characters a text may have, the less is left of the counts to end in.
  for (std::uint32_t less = 0; less <= most; less = less == 0 ? 1 : less * 2) {
    std::vector<Term> all = parts;
    for (const Bound& bound : bounds) {
      if (!bound.counted) continue;
      const Node n = store_.node(bound.constant);
      all.push_back(store_.repeat(n.a, n.b, n.c - (most - less)));
    }
    const Term constant = store_.intersect(std::move(all));
    if (store_.ends_within(constant, kSearched)) {
      form.constant = constant;
      form.kept.characters = counted ? most - less : longest_;
      return;
    }
    if (!counted) break;
  }
  form.kept.letters = {};
}

Keeping::Known Keeping::find_inner(Term x, bool lifted) {
  Known best;
  if (store_.node(x).kind == Kind::Union && store_.operands(x).size() <= kMostOperands) {
    const std::vector<Term> items(store_.operands(x).begin(), store_.operands(x).end());
    for (const Term u : items) {
      Known found = find_inner(u, lifted);
      if (use(found.fixed.kept) > use(best.fixed.kept)) best = std::move(found);
    }
    return best;
  }
  std::vector<Term> operands{x};
  if (store_.node(x).kind == Kind::Intersect)
    operands.assign(store_.operands(x).begin(), store_.operands(x).end());
  std::vector<Bound> fixed;
  std::vector<Bound> constant;
  std::vector<Term> varying;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Term operand = operands[i];
    const Node n = store_.node(operand);
    if (n.kind == Kind::Complement && store_.node(n.a).kind == Kind::Union &&
        store_.operands(n.a).size() <= kMostOperands) {
      const std::vector<Term> removed(store_.operands(n.a).begin(), store_.operands(n.a).end());
      for (const Term u : removed) operands.push_back(store_.raw_complement(u));
      continue;
    }
    const Bound bound = below(operand);
    fixed.push_back(bound);
    if (n.kind == Kind::Complement
            ? size(bound.letters) == kLetters
            : row(operand, Letters::ascii()).live.ascii_within(bound.letters)) {
      constant.push_back(bound);
    } else {
      varying.push_back(operand);
    }
  }
  settle(best.fixed, fixed);
  if (!varying.empty()) {
    settle(best.varied, constant);
    best.varied.varying = store_.intersect(std::move(varying));
  }
  if (lifted) {
    for (Form* form : {&best.fixed, &best.varied}) {
      for (unsigned letter = 0; letter < 0x20; ++letter) form->kept.letters.remove(letter);
      form->kept.letters.remove('"');
      form->kept.letters.remove('\\');
    }
  }
  return best;
}

Keeping::Known Keeping::find(Term t) {
  Known best;
  if (store_.has(t, kHasCall) || store_.has(t, kHasNoSplit)) return best;
  const Node n = store_.node(t);
  if (n.kind == Kind::Union && store_.operands(t).size() <= kMostOperands) {
    const std::vector<Term> items(store_.operands(t).begin(), store_.operands(t).end());
    for (const Term u : items) {
      Known found = find(u);
      if (use(found.fixed.kept) > use(best.fixed.kept)) best = std::move(found);
    }
    return best;
  }
  const Node head = store_.node(n.kind == Kind::Concat ? n.a : t);
  if (head.kind == Kind::Json && head.b == 0 && head.c == 0) {
    if (n.kind == Kind::Concat && !store_.ends_within(n.b, kSearched)) return best;
    return find_inner(head.a, true);
  }
  return find_inner(t, false);
}

Keeping::Known& Keeping::known(Term t, std::uint32_t nodes) {
  if (known_.size() >= kMostKnown || rows_.size() >= kMostKnown || below_.size() >= kMostKnown ||
      within_.size() >= kMostKnown) {
    known_.clear();
    rows_.clear();
    below_.clear();
    within_.clear();
  }
  Known& known = known_[t];
  if (known.looked || failures_ >= kMostFailures || spent_ >= kMostTerms) return known;
  known.asked += nodes;
  if (known.asked < kWorthAForm) return known;
  const std::size_t before = store_.size();
  Known made;
  try {
    made = find(t);
  } catch (const LimitFault&) {
    made = {};  // what was asked is harder than the term itself
  }
  made.looked = true;
  spent_ += store_.size() - before;
  if (size(made.fixed.kept.letters) == 0) ++failures_;
  return known = std::move(made);
}

void Keeping::begin_study() {
  failures_ = spent_ = 0;
  regions_ = kRegions;
}

bool Keeping::region_keeps(const Form& form, const Letters& letters) {
  const auto meets = [&](Term t) {
    return store_.ends_within(store_.intersect({form.constant, t}), kSearched);
  };
  const auto is_reached = [&](Term t) {
    return std::ranges::find(reached_, t) != reached_.end() ||
           std::ranges::any_of(reached_, [&](Term r) { return is_within(r, t); });
  };
  if (!meets(form.varying)) return false;
  reached_.assign(1, form.varying);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    if (reached_.size() > kMostReached) return false;
    const LetterRow& from = row(reached_[i], letters);
    if (!letters.within(from.live)) return false;
    for (const LetterEdges::Edge& edge : from.edges) {
      if (!letters.meets(edge.over)) continue;
      if (is_reached(edge.to)) continue;
      if (!meets(edge.to)) return false;
      reached_.push_back(edge.to);
    }
  }
  return true;
}

bool Keeping::is_within(Term a, Term b) {
  const auto [found, fresh] = within_.try_emplace((std::uint64_t{a} << 32) | b, false);
  if (fresh) found->second = store_.within(a, b);
  return found->second;
}

bool Keeping::keeps(Term t, const Letters& letters, std::uint32_t characters, std::uint32_t nodes) {
  Known& form = known(t, nodes);
  const auto holds = [&](const Kept& kept) {
    return kept.characters >= characters && letters.within(kept.letters);
  };
  if (holds(form.fixed.kept)) return true;
  if (nodes < kWorthARegion || form.varied.varying == kNone || form.credit == 0 ||
      spent_ >= kMostTerms || regions_ == 0 || !holds(form.varied.kept)) {
    return false;
  }
  const std::size_t before = store_.size();
  bool kept = false;
  try {
    kept = region_keeps(form.varied, letters);
  } catch (const LimitFault&) {
    kept = false;  // what was asked is harder than the term itself
  }
  spent_ += store_.size() - before;
  form.credit = kept ? kCredit : form.credit - 1;
  regions_ = kept ? std::min(regions_ + kRegionsGained, kRegions) : regions_ - 1;
  return kept;
}

}  // namespace grammaton
