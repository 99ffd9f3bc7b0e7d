#include "index/item_automaton.hpp"

#include <algorithm>

namespace grammaton {

namespace {

// Beyond these, counting is no shortcut.
constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kMostStates = 1024;
constexpr std::size_t kMostEdges = 1 << 13;
constexpr std::size_t kMostCallingEdges = 1 << 14;  // of an item that calls rules
// A region of more states is not looked at further.
constexpr std::size_t kMostReached = 24;

}  // namespace

ItemAutomaton::ItemAutomaton(Machine& machine, Term prefix, Term item, const ByteSet& closing)
    : machine_(machine),
      store_(machine.store()),
      regular_(!store_.has(item, kHasCall)),
      item_(regular_ ? item : set_of(machine.start(item))),
      closing_(closing) {
  std::vector<Thread> threads;
  if (store_.nullable(prefix)) threads.push_back({kBoundary, 0});
  if (prefix != kEmpty) threads.push_back({regular_ ? prefix : set_of(machine_.start(prefix)), 0});
  std::uint32_t least = 0;
  intern(std::move(threads), least);
}

ItemAutomaton::Place ItemAutomaton::after(std::uint32_t at, std::uint8_t byte) {
  if (regular_) {
    const Term next = store_.step(at, byte);
    return {next, store_.nullable(next), next != kNothing && next != kEmpty};
  }
  const std::uint64_t key = (std::uint64_t{at} << 8) | byte;
  if (const auto known = after_.find(key); known != after_.end()) return known->second;
  // Kept when all is known: a step may meet a limit.
  Place place;
  machine_.load(at, groups_);
  machine_.close(groups_);
  machine_.step(groups_, byte, next_);
  if (!next_.items.empty()) {
    place.at = set_of(machine_.intern(next_));
    machine_.close(next_);
    place.ends = next_.ended;
    place.goes_on =
        std::ranges::any_of(next_.items, [](const Group& group) { return group.term != kEmpty; });
  }
  return after_[key] = place;
}

ItemAutomaton::Edge ItemAutomaton::make(StateId state, std::uint8_t byte) {
  if (!complete_) return {};
  if (++made_ > (regular_ ? kMostEdges : kMostCallingEdges)) {
    complete_ = false;
    return {};
  }
  std::vector<Thread> threads;
  for (const Thread& thread : states_[state].threads) {
    const bool begins = thread.at == kBoundary;
    const Place next = after(begins ? item_ : thread.at, byte);
    const std::uint32_t items = thread.items + (begins ? 1 : 0);
    if (next.ends) threads.push_back({kBoundary, items});
    if (next.goes_on) threads.push_back({next.at, items});
  }
  Edge edge;
  if (!threads.empty()) edge.to = intern(std::move(threads), edge.items);
  if (!complete_) return {};
  return states_[state].edges[byte] = edge;
}

ItemAutomaton::StateId ItemAutomaton::intern(std::vector<Thread> threads, std::uint32_t& least) {
  least = std::ranges::min_element(threads, {}, &Thread::items)->items;
  for (Thread& thread : threads) thread.items -= least;
  std::ranges::sort(threads);
  const auto twins = std::ranges::unique(threads);
  threads.erase(twins.begin(), twins.end());
  const auto [found, fresh] = known_.try_emplace(threads, static_cast<StateId>(states_.size()));
  if (!fresh) return found->second;
  if (threads.size() > kMostThreads || states_.size() == kMostStates) {
    complete_ = false;
    return kDead;
  }
  State& made = states_.emplace_back();
  made.edges.fill({kUnknown, 0});
  for (const Thread& thread : threads) {
    bool may_end = true;
    if (thread.at == kBoundary) {
      made.boundaries.push_back(thread.items);
    } else if (regular_) {
      may_end = store_.at_token_end(thread.at) != kNothing;
    } else {
      machine_.load(thread.at, groups_);
      may_end = machine_.token_may_end(groups_);
    }
    if (may_end) made.token_end = std::min(made.token_end, thread.items);
  }
  made.threads = std::move(threads);
  return found->second;
}

ByteSet ItemAutomaton::live(StateId state) {
  const auto [found, fresh] = live_.try_emplace(state);
  ByteSet& live = found->second;
  if (!fresh) return live;
  for (const Thread& thread : states_[state].threads) {
    const std::uint32_t at = thread.at == kBoundary ? item_ : thread.at;
    if (regular_) {
      live = live | store_.class_map(store_.row(at)).live;
      continue;
    }
    machine_.load(at, groups_);
    machine_.close(groups_);
    for (const Group& group : groups_.items)
      live = live | store_.class_map(store_.row(group.term)).live;
  }
  return live;
}

// Whether a token that ends in the state may not do so in the thread with the least items, or the
// run may end there.
bool ItemAutomaton::ends_inside(StateId state) const {
  return (open() && !states_[state].boundaries.empty()) || states_[state].token_end != 0;
}

const ItemAutomaton::LetterRow& ItemAutomaton::row(StateId state, std::uint32_t items,
                                                   bool beyond_ascii) {
  const std::size_t index = std::size_t{state} * 2 + items;
  while (rows_.size() <= index) rows_.emplace_back();
  LetterRow& made = rows_[index];
  const bool fresh = std::exchange(made.fresh, false);
  const auto add = [&made](StateId to, unsigned letter) {
    auto edge = std::ranges::find(made.edges, to, &LetterEdge::to);
    if (edge == made.edges.end()) edge = made.edges.insert(edge, LetterEdge{to, {}});
    edge->over.add(letter);
    made.live.add(letter);
  };
  if (fresh) {
    for (unsigned byte = 0; byte < 0x80; ++byte) {
      if (closing_.has(byte)) continue;
      const Edge edge = step(state, static_cast<std::uint8_t>(byte));
      if (edge.to != kDead && edge.items == items) add(edge.to, byte);
    }
  }
  if (beyond_ascii && !made.beyond_ascii) {
    made.beyond_ascii = true;
    for (unsigned byte = Letters::kFirstLead; byte <= Letters::kLastLead; ++byte) {
      const Edge first = step(state, static_cast<std::uint8_t>(byte));
      if (first.to == kDead || closing_.has(byte)) continue;
      const Lead lead(byte);
      const Edge rest = over_all(first.to, lead.low, lead.high, lead.more);
      if (rest.to != kDead && first.items + rest.items == items) add(rest.to, Letters::lead(byte));
    }
  }
  return made;
}

// Where so many bytes lead that end a character, the next of them between two: dead unless all lead
// to one state with equally many items.
ItemAutomaton::Edge ItemAutomaton::over_all(StateId from, unsigned low, unsigned high,
                                            unsigned more) {
  const auto [found, fresh] = over_all_.try_emplace({from, low, high, more});
  Edge& all = found->second;
  if (!fresh) return all;
  for (unsigned byte = low; byte <= high; ++byte) {
    Edge edge = step(from, static_cast<std::uint8_t>(byte));
    if (edge.to != kDead && more > 1) {
      const Edge rest = over_all(edge.to, 0x80, 0xBF, more - 1);
      edge = {rest.to, edge.items + rest.items};
    }
    if (edge.to == kDead || closing_.has(byte) || (byte > low && edge != all)) return all = {};
    all = edge;
  }
  return all;
}

bool ItemAutomaton::counts(StateId state, const Letters& letters, std::uint32_t items) {
  const bool beyond_ascii = !letters.only_ascii();
  reached_.assign(1, state);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    if (reached_.size() > kMostReached) return false;
    const LetterRow& ascii = row(reached_[i], items, false);
    if (!letters.ascii_within(ascii.live)) return false;
    const LetterRow& from = beyond_ascii ? row(reached_[i], items, true) : ascii;
    if (!letters.within(from.live)) return false;
    for (const LetterEdge& edge : from.edges) {
      if (!letters.meets(edge.over)) continue;
      if (ends_inside(edge.to)) return false;
      if (std::ranges::find(reached_, edge.to) == reached_.end()) reached_.push_back(edge.to);
    }
  }
  return complete_;
}

const ItemAutomaton::Counting* ItemAutomaton::counted(StateId state, const Letters& wanted) {
  const auto [found, fresh] = counted_.try_emplace(state);
  std::optional<Counting>& kept = found->second;
  if (!fresh) return kept ? &*kept : nullptr;
  if (ends_inside(state) || !wanted.within(row(state, 1, false).live)) return nullptr;
  Counting counting{row(state, 1, true).live, closing_};
  Letters& letters = counting.letters;
  std::vector<StateId> reached{state};
  for (std::size_t i = 0; i < reached.size() && wanted.within(letters); ++i) {
    const LetterRow& from = row(reached[i], 1, true);
    letters.keep(from.live);
    counting.live = counting.live | live(reached[i]);
    for (const LetterEdge& edge : from.edges) {
      if (!letters.meets(edge.over) || std::ranges::find(reached, edge.to) != reached.end())
        continue;
      if (reached.size() < kMostReached && !ends_inside(edge.to) &&
          wanted.within(row(edge.to, 1, false).live)) {
        reached.push_back(edge.to);
      } else {
        letters.remove(edge.over);
      }
    }
  }
  if (complete_ && wanted.within(letters)) kept = counting;
  return kept ? &*kept : nullptr;
}

}  // namespace grammaton
