// Levels of indentation left out of terms, so that what does not depend on them is found once.
//
// The statements of a block are the same at every level: what a level changes is the blanks before
// lines. So of two terms that differ in nothing but levels, the tokens that end before such blanks
// are the same, and so is what is left of tokens behind them. A mask is made for one of them and
// serves the other, unless a margin was looked at on the way.
//
// A *level* is a parameter that is one counter, the first, and not 0. A rule that reads blanks up
// to the first line of a block counts from there on: with two counters, the level around and the
// blanks so far, of which only the difference matters. Such a template is *relative*. Its first
// call stands in a rule that has the level alone, from which it counts: that tells levels apart.
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

bool TermStore::is_level(Param param) const {
  const ParamValue& value = params_[param];
  return value.bits.empty() && value.counters.size() == 1;
}

// Whether a template compares and moves the two counters by what is between them only.
bool TermStore::is_relative(Rule rule) {
  const auto [place, is_new] = relative_.try_emplace(rule, false);
  if (!is_new) return place->second;
  const RuleInfo& info = rules_[rule];
  const auto compares = [](const Condition& c) {
    return c.op == Condition::Op::Below && c.index + c.low == 1;
  };
  const auto counts = [&](const Alternative& alternative) {
    if (alternative.next != rule || alternative.updates.size() != 1) return false;
    const Update& update = alternative.updates[0];
    return update.op == Update::Op::Add && update.index == 1 && update.cap >= kUnbounded - 1;
  };
  const auto opens = [&](const Alternative& alternative) {
    if (!rules_[alternative.next].inherits || alternative.updates.size() != 2) return false;
    const Update& level = alternative.updates[0];
    const Update& blanks = alternative.updates[1];
    return level.op == Update::Op::Copy && level.index == 0 && level.value == 1 && level.cap > 0 &&
           blanks.op == Update::Op::Set && blanks.index == 1 && blanks.value == 0;
  };
  const bool result = info.is_template && info.members.empty() &&
                      std::ranges::all_of(info.alternatives, [&](const Alternative& alternative) {
                        return alternative.next != kNone && !has(alternative.head, kHasCall) &&
                               !has(alternative.tail, kHasCall) &&
                               std::ranges::all_of(alternative.conditions, compares) &&
                               (counts(alternative) || opens(alternative));
                      });
  return relative_[rule] = result;
}

bool TermStore::tells_level(Rule rule, Param param) {
  const RuleInfo& info = rules_[rule];
  if (param == 0 || info.is_margin || !info.is_template) return param != 0 && info.is_margin;
  return params_[param].counter(1) == 0 || !is_relative(rule);
}

Levelless TermStore::levelless_call(Term t) {
  const Node n = nodes_[t];
  Levelless found{n.hash, false, true};
  if (n.b == 0) found.levels = rules_[n.a].inherits;
  if (n.b == 0 || n.b == kInherited) {
    found.exact = !found.levels;
    return found;
  }
  found.levels = true;
  found.hash = {};
  found.hash.add((std::uint64_t{n.a} << 8) | static_cast<std::uint8_t>(Kind::Call));
  if (rules_[n.a].inherits) {
    found.exact = is_level(n.b) && !has_other_margins_;
  } else if (rules_[n.a].is_template) {
    const ParamValue& value = params_[n.b];
    found.exact = value.bits.empty() && value.counters.size() <= 2 && is_relative(n.a);
    found.hash.add(std::uint64_t{value.counter(1)} - value.counter(0));
  } else {
    found.exact = false;
  }
  return found;
}

const Levelless& TermStore::without_levels(Term t) {
  const auto known = [this](Term of) {
    return of < levelless_of_.size() && levelless_of_[of] != kNone;
  };
  std::vector<Term> pending;
  if (!known(t)) pending.push_back(t);
  while (!pending.empty()) {
    const Term top = pending.back();
    const Node n = nodes_[top];
    std::vector<Term> parts;
    if (has(top, kHasCall)) {
      if (n.kind == Kind::Concat) parts = {n.a, n.b};
      if (n.kind == Kind::Repeat) parts = {n.a};
      if (n.kind == Kind::Union) parts.assign(operands(top).begin(), operands(top).end());
    }
    const std::size_t before = pending.size();
    for (const Term part : parts) {
      if (!known(part)) pending.push_back(part);
    }
    if (pending.size() != before) continue;
    pending.pop_back();
    Levelless found{n.hash, false, true};
    if (n.kind == Kind::Call) {
      found = levelless_call(top);
    } else if (!parts.empty()) {
      Hash128 sum;  // operands come in any order
      found.hash = {};
      found.hash.add(static_cast<std::uint64_t>(n.kind));
      if (n.kind == Kind::Repeat) found.hash.add((std::uint64_t{n.b} << 32) | n.c);
      for (const Term part : parts) {
        const Levelless& of = levelless_[levelless_of_[part]];
        found.levels = found.levels || of.levels;
        found.exact = found.exact && of.exact;
        if (n.kind == Kind::Union) {
          sum.order += of.hash.order;
          sum.keyed += of.hash.keyed;
        } else {
          found.hash.add(of.hash);
        }
      }
      if (n.kind == Kind::Union) found.hash.add(sum);
      if (!found.levels) found.hash = n.hash;
    } else if (has(top, kHasCall)) {
      found.exact = false;
    }
    if (top >= levelless_of_.size())
      levelless_of_.resize(std::max<std::size_t>(top + 1, size()), kNone);
    levelless_of_[top] = static_cast<std::uint32_t>(levelless_.size());
    levelless_.push_back(found);
  }
  return levelless_[levelless_of_[t]];
}

}  // namespace grammaton
