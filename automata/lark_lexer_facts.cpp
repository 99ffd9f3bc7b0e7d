// What is asked of duties and lex states that are there: of their threads, and of the lex states
// that are parts of them.
#include <algorithm>
#include <set>

#include "automata/lark_lexer.hpp"

namespace grammaton {

namespace {

using Op = Instruction::Op;

constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

}  // namespace

// --- duties ---

bool LarkLexer::hold_at_end(DutiesId duties) const {
  for (const std::uint32_t id : duties_pool_[duties]) {
    const auto words = duty_pool_[id];
    bool matches = false;
    for (std::size_t i = 1; i < words.size(); i += 3)
      matches = matches || (words[i] == kMatched && hold_at_end(words[i + 2]));
    if (matches == (words[0] != 0)) return false;
  }
  return true;
}

std::vector<std::uint32_t> LarkLexer::next_classes(DutiesId duties) const {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t id : duties_pool_[duties]) {
    const auto words = duty_pool_[id];
    for (std::size_t i = 1; i < words.size(); i += 3) {
      if (words[i] != kMatched) found.push_back(source_->program[words[i]].a);
    }
  }
  return found;
}

std::vector<std::uint32_t> LarkLexer::first_classes(LexId lex) const {
  std::vector<std::uint32_t> found;
  if (lex == kDeadLex) return found;
  for (std::size_t i = 0; i < thread_count(lex); ++i) {
    const Thread thread = thread_at(lex, i);
    if (thread.place != kSlot) found.push_back(source_->program[thread.place].a);
  }
  return found;
}

bool LarkLexer::only_ignored(DutiesId duties) const {
  for (const std::uint32_t id : duties_pool_[duties]) {
    const auto words = duty_pool_[id];
    for (std::size_t i = 1; i < words.size(); i += 3) {
      if (words[i] == kMatched) return false;
      const Terminal terminal = terminal_of_[words[i]];
      if (terminal == kNone || !source_->ignored[terminal]) return false;
    }
  }
  return true;
}

std::string LarkLexer::describe(DutiesId duties) const {
  std::vector<std::uint32_t> threads;
  for (const std::uint32_t id : duties_pool_[duties]) {
    const auto words = duty_pool_[id].subspan(1);
    threads.insert(threads.end(), words.begin(), words.end());
  }
  return describe(threads);
}

std::string LarkLexer::describe_threads(LexId lex) const {
  return lex == kDeadLex ? "" : describe(states_[lex].subspan(kHead));
}

std::string LarkLexer::describe(std::span<const std::uint32_t> threads) const {
  constexpr std::size_t kMostNames = 8;
  std::set<std::string> names;
  for (std::size_t i = 0; i < threads.size() && names.size() <= kMostNames; i += 3) {
    const std::uint32_t place = threads[i];
    if (place != kMatched && place != kSlot && terminal_of_[place] != kNone)
      names.insert(source_->names[terminal_of_[place]]);
  }
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == kMostNames) return text + " and others";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// --- lex states ---

void LarkLexer::find_facts(LexId lex) {
  Facts found;
  found.known = true;
  for (std::size_t i = 0; lex != kDeadLex && i < thread_count(lex); ++i) {
    const Thread thread = thread_at(lex, i);
    if (thread.place == kSlot) {
      found.waits = found.waits || thread.duties != 0;
    } else {
      found.threads = true;
      found.live = found.live | store_->class_map(store_->row(thread.rest)).live;
    }
  }
  found.by_signature = std::move(facts_[lex].by_signature);
  found.threads_only = facts_[lex].threads_only;
  found.token_end = facts_[lex].token_end;
  facts_[lex] = std::move(found);
}

std::vector<unsigned> LarkLexer::representatives(LexId lex) {
  const ByteSet live = this->live(lex);
  std::vector<unsigned> found;
  // Bytes are parted by what each thread makes of them.
  std::array<std::uint32_t, 256> part{};
  std::uint32_t parts = 1;
  bool has_duties = false;
  const auto refine = [&](Term rest) {
    const Row row = store_->row(rest);
    const ClassMap& map = store_->class_map(row);
    std::vector<std::uint32_t> numbers(std::size_t{parts} * row.classes, kUnknown);
    parts = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::uint32_t& number = numbers[std::size_t{part[byte]} * row.classes + map.of[byte]];
      if (number == kUnknown) number = parts++;
      part[byte] = number;
    }
  };
  std::vector<Term> rests;
  for (std::size_t i = 0; lex != kDeadLex && i < thread_count(lex); ++i) {
    const Thread thread = thread_at(lex, i);
    has_duties = has_duties || thread.duties != 0;
    if (thread.place != kSlot) rests.push_back(thread.rest);
  }
  if (lex != kDeadLex) {
    const auto trackers = tracker_pool_[states_[lex][2]];
    for (std::size_t i = 0; i < trackers.size(); i += 2) {
      if (source_->program[trackers[i]].op != Op::Match) rests.push_back(trackers[i + 1]);
    }
  }
  // Hundreds of threads are in the midst of few classes.
  std::ranges::sort(rests);
  const auto twins = std::ranges::unique(rests);
  rests.erase(twins.begin(), twins.end());
  for (const Term rest : rests) refine(rest);
  std::vector<bool> seen(parts, false);
  live.each([&](unsigned byte) {
    if (!has_duties && seen[part[byte]]) return;
    seen[part[byte]] = true;
    found.push_back(byte);
  });
  return found;
}

LexId LarkLexer::threads_only(LexId lex) {
  if (lex == kDeadLex) return lex;
  if (facts_[lex].threads_only == kUnknown) {
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < thread_count(lex); ++i) threads.push_back(thread_at(lex, i));
    while (!threads.empty() && threads.back().place == kSlot) threads.pop_back();
    const LexId result = intern(states_[lex][0], false, states_[lex][2], threads);
    facts_[lex].threads_only = result;
  }
  return facts_[lex].threads_only;
}

LexId LarkLexer::at_token_end(LexId lex) {
  if (lex == kDeadLex || !store_->restricted()) return lex;
  if (facts_[lex].token_end == kUnknown) {
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < thread_count(lex); ++i) {
      Thread thread = thread_at(lex, i);
      if (thread.place != kSlot) {
        // A character that has not begun may be any.
        const bool begun = thread.rest != classes_[source_->program[thread.place].a];
        if (begun) thread.rest = store_->at_token_end(thread.rest);
        if (thread.rest == kNothing) continue;
      }
      threads.push_back(thread);
    }
    const LexId result = intern(states_[lex][0], is_fresh(lex), states_[lex][2], threads);
    facts_[lex].token_end = result;
  }
  return facts_[lex].token_end;
}

DutiesId LarkLexer::slot_duties(LexId lex, std::uint32_t slot) const {
  for (std::size_t i = 0; i < thread_count(lex); ++i) {
    const Thread thread = thread_at(lex, i);
    if (thread.place == kSlot && slot-- == 0) return thread.duties;
  }
  return kBroken;
}

DutiesId LarkLexer::choice(LexId lex, std::uint32_t slot) {
  std::vector<Thread> before;
  DutiesId own = 0;
  for (std::size_t i = 0; i < thread_count(lex); ++i) {
    const Thread thread = thread_at(lex, i);
    if (thread.place == kSlot && slot-- == 0) {
      own = thread.duties;
      break;
    }
    before.push_back(thread);
  }
  const std::uint32_t made = duty(true, std::move(before));
  if (made == kBroken) return kBroken;
  return made == kFulfilled ? own : unite(own, duties_pool_.intern(std::span(&made, 1)));
}

}  // namespace grammaton
