// A grammar on a vocabulary, and one sequence's position in it.
//
// `Constraint` owns the normalised terms, the machine and the finished masks; it grows as states
// are first reached and is shared by any number of matchers and threads. One lock is held for a
// step or while a mask is made. Finished masks have a lock of their own, held for a look-up only,
// so that nobody who wants one waits for somebody else's new one; they are never changed, and one
// that is evicted lives on until those who copy it are done. `Matcher` is a list of configurations,
// one an accept call, so a fork copies the list and a rollback pops it. A finished mask is written
// in 0.4 us at 128k tokens (finished_mask.hpp); a step that was taken before is a look-up
// (step_memo.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "automata/captures.hpp"
#include "index/settled_heap.hpp"
#include "index/state_source.hpp"
#include "index/step_memo.hpp"
#include "index/walk.hpp"

namespace grammaton {

class Constraint {
 public:
  // `rehearse`: masks are prepared, as is worth it for a grammar with recursion (walk.hpp).
  Constraint(TermStore& source, Term start, std::shared_ptr<TokenIndex> index, const Limits& limits,
             bool rehearse = false);
  // On another machine: what is said of terms here does not hold for it.
  Constraint(std::unique_ptr<StateSource> source, std::shared_ptr<TokenIndex> index,
             const Limits& limits);

  // A state, or this after an end-of-sequence token.
  static constexpr State kFinished = 0xFFFFFFFF;
  // No state: the token or text is not allowed.
  static constexpr State kRejected = 0xFFFFFFFE;

  // The constraint whose states a new sequence is to have: this one, unless values must differ.
  // What was seen is never freed, so then sequences are stepped in a *generation*, a copy of the
  // normal form; when half of a bound is used up the next one follows, and an old one goes with its
  // last sequence.
  static std::shared_ptr<Constraint> for_sequence(const std::shared_ptr<Constraint>& constraint);
  // 0 for what is no copy, else counted from 1.
  std::uint32_t generation() const { return generation_; }

  State start() const { return start_; }
  TokenIndex& index() { return *index_; }

  // `out` has index().mask_words() words of 32 bits.
  void fill(State state, std::uint32_t* out);
  // A finished mask, so that none has to be made; null when it isn't kept.
  std::shared_ptr<const FinishedMask> find_mask(State state);
  // The mask, made when it isn't kept.
  std::shared_ptr<const FinishedMask> mask(State state);
  State accept(State state, std::uint32_t token);
  // Where a step led that was taken before; never waits for another one.
  std::optional<State> find_step(State state, std::uint32_t token);
  State accept_bytes(State state, std::string_view text);
  bool is_complete(State state);
  std::string forced_bytes(State state);
  std::vector<std::uint32_t> forced_tokens(State state);
  // The highest temperature that a rule asks for in which the next token may be.
  std::optional<float> temperature(State state);
  bool has_captures() const { return written_ != nullptr; }
  // What captured rules matched; the texts of tokens are filled in.
  std::vector<Captured> captures(std::vector<ReadPiece> pieces);
  // At most `limit` of the stacks of a configuration: the terms still to be said, innermost first.
  std::vector<std::vector<Term>> stacks(State state, std::size_t limit);
  // What `ask` says of the store that the terms of `stacks` are of; no step runs meanwhile.
  template <typename Ask>
  auto ask_store(Ask&& ask) {
    if (source_) throw GrammarFault("this constraint's grammar has a parser and no terms");
    const std::shared_ptr<Constraint> newest = newest_generation();
    Constraint& asked = newest ? *newest : *this;
    const Hold hold(asked);
    return ask(static_cast<const TermStore&>(*asked.store_));
  }

  struct Stats {
    WalkStats walk;
    std::size_t terms, frames, sets, masks, mask_bytes, mask_hits, mask_misses;
    std::uint64_t operands_joined;
  };
  Stats stats();
  // About how many bytes are held, frame masks not counted. Never waits for a step.
  std::size_t memory();

 private:
  // The next generation of another constraint.
  explicit Constraint(Constraint& first);
  std::shared_ptr<Constraint> newest_generation();
  // The lock on everything that grows; counts it when it is done.
  class Hold {
   public:
    explicit Hold(Constraint& constraint) : constraint_(constraint), lock_(constraint.mutex_) {}
    ~Hold() {
      if (grown_) constraint_.measure();
    }
    void nothing_grew() { grown_ = false; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Constraint& constraint_;
    const std::scoped_lock<std::mutex> lock_;
    bool grown_ = true;
  };
  void measure();
  std::shared_ptr<const FinishedMask> make_mask(State state);
  State take(State state, std::uint32_t token);
  State follow(State state, std::string_view text);

  SettledHeap settled_;  // once all below is freed
  std::mutex mutex_;     // of everything but what masks_mutex_ guards
  Limits limits_;
  std::shared_ptr<TokenIndex> index_;
  std::unique_ptr<TermStore> store_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Walker> walker_;
  std::unique_ptr<StateSource> source_;  // in place of the three above
  State start_ = Machine::kEmptySet;
  Term start_term_ = kNothing;
  std::unique_ptr<TermStore> written_;  // the grammar as it was written, if it has captures
  Term written_start_ = kNothing;
  std::mutex written_mutex_;
  bool has_tokens_ = false;  // whether the grammar reads tokens as letters
  std::atomic<std::size_t> grown_ = 0;
  std::atomic<bool> worn_ = false;  // half of a bound is used up
  std::uint32_t generation_ = 0;
  std::mutex newest_mutex_;  // of the newest generation; no lock is taken under it
  std::shared_ptr<Constraint> newest_;
  Groups groups_;
  Groups next_;
  StepMemo steps_;
  std::mutex masks_mutex_;  // taken last
  // By state, or by its configuration where its text does not matter.
  std::unordered_map<State, std::shared_ptr<const FinishedMask>> masks_;
  std::unordered_set<const Word*> bases_;  // of masks_
  std::atomic<std::size_t> mask_bytes_ = 0;
  std::size_t mask_hits_ = 0;
  std::size_t mask_misses_ = 0;
};

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Constraint> constraint);

  // The constraint that its states are of.
  Constraint& constraint() { return *constraint_; }
  std::shared_ptr<Constraint> share_constraint() const { return constraint_; }
  void fill(std::uint32_t* out) { constraint_->fill(state(), out); }
  // Whether the mask was there and has been written. Never waits: for who has a lock that takes
  // longer to give up.
  bool fill_known(std::uint32_t* out);
  bool accept(std::uint32_t token) { return take(constraint_->accept(state(), token), token, {}); }
  // As fill_known(); nothing when it has to be found out.
  std::optional<bool> accept_known(std::uint32_t token);
  bool accept_bytes(std::string_view text) {
    return take(constraint_->accept_bytes(state(), text), kNone, text);
  }
  std::size_t validate(std::span<const std::uint32_t> tokens);
  // False, and nothing changes, when fewer than n accepts were made.
  bool rollback(std::size_t n);
  void reset();
  std::size_t accepted() const { return states_.size() - 1; }
  bool is_complete() { return constraint_->is_complete(state()); }
  bool is_finished() const { return states_.back() == Constraint::kFinished; }
  std::string forced_bytes() { return constraint_->forced_bytes(state()); }
  std::vector<std::uint32_t> forced_tokens() { return constraint_->forced_tokens(state()); }
  std::vector<std::vector<Term>> stacks(std::size_t limit) {
    return constraint_->stacks(state(), limit);
  }
  std::optional<float> temperature() { return constraint_->temperature(state()); }
  std::vector<Captured> captures();
  State state() const { return states_.back(); }
  std::uint32_t generation() const { return constraint_->generation(); }

 private:
  bool take(State next, std::uint32_t token, std::string_view text);

  std::shared_ptr<Constraint> origin_;
  std::shared_ptr<Constraint> constraint_;  // itself, or a generation of it
  std::vector<State> states_;
  std::vector<ReadPiece> read_;  // one an accept, where the grammar has captures
};

}  // namespace grammaton
