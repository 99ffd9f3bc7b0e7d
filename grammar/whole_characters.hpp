// Whether the texts of terms are whole UTF-8 characters, told from their structure.
//
// Front ends see to it, and walks rely on it; terms that come from a file have to show it. A term's
// *reach* is a relation between states of a UTF-8 decoder: where its texts lead from each state.
// Reaches compose as terms do, so each costs a few operations. `~a` leads anywhere, and only `&`
// with something better keeps it inside.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

class WholeCharacters {
 public:
  // Goes through all terms of the store: 20 to 50 ns each.
  explicit WholeCharacters(const TermStore& store);

  // Whether every text of a term is, given that this holds of the rules it calls. Never of a term
  // that reads JSON's escapes over texts that are not.
  bool holds(Term t) const { return (reaches_[t][kStart] & ~bit(kStart)) == 0; }
  // The same of one text.
  static bool is_text(std::string_view bytes);

 private:
  // Between characters; one, two or three bytes missing; after E0, ED, F0, F4; broken.
  enum State : unsigned { kStart, kOne, kTwo, kThree, kE0, kED, kF0, kF4, kBroken, kStates };
  using Reach = std::array<std::uint16_t, kStates>;
  static constexpr std::uint16_t bit(unsigned state) {
    return static_cast<std::uint16_t>(1U << state);
  }
  static State after(State state, unsigned byte);
  static Reach then(const Reach& a, const Reach& b);
  static Reach whole();
  static Reach nothing_read();
  static Reach anywhere();
  Reach reach_of(Term t) const;
  Reach repeated(const Node& n) const;

  const TermStore& store_;
  std::vector<Reach> reaches_;  // by term; a term's parts come before it
};

}  // namespace grammaton
