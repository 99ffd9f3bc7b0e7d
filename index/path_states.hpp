// The states along texts that share beginnings with one another: what lies on the way to the few
// *others* below a node of a trie, where some character begins that a term may not live over
// (Trie::find_others).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "index/remainders.hpp"

namespace grammaton {

template <typename State>
class PathStates {
 public:
  explicit PathStates(State start) : states_{start} {}

  // The next text; of it nothing is copied. `step(state, byte)` is a state.
  template <typename Step>
  void follow(std::string_view text, Step&& step) {
    const auto shared = std::ranges::mismatch(text_, text).in2 - text.begin();
    states_.resize(static_cast<std::size_t>(shared) + 1, states_.front());
    for (const char c : text.substr(static_cast<std::size_t>(shared)))
      states_.push_back(step(states_.back(), static_cast<std::uint8_t>(c)));
    text_ = text;
  }
  // After each beginning of the text, the empty one first.
  const std::vector<State>& states() const { return states_; }

 private:
  std::string_view text_;
  std::vector<State> states_;
};

// Lists what remains of some tokens, all of which begin with `text`, where a frame ends before its
// last byte. States have a `term` and the `items` before; `depth` bytes of the tokens precede them.
// `step(term, byte)` is what a byte leaves of a term.
template <typename State, typename Step>
void pass_exits(TermStore& store, const PathStates<State>& path, std::string_view text,
                std::span<const Entry> entries, std::uint32_t depth, Remainders& remainders,
                std::vector<Entry>& passed, Step&& step) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    const State& state = path.states()[i];
    if (!store.nullable(state.term)) continue;
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (!remainders.keeps(step(state.term, byte) != kNothing, byte)) continue;
    for (const Entry& entry : entries)
      passed.push_back(
          {entry.token, entry.start + depth + static_cast<std::uint32_t>(i), state.items});
  }
}

}  // namespace grammaton
