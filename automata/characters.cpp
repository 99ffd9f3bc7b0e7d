#include "automata/characters.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "grammar/normalise.hpp"
#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kNoLength = kNone;  // no text
constexpr std::uint32_t kLongest = kNone - 1;

std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
  if (a == kNoLength || b == kNoLength) return kNoLength;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} + b, kLongest));
}

std::uint32_t times(std::uint32_t count, std::uint32_t length) {
  if (count == 0) return 0;
  if (length == kNoLength) return kNoLength;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{count} * length, kLongest));
}

bool continues(unsigned byte) { return byte >= 0x80 && byte <= 0xBF; }

bool is_keys(Kind kind) {
  return kind == Kind::Keys || kind == Kind::Members || kind == Kind::KeyDigits;
}

std::uint64_t call_key(Rule rule, Param param) { return (std::uint64_t{rule} << 32) | param; }

}  // namespace

CharacterMachine::CharacterMachine(TermStore& source, Term start, const Limits& limits) {
  NormalForm form = normalise(source, start, Spelling{}, limits);
  if (form.store->has_tokens()) {
    throw GrammarFault("a grammar with special tokens is no language of characters");
  }
  store_ = std::move(form.store);
  machine_ = std::make_unique<Machine>(*store_, limits);
  start_ = machine_->start(form.start);
}

bool CharacterMachine::is_final(State state) {
  Groups groups;
  machine_->begin_step();
  machine_->load(state, groups);
  machine_->close_pops(groups);
  return groups.ended;
}

std::vector<State> CharacterMachine::byte_targets(State state, unsigned low, unsigned high) {
  Groups closed, next, before;
  machine_->load(state, closed);
  machine_->close(closed);
  std::vector<State> targets;
  for (unsigned byte = low; byte <= high; ++byte) {
    machine_->step(closed, byte, next);
    // Neighbouring bytes mostly lead to the same place.
    if (targets.empty() || next.items != before.items) {
      before.items = next.items;
      targets.push_back(machine_->intern(next));
    } else {
      targets.push_back(targets.back());
    }
  }
  return targets;
}

CharacterMachine::Pieces CharacterMachine::continuations(State state, unsigned count) {
  if (count == 0) return {{0, 0, state}};
  const std::vector<State> targets = byte_targets(state, 0x80, 0xBF);
  Pieces pieces;
  Pieces inner;
  State known = Machine::kEmptySet;
  for (std::uint32_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == Machine::kEmptySet) continue;
    if (targets[i] != known) {
      inner = continuations(targets[i], count - 1);
      known = targets[i];
    }
    const std::uint32_t base = i << (6 * (count - 1));
    for (const Piece& piece : inner) {
      if (!pieces.empty() && pieces.back().target == piece.target &&
          pieces.back().high + 1 == base + piece.low) {
        pieces.back().high = base + piece.high;
      } else {
        pieces.push_back({base + piece.low, base + piece.high, piece.target});
      }
    }
  }
  return pieces;
}

std::vector<CharacterMachine::Arc> CharacterMachine::arcs(State state) {
  machine_->begin_step();
  std::vector<Arc> arcs;
  std::unordered_map<State, std::size_t> place;
  const auto add = [&](std::uint32_t low, std::uint32_t high, State target) {
    const auto [found, is_new] = place.emplace(target, arcs.size());
    if (is_new) arcs.push_back({{}, target});
    CodeRanges& ranges = arcs[found->second].characters;
    if (!ranges.empty() && ranges.back().high + 1 == low) {
      ranges.back().high = high;
    } else {
      ranges.push_back({low, high});
    }
  };
  constexpr unsigned kLastLead = 0xF4;
  const std::vector<State> targets = byte_targets(state, 0, kLastLead);
  std::map<std::pair<State, unsigned>, Pieces> known;
  for (unsigned byte = 0; byte <= kLastLead; ++byte) {
    const State target = targets[byte];
    if (target == Machine::kEmptySet) continue;
    if (byte < 0x80) {
      add(byte, byte, target);
      continue;
    }
    const unsigned count = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    auto found = known.find({target, count});
    if (found == known.end())
      found = known.emplace(std::pair{target, count}, continuations(target, count)).first;
    const std::uint32_t base = (byte & (0x3FU >> count)) << (6 * count);
    for (const Piece& piece : found->second) add(base + piece.low, base + piece.high, piece.target);
  }
  return arcs;
}

State CharacterMachine::step(State state, std::uint32_t code_point) {
  std::string text;
  append_character(code_point, text);
  Groups groups, next;
  machine_->begin_step();
  machine_->load(state, groups);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    machine_->close(groups, ByteSet::of(byte));
    machine_->step(groups, byte, next);
    std::swap(groups, next);
  }
  return machine_->intern(groups);
}

std::uint32_t CharacterMachine::shortest(State state) {
  machine_->begin_step();
  // Parents first, on a list of our own: stacks may be as deep as a text is long.
  std::vector<SetId> pending{set_of(state)};
  while (!pending.empty()) {
    const SetId set = pending.back();
    if (set_lengths_.contains(set)) {
      pending.pop_back();
      continue;
    }
    const std::size_t before = pending.size();
    std::uint32_t best = kNoLength;
    for (const FrameId id : machine_->frames(set)) {
      const Frame frame = machine_->frame(id);
      if (id == kBottom) {
        best = 0;
      } else if (const auto parents = set_lengths_.find(frame.parents);
                 parents == set_lengths_.end()) {
        pending.push_back(frame.parents);
      } else {
        settle(frame.term);
        best = std::min(best, sum(length(frame.term), parents->second));
      }
    }
    if (pending.size() == before) {
      set_lengths_.emplace(set, best);
      pending.pop_back();
    }
  }
  const std::uint32_t result = set_lengths_.at(set_of(state));
  if (result == kLongest) throw LimitFault("the shortest text has more than 4 billion characters");
  return result;
}

void CharacterMachine::collect_calls(Term t, std::vector<std::uint64_t>& out) {
  std::vector<Term> pending{t};
  while (!pending.empty()) {
    const Term u = pending.back();
    pending.pop_back();
    if (!store_->has(u, kHasCall)) continue;
    const Node n = store_->node(u);
    if (n.kind == Kind::Call) {
      out.push_back(call_key(n.a, n.b));
    } else if (n.kind == Kind::Union) {
      for (const Term item : store_->operands(u)) pending.push_back(item);
    } else if (is_keys(n.kind)) {
      for (const auto& [rest, length] : exits(u)) pending.push_back(rest);
    } else if (n.kind != Kind::Distinct && n.kind != Kind::Take) {
      pending.push_back(n.a);
      if (n.kind == Kind::Concat) pending.push_back(n.b);
    }
  }
}

// The alternatives of a template are taken as they are: its body, a trie of keys for each set of
// keys seen, would be much larger.
std::vector<CharacterMachine::Way> CharacterMachine::ways_of(std::uint64_t call) {
  const auto rule = static_cast<Rule>(call >> 32);
  const auto param = static_cast<Param>(call & 0xFFFFFFFF);
  const RuleInfo& info = store_->rule_info(rule);
  if (!info.is_template) return {{store_->body(rule, param), kEmpty, kNoCall}};
  std::vector<Way> ways;
  for (const Alternative& alternative : info.alternatives) {
    const ParamValue value = store_->param_value(param);
    if (!std::ranges::all_of(alternative.conditions,
                             [&](const Condition& c) { return value.holds(c); }))
      continue;
    Way way{alternative.head, alternative.tail, kNoCall};
    if (alternative.next != kNone) {
      ParamValue next = value;
      for (const Update& update : alternative.updates) next.apply(update);
      way.next = call_key(alternative.next, store_->param(std::move(next)));
    }
    ways.push_back(way);
  }
  return ways;
}

// Finds the lengths of all calls that `t` reaches.
void CharacterMachine::settle(Term t) {
  if (!store_->has(t, kHasCall) || lengths_.contains(t)) return;
  std::vector<std::pair<std::uint64_t, std::vector<Way>>> calls;
  settling_ = true;
  try {
    std::vector<std::uint64_t> found;
    collect_calls(t, found);
    while (!found.empty()) {
      const std::uint64_t key = found.back();
      found.pop_back();
      if (!call_lengths_.emplace(key, kNoLength).second) continue;
      calls.emplace_back(key, std::vector<Way>{});
      if (calls.size() > store_->limits().max_step_terms) {
        throw LimitFault(
            "more than max_step_terms = " + std::to_string(store_->limits().max_step_terms) +
            " calls of rules bear on how a text can end");
      }
      calls.back().second = ways_of(key);
      for (const Way& way : calls.back().second) {
        collect_calls(way.head, found);
        collect_calls(way.tail, found);
        if (way.next != kNoCall) found.push_back(way.next);
      }
    }
    // What was found last depends on the fewest others: mostly two rounds are enough.
    for (bool changed = !calls.empty(); changed;) {
      changed = false;
      for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
        std::uint32_t now = kNoLength;
        for (const Way& way : call->second) {
          const std::uint32_t next = way.next == kNoCall ? 0 : call_lengths_.at(way.next);
          if (next < now) now = std::min(now, sum(next, sum(length(way.head), length(way.tail))));
        }
        std::uint32_t& known = call_lengths_.at(call->first);
        changed = changed || now < known;
        known = std::min(now, known);
      }
    }
  } catch (...) {
    // A limit was met: what is half known must not be taken for an answer.
    for (const auto& [key, ways] : calls) call_lengths_.erase(key);
    settling_ = false;
    throw;
  }
  settling_ = false;
}

std::uint32_t CharacterMachine::length(Term t) {
  if (const auto known = lengths_.find(t); known != lengths_.end()) return known->second;
  std::uint32_t result = kNoLength;
  const Node n = store_->node(t);
  switch (n.kind) {
    case Kind::Nothing:
      break;
    case Kind::Empty:
      result = 0;
      break;
    case Kind::Bytes:
      // A character is counted where it begins.
      result = continues(store_->byte_set(t).first()) ? 0 : 1;
      break;
    case Kind::Chars:
      result = 1;
      break;
    case Kind::Concat: {
      result = 0;
      Term rest = t;
      for (; store_->node(rest).kind == Kind::Concat; rest = store_->node(rest).b)
        result = sum(result, length(store_->node(rest).a));
      result = sum(result, length(rest));
      break;
    }
    case Kind::Union: {
      const std::vector<Term> items(store_->operands(t).begin(), store_->operands(t).end());
      for (const Term item : items) result = std::min(result, length(item));
      break;
    }
    case Kind::Repeat:
      result = times(n.b, length(n.a));
      break;
    case Kind::NoSplit:
    case Kind::Metered:
      result = length(n.a);
      break;
    case Kind::Take:
      result = 0;
      break;
    case Kind::Distinct:
      // Whatever was seen: so a length may be less than the shortest text.
      result = length(store_->distinct_body(t, 0));
      break;
    case Kind::Call:
      result = call_lengths_.at(call_key(n.a, n.b));
      break;
    default:
      if (!store_->has(t, kHasCall)) return search_length(t);
      for (const auto& [rest, before] : exits(t))
        result = std::min(result, sum(before, length(rest)));
  }
  if (!settling_ || !store_->has(t, kHasCall)) lengths_.emplace(t, result);
  return result;
}

// Breadth first over residuals, by characters: bytes that go on with one cost nothing. What is
// found is kept for every term on the way.
std::uint32_t CharacterMachine::search_length(Term t) {
  struct Reached {
    std::uint32_t length;
    Term from;
  };
  std::unordered_map<Term, Reached> reached{{t, {0, kNothing}}};
  std::deque<std::pair<std::uint32_t, Term>> pending{{0, t}};
  std::uint32_t best = kNoLength;
  Term last = kNothing;
  while (!pending.empty() && pending.front().first < best) {
    const auto [at, u] = pending.front();
    pending.pop_front();
    if (at > reached.at(u).length) continue;
    const auto known = lengths_.find(u);
    if (known != lengths_.end() || store_->nullable(u)) {
      const std::uint32_t whole = store_->nullable(u) ? at : sum(at, known->second);
      if (whole < best) {
        best = whole;
        last = u;
      }
      continue;
    }
    const Row row = store_->row(u);
    const ClassMap map = store_->class_map(row);
    map.live.each([&](unsigned byte) {
      const Term v = store_->target(row, map.of[byte]);
      const std::uint32_t cost = continues(byte) ? 0 : 1;
      const auto [found, is_new] = reached.try_emplace(v, Reached{kNoLength, kNothing});
      if (at + cost >= found->second.length) return;
      found->second = {at + cost, u};
      if (cost == 0) {
        pending.emplace_front(at, v);
      } else {
        pending.emplace_back(at + cost, v);
      }
    });
  }
  if (best == kNoLength) lengths_[t] = kNoLength;
  for (Term u = last; u != kNothing; u = reached.at(u).from)
    lengths_[u] = best - reached.at(u).length;
  return best;
}

const std::vector<std::pair<Term, std::uint32_t>>& CharacterMachine::exits(Term keys) {
  if (const auto known = exits_.find(keys); known != exits_.end()) return known->second;
  std::unordered_map<Term, std::uint32_t> reached{{keys, 0}};
  std::deque<Term> pending{keys};
  while (!pending.empty()) {
    const Term u = pending.front();
    pending.pop_front();
    if (!is_keys(store_->node(u).kind)) continue;
    const std::uint32_t at = reached.at(u);
    const Row row = store_->row(u);
    const ClassMap map = store_->class_map(row);
    map.live.each([&](unsigned byte) {
      const Term v = store_->target(row, map.of[byte]);
      const std::uint32_t cost = at + (continues(byte) ? 0 : 1);
      const auto [found, is_new] = reached.try_emplace(v, cost);
      if (!is_new && cost >= found->second) return;
      found->second = cost;
      pending.push_back(v);
    });
  }
  std::vector<std::pair<Term, std::uint32_t>> ends;
  for (const auto& [u, length] : reached) {
    if (!is_keys(store_->node(u).kind)) ends.emplace_back(u, length);
  }
  return exits_.emplace(keys, std::move(ends)).first->second;
}

}  // namespace grammaton
