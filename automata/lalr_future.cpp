#include "automata/lalr_future.hpp"

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace grammaton {

namespace {

// What takes as long as this many threads of the lexer: a node, a link between two of them or a
// pop, which are looked up where memory is cold.
constexpr std::uint64_t kNodeWork = 40;
constexpr std::uint64_t kLinkWork = 8;
// Characters that are looked at to find separators, and tried as such.
constexpr std::size_t kMostCharacters = 64;
// Lex states visited to find a text of a terminal, and texts tried.
constexpr std::size_t kMostSampled = 1024;
constexpr std::size_t kMostSamples = 3;

enum Control : std::uint32_t { kBorder, kLeads, kLook, kReduce };

std::string encode(std::uint32_t code) {
  std::string text;
  const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
  return text;
}

// The first characters of a class; fewer than `limit` means all of them.
std::vector<std::uint32_t> characters(const CodeRanges& ranges, std::size_t limit) {
  std::vector<std::uint32_t> found;
  for (const CodeRange& range : ranges) {
    for (std::uint32_t code = range.low; code <= range.high && found.size() < limit; ++code) {
      if (code < 0xD800 || code > 0xDFFF) found.push_back(code);
    }
  }
  return found;
}

}  // namespace

LalrFuture::LalrFuture(LalrMachine& machine)
    : machine_(machine), lexer_(machine.lexer()), source_(machine.source()) {
  if (source_.behinds_stay_inside) find_separator();
}

// --- borders ---

BorderId LalrFuture::border(DutiesId duties, ContextId context) {
  if (separated_ != kNone && separated(duties, context)) return separated_;
  const auto [place, is_new] =
      border_lookup_.try_emplace({duties, context}, static_cast<BorderId>(borders_.size()));
  if (is_new) borders_.push_back({duties, context});
  return place->second;
}

bool LalrFuture::separated(DutiesId duties, ContextId context) {
  for (const std::string& character : separators_) {
    DutiesId left = duties;
    ContextId at = context;
    for (const char byte : character) {
      at = lexer_.after(at, static_cast<unsigned char>(byte));
      left = lexer_.advance(left, static_cast<unsigned char>(byte), at);
    }
    if (left == 0) return true;
  }
  return false;
}

// Whether every scanner takes this character for an ignored lexeme, or the start of a longer one of
// the same pattern: `left` is the duty that it is not longer, and has to be the same for all.
bool LalrFuture::separates(std::string_view character, DutiesId& left) {
  DutiesId common = LarkLexer::kBroken;
  for (std::uint32_t scanner = 0; scanner < source_.scanners.size(); ++scanner) {
    LexId lex = lexer_.fresh(scanner, 0);
    ContextId context = 0;
    LarkLexer::Move move;
    for (const char byte : character) {
      context = lexer_.after(context, static_cast<unsigned char>(byte));
      move = lexer_.move(lex, static_cast<unsigned char>(byte), context);
      lex = move.next;
    }
    if (lex == LarkLexer::kDeadLex || move.count != 1 || lexer_.slot_duties(lex, 0) != 0)
      return false;
    const LarkLexer::Origin origin = lexer_.origin(move, 0);
    if (!origin.is_new || !origin.ignored) return false;
    const DutiesId choice = lexer_.choice(lex, 0);
    if (!lexer_.only_ignored(choice)) return false;
    if (common != LarkLexer::kBroken && choice != common) return false;
    common = choice;
  }
  left = common;
  return common != LarkLexer::kBroken;
}

void LalrFuture::find_separator() {
  std::map<DutiesId, std::vector<std::string>> by_rest;
  std::vector<DutiesId> order;
  for (Terminal terminal = 0; terminal < source_.names.size(); ++terminal) {
    if (!source_.ignored[terminal]) continue;
    const LexId lex = lexer_.alone(terminal);
    for (const std::uint32_t set : lexer_.first_classes(lex)) {
      for (const std::uint32_t code : characters(source_.classes[set], kMostCharacters)) {
        DutiesId left = 0;
        const std::string character = encode(code);
        if (!separates(character, left)) continue;
        if (!by_rest.contains(left)) order.push_back(left);
        by_rest[left].push_back(character);
      }
    }
  }
  for (const DutiesId rest : order) {
    const std::vector<std::string>& group = by_rest[rest];
    // Whatever could make the lexeme longer must separate in the same way.
    bool closed = true;
    ContextId context = 0;
    for (const char byte : group.front())
      context = lexer_.after(context, static_cast<unsigned char>(byte));
    for (const std::uint32_t set : lexer_.next_classes(rest)) {
      const std::vector<std::uint32_t> codes =
          characters(source_.classes[set], kMostCharacters + 1);
      closed = closed && codes.size() <= kMostCharacters;
      for (const std::uint32_t code : codes) {
        if (!closed) break;
        const std::string character = encode(code);
        DutiesId left = rest;
        ContextId at = context;
        for (const char byte : character) {
          at = lexer_.after(at, static_cast<unsigned char>(byte));
          left = lexer_.advance(left, static_cast<unsigned char>(byte), at);
        }
        closed = left == 0 || std::ranges::find(group, character) != group.end();
      }
    }
    if (!closed) continue;
    separators_.assign(group.begin(),
                       group.begin() + static_cast<std::ptrdiff_t>(
                                           std::min<std::size_t>(group.size(), kMostSamples)));
    separated_ = static_cast<BorderId>(borders_.size());
    borders_.push_back({rest, context});
    return;
  }
}

// --- configurations ---

bool LalrFuture::viable(CoreId core, DutiesId duties, ContextId context) {
  if (core == LalrMachine::kDeadCore || duties == LarkLexer::kBroken) return false;
  const bool plain = duties == 0 && !lexer_.looks_behind();
  Answer known;
  if (plain) {
    if (core >= core_viable_.size()) core_viable_.resize(machine_.core_count() + core + 64);
    known = core_viable_[core];
  } else if (const auto found = viable_.find({core, duties, context}); found != viable_.end()) {
    known = found->second;
  }
  if (known.is != Answer::Unknown) {
    machine_.tell_read(known.read);
    return known.is == Answer::Yes;
  }
  const std::uint32_t outer = machine_.begin_reading();
  const LexId lex = machine_.lex(core);
  const StackId stack = machine_.stack(core);
  bool result = false;
  if (lexer_.is_fresh(lex)) {
    result = viable_border(border(duties, context), stack);
  } else {
    if (lexer_.has_threads(lex))
      result = accepts(stack, leads(lexer_.threads_only(lex), duties, context));
    for (std::uint32_t slot = 0; !result && slot < machine_.slots(core); ++slot) {
      const DutiesId chosen = lexer_.unite(duties, lexer_.choice(lex, slot));
      result = viable(machine_.after_slot(core, slot), chosen, context);
    }
  }
  const Answer answer{result ? Answer::Yes : Answer::No, machine_.end_reading(outer)};
  if (plain) {
    core_viable_[core] = answer;
  } else {
    viable_.emplace(std::tuple{core, duties, context}, answer);
  }
  return result;
}

bool LalrFuture::accepts(StackId stack, LeadsId leads) {
  const std::uint64_t key = (std::uint64_t{stack} << 32) | leads;
  if (const Answer* const known = accepted_.find(key)) {
    machine_.tell_read(known->read);
    return known->is == Answer::Yes;
  }
  const std::uint32_t outer = machine_.begin_reading();
  bool result = false;
  for (std::size_t i = 0; i < leads_pool_[leads].size() && !result; ++i) {
    const Lead lead = lead_list_[leads_pool_[leads][i]];
    const StackId next = lead.ignored ? stack : machine_.shift(stack, lead.terminal);
    result = next != LalrMachine::kNoStack && viable_border(lead.border, next);
  }
  accepted_.try_emplace(key, {result ? Answer::Yes : Answer::No, machine_.end_reading(outer)});
  return result;
}

bool LalrFuture::viable_border(BorderId border, StackId stack) {
  if (border == separated_ && all_complete()) return true;
  const std::uint32_t words[] = {kBorder, border};
  const std::uint32_t control = controls_.intern(words);
  machine_.tell_read(machine_.length(stack));
  if (always_ends(control, machine_.top(stack))) return true;
  machine_.tell_read(0);
  return reaches_end(control, stack);
}

// --- every stack can be completed ---

bool LalrFuture::all_complete() {
  if (all_complete_ < 0) all_complete_ = find_all_complete() ? 1 : 0;
  return all_complete_ == 1;
}

bool LalrFuture::find_all_complete() {
  if (!source_.consistent || separated_ == kNone) return false;
  std::vector<std::vector<Terminal>> wanted(source_.scanners.size());
  for (const LalrSource::State& state : source_.states) {
    for (const auto& [t, action] : state.actions.listed()) {
      if (t != source_.end_of_text()) wanted[state.scanner].push_back(t);
    }
  }
  std::map<Terminal, std::vector<std::string>> texts;
  const Border behind = borders_[separated_];
  for (std::uint32_t scanner = 0; scanner < wanted.size(); ++scanner) {
    std::vector<Terminal>& terminals = wanted[scanner];
    std::ranges::sort(terminals);
    const auto twins = std::ranges::unique(terminals);
    terminals.erase(twins.begin(), twins.end());
    for (const Terminal terminal : terminals) {
      if (!texts.contains(terminal)) texts.emplace(terminal, samples(terminal));
      if (std::ranges::any_of(texts.at(terminal), [&](const std::string& text) {
            return produces(scanner, terminal, text);
          }))
        continue;
      const LeadsId all =
          leads(lexer_.fresh(scanner, behind.context), behind.duties, behind.context);
      const auto ids = leads_pool_[all];
      if (!std::ranges::any_of(ids, [&](std::uint32_t id) {
            const Lead& lead = lead_list_[id];
            return lead.terminal == terminal && !lead.ignored && lead.border == separated_;
          }))
        return false;
    }
  }
  return true;
}

// A few short texts of a terminal that a separator can follow.
std::vector<std::string> LalrFuture::samples(Terminal terminal) {
  struct Step {
    LexId lex;
    ContextId context;
    std::string text;
  };
  std::vector<std::string> found;
  std::deque<Step> pending;
  pending.push_back({lexer_.alone(terminal), 0, {}});
  std::unordered_set<std::uint64_t> seen;
  while (!pending.empty() && found.size() < kMostSamples && seen.size() < kMostSampled) {
    const Step at = std::move(pending.front());
    pending.pop_front();
    for (const unsigned byte : bytes_from(at.lex, 0)) {
      if (found.size() >= kMostSamples) break;
      const ContextId after = lexer_.after(at.context, byte);
      const LarkLexer::Move move = lexer_.move(at.lex, byte, after);
      if (move.next == LarkLexer::kDeadLex) continue;
      const std::string text = at.text + static_cast<char>(byte);
      for (std::uint32_t slot = 0; slot < move.count; ++slot) {
        if (lexer_.origin(move, slot).is_new &&
            border(lexer_.choice(move.next, slot), after) == separated_)
          found.push_back(text);
      }
      const std::uint64_t key = (std::uint64_t{move.next} << 32) | after;
      if (lexer_.has_threads(move.next) && seen.insert(key).second)
        pending.push_back({move.next, after, text});
    }
  }
  return found;
}

// Whether behind a separator the text and another separator are this terminal.
bool LalrFuture::produces(std::uint32_t scanner, Terminal terminal, std::string_view text) {
  const Border behind = borders_[separated_];
  LexId lex = lexer_.fresh(scanner, behind.context);
  ContextId context = behind.context;
  DutiesId duties = behind.duties;
  LarkLexer::Move move;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    context = lexer_.after(context, byte);
    duties = lexer_.advance(duties, byte, context);
    move = lexer_.move(lex, byte, context);
    lex = move.next;
    if (lex == LarkLexer::kDeadLex || duties == LarkLexer::kBroken) return false;
  }
  for (std::uint32_t slot = 0; slot < move.count; ++slot) {
    const LarkLexer::Origin origin = lexer_.origin(move, slot);
    if (!origin.is_new || origin.ignored || origin.value != terminal) continue;
    const DutiesId chosen = lexer_.unite(duties, lexer_.choice(lex, slot));
    if (chosen != LarkLexer::kBroken && border(chosen, context) == separated_) return true;
  }
  return false;
}

// --- the pushdown ---

std::uint32_t LalrFuture::node(std::uint32_t control, std::uint32_t state) {
  const std::uint64_t key = (std::uint64_t{control} << 32) | state;
  const auto [index, is_new] =
      node_lookup_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) {
    if (spend(kNodeWork)) throw too_many_cases();
    nodes_.push_back({control, state, false, 0, {}, {}});
    pending_.emplace_back(index, kNone);
  }
  return index;
}

LimitFault LalrFuture::too_many_cases() const {
  std::string names;
  for (const Border& border : borders_) {
    const std::string name = lexer_.describe(border.duties);
    if (!name.empty() && names.find(name) == std::string::npos)
      names += (names.empty() ? "" : ", ") + name;
    if (names.size() > 200) break;
  }
  return LimitFault(
      "whether the Lark grammar can go on needs more cases than can be looked at (over " +
          std::to_string(kMostSpent) +
          " * max_step_terms steps); no ignored text separates terminals, and these could still "
          "become longer: " +
          names,
      names.substr(0, names.find(',')));
}

// Of each there may be as many as squares of the grammar's size.
void LalrFuture::add_link() {
  ++links_;
  if (spend(kLinkWork)) throw too_many_cases();
}

// `user` has the pops of `used`; with a state, it goes on there after each of them.
void LalrFuture::use(std::uint32_t user, std::uint32_t used, std::uint32_t state) {
  if (user == used && state == kNone) return;
  if (!uses_.insert(user, used, state)) return;
  add_link();
  nodes_[used].users.emplace_back(user, state);
  if (nodes_[used].ends) set_ends(user);
  for (std::size_t i = 0; i < nodes_[used].pops.size(); ++i) {
    const std::uint32_t control = nodes_[used].pops[i];
    if (state == kNone) {
      add_pop(user, control);
    } else {
      use(user, node(control, state), kNone);
    }
  }
}

void LalrFuture::add_pop(std::uint32_t index, std::uint32_t control) {
  std::vector<std::uint32_t>& pops = nodes_[index].pops;
  const auto place = std::ranges::lower_bound(pops, control);
  if (place != pops.end() && *place == control) return;
  pops.insert(place, control);
  add_link();
  pending_.emplace_back(index, control);
}

void LalrFuture::set_ends(std::uint32_t index) {
  std::vector<std::uint32_t> found{index};
  while (!found.empty()) {
    const std::uint32_t at = found.back();
    found.pop_back();
    if (nodes_[at].ends) continue;
    nodes_[at].ends = true;
    for (const auto& [user, state] : nodes_[at].users) found.push_back(user);
  }
}

void LalrFuture::expand(std::uint32_t index) {
  const std::vector<std::uint32_t> control = controls_.copy(nodes_[index].control);
  const std::uint32_t state = nodes_[index].state;
  const LalrSource::State& here = source_.states[state];
  const auto look = [&](Terminal terminal, BorderId border) {
    const std::uint32_t words[] = {kLook, terminal, border};
    use(index, node(controls_.intern(words), state), kNone);
  };
  const auto reduce = [&](std::uint32_t rule, std::uint32_t left, Terminal terminal,
                          BorderId border) {
    const std::uint32_t words[] = {kReduce, rule, left, terminal, border};
    return controls_.intern(words);
  };
  if (control[0] == kBorder) {
    const Border border = borders_[control[1]];
    const LeadsId all =
        leads(lexer_.fresh(here.scanner, border.context), border.duties, border.context);
    const std::uint32_t words[] = {kLeads, all};
    if (all != 0) use(index, node(controls_.intern(words), state), kNone);
    if (lexer_.hold_at_end(border.duties) &&
        here.actions[source_.end_of_text()] != LalrSource::kNoAction)
      look(source_.end_of_text(), 0);
  } else if (control[0] == kLeads) {
    for (const std::uint32_t id : leads_pool_.copy(control[1])) {
      const Lead lead = lead_list_[id];
      if (lead.ignored) {
        const std::uint32_t words[] = {kBorder, lead.border};
        use(index, node(controls_.intern(words), state), kNone);
      } else if (here.actions[lead.terminal] != LalrSource::kNoAction) {
        look(lead.terminal, lead.border);
      }
    }
  } else if (control[0] == kLook) {
    const std::int32_t action = here.actions[control[1]];
    if (action > 0) {
      const std::uint32_t words[] = {kBorder, control[2]};
      use(index, node(controls_.intern(words), static_cast<std::uint32_t>(action) - 1), state);
    } else if (action < 0) {
      const auto rule = static_cast<std::uint32_t>(-action) - 1;
      const std::uint32_t next = reduce(rule, source_.rules[rule].length, control[1], control[2]);
      use(index, node(next, state), kNone);
    }
  } else if (control[2] > 0) {
    add_pop(index, reduce(control[1], control[2] - 1, control[3], control[4]));
  } else {
    const std::uint32_t next = here.gotos[source_.rules[control[1]].left];
    if (next == kNone) return;
    if (control[3] == source_.end_of_text() && next == source_.end) {
      set_ends(index);
      return;
    }
    const std::uint32_t words[] = {kLook, control[3], control[4]};
    use(index, node(controls_.intern(words), next), state);
  }
}

void LalrFuture::saturate() {
  // A limit was met: what is half known must not be taken for an answer.
  if (exhausted_) throw *exhausted_;
  try {
    settle_pending();
  } catch (const LimitFault& fault) {
    exhausted_ = fault;
    throw;
  }
}

void LalrFuture::settle_pending() {
  while (!pending_.empty()) {
    const auto [index, control] = pending_.back();
    pending_.pop_back();
    if (control == kNone) {
      expand(index);
      continue;
    }
    for (std::size_t i = 0; i < nodes_[index].users.size(); ++i) {
      const auto [user, state] = nodes_[index].users[i];
      if (state == kNone) {
        add_pop(user, control);
      } else {
        use(user, node(control, state), kNone);
      }
    }
  }
}

std::size_t LalrFuture::memory() const {
  return places_.size() * 80 + leads_pool_.memory() + links_ * 64 + nodes_.size() * 80 +
         node_lookup_.memory() + reached_.memory() + viable_.size() * 64 + accepted_.memory() +
         core_viable_.size() * sizeof(Answer) + always_.memory();
}

}  // namespace grammaton
