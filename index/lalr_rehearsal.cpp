// The rehearsal of a Lark grammar under LALR: lexeme masks that are made before the first text.
#include <set>
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

}  // namespace

// Lexeme masks that texts soon ask for: where a lexeme begins, and what is left of tokens in which
// it ends, by the scanners that may read on there; then those a few bytes on; then what is left of
// tokens after these.
void LalrStates::rehearse() {
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
    for (Terminal t = 0; t < source.names.size(); ++t) {
      if (state.actions[t] > 0)
        after[t].insert(source.states[static_cast<std::size_t>(state.actions[t]) - 1].scanner);
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
  try {
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
  } catch (const LimitFault&) {
    // Whoever comes to where it was met will be told.
  }
}

}  // namespace grammaton
