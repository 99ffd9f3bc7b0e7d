// Whole subtrees at once: which characters occur below a trie node, which ones a term loops on.
//
// A walk that stands at a character boundary, in a term that every character below leads back to,
// need not go down: all tokens there stay inside the term. `Letters` is a set of characters coarse
// enough for three words and fine enough for this: ASCII one by one, the others by their first byte
// in UTF-8. Most of a vocabulary is words, and most wide terms loop on letters.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

class Letters {
 public:
  static constexpr unsigned kFirstLead = 0xC2;
  static constexpr unsigned kLastLead = 0xF4;
  // Somewhere the bytes are no sequence of characters.
  static constexpr unsigned kMalformed = 191;

  static constexpr unsigned lead(unsigned byte) { return 128 + byte - kFirstLead; }
  // What begins with a byte.
  static unsigned of_first_byte(unsigned byte) {
    if (byte < 0x80) return byte;
    return kFirstLead <= byte && byte <= kLastLead ? lead(byte) : kMalformed;
  }
  // Continuation bytes add nothing, and bytes that UTF-8 never has are malformed anyway.
  void add_byte(unsigned byte) {
    if (byte < 0x80) {
      add(byte);
    } else if (kFirstLead <= byte && byte <= kLastLead) {
      add(lead(byte));
    }
  }
  bool has(unsigned letter) const { return ((words_[letter >> 6] >> (letter & 63)) & 1) != 0; }
  void add(unsigned letter) { words_[letter >> 6] |= std::uint64_t{1} << (letter & 63); }
  void remove(unsigned letter) { words_[letter >> 6] &= ~(std::uint64_t{1} << (letter & 63)); }
  void add(const Letters& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void remove(const Letters& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }
  void keep(const Letters& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  bool ascii_within(const Letters& other) const {
    return ((words_[0] & ~other.words_[0]) | (words_[1] & ~other.words_[1])) == 0;
  }
  bool others_within(const Letters& other) const { return (words_[2] & ~other.words_[2]) == 0; }
  bool within(const Letters& other) const { return ascii_within(other) && others_within(other); }
  bool meets(const Letters& other) const {
    return ((words_[0] & other.words_[0]) | (words_[1] & other.words_[1]) |
            (words_[2] & other.words_[2])) != 0;
  }
  // As far as ASCII goes.
  bool within(const ByteSet& bytes) const {
    return ((words_[0] & ~bytes.words[0]) | (words_[1] & ~bytes.words[1])) == 0;
  }
  // Calls f for each of the ASCII ones.
  template <typename F>
  void each_ascii(F&& f) const {
    for (unsigned i = 0; i < 2; ++i) {
      for (std::uint64_t w = words_[i]; w != 0; w &= w - 1)
        f(i * 64 + static_cast<unsigned>(std::countr_zero(w)));
    }
  }
  static Letters ascii() {
    Letters all;
    all.words_[0] = all.words_[1] = ~std::uint64_t{0};
    return all;
  }
  bool only_ascii() const { return words_[2] == 0; }
  // As many letters from the one numbered 64 i on.
  std::uint64_t word(std::size_t i) const { return words_[i]; }

 private:
  std::array<std::uint64_t, 3> words_{};
};

// What may follow the first byte of a character beyond ASCII.
struct Lead {
  explicit Lead(unsigned byte)
      : low(byte == 0xE0   ? 0xA0
            : byte == 0xF0 ? 0x90
                           : 0x80),
        high(byte == 0xED   ? 0x9F
             : byte == 0xF4 ? 0x8F
                            : 0xBF),
        more(byte < 0xE0   ? 1
             : byte < 0xF0 ? 2
                           : 3) {}
  friend bool operator==(const Lead&, const Lead&) = default;
  unsigned low;  // of the second byte
  unsigned high;
  unsigned more;  // bytes
};

// From which states of UTF-8 decoding all byte strings of a set go on without an error, as a set of
// states; made for a trie node from those of its children. Ending inside a character is no error.
class Wellformed {
 public:
  bool from_boundary() const { return (states_ & kBoundary) != 0; }
  // Requires `byte`, then `below`.
  void require(std::uint8_t byte, const Wellformed& below);

 private:
  enum State : std::uint8_t {
    kBoundary = 1,
    kNeed1 = 2,  // so many bytes 80..BF to come
    kNeed2 = 4,
    kNeed3 = 8,
    kAfterE0 = 16,
    kAfterED = 32,
    kAfterF0 = 64,
    kAfterF4 = 128,
  };
  std::uint8_t states_ = 0xFF;
};

// The characters that lead from a term straight back to it. Those beyond ASCII are found when first
// asked for: it takes some microseconds.
class LoopedLetters {
 public:
  LoopedLetters() = default;
  // Without `beyond_ascii` no other character counts as looped on.
  LoopedLetters(TermStore& store, Term t, bool beyond_ascii);
  const Letters& all(TermStore& store) {
    if (beyond_ascii_) {
      beyond_ascii_ = false;
      add_beyond_ascii(store);
    }
    return letters_;
  }
  // Whether the term loops on all of them.
  bool include(TermStore& store, const Letters& letters) {
    if (!letters.ascii_within(letters_)) return false;
    if (letters.others_within(letters_)) return true;
    if (!beyond_ascii_) return false;
    beyond_ascii_ = false;
    add_beyond_ascii(store);
    return letters.others_within(letters_);
  }

 private:
  void add_beyond_ascii(TermStore& store);

  Term term_ = kNothing;
  bool beyond_ascii_ = false;  // still to be found
  Letters letters_;
};

// Where a term goes over letters.
struct LetterEdges {
  struct Edge {
    Term to;
    Letters over;
  };
  void add(Term to, unsigned letter);

  std::vector<Edge> edges;
  Letters live;  // over all characters of which it lives
  Letters dead;  // over all characters of which it dies
  // Goes over those of some ASCII letters that were not asked for before.
  void ask(TermStore& store, Term t, const Letters& letters);

 private:
  Letters asked_;
};

class KnownClasses;  // letter_classes.hpp
class LetterClasses;

// Which characters keep a term alive, by way of a few others: "no text with `ab` in it" is back
// after `ax` and not yet out of it after `a`, so a subtree without `b` stays inside. The rows of
// terms over letters are made when first asked for.
class LetterRegions {
 public:
  // Of terms that some bytes leave of t. `longest`: the most characters of any text. `deep`: what
  // is told by lengths is followed, too, for some kDeepest characters.
  LetterRegions(TermStore& store, KnownClasses& known, Term t, const Letters& wanted,
                std::uint32_t longest, bool deep)
      : store_(store), known_(known), start_(t), wanted_(wanted), longest_(longest), deep_(deep) {}
  // So many of these letters, at most `characters`, lead from the term to some other, whichever
  // they are; fewer where terms are many. Of a subtree inside a character, which none begins, it
  // says nothing: its letters are malformed.
  std::uint32_t kept(Term t, const Letters& letters, std::uint32_t characters);
  struct Keeping {
    Letters letters;
    bool loops;                // all of them lead from the term straight back to it
    bool ends;                 // the term or one that they lead to is nullable
    ByteSet live;              // bytes on which any of these lives
    std::uint32_t characters;  // of longer texts nothing is said
  };
  // Letters that keep the term alive, the wanted ones and others; null when there are none such.
  // Not the most there could be: a letter that leads where one of the wanted is dead is left out.
  const Keeping* keeping(Term t);

 private:
  struct LetterRow : LetterEdges {
    bool beyond_ascii = false;  // they are in it
    ByteSet lives_on;           // bytes that begin some of them, or more
  };
  const LetterRow& row(Term t, const Letters& letters);
  void add_beyond_ascii(LetterRow& row, Term t);
  const LetterClasses* classes_for(Term t);
  std::optional<Keeping> find_keeping(Term t);

  TermStore& store_;
  KnownClasses& known_;
  Term start_;
  Letters wanted_;
  std::uint32_t longest_;
  bool deep_;
  unsigned asked_ = 0;  // terms, for letters beyond ASCII
  std::shared_ptr<const LetterClasses> classes_;
  bool classes_sought_ = false;
  std::unordered_map<Term, LetterRow> rows_;
  std::unordered_map<Term, std::optional<Keeping>> keeping_;
  struct Reached {
    Term term;
    std::uint32_t characters;  // on the shortest way there
  };
  // How many terms may be reached before one that so many characters lead to.
  std::size_t most(std::uint32_t characters) const;
  bool is_reached(Term t) const {
    return std::ranges::find(reached_, t, &Reached::term) != reached_.end();
  }
  std::vector<Reached> reached_;  // under way; for its memory
};

}  // namespace grammaton
