// Studies of terms that are hard, over letters that the term tells apart (class_trie.hpp).
#include <algorithm>
#include <utility>

#include "index/class_trie.hpp"
#include "index/remainders.hpp"
#include "index/walk.hpp"

namespace grammaton {

namespace {

// Class tries that a walker remembers.
constexpr std::size_t kMostTries = 6;

}  // namespace

// One that tells apart what the term does; null where none is of use, or there and none to be made.
std::shared_ptr<const ClassTrie> Walker::class_trie(Term t, bool make) {
  const CharacterClasses* const classes = known_classes_.of(store_, t);
  if (classes == nullptr) return nullptr;
  const auto found = std::ranges::find_if(class_tries_, [&](const auto& known) {
    return known->complete() && known->classes().tells(*classes);
  });
  if (found != class_tries_.end()) {
    std::rotate(class_tries_.begin(), found, found + 1);
    return class_tries_.front();
  }
  const std::shared_ptr<const ClassTrie> made = index_.class_trie(*classes, make);
  if (made == nullptr || !made->complete()) return nullptr;
  if (class_tries_.size() == kMostTries) class_tries_.pop_back();
  class_tries_.insert(class_tries_.begin(), made);
  return made;
}

std::shared_ptr<FrameMask> Walker::study_by_class(const ClassTrie& classes, Term t, Rests rests,
                                                  bool last) {
  struct Visit {
    std::uint32_t node;
    Term term;
  };
  std::vector<Word>& bits = scratch_->studied;
  bits.assign(index_.words(), 0);
  std::vector<std::uint32_t> tokens;
  std::vector<Visit> exits;
  std::size_t places = 0;
  std::vector<Visit> stack{{ClassTrie::kRoot, t}};
  while (!stack.empty()) {
    const Visit at = stack.back();
    stack.pop_back();
    for (const ClassTrie::Edge& edge : classes.edges(at.node)) {
      count_nodes(stats_.study_nodes);
      Term next = at.term;
      if (edge.symbol < ClassTrie::kClass) {
        next = store_.step_once(next, edge.symbol);
      } else {
        for (const char c : classes.classes().representative(edge.symbol - ClassTrie::kClass)) {
          next = store_.step_once(next, static_cast<unsigned char>(c));
          if (next == kNothing) break;
        }
      }
      if (next == kNothing) continue;
      for (const std::uint32_t token : classes.tokens(edge.to)) {
        if (tokens.size() <= kSparseTokens) tokens.push_back(token);
        set_bit(bits.data(), token);
      }
      if (classes.edges(edge.to).empty()) continue;
      stack.push_back({edge.to, next});
      if (!store_.nullable(next)) continue;
      exits.push_back({edge.to, next});
      places += classes.places(edge.to).size();
    }
  }
  auto mask = std::make_shared<FrameMask>();
  if (last && places > kManyExits) {
    mask->leaves_all_out = true;
    mask->left_out = ByteSet::range(0, 255);
  } else {
    Remainders remainders(index_.trie(), bits.data(), false, rests);
    for (const Visit& exit : exits) {
      const auto goes_on = [&](unsigned byte) {
        return store_.step_once(exit.term, byte) != kNothing;
      };
      for (const std::uint32_t place : classes.places(exit.node))
        remainders.add_exit(place, goes_on, 0);
    }
    count_listed(remainders.count());
    remainders.finish(*mask, index_);
  }
  if (rests != Rests::Others) return mask;
  if (tokens.size() > kSparseTokens) {
    mask->dense = copy_bits(bits);
  } else {
    mask->sparse = std::move(tokens);
  }
  return mask;
}

}  // namespace grammaton
