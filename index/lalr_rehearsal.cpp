// The rehearsal of a Lark grammar under LALR: lexeme masks that are made before the first text.
#include <set>
#include <unordered_set>
#include <vector>

#include "index/lalr_states.hpp"
#include "index/thread_time.hpp"

namespace grammaton {

namespace {

// Bounds on what is made before the first text: scanners that are begun with, nodes visited for
// lexeme masks, and what a mask costs, in nodes.
constexpr std::size_t kMostRehearsed = 512;
constexpr std::uint64_t kRehearsal = 500'000;
constexpr std::uint64_t kMaskCost = 20;
constexpr std::chrono::milliseconds kLongestRehearsal{150};
// Bounds on cores: their masks, some 50 us each, and the part of the bound on stacks.
constexpr std::size_t kMostCores = 2'000;
constexpr std::chrono::milliseconds kLongestCores{15};
constexpr std::uint64_t kRehearsalPart = 8;

}  // namespace

// Lexeme masks that texts soon ask for: where a lexeme begins, and what is left of tokens in which
// it ends, by the scanners that may read on there; then those a few bytes on; then what is left of
// tokens after these.
void LalrStates::rehearse_lexemes() {
  LarkLexer& lexer = machine_.lexer();
  const LalrSource& source = machine_.source();
  struct Place {
    std::shared_ptr<const Trie> rest;  // null: the vocabulary's
    LexId lex;
    ContextId context;
    std::uint32_t scanner;  // where a lexeme begins; kNone elsewhere
  };
  enum Rank : std::uint8_t { Begins, Inside, Later };
  std::vector<Place> queues[3];
  std::size_t done[3] = {0, 0, 0};
  std::set<MaskKey> seen;
  const auto add = [&](Rank rank, const Place& place) {
    const std::uint64_t trie = (place.rest ? *place.rest : index_.trie()).uid();
    if (place.lex != LarkLexer::kDeadLex && !lexer.waits(place.lex) &&
        seen.insert({trie, Trie::kRoot, place.lex, place.context}).second)
      queues[rank].push_back(place);
  };
  std::vector<std::set<std::uint32_t>> after(source.names.size());  // scanners, by terminal
  for (const LalrSource::State& state : source.states) {
    for (const auto& [t, action] : state.actions.listed()) {
      if (action > 0) after[t].insert(source.states[static_cast<std::size_t>(action) - 1].scanner);
    }
  }
  const auto rehearse_one = [&](Rank rank, const Place& place) {
    if (lexer.has_threads(place.lex)) {
      const Trie& trie = place.rest ? *place.rest : index_.trie();
      const auto mask = lexeme_mask({trie, Trie::kRoot}, place.lex, place.context);
      for (const Exit& exit : mask->exits) {
        if (!exit.rest || !exit.origin.is_new || exit.rest->size() < kShortFresh) continue;
        const auto read_on = [&](std::uint32_t scanner) {
          add(rank == Begins ? Begins : Later,
              {exit.rest, lexer.fresh(scanner, exit.context), exit.context, scanner});
        };
        if (!exit.origin.ignored) {
          for (const std::uint32_t scanner : after[exit.origin.value]) read_on(scanner);
        } else if (place.scanner != kNone) {
          read_on(place.scanner);
        }
      }
    }
    if (place.rest) return;
    for (const unsigned byte : lexer.representatives(place.lex))
      add(Inside, {nullptr, lexer.move(place.lex, byte, lexer.after(0, byte)).next, 0, kNone});
  };
  const auto begun = thread_time();
  const std::size_t scanners = source.scanners.size();
  for (std::uint32_t scanner = 0; scanner < scanners && scanner < kMostRehearsed; ++scanner)
    add(Begins, {nullptr, lexer.fresh(scanner, 0), 0, scanner});
  while (stats_.study_nodes + stats_.frames_made * kMaskCost < kRehearsal &&
         thread_time() - begun < kLongestRehearsal) {
    std::size_t rank = 0;
    while (rank < 3 && done[rank] == queues[rank].size()) ++rank;
    if (rank == 3) break;
    const Place place = queues[rank][done[rank]++];
    rehearse_one(static_cast<Rank>(rank), place);
  }
}

// Masks of cores near the start: of stacks that are not alike on top of them, where a lexeme
// begins, as far as some time goes, and then inside of lexemes.
void LalrStates::rehearse_cores() {
  LarkLexer& lexer = machine_.lexer();
  const LalrSource& source = machine_.source();
  if (lexer.looks_behind()) return;
  std::vector<CoreId> fresh{machine_.core(machine_.start())};
  std::vector<CoreId> inside;
  std::unordered_set<CoreId> seen(fresh.begin(), fresh.end());
  const auto add = [&](std::vector<CoreId>& queue, CoreId core) {
    if (core != LalrMachine::kDeadCore && seen.insert(core).second && viable(core, 0))
      queue.push_back(core);
  };
  const auto begun = thread_time();
  std::size_t made = 0;
  const auto has_room = [&] {
    return made < kMostCores && thread_time() - begun < kLongestCores &&
           machine_.stack_count() + machine_.core_count() < limits_.max_frames / kRehearsalPart;
  };
  const auto rehearse_one = [&](CoreId core) {
    const Trie& trie = index_.trie();
    if (!known_.takes(core) || known_.find(trie.uid(), core, 0) != nullptr) return false;
    visited_ = 0;
    scratch_->give_all_back();
    MaskBuilder& out = scratch_->take();
    add_known(trie, core, 0, out);
    ++made;
    return true;
  };
  for (std::size_t i = 0; i < fresh.size() && has_room(); ++i) {
    const CoreId core = fresh[i];
    if (!rehearse_one(core)) continue;
    const StackId stack = machine_.stack(core);
    for (const auto& [t, action] : source.states[machine_.top(stack)].actions.listed()) {
      if (t == source.end_of_text()) continue;
      const StackId next = machine_.shift(stack, t);
      if (next != LalrMachine::kNoStack) add(fresh, machine_.fresh(next, 0));
    }
    for (const unsigned byte : lexer.representatives(machine_.lex(core)))
      add(inside, machine_.step(core, byte, 0));
  }
  for (std::size_t i = 0; i < inside.size() && has_room(); ++i) {
    const CoreId core = inside[i];
    if (!rehearse_one(core)) continue;
    for (const unsigned byte : lexer.representatives(machine_.lex(core)))
      add(inside, machine_.step(core, byte, 0));
  }
}

void LalrStates::rehearse() {
  const ScratchLoan loan(index_, scratch_);
  try {
    rehearse_lexemes();
    rehearse_cores();
  } catch (const LimitFault&) {
    // Whoever comes to where it was met will be told.
  }
}

}  // namespace grammaton
