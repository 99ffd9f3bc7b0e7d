// What a term is made of, and a rule: nodes, ids, what limits and refuses them.
//
// Plain structs, shared by all that reads a store (terms.hpp): front ends that fill one, machines
// and masks that step through it, the binding layer.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "grammar/bytes.hpp"
#include "grammar/hash.hpp"

namespace grammaton {

using Term = std::uint32_t;
using Rule = std::uint32_t;
using Param = std::uint32_t;
using SeenId = std::uint32_t;  // a set of values; 0 is empty

inline constexpr Term kNothing = 0;
inline constexpr Term kEmpty = 1;
inline constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;
inline constexpr std::uint32_t kNone = 0xFFFFFFFF;
// The parameter of a call in a plain rule's body that is the rule's own.
inline constexpr Param kInherited = 0xFFFFFFFF;
// Rows with at most this many live bytes (hexadecimal digits have 22) are made from the list of
// them.
inline constexpr unsigned kSparseBytes = 24;
// Terms nest no deeper than this; functions over terms recurse once a level,
// with some 300 bytes of stack, or 3,000 under a sanitizer.
inline constexpr unsigned kMostHeight = 2000;
// Operands of unions that a step may join for each term it may make; a tenth of a second in all.
inline constexpr std::uint64_t kStepOperands = 32;
// Decimal places of a multiple; smaller ones than 10^-1000 are no numbers anyone writes.
inline constexpr std::uint32_t kMostPlaces = 1000;

// What the binding layer turns into the Python exceptions of grammaton.errors. `part` is the name
// of the rule or terminal at fault, if it is one's, for whoever knows where that stands.
struct Fault : std::runtime_error {
  explicit Fault(const std::string& message, std::string of = {})
      : std::runtime_error(message), part(std::move(of)) {}
  std::string part;
};
struct GrammarFault : Fault {
  using Fault::Fault;
};
struct UnsatisfiableFault : Fault {
  using Fault::Fault;
};
struct VocabularyFault : Fault {
  using Fault::Fault;
};
struct LimitFault : Fault {
  using Fault::Fault;
};

// Mirrors grammaton.Limits, where each bound is explained.
struct Limits {
  std::uint64_t max_terms = 4'000'000;
  std::uint64_t max_step_terms = 100'000;
  std::uint64_t max_frames = 4'000'000;
  std::uint64_t max_step_links = 20'000'000;
  std::uint64_t max_walk_nodes = 20'000'000;
  std::uint64_t max_mask_work = 500'000;
  std::uint64_t mask_cache_bytes = std::uint64_t{64} << 20;
  std::uint64_t frame_cache_bytes = std::uint64_t{512} << 20;
};

enum class Kind : std::uint8_t {
  Nothing,     // no text
  Empty,       // the empty text
  Bytes,       // one byte of a set            a: byte set
  Chars,       // one character of a set       a: range list, b: restricted
  Concat,      // a then b; a is no Concat     a, b: terms
  Union,       // any of                       a: operand list
  Intersect,   // all of                       a: operand list
  Complement,  // any byte string but          a: term
  Repeat,      // a, b to c times              a: term
  Call,        // the body of a rule           a: rule, b: parameter
  Json,        // lift through JSON escapes    a: term, b: phase (json_lift.cpp), c: restricted
  JsonRaw,     // the same, inside a raw multi-byte character  a: term, b: rest of the character
  NoSplit,     // a, but no token may end here a: term
  Keys,        // JSON-lifted literals, each with its continuation (key_trie.cpp)
               //                              a: list of byte, residual, ...; b: phase
  Residue,     // decimals of a remainder (multiples.cpp)  a: divisor, b: remainder, c: places
  Members,     // the same as a list of members (members.cpp)
               //                              a: member list, b: begin | end << 16, c: depth
  KeyDigits,   // the same inside \uXXXX         a: list of code point, residual, ...; b: position
  Token,       // one token, as itself         a: token set (token_sets.cpp)
  Margin,      // as wide as a counter says    a: counter, b: width of a tab, c: not empty
  Metered,     // a, within b tokens           a: term, c: temperature (metered.cpp)
  Distinct,    // a value that its scope has not seen (distinct.cpp)  a: term, b: Written,
               //                              c: restricted
  Take,        // its end, of no text            a: Written
  Seen,        // what a scope has seen, of no text  a: set, b: text mark, c: some are unknown
  Without,     // a but not b                    a, b: terms
};

// How the value of a Distinct is written.
enum class Written : std::uint32_t {
  Scalar,  // as JSON text
  Text,    // as the characters of a JSON string and its closing quote; the term is decoded text
};

// Properties of a term, inherited upwards when it is made.
enum Flag : std::uint8_t {
  kNullable = 1,    // contains the empty text (a call never does: normalise.cpp)
  kHasCall = 2,     // a call or a token somewhere inside: not a language of bytes alone
  kMaybeEmpty = 4,  // emptiness has to be searched for
  kHasNoSplit = 8,  // a NoSplit at the head
  kFirstCall = 16,  // a call can be the first thing
  kEndless = 32,    // may have infinitely many texts; without it, finitely many
  kStepwise = 64,   // differs from a common term on few bytes: stepped by single bytes
  kTaking = 128,    // begins with a Take
};

struct Node {
  Kind kind;
  std::uint8_t flags;
  std::uint16_t height;  // nesting, the spine of a Concat not counted: bounds every recursion
  std::uint32_t a;
  std::uint32_t b;
  std::uint32_t c;
  Hash128 hash;
};

struct CodeRange {
  std::uint32_t low;
  std::uint32_t high;  // inclusive
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};
using CodeRanges = std::vector<CodeRange>;

// The classes of a row: class 0 is the bytes with no transition.
struct ClassMap {
  std::array<std::uint8_t, 256> of{};
  ByteSet live;
  ByteSet runs;  // where runs of one class begin: 0 and others
};

struct Row {
  std::uint32_t map = kNone;  // index of the class map; kNone: not computed yet
  std::uint32_t targets = 0;  // index of the target of class 0 (always kNothing)
  std::uint32_t classes = 0;  // number of targets, class 0 included
};

// How a term can begin with a call: text of (rule, param), then `rest`. A Distinct is a call of
// kDistinct, its parameter being the term.
inline constexpr Rule kDistinct = kNone - 1;
struct FirstCall {
  Rule rule;
  Param param;
  Term rest;
};

// Tokens that stand for themselves, not for their bytes: letters beside the 256 bytes.
struct IdRange {
  std::uint32_t low;
  std::uint32_t high;  // inclusive
  friend auto operator<=>(const IdRange&, const IdRange&) = default;
};
struct TokenSet {
  std::vector<std::string> names;  // sorted; a vocabulary says which ids they are
  std::vector<IdRange> ids;        // sorted, with gaps between
  bool negated = false;            // every other token but the ends of sequence
  bool resolved = false;           // `ids` are those of a vocabulary, and all there is to say

  bool has(std::uint32_t id) const;
  friend auto operator<=>(const TokenSet&, const TokenSet&) = default;
};

// How a term can begin with a token: one of the set, then `rest`.
struct FirstToken {
  std::uint32_t set;
  Term rest;
};

// --- template rules (bodies that depend on a parameter) ---

struct Condition {
  enum class Op : std::uint8_t { Unseen, AllSeen, Between, Below } op;
  std::uint32_t index = 0;          // bit or counter
  std::uint32_t low = 0, high = 0;  // Between, inclusive; Below: a counter and what is added to it
  std::vector<std::uint32_t> bits;  // AllSeen
};
struct Update {
  enum class Op : std::uint8_t { See, Set, Add, Copy } op;
  std::uint32_t index = 0;
  std::uint32_t value = 0;  // Copy: the counter that is copied
  std::uint32_t cap = 0;    // Copy: what is added to it
};
struct Alternative {
  Term head = kNothing;
  Rule next = kNone;
  Term tail = kEmpty;
  std::vector<Condition> conditions;
  std::vector<Update> updates;
  bool listed = false;  // in a MemberGroup of its rule
};

// Alternatives that begin alike and then with a key each: prefix, json(key), quote, call of `next`.
struct MemberGroup {
  struct Key {
    std::string text;
    Term literal;  // the text as a term
    std::uint32_t alternative;
  };
  std::vector<Term> prefix;
  Term quote = kNothing;
  std::vector<Key> keys;  // sorted by text
};

// What a Members term says: from `begin` to `end` of a list, `depth` bytes of their texts behind.
struct Members {
  std::uint32_t list;
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t depth;
};

struct ParamValue {
  std::vector<std::uint64_t> bits;
  std::vector<std::uint32_t> counters;
  friend bool operator==(const ParamValue&, const ParamValue&) = default;

  bool seen(std::uint32_t bit) const {
    return bit / 64 < bits.size() && ((bits[bit / 64] >> (bit % 64)) & 1) != 0;
  }
  std::uint32_t counter(std::uint32_t index) const {
    return index < counters.size() ? counters[index] : 0;
  }
  bool holds(const Condition& condition) const;
  void apply(const Update& update);
};

// Any of a term's texts but a few; unescaped.
struct Exclusion {
  Term base = kNothing;
  std::vector<std::string> texts;
};

// A JSON string's text that may be any of a term's but a few, then `tail`.
struct AllBut {
  Term lifted = kNothing;  // what the exclusion was read from, which names it
  std::shared_ptr<const Exclusion> of;
  Term tail = kEmpty;
};

// One text as a JSON string's, then `rest`.
struct KeyText {
  std::string text;  // unescaped
  Term rest = kEmpty;
};

// What else a rule says of its texts than what they are.
struct RuleAttributes {
  std::string capture;                // the name under which they are captured, if they are
  std::string stop_capture;           // the same for what the suffix matched
  Term suffix = kNothing;             // what they end with, which is not captured with them
  std::uint32_t tokens = kUnbounded;  // the most that may hold a part of them
  std::uint32_t temperature = kNone;  // the bits of a float
};

// What is left of a term when the levels of indentation in it are left out (levels.cpp).
struct Levelless {
  Hash128 hash;
  bool levels = false;  // there are some
  bool exact = true;    // equal hashes: the same but for levels
};

struct RuleInfo {
  std::string name;
  RuleAttributes attributes;
  bool defined = false;
  bool is_template = false;
  bool inherits = false;   // a plain rule whose body depends on its parameter (indentation.cpp)
  bool is_margin = false;  // blanks as wide as a counter says (indentation.cpp)
  std::uint32_t margin_counter = 0;
  std::uint32_t margin_tab = 0;
  bool scoped = false;     // each call is a scope of its own for the Distinct terms in it
  bool unordered = false;  // a template whose alternatives can be taken in any order (endings.hpp)
  bool cut = false;        // a template that had more alternatives
  // Its front end vouches that all of its parts can end, with any parameter that is reached, and
  // that it has a text that is not empty, and no empty one.
  bool sound = false;
  Term body = kNothing;
  std::vector<Alternative> alternatives;
  std::vector<MemberGroup> members;
  // Texts that may follow a text of this rule without leaving its language (left_recursion.cpp).
  Term loop = kNothing;
};

}  // namespace grammaton
