// Whether a configuration of the LALR machine has a future: some text goes on to an accepted end.
//
// Which lexeme ends where is guessed here, with what the guess commits to as duties: that nothing
// preferred to the match matches after all. So one stack is enough. A *lead* is a terminal that the
// threads of a lexeme can still produce, and the *border* after it: the duties left there and the
// context. Leads are found by exploring the lexer once, whatever the stack.
//
// What a border can lead to on a stack is reachability in a pushdown system, decided exactly: the
// stack is read from the top with sets of *controls* (a border, a look-ahead, a reduction under
// way), and a node (control, parser state) knows with which controls its state can be popped, or
// that the end is reached above it. Nodes are found on demand and kept. A border goes on as its
// leads, which most borders share: ten thousand ignored patterns have as many borders.
//
// Two facts make it cheap for most grammars. If some ignored text ends every lexeme (a *separator*,
// as a space mostly is), a border whose duties it satisfies is as good as the border behind the
// separator, so one border stands for nearly all. And if besides no conflict was resolved in the
// tables and every terminal can be lexed where the parser wants it, every stack can be completed.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>

#include "automata/lalr_machine.hpp"

namespace grammaton {

using LeadsId = std::uint32_t;
using BorderId = std::uint32_t;

class LalrFuture {
 public:
  explicit LalrFuture(LalrMachine& machine);

  // Whether a text can go on from here to an end, given duties that a guess has left.
  bool viable(CoreId core, DutiesId duties, ContextId context);
  bool viable(CoreId core, ContextId context) { return viable(core, 0, context); }

  // What the threads of a lex state can still produce; 0 is nothing.
  LeadsId leads(LexId lex, DutiesId duties, ContextId context);
  // Whether the parser can take one of the leads and then go on to an end.
  bool accepts(StackId stack, LeadsId leads);

  std::size_t memory() const;

 private:
  struct Lead {
    Terminal terminal;
    bool ignored;
    BorderId border;
  };
  struct Border {
    DutiesId duties;
    ContextId context;
  };
  // A lex state with duties, explored by bytes.
  struct Place {
    LexId lex;
    DutiesId duties;
    ContextId context;
    LeadsId result = kNone;  // all that it can reach
  };
  // What a byte leads to from a place that is being explored.
  struct Explored {
    std::vector<std::uint32_t> own;   // leads
    std::vector<std::uint32_t> next;  // places
  };
  struct Node {
    std::uint32_t control;
    std::uint32_t state;
    bool ends = false;
    std::uint32_t likely = 0;         // the pop that led to an end last time
    std::vector<std::uint32_t> pops;  // controls with which the state is popped
    // Who learns of pops: nodes that have them too, or, with a state, that go on there.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> users;
  };

  // An answer, and how far down the stack was read for it (LalrMachine).
  struct Answer {
    enum : std::uint8_t { Unknown, No, Yes } is = Unknown;
    std::uint32_t read = LalrMachine::kNothingRead;
  };
  // Whether the end is reached from a node by one of its pops, those before `tried` being none.
  struct Question {
    std::uint64_t key;
    StackId below;
    std::uint32_t node;
    std::uint32_t tried;
  };

  // Threads of the lexer that may be followed, or what takes as long, by max_step_terms: some four
  // seconds by default.
  static constexpr std::uint64_t kMostSpent = 2'000;

  std::uint32_t place(LexId lex, DutiesId duties, ContextId context);
  Explored explore(std::uint32_t place);
  void join(std::vector<std::uint32_t>& all, std::span<const std::uint32_t> more);
  // Counts what takes as long as so many threads of the lexer; whether that is too much in all.
  bool spend(std::uint64_t threads);
  LimitFault too_much_to_explore(const Place& at) const;
  std::vector<unsigned> bytes_from(LexId lex, DutiesId duties);
  BorderId border(DutiesId duties, ContextId context);
  void find_separator();
  bool separates(std::string_view character, DutiesId& left);
  bool separated(DutiesId duties, ContextId context);
  bool all_complete();
  bool find_all_complete();
  std::vector<std::string> samples(Terminal terminal);
  bool produces(std::uint32_t scanner, Terminal terminal, std::string_view text);
  bool viable_border(BorderId border, StackId stack);

  std::uint32_t node(std::uint32_t control, std::uint32_t state);
  void use(std::uint32_t user, std::uint32_t used, std::uint32_t state);
  void expand(std::uint32_t node);
  void add_pop(std::uint32_t node, std::uint32_t control);
  void add_link();
  LimitFault too_many_cases() const;
  void set_ends(std::uint32_t node);
  void saturate();
  void settle_pending();
  bool reaches_end(std::uint32_t control, StackId stack);
  bool always_ends(std::uint32_t control, std::uint32_t state);
  bool assume_always(std::uint32_t control, std::uint32_t state, unsigned depth);
  void find_below();

  LalrMachine& machine_;
  LarkLexer& lexer_;
  const LalrSource& source_;

  std::vector<Lead> lead_list_;
  std::map<std::tuple<Terminal, bool, BorderId>, std::uint32_t> lead_lookup_;
  ListPool leads_pool_;
  std::vector<Border> borders_;
  std::map<std::pair<DutiesId, ContextId>, BorderId> border_lookup_;
  std::vector<Place> places_;
  std::uint64_t spent_ = 0;
  FlatMap<std::uint32_t> behind_lookup_;  // numbers of duties and contexts
  FlatMap<std::uint32_t> place_lookup_;   // by lex state and those

  std::vector<std::string> separators_;  // characters
  BorderId separated_ = kNone;           // the border behind one
  int all_complete_ = -1;                // not known yet

  ListPool controls_;
  std::vector<Node> nodes_;
  FlatMap<std::uint32_t> node_lookup_;
  TripleSet uses_;
  std::size_t links_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      pending_;                          // node, pop; kNone: expand, or end
  FlatMap<std::uint32_t> reached_;       // 0 or 1, by control and stack
  std::vector<Question> questions_;      // of reaches_end(), kept for their memory
  std::optional<LimitFault> exhausted_;  // what was said when a limit was met

  std::vector<Answer> core_viable_;  // without duties and contexts
  std::map<std::tuple<CoreId, DutiesId, ContextId>, Answer> viable_;
  FlatMap<Answer> accepted_;  // by stack and leads

  // --- lalr_reach.cpp ---
  std::vector<std::vector<std::uint32_t>> below_;  // by parser state
  FlatMap<std::uint32_t> always_;                  // 0 or 1, by control and parser state
  std::unordered_set<std::uint64_t> assumed_;      // of the question under way: pairs taken to hold
  std::unordered_set<std::uint64_t> relied_;       // those of which something else was concluded
  bool failed_one_ = false;                        // of relied_
  std::size_t always_asked_ = 0;
};

}  // namespace grammaton
