#include "automata/lalr_machine.hpp"

#include <array>

namespace grammaton {

namespace {

// How many matches may wait within each other for the lexer to make up its mind.
constexpr unsigned kMostWaiting = 64;
// Slots of a core.
constexpr std::size_t kMostSlots = 64;
// Reductions before a terminal is shifted, beyond those that shrink the stack.
constexpr std::size_t kMostReductions = 100'000;

}  // namespace

LalrMachine::LalrMachine(std::shared_ptr<const LalrSource> source, const Spelling& spelling,
                         const Limits& limits)
    : source_(source), limits_(limits), lexer_(std::move(source), spelling, limits) {
  stack_of_start_ = push(source_->start, kNoStack);
}

void LalrMachine::check_room() const {
  if (stacks_.size() + cores_.size() + configurations_.size() >= limits_.max_frames) {
    throw LimitFault("the parser's stacks need more than max_frames = " +
                     std::to_string(limits_.max_frames) + " nodes and configurations");
  }
}

StackId LalrMachine::push(std::uint32_t state, StackId below) {
  const std::uint64_t h = mix64(state + 1, below);
  const StackId known = stack_lookup_.find(
      h, [&](StackId i) { return stacks_[i].state == state && stacks_[i].below == below; });
  if (known != InternTable::kFree) return known;
  check_room();
  const auto id = static_cast<StackId>(stacks_.size());
  stacks_.push_back({state, below, stacks_[below].length + 1});
  stack_lookup_.insert(h, id);
  return id;
}

Configuration LalrMachine::configuration(CoreId core, ContextId context) {
  if (!lexer_.looks_behind()) return core;
  const std::uint64_t key = (std::uint64_t{core} << 32) | context;
  const auto [place, is_new] =
      configuration_lookup_.try_emplace(key, static_cast<Configuration>(configurations_.size()));
  if (is_new) {
    check_room();
    configurations_.emplace_back(core, context);
  }
  return place->second;
}

CoreId LalrMachine::intern(std::span<const std::uint32_t> words) {
  check_room();
  return cores_.intern(words);
}

// All reductions that a terminal calls for, up to the shift or the end of the text.
LalrMachine::Reduced LalrMachine::reduce(Tower& tower, Terminal terminal) {
  const auto top = [&] {
    return tower.states.empty() ? stacks_[tower.base].state : tower.states.back();
  };
  const auto done = [&](Reduced result) {
    tell_read(stacks_[tower.base].length);
    return result;
  };
  for (std::size_t count = 0; count < kMostReductions + stacks_.size(); ++count) {
    const std::int32_t action = source_->states[top()].actions[terminal];
    if (action == LalrSource::kNoAction) return done(Reduced::Refused);
    if (action > 0) return done(Reduced::Shifts);
    const LalrSource::Rule& rule = source_->rules[static_cast<std::size_t>(-action) - 1];
    for (std::uint32_t i = 0; i < rule.length; ++i) {
      if (tower.states.empty()) {
        tower.base = stacks_[tower.base].below;
      } else {
        tower.states.pop_back();
      }
    }
    const std::uint32_t next = source_->states[top()].gotos[rule.left];
    if (next == kNone) return done(Reduced::Refused);
    if (terminal == source_->end_of_text() && next == source_->end) return done(Reduced::Ends);
    tower.states.push_back(next);
  }
  const bool named = terminal < source_->names.size();
  throw LimitFault("the parser reduces for ever before " +
                       (named ? source_->names[terminal] : std::string("the end of the text")),
                   named ? source_->names[terminal] : std::string());
}

StackId LalrMachine::shift(StackId stack, Terminal terminal) {
  const std::uint64_t key = (std::uint64_t{stack} << 32) | terminal;
  if (const Shifted* const known = shifted_.find(key)) {
    tell_read(known->read);
    return known->stack;
  }
  const std::uint32_t outer = begin_reading();
  tower_.base = stack;
  tower_.states.clear();
  StackId result = kNoStack;
  if (reduce(tower_, terminal) == Reduced::Shifts) {
    result = tower_.base;
    for (const std::uint32_t state : tower_.states) result = push(state, result);
    const std::int32_t action = source_->states[stacks_[result].state].actions[terminal];
    result = push(static_cast<std::uint32_t>(action) - 1, result);
  }
  shifted_.try_emplace(key, {result, end_reading(outer)});
  return result;
}

bool LalrMachine::may_end(StackId stack) {
  tower_.base = stack;
  tower_.states.clear();
  return reduce(tower_, source_->end_of_text()) == Reduced::Ends;
}

CoreId LalrMachine::fresh(StackId stack, ContextId context) {
  tell_read(stacks_[stack].length);
  const LexId lex = lexer_.fresh(source_->states[stacks_[stack].state].scanner, context);
  const std::array<std::uint32_t, 2> words{stack, lex};
  return intern(words);
}

CoreId LalrMachine::take(StackId stack, const LarkLexer::Origin& match, ContextId context) {
  if (match.ignored) return fresh(stack, context);
  const StackId shifted = shift(stack, match.value);
  return shifted == kNoStack ? kDeadCore : fresh(shifted, context);
}

CoreId LalrMachine::step(CoreId core, unsigned byte, ContextId after, unsigned depth) {
  if (core == kDeadCore) return kDeadCore;
  if (depth > kMostWaiting) {
    throw LimitFault("more than " + std::to_string(kMostWaiting) +
                     " matches wait for each other before the lexer can decide");
  }
  const StackId stack = this->stack(core);
  const LarkLexer::Move move = lexer_.move(lex(core), byte, after);
  if (move.next == LarkLexer::kDeadLex) return kDeadCore;
  const auto follow = [&](std::uint32_t slot) {
    const LarkLexer::Origin origin = lexer_.origin(move, slot);
    return origin.is_new ? take(stack, origin, after)
                         : step(after_slot(core, origin.value), byte, after, depth + 1);
  };
  if (move.decided) return follow(0);
  if (move.count > kMostSlots) {
    throw LimitFault("more than " + std::to_string(kMostSlots) +
                     " matches wait for the same look-ahead");
  }
  std::array<std::uint32_t, 2 + kMostSlots> words;
  words[0] = stack;
  words[1] = move.next;
  bool alive = move.count == 0 || lexer_.has_threads(move.next);
  for (std::uint32_t slot = 0; slot < move.count; ++slot) {
    words[2 + slot] = follow(slot);
    alive = alive || words[2 + slot] != kDeadCore;
  }
  return alive ? intern(std::span(words).first(2 + move.count)) : kDeadCore;
}

// Of the matches that wait, the first whose duties hold is the one; without any, the text must end
// where a lexeme has.
bool LalrMachine::ends(CoreId core) {
  for (; core != kDeadCore;) {
    if (lexer_.is_fresh(lex(core))) return may_end(stack(core));
    CoreId chosen = kDeadCore;
    for (std::uint32_t slot = 0; slot < slots(core); ++slot) {
      if (!lexer_.hold_at_end(lexer_.slot_duties(lex(core), slot))) continue;
      chosen = after_slot(core, slot);
      break;
    }
    core = chosen;
  }
  return false;
}

CoreId LalrMachine::at_token_end(CoreId core) {
  if (core == kDeadCore || !lexer_.store().restricted()) return core;
  const LexId next = lexer_.at_token_end(lex(core));
  if (next == LarkLexer::kDeadLex) return kDeadCore;
  std::vector<std::uint32_t> words{stack(core), next};
  for (std::uint32_t slot = 0; slot < slots(core); ++slot)
    words.push_back(at_token_end(after_slot(core, slot)));
  return intern(words);
}

}  // namespace grammaton
