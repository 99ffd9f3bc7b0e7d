#include "index/lalr_states.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace grammaton {

namespace {

// Smaller subtrees are walked at once: a lexeme mask costs about as much.
constexpr std::uint32_t kShortLexeme = 192;
// What a trie of so many nodes is for a core is kept.
constexpr std::uint32_t kLeastKept = 12;
// Groups with fewer tokens than one in this many words are kept as a list.
constexpr std::size_t kSparse = 8;

}  // namespace

// --- making lexeme masks ---

class LalrStates::Study {
 public:
  Study(LalrStates& states, const Trie& trie)
      : states_(states), lexer_(states.machine_.lexer()), trie_(trie) {}

  std::shared_ptr<const LexemeMask> run(std::uint32_t node, LexId lex, ContextId context) {
    root_ = node;
    Pending pending;
    if (states_.machine_.lexer().slot_duties(lex, 0) == 0) {
      refused_.assign(states_.index_.words(), 0);
      pending.any = true;
      pending.origin = {false, false, 0};
      pending.depth = trie_.node(node).depth;
      pending.context = context;
    }
    walk(node, lex, context, pending);
    return finish();
  }

 private:
  // The last match so far, which is the lexeme if no thread matches later.
  struct Pending {
    bool any = false;
    LarkLexer::Origin origin{false, false, 0};
    std::uint16_t depth = 0;
    ContextId context = 0;
  };
  using OriginKey = std::tuple<bool, bool, std::uint32_t>;
  struct Leaving {
    std::vector<std::uint32_t> ends;
    std::vector<Entry> rest;
  };
  struct Staying {
    std::vector<std::uint32_t> tokens;
    std::map<OriginKey, Matched> matched;
  };

  static OriginKey key(const LarkLexer::Origin& origin) {
    return {origin.is_new, origin.ignored, origin.value};
  }

  Leaving& leaving(const LarkLexer::Origin& origin, ContextId context) {
    return exits_[{key(origin), context}];
  }

  void add_rest(Leaving& leaving, std::uint32_t begin, std::uint32_t end, std::uint16_t depth) {
    for (const Entry& entry : trie_.entries(begin, end))
      leaving.rest.push_back({entry.token, entry.start + depth, 0});
  }

  // The letters that lead a lex state back to itself, each making the same match or none.
  struct Loop {
    bool any = false;
    Letters letters;
    bool matches = false;
    LarkLexer::Origin origin{false, false, 0};
  };

  Loop loop(LexId lex, ContextId context) {
    const auto [place, is_new] = loops_.try_emplace(lex);
    if (!is_new || lexer_.looks_behind()) return place->second;  // contexts differ by letters
    Loop found;
    for (unsigned byte = 0; byte < 0x80; ++byte) {
      const LarkLexer::Move move = lexer_.move(lex, byte, context);
      if (move.next != lex || move.decided || move.count > 1) continue;
      LarkLexer::Origin origin{false, false, 0};
      if (move.count == 1) origin = lexer_.origin(move, 0);
      if (move.count == 1 && !origin.is_new) continue;
      if (found.any && (found.matches != (move.count == 1) || key(origin) != key(found.origin)))
        continue;
      found.any = true;
      found.matches = move.count == 1;
      found.origin = origin;
      found.letters.add(byte);
    }
    if (found.any && !found.matches && !lexer_.store().restricted()) {
      for (unsigned lead = Letters::kFirstLead; lead <= Letters::kLastLead; ++lead) {
        if (character_loops(lex, context, lead)) found.letters.add(Letters::lead(lead));
      }
    }
    return loops_[lex] = found;
  }

  // Whether every character that begins with a byte leads back and matches nothing on the way, and
  // tokens that end inside one are like those that end after it.
  bool character_loops(LexId lex, ContextId context, unsigned lead) {
    const LeadsId leads = leads_of(lex, context);
    std::set<LexId> inside{lex};
    const unsigned length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (unsigned at = 0; at < length; ++at) {
      unsigned low = at == 0 ? lead : 0x80;
      unsigned high = at == 0 ? lead : 0xBF;
      if (at == 1 && lead == 0xE0) low = 0xA0;
      if (at == 1 && lead == 0xF0) low = 0x90;
      if (at == 1 && lead == 0xED) high = 0x9F;
      if (at == 1 && lead == 0xF4) high = 0x8F;
      std::set<LexId> reached;
      for (const LexId from : inside) {
        for (unsigned byte = low; byte <= high; ++byte) {
          const LarkLexer::Move move = lexer_.move(from, byte, context);
          if (move.next == LarkLexer::kDeadLex || move.decided || move.count > 0) return false;
          reached.insert(move.next);
        }
      }
      inside = std::move(reached);
      for (const LexId each : inside) {
        if (leads_of(each, context) != leads) return false;
      }
    }
    return inside == std::set<LexId>{lex};
  }

  LeadsId leads_of(LexId lex, ContextId context) {
    return states_.future_.leads(lexer_.at_token_end(lexer_.threads_only(lex)), 0, context);
  }

  void walk(std::uint32_t node, LexId lex, ContextId context, const Pending& pending) {
    if (trie_.letters_below(node) != nullptr && walk_looped(node, lex, context, pending)) return;
    const Trie::Node& here = trie_.node(node);
    const ByteSet live = lexer_.live(lex);  // a copy: the walk makes lex states
    for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
      if (live.has(trie_.byte(child)) || pending.any) visit(child, lex, context, pending);
    }
  }

  // Takes what letters that lead back to the lex state make of the subtree, at once.
  bool walk_looped(std::uint32_t node, LexId lex, ContextId context, const Pending& pending) {
    const Loop looped = loop(lex, context);
    if (!looped.any) return false;
    const Trie::Node& here = trie_.node(node);
    std::vector<std::uint32_t> others;
    if (!trie_.letters_below(node)->within(looped.letters) &&
        (here.subtree_nodes < kWideSubtree || !trie_.find_others(node, looped.letters, others)))
      return false;
    std::uint32_t done = here.entry_end;
    for (const std::uint32_t other : others) {
      take_looped({node, done, trie_.node(other).entry_begin}, lex, context, looped);
      done = trie_.node(other).subtree_entry_end;
    }
    take_looped({node, done, here.subtree_entry_end}, lex, context, looped);
    for (const std::uint32_t other : others) {
      const auto depth = static_cast<std::uint16_t>(trie_.node(other).depth - 1);
      Pending next = pending;
      if (depth > here.depth) {
        next.any = looped.matches;
        if (looped.matches) next = {true, looped.origin, depth, context};
      }
      visit(other, lex, context, next);
    }
    return true;
  }

  void take_looped(const Span& span, LexId lex, ContextId context, const Loop& looped) {
    if (span.begin == span.end) return;
    Staying& group = staying(lex, context);
    for (const Entry& entry : trie_.entries(span.begin, span.end))
      group.tokens.push_back(entry.token);
    if (!looped.matches) return;
    Matched& matched = group.matched[key(looped.origin)];
    matched.origin = looped.origin;
    matched.spans.push_back(span);
  }

  void visit(std::uint32_t child, LexId lex, ContextId context, const Pending& pending) {
    ++states_.stats_.study_nodes;
    const unsigned byte = trie_.byte(child);
    const ContextId after = lexer_.after(context, byte);
    const LarkLexer::Move move = lexer_.move(lex, byte, after);
    if (move.next == LarkLexer::kDeadLex) return;
    const Trie::Node& below = trie_.node(child);
    if (move.decided) {
      const LarkLexer::Origin origin = lexer_.origin(move, 0);
      if (origin.is_new) {
        Leaving& group = leaving(origin, after);
        for (const Entry& entry : trie_.entries_at(child)) group.ends.push_back(entry.token);
        add_rest(group, below.entry_end, below.subtree_entry_end, below.depth);
      } else if (below.depth == trie_.node(root_).depth + 1 && !pending.origin.is_new) {
        for (const Entry& entry : trie_.entries(below.entry_begin, below.subtree_entry_end))
          set_bit(refused_.data(), entry.token);
      } else {
        add_rest(leaving(pending.origin, pending.context), below.entry_begin,
                 below.subtree_entry_end, pending.depth);
      }
      return;
    }
    if (lexer_.waits(move.next)) {
      waiting_.push_back(child);
      return;
    }
    Pending next = pending;
    if (move.count == 0) {
      next.any = false;
    } else if (const LarkLexer::Origin origin = lexer_.origin(move, 0); origin.is_new) {
      next = {true, origin, below.depth, after};
    }
    if (below.entry_begin != below.entry_end) stay(child, move.next, after, next);
    if (below.child_begin != below.child_end) walk(child, move.next, after, next);
  }

  Staying& staying(LexId lex, ContextId context) {
    Staying*& place = stay_of_[(std::uint64_t{lex} << 32) | context];
    if (place == nullptr) place = &stays_[leads_of(lex, context)];
    return *place;
  }

  void stay(std::uint32_t node, LexId lex, ContextId context, const Pending& pending) {
    Staying& group = staying(lex, context);
    for (const Entry& entry : trie_.entries_at(node)) group.tokens.push_back(entry.token);
    if (!pending.any) return;
    Matched& matched = group.matched[key(pending.origin)];
    matched.origin = pending.origin;
    matched.nodes.push_back(node);
  }

  std::shared_ptr<const LexemeMask> finish() {
    auto mask = std::make_shared<LexemeMask>();
    const std::size_t words = states_.index_.words();
    mask->memory = sizeof(LexemeMask);
    for (auto& [leads, group] : stays_) {
      Stay stay{leads, nullptr, {}, {}};
      mask->memory += sizeof(Stay);
      for (auto& [unused, matched] : group.matched) {
        mask->memory +=
            sizeof(Matched) + matched.nodes.size() * 4 + matched.spans.size() * sizeof(Span);
        stay.matched.push_back(std::move(matched));
      }
      if (group.tokens.size() * kSparse > words) {
        std::vector<Word> bits(words, 0);
        for (const std::uint32_t token : group.tokens) set_bit(bits.data(), token);
        stay.dense = copy_bits(bits);
        mask->memory += words * sizeof(Word);
      } else {
        stay.tokens = std::move(group.tokens);
        mask->memory += stay.tokens.size() * 4;
      }
      mask->stays.push_back(std::move(stay));
    }
    // The largest group first: it is what the masks of such states have in common.
    std::ranges::stable_sort(mask->stays, [](const Stay& a, const Stay& b) {
      return a.dense != nullptr && b.dense == nullptr;
    });
    for (auto& [place, group] : exits_) {
      const auto& [is_new, ignored, value] = place.first;
      Exit exit{{is_new, ignored, value}, place.second, std::move(group.ends), nullptr};
      if (!group.rest.empty()) {
        exit.rest = states_.rest_trie(std::move(group.rest));
      }
      mask->memory += sizeof(Exit) + exit.ends.size() * 4;
      mask->exits.push_back(std::move(exit));
    }
    mask->waiting = std::move(waiting_);
    if (!refused_.empty()) {
      mask->refused = copy_bits(refused_);
      mask->memory += words * sizeof(Word);
    }
    return mask;
  }

  LalrStates& states_;
  LarkLexer& lexer_;
  const Trie& trie_;
  std::uint32_t root_ = 0;
  std::map<LexId, Loop> loops_;
  std::map<LeadsId, Staying> stays_;
  std::unordered_map<std::uint64_t, Staying*> stay_of_;  // by lex state and context
  std::map<std::pair<OriginKey, ContextId>, Leaving> exits_;
  std::vector<std::uint32_t> waiting_;
  std::vector<Word> refused_;
};

// --- states ---

LalrStates::LalrStates(std::shared_ptr<const LalrSource> source, TokenIndex& index,
                       const Limits& limits)
    : index_(index),
      limits_(limits),
      machine_(std::move(source), index.spelling(), limits),
      future_(machine_),
      known_(machine_) {
  if (!future_.viable(machine_.core(machine_.start()), 0)) {
    throw UnsatisfiableFault(
        "Lark parses no text at all with this grammar, or none that the vocabulary can spell");
  }
  rehearse();
}

SetId LalrStates::follow(SetId state, std::string_view text) {
  CoreId core = machine_.core(state);
  ContextId context = machine_.context(state);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    context = machine_.lexer().after(context, byte);
    core = machine_.step(core, byte, context);
    if (core == LalrMachine::kDeadCore) return kNoState;
  }
  return viable(core, context) ? machine_.configuration(core, context) : kNoState;
}

std::string LalrStates::forced_bytes(SetId state, std::size_t most) {
  std::string forced;
  CoreId core = machine_.core(state);
  ContextId context = machine_.context(state);
  while (forced.size() < most && !machine_.ends(core)) {
    CoreId only = LalrMachine::kDeadCore;
    ContextId there = 0;
    unsigned by = 0;
    unsigned count = 0;
    for (unsigned byte = 0; byte < 256 && count < 2; ++byte) {
      const ContextId after = machine_.lexer().after(context, byte);
      const CoreId next = machine_.step(core, byte, after);
      if (!future_.viable(next, after)) continue;
      ++count;
      only = next;
      there = after;
      by = byte;
    }
    if (count != 1) break;
    forced.push_back(static_cast<char>(by));
    core = only;
    context = there;
  }
  return forced;
}

std::size_t LalrStates::memory() const {
  return machine_.memory() + future_.memory() + known_.memory() + mask_bytes_;
}

// --- masks ---

FinishedMask LalrStates::mask(SetId state) {
  visited_ = 0;
  const ScratchLoan loan(index_, scratch_);
  scratch_->give_all_back();
  MaskBuilder& out = scratch_->take();
  const CoreId core = machine_.core(state);
  walk({index_.trie(), Trie::kRoot}, core, machine_.context(state), out);
  if (machine_.ends(core)) {
    for (const std::uint32_t id : index_.eos()) out.set(id);
  }
  return bases_.finish(out);
}

void LalrStates::count_node() {
  ++stats_.walk_nodes;
  if (++visited_ > limits_.max_walk_nodes) {
    throw LimitFault("one mask visited more than max_walk_nodes = " +
                     std::to_string(limits_.max_walk_nodes) + " trie nodes");
  }
}

// Sets the tokens below `node` that are allowed from the core.
void LalrStates::walk(Place place, CoreId core, ContextId context, MaskBuilder& out) {
  if (core == LalrMachine::kDeadCore) return;
  if (place.node == Trie::kRoot && place.trie.size() >= kLeastKept && known_.takes(core)) {
    add_known(place.trie, core, context, out);
  } else {
    walk_anew(place, core, context, out);
  }
}

void LalrStates::add_known(const Trie& trie, CoreId core, ContextId context, MaskBuilder& out) {
  if (const FinishedMask* const known = known_.find(trie.uid(), core, context)) {
    out.add(*known);
    return;
  }
  MaskBuilder& part = scratch_->take();
  const std::uint32_t outer = machine_.begin_reading();
  walk_anew({trie, Trie::kRoot}, core, context, part);
  const std::uint32_t read = machine_.end_reading(outer);
  out.add(part);
  FinishedMask made = part.finish();
  scratch_->give_back();
  make_room(made.memory() + (made.base() ? index_.words() * sizeof(Word) : 0));
  known_.add(trie.uid(), core, context, read, std::move(made));
}

void LalrStates::walk_anew(Place place, CoreId core, ContextId context, MaskBuilder& out) {
  const Trie::Node& here = place.trie.node(place.node);
  if (here.child_begin == here.child_end) return;
  const LexId lex = machine_.lex(core);
  const std::uint32_t least =
      machine_.slots(core) == 0 && place.node == Trie::kRoot ? kShortFresh : kShortLexeme;
  if (here.subtree_nodes < least || machine_.slots(core) > 1 || machine_.lexer().waits(lex)) {
    descend(place, core, context, out);
  } else {
    apply(*lexeme_mask(place, lex, context), place, core, context, out);
  }
}

void LalrStates::descend(Place place, CoreId core, ContextId context, MaskBuilder& out) {
  const Trie& trie = place.trie;
  const Trie::Node& here = trie.node(place.node);
  for (std::uint32_t child = here.child_begin; child < here.child_end; ++child) {
    const unsigned byte = trie.byte(child);
    const ContextId after = machine_.lexer().after(context, byte);
    count_node();
    const CoreId next = machine_.step(core, byte, after);
    if (next == LalrMachine::kDeadCore) continue;
    take_ending(trie, child, next, after, out);
    walk({trie, child}, next, after, out);
  }
}

std::shared_ptr<const LalrStates::LexemeMask> LalrStates::lexeme_mask(Place place, LexId lex,
                                                                      ContextId context) {
  const MaskKey key{place.trie.uid(), place.node, lex, context};
  if (const auto known = masks_.find(key); known != masks_.end()) return known->second;
  ++stats_.frames_made;
  std::shared_ptr<const LexemeMask> made = Study(*this, place.trie).run(place.node, lex, context);
  make_room(made->memory);
  masks_.emplace(key, made);
  return made;
}

// For so many bytes more of what is kept; all of it goes at once.
void LalrStates::make_room(std::size_t bytes) {
  if (mask_bytes_ + known_.memory() + bytes > limits_.frame_cache_bytes) {
    masks_.clear();
    rests_.clear();
    known_.clear();
    mask_bytes_ = 0;
  }
  mask_bytes_ += bytes;
}

std::shared_ptr<const Trie> LalrStates::rest_trie(std::vector<Entry> entries) {
  Hash128 content;
  for (const Entry& entry : entries) content.add((std::uint64_t{entry.token} << 32) | entry.start);
  std::shared_ptr<const Trie>& known = rests_[content];
  if (!known) {
    known = std::make_shared<const Trie>(
        std::move(entries), [this](std::uint32_t token) { return index_.token(token); });
    mask_bytes_ += known->memory();
  }
  return known;
}

void LalrStates::apply(const LexemeMask& mask, Place place, CoreId core, ContextId context,
                       MaskBuilder& out) {
  for (const Stay& stay : mask.stays) apply_stay(stay, place, core, context, out);
  for (const Exit& exit : mask.exits) {
    const CoreId next = exit.origin.is_new
                            ? machine_.take(machine_.stack(core), exit.origin, exit.context)
                            : machine_.after_slot(core, exit.origin.value);
    if (next == LalrMachine::kDeadCore) continue;
    if (!exit.ends.empty() && viable(next, exit.context)) {
      for (const std::uint32_t token : exit.ends) out.set(token);
    }
    if (exit.rest) walk({*exit.rest, Trie::kRoot}, next, exit.context, out);
  }
  for (const std::uint32_t node : mask.waiting) {
    const auto [at, there] = lead(place, node, core, context);
    take_ending(place.trie, node, at, there, out);
    walk({place.trie, node}, at, there, out);
  }
  if (mask.refused && machine_.after_slot(core, 0) != LalrMachine::kDeadCore)
    apply_refused(mask, place, core, context, out);
}

void LalrStates::apply_stay(const Stay& stay, Place place, CoreId core, ContextId context,
                            MaskBuilder& out) {
  if (future_.accepts(machine_.stack(core), stay.leads)) {
    if (stay.dense) out.add(stay.dense);
    for (const std::uint32_t token : stay.tokens) out.set(token);
    return;
  }
  // The lexeme may still end at its last match, if nothing longer can come of it.
  for (const Matched& matched : stay.matched) {
    const LarkLexer::Origin& origin = matched.origin;
    const bool goes_on =
        !origin.is_new ? machine_.after_slot(core, origin.value) != LalrMachine::kDeadCore
                       : origin.ignored || machine_.shift(machine_.stack(core), origin.value) !=
                                               LalrMachine::kNoStack;
    if (!goes_on) continue;
    for (const std::uint32_t node : matched.nodes) {
      const auto [at, there] = lead(place, node, core, context);
      take_ending(place.trie, node, at, there, out);
    }
    for (const Span& span : matched.spans) {
      // After one of its letters, the core is what it is after each.
      const auto [begun, before] = lead(place, span.node, core, context);
      const Entry& entry = place.trie.entry(span.begin);
      const auto letter = static_cast<unsigned char>(
          index_.token(entry.token)[entry.start + place.trie.node(span.node).depth]);
      const ContextId after = machine_.lexer().after(before, letter);
      const CoreId at = machine_.step(begun, letter, after);
      if (at == LalrMachine::kDeadCore || !viable(at, after)) continue;
      for (const Entry& each : place.trie.entries(span.begin, span.end)) out.set(each.token);
    }
  }
}

std::pair<CoreId, ContextId> LalrStates::lead(Place place, std::uint32_t node, CoreId core,
                                              ContextId context) {
  const Trie::Node& below = place.trie.node(node);
  const Entry& entry = place.trie.entry(below.entry_begin);  // here or below
  const std::string_view text = index_.token(entry.token);
  const std::size_t begin = entry.start + place.trie.node(place.node).depth;
  for (const char c : text.substr(begin, entry.start + below.depth - begin)) {
    const auto byte = static_cast<unsigned char>(c);
    count_node();
    context = machine_.lexer().after(context, byte);
    core = machine_.step(core, byte, context);
  }
  return {core, context};
}

void LalrStates::take_ending(const Trie& trie, std::uint32_t node, CoreId core, ContextId context,
                             MaskBuilder& out) {
  const auto ending = trie.entries_at(node);
  if (ending.empty() || core == LalrMachine::kDeadCore || !viable(core, context)) return;
  for (const Entry& entry : ending) out.set(entry.token);
}

// The tokens that no thread takes are the slot's.
void LalrStates::apply_refused(const LexemeMask& mask, Place place, CoreId core, ContextId context,
                               MaskBuilder& out) {
  MaskBuilder& part = scratch_->take();
  walk(place, machine_.after_slot(core, 0), context, part);
  out.add(part, mask.refused);
  scratch_->give_back();
}

}  // namespace grammaton
