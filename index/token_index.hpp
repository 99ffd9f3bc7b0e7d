// A vocabulary made ready for masks, and what every constraint on it shares.
//
// A *frame mask* is the part of a mask that a frame decides by itself: the tokens
// that stay inside the regular term, wherever it stands, as a *base* (dense bits, or ids where they
// are few), and the remainders of the tokens that run past its end, as a trie to be walked with
// whatever follows. It is keyed by (trie, node, structural hash), so the string bodies of all
// schemas on a vocabulary are computed once. Making one costs a walk, about a millisecond for a
// JSON string body over 128k tokens; using one costs 0.3 us.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/normalise.hpp"
#include "index/character_tokens.hpp"
#include "index/class_trie.hpp"
#include "index/finished_mask.hpp"
#include "index/shared_bits.hpp"
#include "index/trie.hpp"

namespace grammaton {

// Where the frame is X* q for a prefix-free X (a character, a whitespace byte): how many items each
// token takes, from which the mask of X{m,n} q follows for any m and n.
struct ItemCounts {
  struct Taken {
    std::uint32_t items;  // begun, an unfinished last one included
    std::uint32_t token;
  };
  // Tokens that stay in X*, by items, descending, but for those that `at_most` begins with.
  std::vector<Taken> inside;
  std::vector<Taken> ending;  // tokens that end exactly at the frame's end
  // Bits of all that stay with at most so many items, at a few numbers of them, ascending. The
  // tokens of such a number are not in `inside`, those of numbers between two are. Empty where
  // the tokens are few.
  struct AtMost {
    std::uint32_t items;
    Bits tokens;
  };
  std::vector<AtMost> at_most;
};

// Most items first: a counting sort, since tokens have few items.
void sort_by_items(std::vector<ItemCounts::Taken>& taken);

// Where the frame is L(A & X*) q, A any term, X one character and L the lift through JSON's escapes
// or nothing: what L(A & X{m,n}) q needs beside the base, for any m and n (bounded_frame.cpp).
struct LengthBounds {
  static constexpr std::size_t kSlacks = 4;
  // Whether every text that begins as a token does can be made longer, one item at a time.
  bool extensible = true;
  // Tokens of the vocabulary that need so many items more than they have characters: their own, an
  // unfinished last one included, and the fewest that must follow. Null where they are few.
  std::array<Bits, kSlacks> by_slack;
  // All other tokens, with the items they need, ascending.
  std::vector<ItemCounts::Taken> others;
  std::vector<ItemCounts::Taken> ending;  // tokens that end exactly at q
  std::unique_ptr<Trie> unsure;           // tokens that have to be walked
  std::unique_ptr<Trie> longest;  // tokens that need many items, so many, and may end early; no q
};

// A place where a frame ended inside tokens, all of which are continued there.
struct Exit {
  std::uint32_t node = 0;
  std::uint32_t items = 0;  // as in Entry
};

// Which remainders of a frame are listed (remainders.hpp).
enum class Rests : std::uint8_t { Others, GoingOn, All };

struct FrameMask {
  Bits dense;
  std::vector<std::uint32_t> sparse;  // used when `dense` is null
  std::shared_ptr<const Trie> rest;   // null when no token runs past the end
  ByteSet left_out;             // first bytes of remainders that are not in it (remainders.hpp)
  bool leaves_all_out = false;  // no remainder is in it
  std::vector<Exit> exits;      // nodes of the trie it was made on, not in `rest`
  std::optional<ItemCounts> counts;
  std::optional<LengthBounds> bounds;
  std::size_t bytes = 0;  // of it all, said when it is kept

  std::size_t memory(std::size_t words) const;
};

class ScratchPool;  // mask_scratch.hpp

class TokenIndex {
 public:
  TokenIndex(std::vector<std::string> tokens, std::vector<bool> ordinary,
             std::vector<std::uint32_t> eos, std::size_t mask_bits, const Limits& limits);
  ~TokenIndex();

  const Trie& trie() const { return *trie_; }
  SharedBits& shared_bits() { return shared_bits_; }
  ScratchPool& scratch() { return *scratch_; }
  std::string_view token(std::uint32_t id) const { return tokens_[id]; }
  bool matches_text(std::uint32_t id) const {
    return id < tokens_.size() && ordinary_[id] && !tokens_[id].empty();
  }
  bool is_eos(std::uint32_t id) const;
  const std::vector<std::uint32_t>& eos() const { return eos_; }
  std::size_t mask_bits() const { return mask_bits_; }
  std::size_t mask_words() const { return (mask_bits_ + 31) / 32; }
  std::size_t words() const { return (mask_bits_ + 63) / 64; }
  const Spelling& spelling() const { return spelling_; }
  std::size_t longest_token() const { return longest_token_; }
  // How often what is kept was dropped for want of room.
  std::uint64_t times_emptied() const { return emptied_.load(std::memory_order_relaxed); }
  // The tokens that are text, dense.
  const std::vector<Word>& text_bits() const { return text_bits_; }
  // For a term that any text of characters in `kept` leaves alive, and never where it lives on any
  // byte but those of `live`: `bits` become the tokens of such characters alone, and some that lie
  // below one of `others`. These become the nodes of the trie where another character begins that
  // the term may live on, after kept ones; none is below another. False when they are too many for
  // a shortcut.
  bool cut(const Letters& kept, const ByteSet& live, std::vector<Word>& bits,
           std::vector<std::uint32_t>& others) const;
  // The tokens of at most so many characters, up to kReadyCharacters.
  const Bits& at_most_characters(std::size_t count) const { return at_most_characters_[count]; }
  // The others, with their numbers of characters, descending.
  const std::vector<ItemCounts::Taken>& longer_tokens() const { return longer_tokens_; }
  static constexpr std::size_t kReadyCharacters = 32;

  struct Key {
    std::uint64_t trie;
    std::uint32_t node;
    Hash128 term;
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::shared_ptr<const FrameMask> find(const Key& key) const;
  // Keeps a frame mask; the cache is emptied first when it is full. Returns the one kept.
  std::shared_ptr<const FrameMask> keep(const Key& key, std::shared_ptr<FrameMask> mask);
  // The trie of some remainders: the same one for the same remainders, so that what is found on it
  // serves every frame that leaves them. Where runs of one letter may be split in many ways, frames
  // on remainders of remainders would otherwise be exponentially many.
  std::shared_ptr<const Trie> keep_trie(std::vector<Entry> entries);
  // The vocabulary's trie by classes of characters; null when it is not there and not to be made.
  std::shared_ptr<const ClassTrie> class_trie(CharacterClasses classes, bool make);

  // Whether a term was tried (probe.cpp), and what its masks are put together from has not been
  // dropped since.
  bool was_tried(const Hash128& term) const;
  void keep_tried(const Hash128& term);

  struct Stats {
    std::size_t trie_nodes, frame_masks, frame_mask_bytes, frame_masks_made;
  };
  Stats stats() const;

 private:
  struct KeyHasher {
    std::size_t operator()(const Key& k) const {
      return static_cast<std::size_t>(mix64(k.term.keyed ^ k.node, k.trie));
    }
  };
  void measure_spelling();
  void count_characters();
  void make_room(std::size_t bytes);

  std::vector<std::string> tokens_;
  std::vector<bool> ordinary_;
  std::vector<std::uint32_t> eos_;
  std::size_t mask_bits_;
  Limits limits_;
  Spelling spelling_;
  std::unique_ptr<Trie> trie_;
  std::size_t longest_token_ = 0;
  std::vector<Word> text_bits_;
  CharacterTokens with_character_;
  SharedBits shared_bits_;
  std::vector<Bits> at_most_characters_;
  std::vector<ItemCounts::Taken> longer_tokens_;

  std::unique_ptr<ScratchPool> scratch_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const FrameMask>, KeyHasher> cache_;
  std::map<Hash128, std::shared_ptr<const Trie>> tries_;
  std::map<Hash128, std::shared_ptr<const ClassTrie>> class_tries_;
  std::unordered_set<Hash128, Hash128Hasher> tried_;
  std::size_t cache_bytes_ = 0;  // of frame masks and tries
  std::atomic<std::uint64_t> emptied_ = 0;
  std::size_t made_ = 0;
};

}  // namespace grammaton
