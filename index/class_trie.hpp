// A vocabulary as a term reads it: characters that the term can't tell apart are one letter.
//
// `.*a.{9}[0-9]` knows an `a`, a digit, a line end and anything else, so to it a token is a text
// over four letters, and the 274,000 nodes of a vocabulary's trie are 2,000. What is walked is
// those: where terms are many and each has to be made, this is what bounds how many are met. Each
// class is walked as one character of it, the shortest. Where bytes are no characters, and behind a
// backslash in what JSON's escapes lift, nodes are bytes as they are.
//
// Costs: 4 ms and some 2 MB for 129,000 tokens, once for a set of classes; the vocabulary keeps it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/character_classes.hpp"
#include "index/trie.hpp"

namespace grammaton {

class ClassTrie {
 public:
  struct Edge {
    std::uint16_t symbol;  // a byte, or kClass + a class
    std::uint32_t to;
  };
  static constexpr std::uint16_t kClass = 256;
  static constexpr std::uint32_t kRoot = 0;

  ClassTrie(const Trie& trie, CharacterClasses classes);

  // False where it is hardly smaller than the trie.
  bool complete() const { return complete_; }
  const CharacterClasses& classes() const { return classes_; }
  std::size_t size() const { return edges_begin_.size() - 1; }
  std::span<const Edge> edges(std::uint32_t node) const {
    return {edges_.data() + edges_begin_[node], edges_.data() + edges_begin_[node + 1]};
  }
  // The nodes of the trie that a node stands for, but for leaves.
  std::span<const std::uint32_t> places(std::uint32_t node) const {
    return {places_.data() + places_begin_[node], places_.data() + places_begin_[node + 1]};
  }
  // The tokens that end there.
  std::span<const std::uint32_t> tokens(std::uint32_t node) const {
    return {tokens_.data() + tokens_begin_[node], tokens_.data() + tokens_begin_[node + 1]};
  }
  std::size_t memory() const {
    return sizeof(ClassTrie) + edges_.size() * sizeof(Edge) +
           (places_.size() + tokens_.size() + 3 * edges_begin_.size()) * sizeof(std::uint32_t);
  }

 private:
  class Builder;

  CharacterClasses classes_;
  bool complete_ = true;
  std::vector<std::uint32_t> edges_begin_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> places_begin_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> tokens_begin_;
  std::vector<std::uint32_t> tokens_;
};

}  // namespace grammaton
