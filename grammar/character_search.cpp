// Steps over whole characters, and the search for a text of an intersection by them.
//
// Where a search by bytes would go through all that stands inside characters, of which `\\w` has
// fifty beginnings, this steps over one character of each class that the term tells apart, and
// steps the operands one by one, so that an intersection is made once a character. It is for terms
// of which every text is one of characters.
//
// Costs: 1 us for each state and class.
#include <algorithm>

#include "grammar/best_first.hpp"
#include "grammar/character_classes.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kFewOperands = 64;

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
  BestFirst search(*this, start);
  while (search.has_next()) {
    const std::size_t i = search.next();
    for (unsigned cls = 0; cls < by->count(); ++cls) {
      const Term u = after_character(search.term(i), by->representative(cls));
      if (u == kNothing || facts_[u].emptiness == 2 || !search.visit(u)) continue;
      if (nullable(u) || facts_[u].emptiness == 1 || !has(u, kMaybeEmpty)) {
        facts_[u].emptiness = 1;
        // Everything on the way can end too.
        search.each_back(i, [this](Term t) { facts_[t].emptiness = 1; });
        if (!nullable(u)) return Search::Ends;
        std::string text;
        for (const std::uint8_t over : search.way(i)) text += by->representative(over);
        text += by->representative(cls);
        witnesses_.keep(std::move(text));
        return Search::Ends;
      }
      if (search.size() > states || lists_.size() > most_operands) return Search::InVain;
      search.add(u, i, static_cast<std::uint8_t>(cls));
    }
  }
  for (const Term u : search.terms()) facts_[u].emptiness = 2;
  return Search::Empty;
}

}  // namespace grammaton
