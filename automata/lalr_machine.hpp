// Lark's LALR(1) parser with its lexers, as a machine over bytes (docs/lark-lalr.md).
//
// A *stack* is the parser's, interned node by node. A *core* is a stack, a lex state that reads the
// next lexeme, and for each slot of it the core that goes on if the slot's match is the one Lark
// takes: the terminal shifted, or ignored, and the text since then read anew. Such chains are
// short: they end where the lexer has made up its mind. A *configuration* is a core and the context
// of its look-behinds. All of them are interned integers.
//
// Being alive is not enough for a configuration to have a future; that is decided by `LalrFuture`
// (lalr_future.hpp).
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "automata/flat_map.hpp"
#include "automata/lark_lexer.hpp"

namespace grammaton {

using StackId = std::uint32_t;
using CoreId = std::uint32_t;
using Configuration = std::uint32_t;

class LalrMachine {
 public:
  LalrMachine(std::shared_ptr<const LalrSource> source, const Spelling& spelling,
              const Limits& limits);

  static constexpr StackId kNoStack = 0;
  static constexpr CoreId kDeadCore = 0;

  LarkLexer& lexer() { return lexer_; }
  const LarkLexer& lexer() const { return lexer_; }
  const LalrSource& source() const { return *source_; }
  const Limits& limits() const { return limits_; }

  Configuration start() { return configuration(fresh(stack_of_start_, 0), 0); }
  Configuration configuration(CoreId core, ContextId context);
  CoreId core(Configuration configuration) const {
    return lexer_.looks_behind() ? configurations_[configuration].first : configuration;
  }
  ContextId context(Configuration configuration) const {
    return lexer_.looks_behind() ? configurations_[configuration].second : 0;
  }

  // `after` is the context after the byte.
  CoreId step(CoreId core, unsigned byte, ContextId after) { return step(core, byte, after, 0); }
  // Whether the text may end here.
  bool ends(CoreId core);
  // A token ends here, perhaps inside a character.
  CoreId at_token_end(CoreId core);

  StackId stack(CoreId core) const { return cores_[core][0]; }
  LexId lex(CoreId core) const { return cores_[core][1]; }
  std::uint32_t slots(CoreId core) const {
    return static_cast<std::uint32_t>(cores_[core].size() - 2);
  }
  CoreId after_slot(CoreId core, std::uint32_t slot) const { return cores_[core][2 + slot]; }

  // --- how far down stacks were read ---
  // What depends on the top of a stack is the same on others with that top. So whoever reads a
  // stack tells the length of what is left where it stopped; answers that are kept keep it, too.
  // All stacks of a mask share what lies below the least.
  std::uint32_t length(StackId stack) const { return stacks_[stack].length; }
  void tell_read(std::uint32_t length) { read_ = std::min(read_, length); }
  std::uint32_t begin_reading() { return std::exchange(read_, kNothingRead); }
  // Given what begin_reading() returned.
  std::uint32_t end_reading(std::uint32_t outer) {
    const std::uint32_t read = read_;
    read_ = std::min(outer, read);
    return read;
  }
  static constexpr std::uint32_t kNothingRead = 0xFFFFFFFF;

  std::uint32_t top(StackId stack) const { return stacks_[stack].state; }
  StackId below(StackId stack) const { return stacks_[stack].below; }
  // With a terminal shifted; kNoStack when the parser refuses it.
  StackId shift(StackId stack, Terminal terminal);
  bool may_end(StackId stack);
  // What goes on after a match: a fresh core, or kDeadCore.
  CoreId take(StackId stack, const LarkLexer::Origin& match, ContextId context);
  CoreId fresh(StackId stack, ContextId context);

  std::size_t stack_count() const { return stacks_.size(); }
  std::size_t core_count() const { return cores_.size(); }
  std::size_t memory() const {
    return stacks_.size() * 40 + cores_.memory() + configurations_.size() * 40 + shifted_.memory() +
           lexer_.memory();
  }

 private:
  struct Node {
    std::uint32_t state;
    StackId below;
    std::uint32_t length;
  };
  struct Shifted {
    StackId stack = kNoStack;
    std::uint32_t read = kNothingRead;
  };
  StackId push(std::uint32_t state, StackId below);
  // A stack under way: an interned one and the states on top of it, bottom first. Most reductions
  // pop what the one before pushed, so only what a shift leaves is interned.
  struct Tower {
    StackId base = kNoStack;
    std::vector<std::uint32_t> states;
  };
  enum class Reduced : std::uint8_t { Refused, Shifts, Ends };
  Reduced reduce(Tower& tower, Terminal terminal);
  CoreId step(CoreId core, unsigned byte, ContextId after, unsigned depth);
  CoreId intern(std::span<const std::uint32_t> words);
  void check_room() const;

  std::shared_ptr<const LalrSource> source_;
  Limits limits_;
  LarkLexer lexer_;
  std::vector<Node> stacks_{{0, kNoStack, 0}};
  InternTable stack_lookup_;
  StackId stack_of_start_ = kNoStack;
  FlatMap<Shifted> shifted_;  // by stack and terminal
  std::uint32_t read_ = kNothingRead;
  Tower tower_;     // scratch, kept for its memory
  ListPool cores_;  // stack, lex state, a core for each slot
  std::vector<std::pair<CoreId, ContextId>> configurations_;
  std::unordered_map<std::uint64_t, Configuration> configuration_lookup_;
};

}  // namespace grammaton
