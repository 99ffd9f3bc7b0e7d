#include "automata/lark_lexer.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace grammaton {

namespace {

using Op = Instruction::Op;

// Bytes that follow in the character whose first byte this is.
std::uint32_t bytes_after(unsigned byte) {
  return byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
}

constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

// What takes as long as this many threads: a move with its lists, a state with its row of a
// kilobyte, a list of duties.
constexpr std::uint64_t kMoveWork = 40;
constexpr std::uint64_t kStateWork = 40;
constexpr std::uint64_t kDutiesWork = 20;

// Threads that are reached from places without a character, by max_step_terms.
constexpr std::uint64_t kMostClosed = 50;

// Words of all states with their rows, by max_step_terms: 200 MB by default.
constexpr std::uint64_t kMostStateWords = 500;
constexpr std::uint64_t kRowWords = 256;

}  // namespace

LarkLexer::LarkLexer(std::shared_ptr<const LalrSource> source, const Spelling& spelling,
                     const Limits& limits)
    : source_(std::move(source)), limits_(limits), store_(std::make_unique<TermStore>(limits)) {
  if (!spelling.all) store_->restrict_characters(spelling.whole, spelling.joined);
  for (const CodeRanges& ranges : source_->classes)
    classes_.push_back(store_->chars(ranges, !spelling.all));
  facts_.emplace_back();  // kDeadLex
  terminal_of_.assign(source_->program.size(), kNone);
  for (Terminal t = 0; t < source_->names.size(); ++t) {
    if (source_->patterns[t] == kNone) continue;
    std::vector<std::uint32_t> pending{source_->patterns[t]};
    while (!pending.empty()) {
      const std::uint32_t place = pending.back();
      pending.pop_back();
      if (terminal_of_[place] == t) continue;
      terminal_of_[place] = t;
      const Instruction& at = source_->program[place];
      if (at.op == Op::Again) pending.push_back(at.b);
      if (at.op == Op::Ahead) pending.push_back(at.a);
      if (at.op == Op::Split) pending.insert(pending.end(), at.ways.begin(), at.ways.end());
      if (at.op != Op::Split && at.op != Op::Match) pending.push_back(at.next);
    }
  }
  std::vector<std::uint32_t> sets;
  for (const std::uint32_t start : source_->behinds) {
    std::vector<std::uint32_t> words;
    for (const Thread& thread : closure(start, 0)) {
      words.push_back(thread.place);
      words.push_back(thread.rest);
    }
    sets.push_back(sets_.intern(words));
  }
  intern_context(0, sets);
}

// --- contexts ---

ContextId LarkLexer::intern_context(std::uint32_t phase, const std::vector<std::uint32_t>& sets) {
  std::vector<std::uint32_t> words{phase};
  words.insert(words.end(), sets.begin(), sets.end());
  const ContextId id = contexts_.intern(words) - 1;  // the pool's 0 is the empty list
  if (id < holding_.size()) return id;
  std::uint64_t holding = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto set = sets_[sets[i]];
    for (std::size_t k = 0; k < set.size(); k += 2) {
      if (source_->program[set[k]].op == Op::Match) holding |= std::uint64_t{1} << i;
    }
  }
  const auto known = std::ranges::find(signatures_, holding);
  signature_of_.push_back(static_cast<std::uint32_t>(known - signatures_.begin()));
  if (known == signatures_.end()) signatures_.push_back(holding);
  holding_.push_back(holding);
  next_contexts_.emplace_back();
  return id;
}

ContextId LarkLexer::after(ContextId context, unsigned byte) {
  if (!looks_behind()) return 0;
  if (next_contexts_[context].empty()) next_contexts_[context].assign(256, kUnknown);
  if (next_contexts_[context][byte] != kUnknown) return next_contexts_[context][byte];
  const std::vector<std::uint32_t> words = contexts_.copy(context + 1);
  const std::uint32_t phase = words[0] == 0 ? bytes_after(byte) : words[0] - 1;
  std::vector<std::uint32_t> sets;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::set<std::pair<std::uint32_t, Term>> next;
    const std::vector<std::uint32_t> set = sets_.copy(words[i]);
    for (std::size_t k = 0; k < set.size(); k += 2) {
      if (source_->program[set[k]].op == Op::Match) continue;
      follow({set[k], set[k + 1], 0}, byte, 0,
             [&](const Thread& thread) { next.emplace(thread.place, thread.rest); });
    }
    if (phase == 0) {
      for (const Thread& thread : closure(source_->behinds[i - 1], 0))
        next.emplace(thread.place, thread.rest);
    }
    std::vector<std::uint32_t> list;
    for (const auto& [place, rest] : next) {
      list.push_back(place);
      list.push_back(rest);
    }
    sets.push_back(sets_.intern(list));
  }
  const ContextId result = intern_context(phase, sets);
  next_contexts_[context][byte] = result;
  return result;
}

// --- threads ---

const std::vector<LarkLexer::Thread>& LarkLexer::closure(std::uint32_t place,
                                                         std::uint64_t holding) {
  const auto of = std::ranges::find(closed_for_, holding);
  const std::uint64_t key =
      (static_cast<std::uint64_t>(of - closed_for_.begin()) << 32) | std::uint64_t{place};
  if (of == closed_for_.end()) closed_for_.push_back(holding);
  if (const std::uint32_t* const known = closure_lookup_.find(key)) return closures_[*known];
  std::vector<Thread> threads = close(place, holding);  // which makes those of look-aheads
  closed_ += threads.size();
  if (closed_ / kMostClosed >= limits_.max_step_terms) throw too_many_ways(place, kMostClosed);
  closure_lookup_.try_emplace(key, static_cast<std::uint32_t>(closures_.size()));
  return closures_.emplace_back(std::move(threads));
}

LimitFault LarkLexer::too_many_ways(std::uint32_t place, std::uint64_t times) const {
  const Terminal terminal = terminal_of_[place];
  const std::string name = terminal == kNone ? "?" : source_->names[terminal];
  const std::string bound =
      times == 1 ? "max_step_terms = " : std::to_string(times) + " * max_step_terms = ";
  return LimitFault("terminal " + name + " has more than " + bound +
                        std::to_string(times * limits_.max_step_terms) +
                        " ways to go on after a character" + (times == 1 ? "" : " in all"),
                    name);
}

// What can be reached from a place without a character, in order of preference. Iterations of loops
// that took nothing end the loop, as in `re`; so a way carries the loops it has begun here.
std::vector<LarkLexer::Thread> LarkLexer::close(std::uint32_t place, std::uint64_t holding) {
  struct Way {
    std::uint32_t place;
    DutiesId duties;
    std::vector<std::uint32_t> loops;
  };
  std::vector<Thread> found;
  std::set<std::tuple<std::uint32_t, DutiesId, std::vector<std::uint32_t>>> seen;
  std::set<Thread> kept;
  std::vector<Way> pending;
  pending.push_back({place, 0, {}});
  while (!pending.empty()) {
    Way way = std::move(pending.back());
    pending.pop_back();
    if (!seen.emplace(way.place, way.duties, way.loops).second) continue;
    if (seen.size() > limits_.max_step_terms) throw too_many_ways(place, 1);
    const Instruction& at = source_->program[way.place];
    switch (at.op) {
      case Op::Char: {
        const Thread thread{way.place, classes_[at.a], way.duties};
        if (thread.rest != kNothing && kept.insert(thread).second) found.push_back(thread);
        break;
      }
      case Op::Match: {
        const Thread thread{way.place, kNothing, way.duties};
        if (kept.insert(thread).second) found.push_back(thread);
        break;
      }
      case Op::Split:
        for (std::size_t i = at.ways.size(); i-- > 0;)
          pending.push_back({at.ways[i], way.duties, way.loops});
        break;
      case Op::Mark: {
        const auto spot = std::ranges::lower_bound(way.loops, at.a);
        if (spot == way.loops.end() || *spot != at.a) way.loops.insert(spot, at.a);
        pending.push_back({at.next, way.duties, std::move(way.loops)});
        break;
      }
      case Op::Again: {
        const bool empty = std::ranges::binary_search(way.loops, at.a);
        pending.push_back({empty ? at.b : at.next, way.duties, std::move(way.loops)});
        break;
      }
      case Op::Unmark:
        std::erase(way.loops, at.a);
        pending.push_back({at.next, way.duties, std::move(way.loops)});
        break;
      case Op::Behind:
        if ((((holding >> at.a) & 1) != 0) != (at.b != 0))
          pending.push_back({at.next, way.duties, std::move(way.loops)});
        break;
      case Op::Ahead: {
        std::vector<Thread> inner = closure(at.a, holding);
        const std::uint32_t made = duty(at.b != 0, std::move(inner));
        if (made == kBroken) break;
        if (made != kFulfilled)
          way.duties = unite(way.duties, duties_pool_.intern(std::span(&made, 1)));
        pending.push_back({at.next, way.duties, std::move(way.loops)});
        break;
      }
    }
  }
  work_ += seen.size();
  return found;
}

template <typename Add>
void LarkLexer::follow(const Thread& thread, unsigned byte, std::uint64_t holding, Add&& add) {
  const Term rest = store_->step(thread.rest, byte);
  if (rest == kNothing) return;
  if (rest != kEmpty) {
    add(Thread{thread.place, rest, thread.duties});
    return;
  }
  const std::vector<Thread>& reached = closure(source_->program[thread.place].next, holding);
  work_ += reached.size();
  for (const Thread& next : reached)
    add(Thread{next.place, next.rest, unite(thread.duties, next.duties)});
}

// --- duties ---

std::uint32_t LarkLexer::duty(bool negated, std::vector<Thread> threads) {
  for (Thread& thread : threads) {
    if (thread.place == kSlot || thread.place == kMatched ||
        source_->program[thread.place].op == Op::Match) {
      if (thread.duties == 0) return negated ? kBroken : kFulfilled;
      thread.place = kMatched;
      thread.rest = kNothing;
    }
  }
  if (threads.empty()) return negated ? kFulfilled : kBroken;
  std::ranges::sort(threads);
  const auto twins = std::ranges::unique(threads);
  threads.erase(twins.begin(), twins.end());
  std::vector<std::uint32_t> words{negated ? 1U : 0U};
  for (const Thread& thread : threads) {
    words.push_back(thread.place);
    words.push_back(thread.rest);
    words.push_back(thread.duties);
  }
  return duty_pool_.intern(words);
}

DutiesId LarkLexer::unite(DutiesId a, DutiesId b) {
  if (a == kBroken || b == kBroken) return kBroken;
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const auto x = duties_pool_.copy(a);
  const auto y = duties_pool_.copy(b);
  std::vector<std::uint32_t> both;
  std::ranges::set_union(x, y, std::back_inserter(both));
  return duties_pool_.intern(both);
}

DutiesId LarkLexer::advance(DutiesId duties, unsigned byte, ContextId after) {
  if (duties == 0 || duties == kBroken) return duties;
  const std::uint32_t signature = signature_of_[after];
  const std::uint64_t key = (std::uint64_t{duties} << 32) | (std::uint64_t{signature} << 8) | byte;
  if (const DutiesId* const known = advanced_.find(key)) return *known;
  work_ += kDutiesWork;
  std::vector<std::uint32_t> left;
  DutiesId result = 0;
  for (const std::uint32_t id : duties_pool_.copy(duties)) {
    const std::vector<std::uint32_t> words = duty_pool_.copy(id);
    std::vector<Thread> threads;
    work_ += words.size() / 3;
    for (std::size_t i = 1; i < words.size(); i += 3) {
      Thread thread{words[i], words[i + 1], advance(words[i + 2], byte, after)};
      if (thread.duties == kBroken) continue;
      if (thread.place == kMatched) {
        threads.push_back(thread);
      } else {
        follow(thread, byte, holding(after), [&](const Thread& t) { threads.push_back(t); });
      }
    }
    const std::uint32_t made = duty(words[0] != 0, std::move(threads));
    if (made == kBroken) {
      result = kBroken;
      break;
    }
    if (made != kFulfilled) left.push_back(made);
  }
  if (result != kBroken) {
    std::ranges::sort(left);
    const auto twins = std::ranges::unique(left);
    left.erase(twins.begin(), twins.end());
    result = duties_pool_.intern(left);
  }
  advanced_.try_emplace(key, result);
  return result;
}

// --- lex states ---

LexId LarkLexer::intern(std::uint32_t scanner, bool fresh, std::uint32_t trackers,
                        const std::vector<Thread>& threads) {
  if (threads.empty() && !fresh) return kDeadLex;
  // Without keywords under way a scanner is its threads: strings are the same in all of them.
  if (trackers == 0) scanner = kNoScanner;
  std::vector<std::uint32_t> words{scanner, fresh ? 1U : 0U, trackers};
  for (const Thread& thread : threads) {
    words.push_back(thread.place);
    words.push_back(thread.rest);
    words.push_back(thread.duties);
  }
  const LexId id = states_.intern(words);
  if (id == facts_.size()) {
    work_ += kStateWork;
    facts_.emplace_back();
    state_words_ += kRowWords + words.size();
    if (state_words_ / kMostStateWords >= limits_.max_step_terms) {
      const std::string names = describe_threads(id);
      throw LimitFault("the lexer of the Lark grammar needs " + std::to_string(states_.size()) +
                           " states and more, over " + std::to_string(kMostStateWords) +
                           " * max_step_terms words in all; patterns whose characters can be read "
                           "in many ways at once: " +
                           names,
                       names.substr(0, names.find_first_of(", ")));
    }
  }
  return id;
}

LexId LarkLexer::fresh(std::uint32_t scanner, ContextId context) {
  const std::uint32_t signature = signature_of_[context];
  if (signature >= fresh_.size()) fresh_.resize(signature + 1);
  if (fresh_[signature].empty()) fresh_[signature].assign(source_->scanners.size(), kUnknown);
  LexId& known = fresh_[signature][scanner];
  if (known == kUnknown) known = make_fresh(scanner, context);
  return known;
}

LexId LarkLexer::make_fresh(std::uint32_t scanner, ContextId context) {
  const Scanner& tried = source_->scanners[scanner];
  std::vector<Thread> threads;
  for (const Terminal terminal : tried.order) {
    const std::uint32_t start = source_->patterns[terminal];
    if (start == kNone) continue;
    for (const Thread& thread : closure(start, holding(context))) {
      // Lark refuses terminals that can be empty.
      if (source_->program[thread.place].op != Op::Match) threads.push_back(thread);
    }
  }
  std::set<std::pair<std::uint32_t, Term>> trackers;
  for (const auto& [terminal, keywords] : tried.keywords) {
    for (const Terminal keyword : keywords) {
      for (const Thread& thread : closure(source_->patterns[keyword], holding(context)))
        trackers.emplace(thread.place, thread.rest);
    }
  }
  std::vector<std::uint32_t> words;
  for (const auto& [place, rest] : trackers) {
    words.push_back(place);
    words.push_back(rest);
  }
  return intern(scanner, true, tracker_pool_.intern(words), threads);
}

LexId LarkLexer::alone(Terminal terminal) {
  std::vector<Thread> threads;
  if (source_->patterns[terminal] == kNone) return kDeadLex;
  for (const Thread& thread : closure(source_->patterns[terminal], holding(0))) {
    if (source_->program[thread.place].op != Op::Match) threads.push_back(thread);
  }
  return intern(kNoScanner, true, 0, threads);
}

LarkLexer::Origin LarkLexer::resolve(std::uint32_t scanner, Terminal matched,
                                     const std::vector<std::uint32_t>& trackers) const {
  Origin origin{true, source_->ignored[matched], matched};
  if (scanner == kNoScanner || origin.ignored) return origin;
  for (const auto& [terminal, keywords] : source_->scanners[scanner].keywords) {
    if (terminal != matched) continue;
    for (const Terminal keyword : keywords) {
      for (std::size_t i = 0; i < trackers.size(); i += 2) {
        const Instruction& at = source_->program[trackers[i]];
        if (at.op == Op::Match && at.a == keyword) {
          origin.value = keyword;
          return origin;
        }
      }
    }
  }
  return origin;
}

LarkLexer::Move LarkLexer::move(LexId lex, unsigned byte, ContextId after) {
  if (lex == kDeadLex) return {};
  const std::uint32_t signature = signature_of_[after];
  std::uint32_t row = kUnknown;
  for (const auto& [known, place] : facts_[lex].by_signature) {
    if (known == signature) row = place;
  }
  if (row == kUnknown) {
    row = static_cast<std::uint32_t>(moves_of_.size());
    moves_of_.emplace_back().fill(kUnknown);
    facts_[lex].by_signature.emplace_back(signature, row);
  }
  if (moves_of_[row][byte] == kUnknown) {
    const Move made = make_move(lex, byte, after);
    if (made.next == kDeadLex) {
      if (moves_.empty()) moves_.emplace_back();  // the first move is the one to nowhere
      moves_of_[row][byte] = 0;
    } else {
      if (moves_.empty()) moves_.emplace_back();
      moves_of_[row][byte] = static_cast<std::uint32_t>(moves_.size());
      moves_.push_back(made);
    }
  }
  return moves_[moves_of_[row][byte]];
}

LarkLexer::Move LarkLexer::make_move(LexId lex, unsigned byte, ContextId after) {
  const std::vector<std::uint32_t> words = states_.copy(lex);
  const std::uint32_t scanner = words[0];
  std::set<std::pair<std::uint32_t, Term>> tracked;
  const std::vector<std::uint32_t> old_trackers = tracker_pool_.copy(words[2]);
  for (std::size_t i = 0; i < old_trackers.size(); i += 2) {
    if (source_->program[old_trackers[i]].op == Op::Match) continue;
    follow({old_trackers[i], old_trackers[i + 1], 0}, byte, holding(after),
           [&](const Thread& thread) { tracked.emplace(thread.place, thread.rest); });
  }
  std::vector<std::uint32_t> trackers;
  for (const auto& [place, rest] : tracked) {
    trackers.push_back(place);
    trackers.push_back(rest);
  }

  std::vector<Thread> threads;
  kept_.clear();
  std::vector<Origin> origins;
  bool cut = false;
  const auto add_slot = [&](DutiesId duties, Origin origin) {
    // Of two waiting slots with equal duties the second is never taken.
    if (!kept_.insert(kSlot, kNothing, duties)) return;
    threads.push_back({kSlot, kNothing, duties});
    origins.push_back(origin);
    cut = duties == 0;
  };
  work_ += kMoveWork + words.size() / 3;
  std::uint32_t slot = 0;
  for (std::size_t i = kHead; i < words.size() && !cut; i += 3) {
    const Thread thread{words[i], words[i + 1], advance(words[i + 2], byte, after)};
    const std::uint32_t number = slot;
    if (thread.place == kSlot) ++slot;
    if (thread.duties == kBroken) continue;
    if (thread.place == kSlot) {
      add_slot(thread.duties, {false, false, number});
      continue;
    }
    follow(thread, byte, holding(after), [&](const Thread& next) {
      if (cut) return;
      if (next.place != kSlot && source_->program[next.place].op == Op::Match) {
        add_slot(next.duties, resolve(scanner, source_->program[next.place].a, trackers));
      } else if (kept_.insert(next.place, next.rest, next.duties)) {
        threads.push_back(next);
      }
    });
  }
  // Keywords matter for a match to come.
  const bool going_on =
      std::ranges::any_of(threads, [](const Thread& thread) { return thread.place != kSlot; });
  // Those that are complete have had their say: a name that is just a keyword goes on like any
  // name.
  std::vector<std::uint32_t> open;
  for (std::size_t i = 0; going_on && i < trackers.size(); i += 2) {
    if (source_->program[trackers[i]].op != Op::Match)
      open.insert(open.end(), {trackers[i], trackers[i + 1]});
  }
  Move move;
  move.next = intern(scanner, false, tracker_pool_.intern(open), threads);
  move.decided = !threads.empty() && threads[0].place == kSlot && threads[0].duties == 0;
  move.origins = static_cast<std::uint32_t>(origins_.size());
  move.count = static_cast<std::uint32_t>(origins.size());
  origins_.insert(origins_.end(), origins.begin(), origins.end());
  return move;
}

std::size_t LarkLexer::memory() const {
  return states_.memory() + duty_pool_.memory() + duties_pool_.memory() + contexts_.memory() +
         sets_.memory() + tracker_pool_.memory() + moves_of_.size() * sizeof(moves_of_[0]) +
         moves_.size() * sizeof(Move) + origins_.size() * sizeof(Origin) + advanced_.memory();
}

}  // namespace grammaton
