// Masks: which tokens can follow in a configuration (docs/machine.md).
//
// A mask is the union over the configuration's groups (t, K). A group whose walk would be long and
// whose term is regular is a *frame*: its mask is a base that does not depend on K, joined with a
// walk of the remainder trie in K. The base comes, in this order, from
//   - the vocabulary's cache of frame masks;
//   - counting: X{m,n} q is the frame X* q less the tokens with too many or too few items, and what
//     follows q is one more continuation (counted_frame.cpp);
//   - leaving out: a JSON string that must be none of a few texts (a key beside the declared ones)
//     is any JSON string, or any of a pattern, less the tokens that close the quote after one of
//     those texts;
//   - a pair walk: t runs beside a frame r that most bytes lead to, and only tokens on paths where
//     the two differ are looked at (a string under a pattern, beside any string);
//   - a walk of the whole subtree, kept in the vocabulary's cache.
//   - a difference: a value that none seen before may equal is any value, less what is seen to
//     differ along the texts of those (distinct_walk.cpp).
// A group with calls is a frame, too, where a constraint has rehearsed (recursive_frame.cpp): its
// base and remainders are kept by the constraint.
// A group of a few texts, each with a continuation of its own (the declared keys of an object, the
// values of an enum), is followed along their spellings (key_walk.cpp). All other groups walk the
// trie together, node by node.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "automata/machine.hpp"
#include "index/item_automaton.hpp"
#include "index/keeping.hpp"
#include "index/letter_classes.hpp"
#include "index/mask_scratch.hpp"
#include "index/spellings.hpp"
#include "index/token_index.hpp"

namespace grammaton {

// Below a node with so many others it pays to find the few characters that a term doesn't loop on.
inline constexpr std::uint32_t kWideSubtree = 512;
// Walks that can reach fewer nodes than this are done at once: a frame mask costs about as much.
inline constexpr std::uint64_t kShortWalk = 32;
// Bases with at most this many tokens are kept as a list: 0.8 kB against 16 kB of bits at 128k
// tokens. Longer ones would be most of a mask's time: each of their tokens touches a word of its
// own.
inline constexpr std::size_t kSparseTokens = 192;
// A frame that may end at more nodes lists no remainders where nothing follows: 0.1 us each, and
// often one for each node and token.
inline constexpr std::size_t kManyExits = 4096;
// Fewer strings are frames of their own (alike_strings.cpp).
inline constexpr std::size_t kFewAlike = 3;
// Without a closing byte, tokens that need more items than this are walked one by one where a bound
// leaves them out, since they may end early; smaller bounds are counted, or studied on their own.
inline constexpr std::uint32_t kLongNeed = 16;

struct WalkStats {
  std::uint64_t walk_nodes = 0;   // trie nodes visited by walks of configurations
  std::uint64_t study_nodes = 0;  // trie nodes visited to make frame masks
  std::uint64_t pair_nodes = 0;   // trie nodes where a pair walk differed
  std::uint64_t pair_walks = 0;
  std::uint64_t left_out = 0;  // masks of any string but a few
  std::uint64_t counted = 0;   // masks taken from counts
  std::uint64_t frames_made = 0;
};

class Walker {
 public:
  Walker(Machine& machine, TokenIndex& index, const Limits& limits);

  // The tokens allowed in a state.
  FinishedMask mask(State state);
  // Makes what the masks of a grammar with recursion are put together from, for some tens of
  // milliseconds at most (rehearsal.cpp). Ends early where a bound is met.
  void rehearse(Term start);
  // Throws a LimitFault if a mask inside one of the terms that look hard takes more than
  // max_mask_work (probe.cpp); without such terms, nothing.
  void probe(Term start);
  // Whether that depends on the state's text: not just on its configuration.
  bool by_text() const { return by_text_; }
  const WalkStats& stats() const { return stats_; }
  // Of the masks of frames with calls; their tries are the vocabulary's.
  std::size_t memory() const { return recursive_bytes_; }

 private:
  // Items a remainder's frame must have taken; without a filter everything passes.
  struct Filter {
    std::uint32_t low = 0;
    std::uint32_t high = kUnbounded;
    bool open() const { return low == 0 && high == kUnbounded; }
  };
  struct Place {
    const Trie* trie;
    std::uint32_t node;
  };
  struct Counted {              // P X{low,high} q rest (counted_frame.cpp)
    Term reference = kNothing;  // P X* q
    Term prefix = kEmpty;       // P
    Term item = kNothing;       // X
    Term close = kEmpty;        // q
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    Term rest = kEmpty;
    bool calls = false;     // X does
    bool wide = false;      // no q, and X may begin in many ways
    bool by_level = false;  // that it is of this form, or not, tells levels apart
  };
  struct Bounded {              // L(A & X{low,high}) q rest
    Term reference = kNothing;  // L(A & X*) q
    Term meter = kNothing;      // L(X*) q
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    Term rest = kEmpty;
    bool closed = false;  // q is there: a byte that begins no X
    bool lifted = false;
    bool empty = false;  // the empty text may be all before `rest`
  };

  struct Source {  // what a frame mask was made of
    Place place;
    Term term;
    const Bounded* bounded = nullptr;
  };

  // A part of a mask that tokens may be taken out of again: made apart from `whole`, whose bits
  // must stay, unless it has none yet.
  class Part {
   public:
    Part(Walker& walker, MaskBuilder& whole, bool blank);
    explicit Part(Walker& walker);  // of no mask that is under way
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    MaskBuilder& bits() const { return bits_; }
    void join();  // into the whole
    void drop() { bits_.clear(); }

   private:
    Walker& walker_;
    MaskBuilder* whole_;  // null for none
    MaskBuilder& bits_;
  };

  // Where a frame with calls ends inside tokens, while its mask is made.
  struct Ends;
  // What such a frame decides by itself.
  struct RecursiveMask {
    FinishedMask inside;
    std::shared_ptr<const Trie> rest;  // of the tokens that run past the end; may be null
    ByteSet left_out;                  // first bytes of remainders that are not in it
  };
  struct Follow {
    ByteSet live;           // the bytes that may follow a frame
    bool ended = false;     // the text may end there
    bool by_level = false;  // which tells levels apart
  };
  // Which of a term's texts a frame is for: those that begin with a byte of its own, or all; in
  // `Flat` the calls are entered all the way, in `Calls` what they call is put together from that.
  enum class Scope : std::uint8_t { Own, Calls, Flat };
  // Which bytes are wanted; 0 is none.
  using WantedId = std::uint32_t;
  struct RecursiveKey {
    std::uint64_t trie;
    std::uint32_t node;
    Term term;
    Scope scope;
    WantedId wanted;  // with remainders that begin so, which the frame could go on with
    friend bool operator==(const RecursiveKey&, const RecursiveKey&) = default;
  };
  struct RecursiveKeyHasher {
    std::size_t operator()(const RecursiveKey& k) const {
      const std::uint64_t kind = std::uint64_t{k.wanted} * 4 + static_cast<std::uint64_t>(k.scope);
      return static_cast<std::size_t>(
          mix64((k.trie << 16) + kind, (std::uint64_t{k.node} << 32) | k.term));
    }
  };
  // The same of a term without its levels, where what was found does not depend on them.
  struct SharedKey {
    std::uint64_t trie;
    std::uint32_t node;
    Hash128 term;
    Scope scope;
    WantedId wanted;
    friend bool operator==(const SharedKey&, const SharedKey&) = default;
  };
  struct SharedKeyHasher {
    std::size_t operator()(const SharedKey& k) const {
      const std::uint64_t kind = std::uint64_t{k.wanted} * 4 + static_cast<std::uint64_t>(k.scope);
      return static_cast<std::size_t>(mix64((k.trie << 16) + kind, k.term.keyed ^ k.node));
    }
  };
  struct KeptRecursive {
    std::shared_ptr<const RecursiveMask> mask;  // null: not worth it
    bool by_level = false;
  };
  // Makes groups ready for a walk below a place; those that begin with calls may be done with.
  void open(Place place, std::size_t level, Filter filter, MaskBuilder& out);
  const ByteSet& first_live(Term t) { return machine_.first_bytes(t, Machine::Reading::Exact); }
  bool apply_recursive(Place place, const Group& group, Scope scope, std::size_t level,
                       MaskBuilder& out);
  // Of a body without levels, and whether it is that at another level, too.
  struct FormAtLevels {
    FormAtLevels(const Hash128& hash, Param param) : hash(hash), param(param) {}
    Hash128 hash;
    Param param;
    std::optional<bool> same;
  };
  void note_form(const FirstCall& call, const Hash128& hash);
  template <typename Find>
  bool apply_found(Find&& find, SetId parents, std::size_t level, MaskBuilder& out);
  bool apply_at_levels(Place place, const FirstCall& call, SetId parents, std::size_t level,
                       MaskBuilder& out);
  void apply_called(Place place, Term t, std::size_t level, MaskBuilder& out);
  std::shared_ptr<const RecursiveMask> recursive_frame(const Trie& trie, const RecursiveKey& key,
                                                       std::size_t level);
  void make_recursive_room(std::size_t bytes);
  std::shared_ptr<const RecursiveMask> study_recursive(const Trie& trie, const RecursiveKey& key,
                                                       std::size_t level);
  struct Rehearsal;
  void rehearse_all(Term start);
  void try_states(Term start);
  bool has_room(Rehearsal& work) const;
  void rehearse_term(Rehearsal& work, Term t);
  void rehearse_state(Rehearsal& work, State state, std::uint64_t times);
  std::uint64_t shape(std::span<const Group> groups);
  std::uint64_t shape(SetId parents, unsigned depth);
  Term shape_of(Term t);
  void note_end(Place place, const Groups& closed, Filter filter);
  bool given_up() const;
  ByteSet wanted(const ByteSet& left_out, SetId parents, std::size_t level);
  WantedId wanted_id(const ByteSet& bytes);

  std::vector<IdRange> first_tokens(State state);
  void walk(const Trie& trie, std::uint32_t node, std::size_t level, Filter filter,
            MaskBuilder& out);
  void descend(const Trie& trie, std::uint32_t node, std::size_t level, Filter filter,
               MaskBuilder& out);
  void enter(const Trie& trie, std::uint32_t child, std::size_t level, Filter filter,
             MaskBuilder& out);
  // `blank`: `out` has no bits yet.
  bool apply_frame(Place place, const Group& written, std::size_t level, bool blank,
                   MaskBuilder& out);
  void apply(const FrameMask& mask, const Source& source, SetId parents, std::size_t level,
             MaskBuilder& out);
  void walk_after(const FrameMask& mask, const Source& source, SetId parents, std::size_t level,
                  Filter filter, MaskBuilder& out);
  void walk_rest(const Trie& rest, SetId parents, std::size_t level, Filter filter,
                 MaskBuilder& out);
  const Follow& first_bytes(SetId parents, std::size_t level);
  void add_known(Place place, SetId parents, std::size_t level, MaskBuilder& out);
  void walk_parents(Place place, SetId parents, std::size_t level, Filter filter, MaskBuilder& out);
  bool apply_counted(Place place, const Group& group, std::size_t level, MaskBuilder& out);
  bool apply_bounded(Place place, const Group& group, std::size_t level, bool blank,
                     MaskBuilder& out);
  bool apply_keys(Place place, const Group& group, std::size_t level, MaskBuilder& out);
  struct KeyPlace {  // what stays the same along the keys of a group
    const Trie& trie;
    SetId parents;
    std::size_t level;
    MaskBuilder& out;
  };
  void walk_keys(const KeyPlace& at, std::uint32_t node, Term keys);
  void walk_text(const KeyPlace& at, std::uint32_t node, std::string_view text, Term rest);
  template <typename Done>
  void walk_character(const KeyPlace& at, std::uint32_t node, const Character& character,
                      bool escapes, Done&& done);
  void walk_members(const KeyPlace& at, std::uint32_t node, Members members);
  void enter_members(const KeyPlace& at, std::uint32_t child, Members members);
  void take_inside(const KeyPlace& at, std::uint32_t node);
  void enter_key(const KeyPlace& at, std::uint32_t child, Term residual);
  void enter_residual(const KeyPlace& at, std::uint32_t child, Term residual);
  bool apply_all_but(Place place, const Group& group, std::size_t level, bool blank,
                     MaskBuilder& out);
  const std::vector<std::uint32_t>& spelled_ends(Place place, const AllBut& form);
  bool goes_on_along(const AllBut& form);
  bool grows(Term t);
  bool apply_without(Place place, const Group& group, std::size_t level, bool blank,
                     MaskBuilder& out);
  struct AlikeStrings;
  bool apply_alike(Place place, std::size_t level, bool blank, MaskBuilder& out);
  void walk_closings(const KeyPlace& at, std::uint32_t node, const AlikeStrings& alike,
                     const std::vector<Term>& states);
  void close_alike(const KeyPlace& at, std::uint32_t child, const AlikeStrings& alike,
                   const std::vector<Term>& states);
  void leave_out(const KeyPlace& at, std::uint32_t node, Term all, Term out);
  void take_suspects(State state, MaskBuilder& out);
  MaskBuilder& suspects() {
    ++suspected_;
    return scratch_->suspects;
  }
  // Where to set the tokens that end in some groups; null when none may.
  MaskBuilder* end_target(const Groups& groups, MaskBuilder& out);
  MaskBuilder& target_of(const Group& group, MaskBuilder& out) {
    return store_.remembers() && machine_.is_suspect(group) ? suspects() : out;
  }
  bool apply_beside(Place place, const Group& group, std::size_t level, bool blank,
                    MaskBuilder& out);
  bool apply_but_few(Place place, const Group& group, std::size_t level, bool blank,
                     MaskBuilder& out);
  void redo(Place place, std::uint32_t node, const Group& group, std::size_t level,
            MaskBuilder& out);
  void correct(const Trie& trie, std::uint32_t node, Term t, Term reference, SetId parents,
               std::size_t level, std::size_t& budget, MaskBuilder& out);
  std::uint64_t reach(Place place, const ByteSet& live) const;
  std::uint64_t lost(Place place, const Row& from, const Row& to) const;
  Term main_target(Term t);
  std::shared_ptr<const FrameMask> known_frame(Place place, Term t);
  // `last`: nothing follows in the state at hand.
  std::shared_ptr<const FrameMask> frame(Place place, Term t, bool last = false);
  std::shared_ptr<const FrameMask> left_out(const Source& source, bool all);
  std::shared_ptr<FrameMask> study(Place place, Term t, Rests rests, bool last, bool hard = false);
  // class_walk.cpp
  std::shared_ptr<const ClassTrie> class_trie(Term t, bool make);
  std::shared_ptr<FrameMask> study_by_class(const ClassTrie& classes, Term t, Rests rests,
                                            bool last);
  const Counted* counted_form(Term t);
  Counted find_counted(Term t);
  std::shared_ptr<FrameMask> study_counted(Place place, const Counted& form, Rests rests);
  std::shared_ptr<FrameMask> study_items(Place place, ItemAutomaton& items, Rests rests);
  std::shared_ptr<const FrameMask> calling_frame(Place place, const Counted& form);
  std::shared_ptr<const FrameMask> wide_frame(Place place, const Counted& form);
  const Bounded* bounded_form(Term t);
  Bounded find_bounded(Term t);
  std::shared_ptr<const FrameMask> bounded_frame(Place place, const Bounded& form);
  std::shared_ptr<FrameMask> measure(Place place, const Bounded& form,
                                     const std::function<std::uint32_t(Term, Term)>& distance,
                                     bool extensible, Rests rests);
  std::shared_ptr<FrameMask> measure_going_on(Place place, const Bounded& form);
  void walk_plainly(const Trie& trie, const Group& group, std::size_t level, Filter filter,
                    MaskBuilder& out);
  Term normalised(Term t);
  bool normalise_all(std::span<Term> parts);
  std::uint32_t shortest(Term t);
  bool prefix_free(Term item);
  void count_nodes(std::uint64_t& counter);
  // probe.cpp
  std::uint64_t work() const;
  void begin_counting();
  void check_work();
  void count_listed(std::size_t entries) {
    listed_ += entries;
    if (work_end_ != kUnbounded64) check_work();
  }
  class WorkBound;
  struct OutOfWork;
  FinishedMask mask_within_bound(State state, const std::string& where, std::uint64_t times = 1,
                                 const std::string& part = {});
  State after(State state, std::string_view text);
  std::pair<Term, std::size_t> grown(Term t);
  Hash128 try_of(Term t) const;
  void try_growing(Term t, const std::string& where, std::uint64_t end);
  std::string_view some_token(const FinishedMask& mask, bool longest);
  Groups& groups_at(std::size_t level);

  struct FrameKey {
    std::uint64_t trie;
    std::uint32_t node;
    Term term;
    friend bool operator==(const FrameKey&, const FrameKey&) = default;
  };
  struct FrameKeyHasher {
    std::size_t operator()(const FrameKey& k) const {
      return static_cast<std::size_t>(mix64(k.trie, (std::uint64_t{k.node} << 32) | k.term));
    }
  };

  Machine& machine_;
  TermStore& store_;
  TokenIndex& index_;
  Limits limits_;
  WalkStats stats_;
  std::uint64_t visited_ = 0;     // in the mask under way
  std::uint64_t checked_at_ = 0;  // nodes of it after which bounds are looked at
  static constexpr std::uint64_t kUnbounded64 = ~std::uint64_t{0};
  std::uint64_t work_end_ = kUnbounded64;
  std::uint64_t listed_ = 0;     // remainders, in all frames without calls
  bool blank_ = true;            // it has no bits yet
  std::uint64_t suspected_ = 0;  // how often some were
  bool by_text_ = false;
  std::deque<Groups> levels_;
  std::unique_ptr<MaskScratch> scratch_;  // while a mask is made
  Bases bases_;                           // of a grammar that was rehearsed
  std::unordered_map<FrameKey, std::shared_ptr<const FrameMask>, FrameKeyHasher> frames_;
  std::size_t frame_bytes_ = 0;
  // What follows in the tokens below a node, by the parents: `term` of the key is a set.
  std::unordered_map<FrameKey, FinishedMask, FrameKeyHasher> after_;
  std::size_t after_bytes_ = 0;
  std::unordered_map<SetId, Follow> first_bytes_;
  bool rehearsed_ = false;
  bool rehearsing_ = false;
  Ends* ends_ = nullptr;     // of the frame with calls under way
  std::uint64_t noted_ = 0;  // remainders, in all such frames
  bool alone_ = false;       // a term is looked at that will have something to follow it
  std::unordered_map<RecursiveKey, KeptRecursive, RecursiveKeyHasher> recursive_;
  std::unordered_map<SharedKey, std::shared_ptr<const RecursiveMask>, SharedKeyHasher> levelless_;
  std::unordered_map<Rule, FormAtLevels> forms_at_levels_;
  std::size_t recursive_bytes_ = 0;
  std::vector<ByteSet> wanted_{ByteSet{}, ByteSet::range(0, 255)};
  std::uint64_t emptied_ = 0;  // times that a cache was full, those of the vocabulary apart
  std::unordered_map<Term, Counted> counted_;
  // By the reference of what has calls; what is made of it is kept by the constraint.
  std::unordered_map<Term, ItemAutomaton> items_;
  std::unordered_map<FrameKey, std::shared_ptr<const FrameMask>, FrameKeyHasher> calling_;
  std::unordered_set<Term> uncounted_;  // references of which the items can't be counted
  std::unordered_map<Term, Bounded> bounded_;
  std::vector<Term> normalised_;  // by term; kNone when not known
  bool plain_ = false;            // no frames: what is walked belongs to one
  std::unordered_map<Term, bool> prefix_free_;
  std::unordered_map<Term, bool> grows_;
  std::unordered_map<Term, bool> goes_on_along_;  // by what is lifted
  // Of exclusions, whose lifted terms are the keys' `term`: 100 declared keys were 60% of what a
  // mask at the beginning of a key costs.
  std::unordered_map<FrameKey, std::vector<std::uint32_t>, FrameKeyHasher> spelled_ends_;
  Keeping keeping_;
  KnownClasses known_classes_;
  std::vector<std::shared_ptr<const ClassTrie>> class_tries_;  // the latest first
};

}  // namespace grammaton
