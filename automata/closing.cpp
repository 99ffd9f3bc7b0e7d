// What a configuration can go on with: frames that may end are popped, rules entered that the next
// byte may begin.
//
// An operand of a programming language begins in eighty ways, and each way is a rule entered with
// frames of its own, two of which a given byte can begin. So a term is known by the bytes that it
// can begin with, calls included, and a call that the next byte can't begin is not entered. These
// sets are found once a term, in some 100 ns.
#include <algorithm>

#include "automata/machine.hpp"

namespace grammaton {

namespace {

const ByteSet kAnyByte = ByteSet::range(0, 255);
const ByteSet kBlank = ByteSet::of(' ');

}  // namespace

// The longest chain of first calls from `term`: a body ranks below every term that calls it first.
// Bodies that are alike at all levels of indentation have the same, without templates on the way.
std::uint32_t Machine::rank(Term term) {
  if (facts(term).rank != kNone) return facts(term).rank;
  struct Place {
    Term term;
    std::size_t next_call;
    std::uint32_t rank;
    bool templates;
  };
  const auto at_levels = [&](Rule rule) -> std::uint32_t& {
    if (rule >= ranks_at_levels_.size()) ranks_at_levels_.resize(rule + 1, kNone);
    return ranks_at_levels_[rule];
  };
  std::vector<Place> path{{term, 0, 0, false}};
  for (;;) {
    Place& here = path.back();
    if (here.next_call < store_.first_calls(here.term).size()) {
      const FirstCall call = store_.first_calls(here.term)[here.next_call];
      if (call.rule == kDistinct) {  // a regular body
        here.rank = std::max(here.rank, 1u);
        ++here.next_call;
        continue;
      }
      const bool alike = store_.alike_at_levels(call.rule, call.param);
      if (alike && at_levels(call.rule) != kNone) {
        here.rank = std::max(here.rank, at_levels(call.rule) + 1);
        ++here.next_call;
        continue;
      }
      const Term body = store_.body(call.rule, call.param);
      if (facts(body).rank == kNone) {
        path.push_back({body, 0, 0, false});  // and come back
        continue;
      }
      const bool templates =
          store_.rule_info(call.rule).is_template || facts(body).rank_has_templates;
      here.rank = std::max(here.rank, facts(body).rank + 1);
      here.templates = here.templates || templates;
      if (alike && !templates) at_levels(call.rule) = facts(body).rank;
      ++here.next_call;
      continue;
    }
    const Place found = path.back();
    facts(found.term).rank = found.rank;
    facts(found.term).rank_has_templates = found.templates;
    path.pop_back();
    if (path.empty()) return found.rank;
  }
}

// The bytes that a term can begin with: those of its row and of what it calls, no term of which
// begins with itself. What is called at a level of indentation is not instantiated where it is
// known for another one, unless it tells them apart: a line may go on at eight levels.
const ByteSet& Machine::first_bytes(Term term, Reading reading) {
  const bool loose = reading == Reading::Loose;
  const std::size_t kind = loose ? 1 : 0;
  const auto known = [&](Term t) -> std::uint32_t& { return facts(t).first_bytes[kind]; };
  if (known(term) != kNone) {
    if (facts(term).begins_by_level[kind]) ++levels_told_;
    return first_bytes_[known(term)];
  }
  struct Place {
    Term term;
    std::size_t next_call;
    ByteSet bytes;
    bool by_level = false;
  };
  std::vector<Place> path;
  const auto enter = [&](Term t) {
    const bool any = loose && store_.has(t, kStepwise);
    path.push_back({t, 0,
                    any     ? kAnyByte
                    : loose ? store_.may_begin_with(t)
                            : store_.class_map(store_.row(t)).live});
  };
  const auto at_levels = [&](Rule rule) -> std::uint32_t& {
    if (rule >= first_bytes_at_levels_.size())
      first_bytes_at_levels_.resize(rule + 1, {kNone, kNone});
    return first_bytes_at_levels_[rule][kind];
  };
  enter(term);
  for (;;) {
    Place& here = path.back();
    if (here.next_call < store_.first_calls(here.term).size()) {
      const FirstCall call = store_.first_calls(here.term)[here.next_call];
      if (call.rule == kDistinct || (loose && store_.rule_info(call.rule).is_template)) {
        here.bytes = kAnyByte;
        ++here.next_call;
        continue;
      }
      if (is_blank_margin(call.rule)) {
        here.bytes = here.bytes | kBlank;
        ++here.next_call;
        continue;
      }
      const bool alike = store_.alike_at_levels(call.rule, call.param);
      if (alike && at_levels(call.rule) != kNone) {
        here.bytes = here.bytes | first_bytes_[at_levels(call.rule)];
        ++here.next_call;
        continue;
      }
      const Term body = store_.body(call.rule, call.param);
      if (known(body) == kNone) {
        enter(body);  // and come back
        continue;
      }
      const bool by_level = facts(body).begins_by_level[kind];
      here.bytes = here.bytes | first_bytes_[known(body)];
      here.by_level = here.by_level || by_level || store_.tells_level(call.rule, call.param);
      if (alike && !by_level) at_levels(call.rule) = known(body);
      ++here.next_call;
      continue;
    }
    const Place found = path.back();
    path.pop_back();
    known(found.term) = static_cast<std::uint32_t>(first_bytes_.size());
    first_bytes_.push_back(found.bytes);
    facts(found.term).begins_by_level[kind] = found.by_level;
    if (!path.empty()) continue;
    if (found.by_level) ++levels_told_;
    return first_bytes_.back();
  }
}

const ByteSet& Machine::first_bytes_of(const FirstCall& call, Reading reading) {
  const std::size_t kind = reading == Reading::Loose ? 1 : 0;
  if (call.rule < first_bytes_at_levels_.size() &&
      first_bytes_at_levels_[call.rule][kind] != kNone &&
      store_.alike_at_levels(call.rule, call.param))
    return first_bytes_[first_bytes_at_levels_[call.rule][kind]];
  return first_bytes(store_.body(call.rule, call.param), reading);
}

// A margin without tabs: whatever its width, it begins with a blank.
bool Machine::is_blank_margin(Rule rule) const {
  const RuleInfo& info = store_.rule_info(rule);
  return info.is_margin && info.margin_tab == 0;
}

bool Machine::may_begin(const FirstCall& call, const ByteSet& next) {
  if (call.rule == kDistinct || store_.rule_info(call.rule).is_template) return true;
  if (is_blank_margin(call.rule)) return !(kBlank & next).empty();
  return !(first_bytes_of(call, Reading::Loose) & next).empty();
}

void Machine::close(Groups& groups, const ByteSet* next) {
  // Pops first: no body is nullable, so what is pushed in this step is not popped in it.
  close_pops(groups);
  close_calls(groups, next);
}

void Machine::close_pops(Groups& groups) {
  indexed_ = false;
  const std::size_t count = groups.items.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Group group = groups.items[i];
    if (store_.nullable(group.term)) pop_closed(group.parents, groups);
  }
  if (store_.remembers()) take_values(groups);
}

void Machine::close_calls(Groups& groups, const ByteSet* next) {
  indexed_ = false;
  // From the highest rank down: a term's parents are complete when its turn comes.
  calling_.clear();
  const auto call_later = [&](std::size_t index) {
    // A caller on its own needs no rank, and most are.
    if (calling_.size() == 1) calling_[0].first = rank(groups.items[calling_[0].second].term);
    calling_.emplace_back(calling_.empty() ? 0 : rank(groups.items[index].term), index);
    std::ranges::push_heap(calling_);
  };
  for (std::size_t i = 0; i < groups.items.size(); ++i) {
    const Term term = groups.items[i].term;
    if (store_.has(term, kFirstCall) && (next == nullptr || may_begin(term, *next))) call_later(i);
  }
  while (!calling_.empty()) {
    std::ranges::pop_heap(calling_);
    const Group caller = groups.items[calling_.back().second];
    calling_.pop_back();
    const std::size_t calls = store_.first_calls(caller.term).size();
    for (std::size_t i = 0; i < calls; ++i) {
      const FirstCall call = store_.first_calls(caller.term)[i];
      if (next != nullptr && !may_begin(call, *next)) continue;
      ++call_count_;
      if (call.rule == kDistinct) {
        begin_value(call, caller.parents, groups.text, groups);
        continue;
      }
      const Term body = enter(call.rule, call.param);
      SetId parents = push(call.rest, caller.parents);
      if (store_.rule_info(call.rule).scoped)
        parents = intern_scope(store_.seen(0, kNoText, false), parents);
      const std::size_t known = groups.items.size();
      const std::size_t at = add(groups, body, parents);
      if (at == known && store_.has(body, kFirstCall)) call_later(at);
    }
  }
}

}  // namespace grammaton
