// Whether a call of a template rule can end: a search through the parameters it can lead to.
//
// Two things keep the search short. What was only made worse is left out: if all that an
// alternative did is to see a bit that conditions want unseen, or to raise a counter that they
// bound from above, whatever can follow could have followed without it. And in an *unordered* rule,
// where every alternative that can be taken later can as well be taken at once, only those are
// tried that bring the end nearer, beginning with the condition of the end that the fewest can
// bring nearer: one that none can is a "no" at once, however many keys there are.
//
// The question is as hard as the satisfiability of clauses (grammar/json_schema/kept.py), so there
// is a bound: `max_tries` alternatives are tried.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

using Call = std::pair<Rule, Param>;

// What the search asks about the parts of a template.
struct EndOracle {
  std::function<bool(const Alternative&)> present;  // whether its own parts can end
  std::function<bool(Rule)> plain_ends;             // of rules that are no templates
  std::function<std::optional<bool>(Call)> known;   // what was found before
};

// `calls` all have the answer, the one that was asked for among them.
struct EndAnswer {
  bool gave_up = false;  // after too many tries, without an answer
  bool ends = false;
  std::vector<Call> calls;
};

// What a template and those it goes on to do to parameters; found once.
struct TemplateFacts {
  enum Help : std::uint8_t { kMore = 1, kLess = 2 };  // more (less) of it can make a condition hold
  std::vector<std::uint8_t> bits;
  std::vector<std::uint8_t> counters;
  bool cut = false;  // alternatives of some of them were left out, so they may not end

  // An unordered rule: `member` leads to `rest`, and that to `member` or, by one alternative, to
  // the end. What the end asks for is split into goals, each with the alternatives of `member` that
  // may help. Goals of different `parts` have no bit or counter in common, nor have their helpers.
  struct Goal {
    Condition condition;
    std::vector<std::uint32_t> helpers;
  };
  bool unordered = false;
  Rule member = kNone;
  Rule rest = kNone;
  std::unordered_set<Rule> between;  // from the one to the other; each has one way to go on
  std::uint32_t end = 0;
  std::vector<Goal> goals;
  std::vector<std::vector<std::uint32_t>> parts;
};

// The facts of a template whose rules are all defined.
std::shared_ptr<const TemplateFacts> template_facts(const TermStore& store, Rule rule);

EndAnswer search_end(TermStore& store, const TemplateFacts& facts, Call start,
                     const EndOracle& oracle, std::uint64_t max_tries);

}  // namespace grammaton
