// Tokens that stand for themselves: special tokens by name, ids by range (docs/machine.md).
//
// A *token set* is a letter beside the 256 bytes: reading it takes one of its tokens whole,
// whatever the token spells. Front ends name tokens; a vocabulary resolves names and complements to
// ids (index/compile.py) before the store is normalised. A term with one inside is no language of
// bytes, so it has the flag kHasCall: neither `&`, `~` nor json() take it, and no frame mask is
// made of it. Its row is empty: walks over bytes pass it by, and only the place where a token
// begins asks for first_tokens().
#include <algorithm>

#include "grammar/rule_facts.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

std::vector<IdRange> normalised(std::vector<IdRange> ids) {
  std::ranges::sort(ids);
  std::vector<IdRange> result;
  for (const IdRange& r : ids) {
    if (!result.empty() && r.low <= std::uint64_t{result.back().high} + 1) {
      result.back().high = std::max(result.back().high, r.high);
    } else {
      result.push_back(r);
    }
  }
  return result;
}

}  // namespace

bool TokenSet::has(std::uint32_t id) const {
  const auto after = std::ranges::upper_bound(ids, id, {}, &IdRange::low);
  return after != ids.begin() && std::prev(after)->high >= id;
}

Term TermStore::token(TokenSet set) {
  std::ranges::sort(set.names);
  set.names.erase(std::unique(set.names.begin(), set.names.end()), set.names.end());
  set.ids = normalised(std::move(set.ids));
  const auto next = static_cast<std::uint32_t>(token_sets_.size());
  const auto [place, fresh] = token_set_lookup_.emplace(set, next);
  if (fresh) token_sets_.push_back(std::move(set));
  return intern(Kind::Token, kHasCall, place->second, 0, 0);
}

std::vector<std::uint32_t> TermStore::token_sets_of(Term start) {
  std::vector<std::uint32_t> found;
  if (!has_tokens()) return found;
  std::vector<Term> pending{start};
  for (const Rule rule : reachable_rules(*this, start)) {
    pending.push_back(rules_[rule].body);
    for (const Alternative& alternative : rules_[rule].alternatives) {
      pending.push_back(alternative.head);
      pending.push_back(alternative.tail);
    }
  }
  std::vector<bool> seen(nodes_.size(), false);
  while (!pending.empty()) {
    const Term t = pending.back();
    pending.pop_back();
    if (seen[t] || !has(t, kHasCall)) continue;
    seen[t] = true;
    const Node& n = nodes_[t];
    switch (n.kind) {
      case Kind::Token:
        found.push_back(n.a);
        break;
      case Kind::Concat:
        pending.push_back(n.a);
        pending.push_back(n.b);
        break;
      case Kind::Union:
        for (const Term part : operands(t)) pending.push_back(part);
        break;
      case Kind::Repeat:
        pending.push_back(n.a);
        break;
      default:
        break;
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void TermStore::resolve_tokens(std::uint32_t set, std::vector<IdRange> ids) {
  token_sets_[set] = {{}, normalised(std::move(ids)), false, true};
}

std::span<const FirstToken> TermStore::first_tokens(Term t) {
  if (!has(t, kHasCall)) return {};
  if (const auto known = first_tokens_.find(t); known != first_tokens_.end()) return known->second;
  std::vector<FirstToken> found;
  const Node n = nodes_[t];
  const auto add = [&](Term inner, Term rest) {
    for (const FirstToken& token : first_tokens(inner))
      found.push_back({token.set, concat(token.rest, rest)});
  };
  switch (n.kind) {
    case Kind::Token:
      found.push_back({n.a, kEmpty});
      break;
    case Kind::Concat: {
      Term rest = t;
      while (nodes_[rest].kind == Kind::Concat) {
        const Node link = nodes_[rest];
        add(link.a, link.b);
        rest = nullable(link.a) ? link.b : kNothing;
      }
      add(rest, kEmpty);
      break;
    }
    case Kind::Union: {
      const std::vector<Term> items(operands(t).begin(), operands(t).end());
      for (const Term item : items) add(item, kEmpty);
      break;
    }
    case Kind::Repeat:
      add(n.a, repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1));
      break;
    default:
      break;
  }
  return first_tokens_.emplace(t, std::move(found)).first->second;
}

}  // namespace grammaton
