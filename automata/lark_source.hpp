// A Lark grammar for `parser="lalr"` as data: what grammar/lark/lalr.py makes and the machine runs.
//
// *Patterns* are one program of instructions over characters, tried in order of preference like
// Python's `re`: a terminal is where its pattern starts. A *scanner* is what Lark's lexer tries in
// a parser state: terminals in their order, and for some of them the strings that take their place
// when they are the whole lexeme (keywords, `_create_unless` in Lark). The *tables* are Lark's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

using Terminal = std::uint32_t;

struct Instruction {
  enum class Op : std::uint8_t {
    Char,    // one character of class a, then `next`
    Split,   // any of `ways`, the first preferred
    Mark,    // an iteration of loop a begins here; then `next`
    Again,   // an iteration of loop a ends: to b if it is empty, else to `next`
    Unmark,  // loop a is left; then `next`
    Behind,  // what precedes ends with look-behind a (negated: b), then `next`
    Ahead,   // what follows starts with the pattern at a (negated: b), then `next`
    Match,   // the end; a: the terminal, kNone in look-around
  } op = Op::Match;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t next = 0;
  std::vector<std::uint32_t> ways;
};

struct Scanner {
  std::vector<Terminal> order;
  // For each terminal that can be a keyword: the keywords, the first that fits being taken.
  std::vector<std::pair<Terminal, std::vector<Terminal>>> keywords;
};

struct LalrSource {
  std::vector<Instruction> program;
  std::vector<CodeRanges> classes;
  std::vector<std::uint32_t> behinds;  // where the patterns of look-behinds start
  // Each look-behind is at most one character wide and none stands at a terminal's start.
  bool behinds_stay_inside = true;

  std::vector<std::string> names;       // of terminals
  std::vector<std::uint32_t> patterns;  // of terminals; kNone: never in a text
  std::vector<bool> ignored;
  std::vector<Scanner> scanners;

  struct Rule {
    std::uint32_t left;  // a nonterminal
    std::uint32_t length;
  };
  // A row of the tables. Ten thousand terminals make as many states, few columns of which are set:
  // so all columns are written out for small tables only.
  template <typename Value, Value kUnset>
  class Row {
   public:
    Row() = default;
    // Of a column that is listed twice, the first value counts.
    Row(std::vector<std::pair<std::uint32_t, Value>> listed, std::size_t columns, bool all)
        : listed_(std::move(listed)) {
      std::erase_if(listed_, [](const auto& entry) { return entry.second == kUnset; });
      std::ranges::stable_sort(listed_, {}, &std::pair<std::uint32_t, Value>::first);
      if (!all) return;
      all_.assign(columns, kUnset);
      for (auto entry = listed_.rbegin(); entry != listed_.rend(); ++entry)
        all_[entry->first] = entry->second;
    }
    Value operator[](std::uint32_t column) const {
      if (!all_.empty()) return all_[column];
      const auto found =
          std::ranges::lower_bound(listed_, column, {}, &std::pair<std::uint32_t, Value>::first);
      return found != listed_.end() && found->first == column ? found->second : kUnset;
    }
    // What is set, by column.
    const std::vector<std::pair<std::uint32_t, Value>>& listed() const { return listed_; }

   private:
    std::vector<std::pair<std::uint32_t, Value>> listed_;
    std::vector<Value> all_;  // may be empty
  };
  static constexpr std::int32_t kNoAction = 0;
  struct State {
    std::uint32_t scanner = 0;
    Row<std::int32_t, kNoAction> actions;  // by terminal, end of text last: state + 1, -(rule + 1)
    Row<std::uint32_t, kNone> gotos;       // by nonterminal
  };
  std::vector<Rule> rules;
  std::vector<State> states;
  std::uint32_t start = 0;
  std::uint32_t end = 0;  // the state where the whole text has been reduced
  // No conflict was resolved in the tables and every symbol derives a text: each stack that the
  // parser can reach by some tokens is one that it can complete by some tokens.
  bool consistent = false;

  Terminal end_of_text() const { return static_cast<Terminal>(names.size()); }
};

// What Python holds.
struct LalrTables {
  std::shared_ptr<const LalrSource> source;
};

}  // namespace grammaton
