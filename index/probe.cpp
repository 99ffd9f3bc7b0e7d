// What masks take is tried before anyone waits for one.
//
// The work of a mask is counted, in steps of some 40 ns: nodes, terms, remainders. Most grammars
// are far from any bound, and a mask costs at most a study of each of its frames. But terms of `&`,
// `~` and counts can be written so that a mask goes through ten thousands of residuals. Those that
// look so, by the counts that stand behind something unbounded, are tried when a constraint is
// made: the mask at their beginning and some more along a text of them. One that takes more than
// max_mask_work is an error there, rather than a server that stands still in mid-generation.
// Such a term is also followed along a text that leaves as much of it as any, since one of tokens
// alone may miss what grows. Strings of JSON that look hard are tried wherever they stand.
//
// A vocabulary remembers what was tried along a text, which takes ten times as long as to find out
// that it need not be tried again.
//
// Costs: 3 us for most schemas, with no intersections and no runs of more than characters; a look
// at each rule with them; some masks of those that look hard, which are kept.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "index/parts.hpp"
#include "index/work_bound.hpp"

namespace grammaton {

namespace {

constexpr std::uint64_t kWalkWork = 10;
constexpr std::uint64_t kCallWork = 5;
constexpr std::uint64_t kListedWork = 2;
constexpr std::uint64_t kTermWork = 25;
// Operands of unions and intersections that are met to make terms, new ones or not.
constexpr std::uint64_t kOperandWork = 1;
// Nodes between two looks at the work.
constexpr std::uint64_t kNodesBetween = 256;
// Terms that may have 2 to this power of residuals look hard, if two operands say so much of it.
constexpr double kHard = 16;
constexpr double kWeighty = 3;
// Multiples of a number have as many residuals as that, and few tokens are numbers.
constexpr double kNever = -1e9;
// A count behind something unbounded says at most so many bits: tokens are short.
constexpr std::uint32_t kMostPlaces = 16;
// Shorter runs have few ways to be read.
constexpr std::uint32_t kFewPlaces = 6;
// Parts of sequences that are looked at.
constexpr std::size_t kMostLooked = 100'000;
constexpr std::size_t kMostTried = 16;  // terms
constexpr std::size_t kTokens = 3;      // that are taken of each
// More of them where the last mask took so much of what it may: it may grow along a text.
constexpr std::size_t kMostTokens = 12;
constexpr std::uint64_t kGrowing = 4;
// A text that leaves much of a term: characters of it, and the most masks along it. Masks that are
// the first of their kind make what later ones share, as the classes of characters.
constexpr unsigned kGrown = 16;
constexpr unsigned kGrownMasks = 8;
constexpr unsigned kFirstOfKind = 2;
// One is taken after each of the first steps, where there is so much more of the term than at the
// last, or after so many more.
constexpr unsigned kFirstSteps = 3;
constexpr std::size_t kGrowth = 2;
constexpr unsigned kStepsBetween = 4;
// What is left of a term is counted as far as that, so deep.
constexpr std::size_t kBroadest = 4000;
constexpr unsigned kDeepestLook = 40;
// Of a term of fewer parts little can grow.
constexpr std::size_t kManyParts = 100;
// Sets of characters of so many ranges are wide, and so many of them are as hard as any count: the
// names of hosts have twenty, one for each kind of letter.
constexpr std::size_t kWideRanges = 32;
constexpr std::size_t kManyWide = 8;
// Runs so long may each have come to a place of its own.
constexpr std::uint32_t kLongRun = 16;
constexpr double kVeryHard = kHard + 2;  // one long run is not enough
constexpr double kCounted = 5;
// Strings that are looked at, the parts of each, and what the first mask of one may take.
constexpr std::size_t kMostStrings = 64;
constexpr std::size_t kMostParts = 2000;
constexpr std::uint64_t kStringTimes = 8;
// Terms that are nested so deep are as hard as any: steps go down all the way.
constexpr std::uint16_t kHigh = 100;
// The first mask of each is made once, here, and kept: so it may take more. What it takes long for,
// as the classes of characters, later ones share.
constexpr std::uint64_t kFirstTimes = 4;
// What all of it may take, in masks at their bound.
constexpr std::uint64_t kMostMasks = 8;
// Times that a mask finds its caches full, from which on that is what it takes long for.
constexpr std::uint64_t kOftenEmptied = 8;

// About how many bits tell the residuals of a term apart.
class Weights {
 public:
  explicit Weights(TermStore& store) : store_(store), json_character_(store.any_json_character()) {}
  // Whether counts have many residuals of one text, since it may be read in many ways.
  bool is_entangled(Term t) { return of(t) >= kHard; }
  // Whether they have very many; `begun`: what it follows may end anywhere.
  bool is_very_entangled(Term t, bool begun) { return of(t, begun) >= kVeryHard; }
  // Whether some counts have a say, so that what later masks share takes long to make.
  bool is_counted(Term t) { return of(t) >= kCounted; }
  bool is_any_text(Term t) const {
    const Node& n = store_.node(t);
    return n.kind == Kind::Repeat && n.a == json_character_ && n.c == kUnbounded;
  }
  // Whether the operands of some intersection have many residuals together that none has alone.
  bool is_hard(Term t) {
    const auto [found, fresh] = hard_.try_emplace(t, false);
    if (!fresh) return found->second;
    const bool hard = find_hard(t);
    hard_[t] = hard;
    return hard;
  }

 private:
  bool find_hard(Term t) {
    const Node n = store_.node(t);
    switch (n.kind) {
      case Kind::Concat: {
        Term rest = t;
        for (; store_.node(rest).kind == Kind::Concat; rest = store_.node(rest).b) {
          if (++looked_ > kMostLooked) return false;
          if (is_hard(store_.node(rest).a)) return true;
        }
        return is_hard(rest);
      }
      case Kind::Union:
        return std::ranges::any_of(store_.operands(t), [this](Term u) { return is_hard(u); });
      case Kind::Json:
      case Kind::Repeat:
        return is_hard(n.a);
      case Kind::Intersect: {
        double sum = 0;
        unsigned weighty = 0;
        const auto add = [&](Term u, bool begun) {
          const double weight = of(u, begun);
          sum += weight;
          if (weight >= kWeighty) ++weighty;
        };
        for (const Term operand : store_.operands(t)) {
          const Node o = store_.node(operand);
          if (o.kind == Kind::Complement) {
            Term inner = o.a;  // what its operands begin with is said once
            bool begun = false;
            for (Node i = store_.node(inner); i.kind == Kind::Concat; i = store_.node(inner)) {
              const Node head = store_.node(i.a);
              if (head.kind != Kind::Repeat || head.c != kUnbounded) break;
              inner = i.b;
              begun = true;
            }
            if (store_.node(inner).kind == Kind::Union) {
              for (const Term u : store_.operands(inner)) add(u, begun);
            } else {
              add(o.a, false);
            }
          } else if (o.kind != Kind::Repeat || !is_letter(o.a)) {  // but for how long it is
            add(operand, false);
          }
        }
        return weighty > 1 && sum >= kHard;
      }
      default:
        return false;
    }
  }

  bool is_letter(Term t) const {
    const Kind kind = store_.node(t).kind;
    return kind == Kind::Chars || kind == Kind::Bytes || t == json_character_;
  }
  // Whether texts of it differ in length, as far as a look shows: so that a text of several may be
  // read in many ways, of which counts say how far each has come.
  bool is_loose(Term t) {
    const Node n = store_.node(t);
    switch (n.kind) {
      case Kind::Repeat:
        return n.b != n.c || is_loose(n.a);
      case Kind::Concat:
        for (; store_.node(t).kind == Kind::Concat; t = store_.node(t).b) {
          if (++looked_ > kMostLooked || is_loose(store_.node(t).a)) return true;
        }
        return is_loose(t);
      case Kind::Union: {
        if (++looked_ > kMostLooked || store_.nullable(t)) return true;
        const auto items = store_.operands(t);
        return std::ranges::any_of(items, [&](Term u) { return !is_letter(u) || is_loose(u); });
      }
      default:
        return false;
    }
  }

  // `begun`: it may begin anywhere, so that counts say where it did.
  double of(Term t, bool begun = false) {
    const auto [found, fresh] = known_.try_emplace((std::uint64_t{t} << 1) | (begun ? 1 : 0), 0);
    if (!fresh) return found->second;
    const double weight = find(t, begun);
    return known_[(std::uint64_t{t} << 1) | (begun ? 1 : 0)] = weight;
  }
  double find(Term t, bool begun) {
    const Node n = store_.node(t);
    double sum = 0;
    switch (n.kind) {
      case Kind::Concat:
        for (Term rest = t;;) {
          const Node link = store_.node(rest);
          const bool last = link.kind != Kind::Concat;
          const Term head = last ? rest : link.a;
          sum += of(head, begun);
          const Node h = store_.node(head);
          begun = begun || (h.kind == Kind::Repeat && h.c == kUnbounded);
          if (last || ++looked_ > kMostLooked) return sum;
          rest = link.b;
        }
      case Kind::Repeat:
        if (n.c == kUnbounded) return of(n.a, begun);
        return of(n.a, begun) + (begun || is_loose(n.a) ? std::min(n.c, kMostPlaces)
                                                        : std::log2(static_cast<double>(n.c) + 1));
      case Kind::Union:
      case Kind::Intersect:
        for (const Term operand : store_.operands(t)) sum += of(operand, begun);
        return sum;
      case Kind::Complement:
      case Kind::Json:
        return of(n.a, begun);
      case Kind::Residue:
        return kNever;
      default:
        return 0;
    }
  }

  const TermStore& store_;
  Term json_character_;
  std::unordered_map<std::uint64_t, double> known_;
  std::unordered_map<Term, bool> hard_;
  std::size_t looked_ = 0;
};

// What is in a store, or in a term.
struct Contents {
  std::size_t parts = 0;
  std::size_t wide = 0;  // sets of characters
  std::size_t runs = 0;  // long ones
  bool counts = false;   // runs of what is more than a character
  bool lifted = false;   // strings of JSON
  bool may_be_many() const { return wide >= kManyWide || runs > 0; }

  void add(const TermStore& store, Term t) {
    ++parts;
    const Node& n = store.node(t);
    lifted = lifted || n.kind == Kind::Json;
    if (n.kind == Kind::Chars && store.code_ranges(t).size() >= kWideRanges) ++wide;
    if (n.kind != Kind::Repeat || n.c == kUnbounded) return;
    if (n.c >= kLongRun) ++runs;
    const Kind item = store.node(n.a).kind;
    counts = counts || (n.c >= kFewPlaces && item != Kind::Bytes && item != Kind::Chars &&
                        !store.has(n.a, kHasCall));
  }
};

Contents contents_of_all(const TermStore& store) {
  Contents all;
  for (Term t = 0; t < store.size(); ++t) all.add(store, t);
  return all;
}

Contents contents_of(const TermStore& store, Term t) {
  Contents found;
  each_part(store, t, kMostParts, [&](Term part) {
    found.add(store, part);
    return true;
  });
  return found;
}

// Strings of JSON that look hard, by what they are made of.
std::vector<Term> hard_strings(const TermStore& store, const Contents& all, Weights& weights) {
  std::vector<Term> found;
  std::size_t looked = 0;
  const auto end = static_cast<Term>(store.size());
  for (Term t = 0; t < end && looked < kMostStrings; ++t) {
    const Node whole = store.node(t);
    if (whole.kind != Kind::Concat || store.has(t, kHasCall)) continue;
    // A text that is found anywhere stands behind any others, which need no lift of their own.
    const bool begun = weights.is_any_text(whole.a) && store.node(whole.b).kind == Kind::Concat;
    const Term inner = begun ? store.node(whole.b).a : whole.a;
    const Node& head = store.node(inner);
    if (head.kind != Kind::Json || head.b != 0 || head.c != 0) continue;
    ++looked;
    const bool wide = all.wide >= kManyWide && contents_of(store, inner).wide >= kManyWide;
    if (wide || (begun && weights.is_very_entangled(inner, begun))) found.push_back(t);
  }
  return found;
}

// How many things are left to be said of a term next, more or less.
std::size_t breadth(const TermStore& store, Term t, std::size_t& budget, unsigned depth = 0) {
  if (budget == 0 || depth == kDeepestLook) return 1;
  --budget;
  const Node& n = store.node(t);
  switch (n.kind) {
    case Kind::Concat:
    case Kind::Complement:
    case Kind::Repeat:
    case Kind::Json:
      return breadth(store, n.a, budget, depth + 1);
    case Kind::Union:
    case Kind::Intersect: {
      std::size_t sum = 0;
      for (const Term operand : store.operands(t))
        sum += breadth(store, operand, budget, depth + 1);
      return sum;
    }
    default:
      return 1;
  }
}

}  // namespace

std::uint64_t Walker::work() const {
  return stats_.study_nodes + (stats_.walk_nodes + stats_.pair_nodes) * kWalkWork +
         machine_.call_count() * kCallWork + (listed_ + noted_) * kListedWork +
         store_.size() * kTermWork + store_.operands_met() * kOperandWork;
}

void Walker::begin_counting() {
  visited_ = 0;
  checked_at_ = work_end_ == kUnbounded64 ? limits_.max_walk_nodes : kNodesBetween;
}

void Walker::check_work() {
  if (visited_ > limits_.max_walk_nodes) {
    throw LimitFault("one mask visited more than max_walk_nodes = " +
                     std::to_string(limits_.max_walk_nodes) + " trie nodes");
  }
  if (work() > work_end_) {
    throw OutOfWork("one mask takes more than max_mask_work = " +
                    std::to_string(limits_.max_mask_work) + " steps");
  }
  checked_at_ = std::min(limits_.max_walk_nodes, visited_ + kNodesBetween);
}

FinishedMask Walker::mask_within_bound(State state, const std::string& where, std::uint64_t times,
                                       const std::string& part) {
  const WorkBound bound(*this, times);
  const std::uint64_t emptied = emptied_ + index_.times_emptied();
  try {
    return mask(state);
  } catch (const OutOfWork& fault) {
    // What a mask is put together from was found, and dropped for want of room.
    const bool dropped = emptied_ + index_.times_emptied() - emptied > kOftenEmptied;
    throw OutOfWork(
        std::string(fault.what()) + " " + where +
            (dropped ? ", since what was found did not stay in the caches: give mask_cache_bytes "
                       "or frame_cache_bytes, of the constraint or of the vocabulary, more room"
                     : "; say it with fewer or shorter counts, fewer operands of `&` and `~`, or "
                       "fewer ways to read one text, or allow more"),
        part);
  }
}

// The state after a text; nothing is left of it where it is not allowed.
State Walker::after(State state, std::string_view text) {
  Groups groups;
  Groups next;
  machine_.load(state, groups);
  machine_.begin_step();
  for (const char c : text) {
    machine_.close(groups);
    machine_.step(groups, static_cast<unsigned char>(c), next);
    std::swap(groups, next);
  }
  return machine_.intern(groups);
}

// One of the tokens of a mask that are text: the first of some, or the longest of them.
std::string_view Walker::some_token(const FinishedMask& mask, bool longest) {
  constexpr std::size_t kLooked = 64;
  std::vector<std::uint32_t> words(index_.mask_words());
  mask.write(words);
  std::string_view best;
  std::size_t looked = 0;
  // Strewn over the ids, which go by how frequent tokens are.
  const std::size_t stride = std::max<std::size_t>(words.size() / kLooked, 1);
  for (std::size_t from = 0; from < stride && looked < kLooked; ++from) {
    for (std::size_t i = from; i < words.size() && looked < kLooked; i += stride) {
      if (words[i] == 0) continue;
      const auto token = static_cast<std::uint32_t>(i * 32) +
                         static_cast<std::uint32_t>(std::countr_zero(words[i]));
      if (!index_.matches_text(token)) continue;
      ++looked;
      const std::string_view text = index_.token(token);
      if (best.empty() || (longest && text.size() > best.size())) best = text;
      if (!longest) return best;
    }
  }
  return best;
}

// What is left of a term after the character that leaves the most, and how much that is.
std::pair<Term, std::size_t> Walker::grown(Term t) {
  const CharacterClasses* const known = known_classes_.of(store_, t);
  if (known == nullptr) return {kNothing, 0};
  const CharacterClasses classes = *known;  // what is asked on the way may replace it
  std::pair<Term, std::size_t> most{kNothing, 0};
  for (unsigned cls = 0; cls < classes.count(); ++cls) {
    machine_.begin_step();
    Term next = t;
    for (const char c : classes.representative(cls)) {
      next = store_.step_lazily(next, static_cast<unsigned char>(c));
      if (next == kNothing) break;
    }
    std::size_t budget = kBroadest;
    if (next == kNothing || classes.representative(cls) == "\\") continue;
    const std::size_t size = breadth(store_, next, budget);
    if (size > most.second) most = {next, size};
  }
  return most;
}

// A term under the bounds that a try may meet.
Hash128 Walker::try_of(Term t) const {
  Hash128 hash = store_.node(t).hash;
  for (const std::uint64_t bound :
       {limits_.max_terms, limits_.max_step_terms, limits_.max_frames, limits_.max_step_links,
        limits_.max_walk_nodes, limits_.max_mask_work, limits_.mask_cache_bytes})
    hash.add(bound);
  return hash;
}

void Walker::try_growing(Term t, const std::string& where, std::uint64_t end) {
  std::size_t size = 1;
  unsigned masks = 0;
  unsigned over = 0;
  for (unsigned step = 1; step <= kGrown && masks < kGrownMasks && work() < end; ++step) {
    const auto [next, left] = grown(t);
    if (next == kNothing) return;
    t = next;
    if (step > kFirstSteps && left < size * kGrowth && step % kStepsBetween != 0) continue;
    size = left;
    ++masks;
    const std::uint64_t before = work();
    mask_within_bound(machine_.start(t), where, over < kFirstOfKind ? kFirstTimes : 1);
    if (work() - before > limits_.max_mask_work) ++over;
  }
}

void Walker::probe(Term start) {
  if (store_.restricted() || limits_.max_mask_work == 0) return;
  const Contents all = contents_of_all(store_);
  if (!store_.has_algebra() && !all.counts && !all.may_be_many()) return;
  Weights weights(store_);
  struct Hard {
    Term term;
    std::string where;
    std::string part;
  };
  std::vector<Hard> hard;
  const auto add = [&](Term t, const std::string& where, const std::string& part) {
    if (hard.size() < kMostTried && !store_.has(t, kHasCall) &&
        ((store_.has(t, kMaybeEmpty) && (weights.is_hard(t) || store_.node(t).height >= kHigh)) ||
         (t == start && weights.is_entangled(t))))
      hard.push_back({t, where, part});
  };
  add(start, "at the beginning", "");
  for (Rule rule = 0; rule < store_.rule_count(); ++rule) {
    const RuleInfo& info = store_.rule_info(rule);
    if (!info.is_template) add(info.body, "in " + info.name, info.name);
  }
  const std::uint64_t end = work() + kMostMasks * limits_.max_mask_work;
  for (const auto& [term, where, part] : hard) {
    State state = machine_.start(term);
    alone_ = term != start;
    for (std::size_t taken = 0;; ++taken) {
      const std::uint64_t before = work();
      const FinishedMask made = mask_within_bound(state, where, taken == 0 ? kFirstTimes : 1, part);
      const std::string_view token = some_token(made, taken % 2 == 0);
      const bool growing = (work() - before) * kGrowing > limits_.max_mask_work;
      if (taken >= (growing ? kMostTokens : kTokens) || token.empty() || work() > end) break;
      state = after(state, token);
    }
  }
  alone_ = true;
  if (all.may_be_many()) {
    for (const Term t : hard_strings(store_, all, weights)) {
      if (work() > end) break;
      const Hash128 tried = try_of(t);
      if (index_.was_tried(tried)) continue;
      mask_within_bound(machine_.start(t), "in a string", kStringTimes);
      try_growing(t, "in a string", end);
      index_.keep_tried(tried);
    }
  }
  alone_ = false;
  if (!store_.has(start, kHasCall) && work() < end) {
    const Contents contents = contents_of(store_, start);
    // What is put together of many, or of what is counted.
    const bool many = store_.has(start, kMaybeEmpty)
                          ? contents.parts > kManyParts
                          : !contents.lifted && weights.is_counted(start);
    const Hash128 tried = try_of(start);
    if (many && !index_.was_tried(tried)) {
      try_growing(start, "at the beginning", end);
      index_.keep_tried(tried);
    }
  }
}

}  // namespace grammaton
