// Steps over whole characters, and the search for a text of an intersection by them.
//
// Where a search by bytes would go through all that stands inside characters, of which `\\w` has
// fifty beginnings, this steps over one character of each class that the term tells apart, and
// steps the operands one by one, so that an intersection is made once a character. It is for terms
// of which every text is one of characters.
//
// Costs: 1 us for each state and class.
#include <algorithm>
#include <functional>
#include <queue>

#include "grammar/character_classes.hpp"
#include "grammar/least.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kFewOperands = 64;
// Where the least is left to say is looked at first, for so many states (derivatives.cpp).
constexpr std::size_t kBestFirst = 256;

}  // namespace

bool TermStore::is_text(Term t) const {
  const Node& n = nodes_[t];
  switch (n.kind) {
    case Kind::Empty:
    case Kind::Chars:
      return true;
    case Kind::Bytes:
      return byte_set(t).is_ascii();
    case Kind::Concat: {
      for (; nodes_[t].kind == Kind::Concat; t = nodes_[t].b) {
        if (!is_text(nodes_[t].a)) return false;
      }
      return is_text(t);
    }
    case Kind::Repeat:
      return is_text(n.a);
    case Kind::Union:
      return operands(t).size() <= kFewOperands &&
             std::ranges::all_of(operands(t), [this](Term operand) { return is_text(operand); });
    default:
      return false;
  }
}

// What may have no text is not left out.
Term TermStore::after_character(Term t, std::string_view character) {
  const auto step = [&](Term at) {
    for (const char c : character) {
      at = step_raw(at, static_cast<unsigned char>(c));
      if (at == kNothing) break;
    }
    return at;
  };
  const Node n = nodes_[t];
  if (n.kind == Kind::Concat && nodes_[n.a].kind == Kind::Json && as_keys(t) == kNothing) {
    const Term head = concat(after_character(n.a, character), n.b);
    return nullable(n.a) ? join({head, after_character(n.b, character)}) : head;
  }
  if (n.kind == Kind::Json && n.b == 0 && n.c == 0 && as_keys(t) == kNothing)
    return json(step_character(n.a, character));  // it stands for itself there
  if (n.kind != Kind::Intersect) return step(t);
  std::vector<Term> left;
  // By index: making rows may move the lists.
  for (std::size_t i = 0; i < operands(t).size(); ++i) {
    left.push_back(step(operands(t)[i]));
    if (left.back() == kNothing) return kNothing;
  }
  return intersect(std::move(left));
}

Term TermStore::step_character(Term t, std::string_view character) {
  const Term next = after_character(t, character);
  return has(next, kMaybeEmpty) && is_empty(next) ? kNothing : next;
}

// Whether there is a text. Looks at so many states at most.
TermStore::Search TermStore::search_by_characters(Term start, std::size_t states) {
  if (nodes_[start].kind != Kind::Intersect || restricted_ ||
      !std::ranges::any_of(operands(start), [this](Term operand) { return is_text(operand); }))
    return Search::NotByCharacters;
  std::optional<CharacterClasses> classes = CharacterClasses::of(*this, start);
  if (!classes || classes->lifted()) return Search::InVain;
  if (searched_by_ == nullptr || !searched_by_->tells(*classes)) {
    classes->settle();
    searched_by_ = std::make_shared<const CharacterClasses>(std::move(*classes));
  }
  const std::shared_ptr<const CharacterClasses> by = searched_by_;
  if (!by->few()) return Search::InVain;
  const std::uint64_t most_operands = lists_.size() + kStepOperands * (max_tries() / 10);
  std::vector<Term> queue{start};
  std::vector<std::uint32_t> parent{0};
  std::vector<std::uint8_t> over{0};  // the class from there
  std::vector<bool> done{false};
  std::unordered_map<Term, bool> visited{{start, true}};
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // least bytes, index from the end
  std::priority_queue<Place, std::vector<Place>, std::greater<>> open;
  LeastBytes least(*this);
  open.emplace(0, kNone);
  std::size_t first = 0;
  for (std::size_t expanded = 0; expanded < queue.size(); ++expanded) {
    std::size_t i = 0;
    if (expanded < kBestFirst) {
      i = kNone - open.top().second;
      open.pop();
    } else {
      while (done[first]) ++first;
      i = first;
    }
    done[i] = true;
    for (unsigned cls = 0; cls < by->count(); ++cls) {
      const Term u = after_character(queue[i], by->representative(cls));
      if (u == kNothing || facts_[u].emptiness == 2 || !visited.emplace(u, true).second) continue;
      if (nullable(u) || facts_[u].emptiness == 1 || !has(u, kMaybeEmpty)) {
        facts_[u].emptiness = 1;
        std::string text;
        std::vector<unsigned> way{cls};
        for (std::size_t k = i;; k = parent[k]) {  // everything on the way can end too
          facts_[queue[k]].emptiness = 1;
          if (k == 0) break;
          way.push_back(over[k]);
        }
        if (!nullable(u)) return Search::Ends;
        for (std::size_t k = way.size(); k-- > 0;) text += by->representative(way[k]);
        witnesses_.keep(std::move(text));
        return Search::Ends;
      }
      if (queue.size() > states || lists_.size() > most_operands) return Search::InVain;
      if (expanded < kBestFirst)
        open.emplace(least.of(u), kNone - static_cast<std::uint32_t>(queue.size()));
      queue.push_back(u);
      parent.push_back(static_cast<std::uint32_t>(i));
      over.push_back(static_cast<std::uint8_t>(cls));
      done.push_back(false);
    }
  }
  for (const Term u : queue) facts_[u].emptiness = 2;
  return Search::Empty;
}

}  // namespace grammaton
