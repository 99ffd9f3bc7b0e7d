// A Lark grammar under LALR on a vocabulary: steps and masks (docs/lark-lalr.md).
//
// A *lexeme mask* is what a lex state decides about the tokens of a trie, whatever the stack:
//   - tokens that end inside the lexeme, grouped by what its threads can still produce (*stays*);
//     the stack takes a group or leaves it;
//   - tokens in which the lexeme ends, grouped by what it is (*exits*), with a trie of what is left
//     of them, to be walked from the core that follows;
//   - for a lex state with a slot, the tokens whose first byte no thread takes: these are the
//     tokens of the slot's core;
//   - nodes where a match has to wait for its look-ahead: these are walked by themselves.
// It is made by one walk, which takes what letters that lead a lex state back to itself make of a
// subtree at once, and kept, by (trie, node, lex state, context). Small subtrees are walked at
// once.
//
// What a core makes of a trie, the vocabulary's or one of what is left of tokens, is kept as well,
// for all stacks that are alike as far as they were read (lalr_tops.hpp). So a mask on a new stack
// costs a few passes over its words, what was kept for what follows most lexemes, and walks for
// the rest: behind a brace that closes a block, say, which reads the stack further down.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "automata/lalr_future.hpp"
#include "index/lalr_tops.hpp"
#include "index/mask_scratch.hpp"
#include "index/state_source.hpp"
#include "index/token_index.hpp"

namespace grammaton {

class LalrStates : public StateSource {
 public:
  // Throws UnsatisfiableFault when no text is left that the vocabulary can spell.
  LalrStates(std::shared_ptr<const LalrSource> source, TokenIndex& index, const Limits& limits);

  SetId start() override { return machine_.start(); }
  FinishedMask mask(SetId state) override;
  SetId follow(SetId state, std::string_view text) override;
  bool may_end(SetId state) override { return machine_.ends(machine_.core(state)); }
  std::string forced_bytes(SetId state, std::size_t most) override;
  std::size_t memory() const override;
  Sizes sizes() const override {
    return {machine_.lexer().state_count(), machine_.stack_count(), machine_.core_count()};
  }
  const WalkStats& walk_stats() const override { return stats_; }

 private:
  // What the last match in some tokens is, and where those end.
  // The entries [begin, end) below a node whose characters, from there on, change nothing.
  struct Span {
    std::uint32_t node;
    std::uint32_t begin;
    std::uint32_t end;
  };
  struct Matched {
    LarkLexer::Origin origin{false, false, 0};
    std::vector<std::uint32_t> nodes;
    std::vector<Span> spans;
  };
  struct Stay {
    LeadsId leads;
    Bits dense;
    std::vector<std::uint32_t> tokens;  // used without `dense`
    std::vector<Matched> matched;       // the lexeme may end there, too
  };
  struct Exit {
    LarkLexer::Origin origin;
    ContextId context;                 // at the lexeme's end
    std::vector<std::uint32_t> ends;   // tokens that end there
    std::shared_ptr<const Trie> rest;  // what is left of the others; may be null
  };
  struct LexemeMask {
    std::vector<Stay> stays;
    std::vector<Exit> exits;
    std::vector<std::uint32_t> waiting;  // nodes
    Bits refused;                        // of a lex state with a slot
    std::size_t memory = 0;
  };
  class Study;  // makes a lexeme mask
  // Smaller subtrees than so are walked at once where a lexeme begins: that was rehearsed, and no
  // bits are kept apart for a slot.
  static constexpr std::uint32_t kShortFresh = 16;
  // lalr_rehearsal.cpp
  void rehearse();
  void rehearse_lexemes();
  void rehearse_cores();
  struct MaskKey {
    std::uint64_t trie;
    std::uint32_t node;
    LexId lex;
    ContextId context;
    friend auto operator<=>(const MaskKey&, const MaskKey&) = default;
  };
  struct MaskKeyHasher {
    std::size_t operator()(const MaskKey& k) const {
      return static_cast<std::size_t>(
          mix64(mix64(k.trie, k.node), (std::uint64_t{k.lex} << 32) | k.context));
    }
  };
  struct Place {
    const Trie& trie;
    std::uint32_t node;
  };

  bool viable(CoreId core, ContextId context) {
    return future_.viable(machine_.at_token_end(core), context);
  }
  void walk(Place place, CoreId core, ContextId context, MaskBuilder& out);
  void walk_anew(Place place, CoreId core, ContextId context, MaskBuilder& out);
  void add_known(const Trie& trie, CoreId core, ContextId context, MaskBuilder& out);
  void descend(Place place, CoreId core, ContextId context, MaskBuilder& out);
  void apply(const LexemeMask& mask, Place place, CoreId core, ContextId context, MaskBuilder& out);
  void apply_refused(const LexemeMask& mask, Place place, CoreId core, ContextId context,
                     MaskBuilder& out);
  // The core after the bytes from the place down to a node, and the context there.
  std::pair<CoreId, ContextId> lead(Place place, std::uint32_t node, CoreId core,
                                    ContextId context);
  void take_ending(const Trie& trie, std::uint32_t node, CoreId core, ContextId context,
                   MaskBuilder& out);
  void apply_stay(const Stay& stay, Place place, CoreId core, ContextId context, MaskBuilder& out);
  std::shared_ptr<const LexemeMask> lexeme_mask(Place place, LexId lex, ContextId context);
  std::shared_ptr<const Trie> rest_trie(std::vector<Entry> entries);
  void make_room(std::size_t bytes);
  void count_node();

  TokenIndex& index_;
  Limits limits_;
  LalrMachine machine_;
  LalrFuture future_;
  WalkStats stats_;
  std::uint64_t visited_ = 0;
  std::unique_ptr<MaskScratch> scratch_;  // while a mask is made
  Bases bases_;
  std::unordered_map<MaskKey, std::shared_ptr<const LexemeMask>, MaskKeyHasher> masks_;
  LalrTops<FinishedMask> known_;  // of tries: the vocabulary's, and of what is left of tokens
  // What is left of tokens behind white space, say, is the same in many places.
  std::map<Hash128, std::shared_ptr<const Trie>> rests_;
  std::size_t mask_bytes_ = 0;
};

}  // namespace grammaton
