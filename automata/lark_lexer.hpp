// Lark's scanners over bytes: ordered threads with the preferences of Python's `re`.
//
// A *thread* is a place in the program of patterns, what remains of the character under way, and
// its *duties*. Threads of a lexeme are ordered, as a backtracking matcher would try them; a match
// cuts what comes after it. Look-behind is decided when a thread meets it, by the *context*, which
// follows every look-behind along the text. Look-ahead becomes a duty: threads of its own of which
// one has to match, or none may. A match with open duties is a *slot* that waits, and cuts nothing.
//
// A *lex state* is a scanner and the ordered list of threads and slots, interned; it leads by a
// byte to a *move*, kept in a row, so a warm step is one look-up. What follows a slot's lexeme is
// the machine's matter (lalr_machine.hpp).
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "automata/flat_map.hpp"
#include "automata/lark_source.hpp"
#include "automata/list_pool.hpp"
#include "automata/triple_set.hpp"
#include "grammar/normalise.hpp"

namespace grammaton {

using LexId = std::uint32_t;      // kDeadLex: no thread or slot is left
using ContextId = std::uint32_t;  // 0: the start of the text
using DutiesId = std::uint32_t;   // 0: none

class LarkLexer {
 public:
  LarkLexer(std::shared_ptr<const LalrSource> source, const Spelling& spelling,
            const Limits& limits);

  static constexpr LexId kDeadLex = 0;
  static constexpr DutiesId kBroken = 0xFFFFFFFF;

  const LalrSource& source() const { return *source_; }

  // Whether contexts differ at all.
  bool looks_behind() const { return !source_->behinds.empty(); }
  ContextId after(ContextId context, unsigned byte);

  // Where a lexeme begins.
  LexId fresh(std::uint32_t scanner, ContextId context);
  // A terminal's pattern by itself.
  LexId alone(Terminal terminal);
  bool is_fresh(LexId lex) const { return states_[lex][1] != 0; }

  // Where a slot of the next state comes from: a slot of this one, or a match of a terminal. Lark
  // drops a match of an ignored terminal even if a keyword takes its place.
  struct Origin {
    bool is_new;
    bool ignored;
    std::uint32_t value;
  };
  struct Move {
    LexId next = kDeadLex;
    std::uint32_t origins = 0;
    std::uint32_t count = 0;  // slots of `next`
    bool decided = false;     // the first slot is preferred to all else: nothing else counts
  };
  // `after` is the context after the byte.
  Move move(LexId lex, unsigned byte, ContextId after);
  Origin origin(const Move& move, std::uint32_t slot) const {
    return origins_[move.origins + slot];
  }

  bool has_threads(LexId lex) { return facts(lex).threads; }
  // Whether a slot has duties.
  bool waits(LexId lex) { return facts(lex).waits; }
  // The bytes that a thread goes on with; valid until the next lex state is made.
  const ByteSet& live(LexId lex) { return facts(lex).live; }
  // Live bytes of which one stands for all that lead to the same move, contexts apart.
  std::vector<unsigned> representatives(LexId lex);
  // Without the slots at its end, which no thread comes after.
  LexId threads_only(LexId lex);
  // A token ends inside a character: only threads that a whole character completes.
  LexId at_token_end(LexId lex);

  DutiesId slot_duties(LexId lex, std::uint32_t slot) const;
  // What must hold for a slot to be the choice: its duties, and that nothing before it matches.
  DutiesId choice(LexId lex, std::uint32_t slot);
  DutiesId unite(DutiesId a, DutiesId b);
  DutiesId advance(DutiesId duties, unsigned byte, ContextId after);
  bool hold_at_end(DutiesId duties) const;
  // The classes of characters that threads of duties go on with; between characters.
  std::vector<std::uint32_t> next_classes(DutiesId duties) const;
  // Those of a lex state's threads.
  std::vector<std::uint32_t> first_classes(LexId lex) const;
  // Whether they follow patterns of ignored terminals only.
  bool only_ignored(DutiesId duties) const;
  // Some of the terminals whose patterns duties, or the threads of a lex state, follow, for
  // messages.
  std::string describe(DutiesId duties) const;
  std::string describe_threads(LexId lex) const;

  // What was done so far, in threads that were followed: some 25 ns each.
  std::uint64_t work() const { return work_; }

  TermStore& store() { return *store_; }
  std::size_t state_count() const { return states_.size(); }
  std::size_t memory() const;

 private:
  struct Thread {
    std::uint32_t place;  // an instruction, kMatched or kSlot
    Term rest;            // of the character under way
    DutiesId duties;
    friend bool operator==(const Thread&, const Thread&) = default;
    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  static constexpr std::uint32_t kNoScanner = 0xFFFFFFFF;
  static constexpr std::uint32_t kSlot = 0xFFFFFFFF;
  static constexpr std::uint32_t kMatched = 0xFFFFFFFE;
  static constexpr std::uint32_t kFulfilled = 0xFFFFFFFE;
  static constexpr std::size_t kHead = 3;  // words of a lex state before its threads

  Thread thread_at(LexId lex, std::size_t i) const {
    const auto words = states_[lex];
    return {words[kHead + 3 * i], words[kHead + 3 * i + 1], words[kHead + 3 * i + 2]};
  }
  std::string describe(std::span<const std::uint32_t> threads) const;
  std::size_t thread_count(LexId lex) const { return (states_[lex].size() - kHead) / 3; }
  LexId intern(std::uint32_t scanner, bool fresh, std::uint32_t trackers,
               const std::vector<Thread>& threads);

  const std::vector<Thread>& closure(std::uint32_t place, std::uint64_t holding);
  std::vector<Thread> close(std::uint32_t place, std::uint64_t holding);
  LimitFault too_many_ways(std::uint32_t place, std::uint64_t times) const;
  // A duty, kFulfilled or kBroken.
  std::uint32_t duty(bool negated, std::vector<Thread> threads);
  // Threads after a byte, in order, by `add`.
  template <typename Add>
  void follow(const Thread& thread, unsigned byte, std::uint64_t holding, Add&& add);
  std::uint64_t holding(ContextId context) const { return holding_[context]; }
  ContextId intern_context(std::uint32_t phase, const std::vector<std::uint32_t>& sets);
  LexId make_fresh(std::uint32_t scanner, ContextId context);
  Move make_move(LexId lex, unsigned byte, ContextId after);
  Origin resolve(std::uint32_t scanner, Terminal matched,
                 const std::vector<std::uint32_t>& trackers) const;

  std::shared_ptr<const LalrSource> source_;
  Limits limits_;
  std::unique_ptr<TermStore> store_;
  std::vector<Term> classes_;
  std::vector<Terminal> terminal_of_;  // by instruction

  std::deque<std::vector<Thread>> closures_;
  std::vector<std::uint64_t> closed_for_;  // the look-behinds that held
  FlatMap<std::uint32_t> closure_lookup_;  // by number of those and place
  ListPool duty_pool_;                     // negated, then threads
  ListPool duties_pool_;                   // sorted duties
  FlatMap<DutiesId> advanced_;             // by duties, signature and byte

  ListPool contexts_;  // phase, then a set of threads for each look-behind
  ListPool sets_;      // place, rest, ...
  std::vector<std::uint64_t> holding_;
  std::vector<std::vector<ContextId>> next_contexts_;
  std::vector<std::uint64_t> signatures_;  // distinct values of holding_
  std::vector<std::uint32_t> signature_of_;

  std::vector<std::vector<LexId>> fresh_;  // by signature and scanner

  ListPool states_;  // scanner, fresh, trackers, then threads
  ListPool tracker_pool_;
  // What is known of a lex state, found on first use.
  struct Facts {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> by_signature;  // a row of moves_of_
    LexId threads_only = 0xFFFFFFFF;
    LexId token_end = 0xFFFFFFFF;
    bool known = false;  // whether the following are
    bool threads = false;
    bool waits = false;
    ByteSet live;
  };
  Facts& facts(LexId lex) {
    if (!facts_[lex].known) find_facts(lex);
    return facts_[lex];
  }
  void find_facts(LexId lex);
  std::vector<Facts> facts_;
  std::vector<std::array<std::uint32_t, 256>> moves_of_;
  std::vector<Move> moves_;
  std::vector<Origin> origins_;
  TripleSet kept_;  // of the move under way
  std::uint64_t work_ = 0;
  std::uint64_t state_words_ = 0;
  std::uint64_t closed_ = 0;
};

}  // namespace grammaton
