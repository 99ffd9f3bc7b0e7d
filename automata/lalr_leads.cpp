// What the threads of a lexeme can still produce (lalr_future.hpp): the lexer is explored from a
// place, once for all stacks, and what each new place reaches is put together by strongly connected
// components, whose places reach the same.
//
// The lexer's states can be many, and so can its threads: those of `[a-z]x+` three hundred times
// are 45,000 with 150 each. So the work is counted, and a grammar that takes more than some seconds
// is refused by the name of a terminal.
#include <algorithm>
#include <iterator>

#include "automata/lalr_future.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kWordsAThread = 16;
// What takes as long as this many threads: a place, and a byte from a place, which are looked up
// where memory is cold.
constexpr std::uint64_t kPlaceWork = 20;
constexpr std::uint64_t kMovedWork = 10;

}  // namespace

std::uint32_t LalrFuture::place(LexId lex, DutiesId duties, ContextId context) {
  const std::uint32_t behind = behind_lookup_
                                   .try_emplace((std::uint64_t{duties} << 32) | context,
                                                static_cast<std::uint32_t>(behind_lookup_.size()))
                                   .first;
  const auto [found, is_new] = place_lookup_.try_emplace(
      (std::uint64_t{lex} << 32) | behind, static_cast<std::uint32_t>(places_.size()));
  if (is_new) {
    places_.push_back({lex, duties, context});
    if (spend(kPlaceWork)) throw too_much_to_explore(places_.back());
  }
  return found;
}

bool LalrFuture::spend(std::uint64_t threads) {
  spent_ += threads;
  return spent_ / kMostSpent >= machine_.limits().max_step_terms;
}

LimitFault LalrFuture::too_much_to_explore(const Place& at) const {
  std::string names = lexer_.describe_threads(at.lex);
  if (const std::string others = lexer_.describe(at.duties); !others.empty())
    names += (names.empty() ? "" : " behind ") + others;
  return LimitFault(
      "what can follow in the Lark grammar takes too long to find (over " +
          std::to_string(kMostSpent) +
          " * max_step_terms steps); patterns whose characters can be read in many ways at once: " +
          names,
      names.substr(0, names.find_first_of(", ")));
}

// The bytes to explore: all that can make a difference.
std::vector<unsigned> LalrFuture::bytes_from(LexId lex, DutiesId duties) {
  if (duties == 0 && !lexer_.looks_behind()) return lexer_.representatives(lex);
  std::vector<unsigned> bytes;
  lexer_.live(lex).each([&](unsigned byte) { bytes.push_back(byte); });
  return bytes;
}

LalrFuture::Explored LalrFuture::explore(std::uint32_t index) {
  const Place at = places_[index];
  const std::uint64_t before = lexer_.work();
  Explored result;
  for (const unsigned byte : bytes_from(at.lex, at.duties)) {
    const ContextId after = lexer_.after(at.context, byte);
    const LarkLexer::Move move = lexer_.move(at.lex, byte, after);
    if (move.next == LarkLexer::kDeadLex) continue;
    const DutiesId duties = lexer_.advance(at.duties, byte, after);
    if (duties == LarkLexer::kBroken) continue;
    for (std::uint32_t slot = 0; slot < move.count; ++slot) {
      const LarkLexer::Origin origin = lexer_.origin(move, slot);
      if (!origin.is_new) continue;
      const DutiesId chosen = lexer_.unite(duties, lexer_.choice(move.next, slot));
      if (chosen == LarkLexer::kBroken) continue;
      const BorderId behind = border(chosen, after);
      const auto [found, is_new] = lead_lookup_.try_emplace(
          {origin.value, origin.ignored, behind}, static_cast<std::uint32_t>(lead_list_.size()));
      if (is_new) lead_list_.push_back({origin.value, origin.ignored, behind});
      result.own.push_back(found->second);
    }
    if (lexer_.has_threads(move.next))
      result.next.push_back(place(lexer_.threads_only(move.next), duties, after));
    spent_ += kMovedWork;
  }
  for (std::vector<std::uint32_t>* list : {&result.own, &result.next}) {
    std::ranges::sort(*list);
    const auto twins = std::ranges::unique(*list);
    list->erase(twins.begin(), twins.end());
  }
  if (spend(lexer_.work() - before + result.own.size())) throw too_much_to_explore(at);
  return result;
}

// Adds sorted ids to sorted ids.
void LalrFuture::join(std::vector<std::uint32_t>& all, std::span<const std::uint32_t> more) {
  spent_ += (all.size() + more.size()) / kWordsAThread;
  if (std::ranges::includes(all, more)) return;
  std::vector<std::uint32_t> both;
  both.reserve(all.size() + more.size());
  std::ranges::set_union(all, more, std::back_inserter(both));
  all = std::move(both);
}

// Tarjan's algorithm, without recursion: a component is settled when all that it leads to is.
LeadsId LalrFuture::leads(LexId lex, DutiesId duties, ContextId context) {
  if (lex == LarkLexer::kDeadLex || duties == LarkLexer::kBroken) return 0;
  const std::uint32_t asked = place(lex, duties, context);
  if (places_[asked].result != kNone) return places_[asked].result;
  struct Visit {
    std::uint32_t place;
    std::uint32_t number;
    std::uint32_t least;  // number of a place of the same component
    std::vector<std::uint32_t> reached;
    std::vector<std::uint32_t> next;
    std::size_t done = 0;
  };
  FlatMap<std::uint32_t> numbers;
  std::vector<std::uint32_t> open;  // places of components that are not settled
  std::vector<Visit> path;
  const auto visit = [&](std::uint32_t at) {
    const auto number = static_cast<std::uint32_t>(numbers.size());
    numbers.try_emplace(at, number);
    open.push_back(at);
    Explored found = explore(at);
    path.push_back({at, number, number, std::move(found.own), std::move(found.next)});
  };
  visit(asked);
  for (;;) {
    Visit& top = path.back();
    if (top.done < top.next.size()) {
      const std::uint32_t next = top.next[top.done++];
      if (places_[next].result != kNone) {
        join(top.reached, leads_pool_[places_[next].result]);
      } else if (const std::uint32_t* const known = numbers.find(next)) {
        top.least = std::min(top.least, *known);
      } else {
        visit(next);
      }
      continue;
    }
    const Visit done = std::move(top);
    path.pop_back();
    if (done.least == done.number) {
      const LeadsId result = leads_pool_.intern(done.reached);
      for (std::uint32_t member = kNone; member != done.place;) {
        member = open.back();
        open.pop_back();
        places_[member].result = result;
      }
    }
    if (path.empty()) return places_[asked].result;
    join(path.back().reached, done.reached);
    path.back().least = std::min(path.back().least, done.least);
  }
}

}  // namespace grammaton
