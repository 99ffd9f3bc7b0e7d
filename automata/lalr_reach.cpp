// Whether the end is reached from a control on a stack (lalr_future.hpp).
//
// A question about a stack reads it from the top down, to the bottom in the worst case. Mostly that
// is not needed: a control *always ends* on a parser state if it reaches the end above it, or if
// for each state that may lie below there is a pop that always ends there. Each pop leaves a
// shorter stack, and the first state lies on no other: so what can be assumed of all pairs at once
// holds of every stack, by induction over its length. Pairs are assumed to hold until one fails;
// if another relied on it, all is asked again. What is given up counts as a failure, which only
// means that stacks are read.
#include <algorithm>

#include "automata/lalr_future.hpp"

namespace grammaton {

namespace {

// Pairs that are looked at for all stacks of a grammar, a microsecond or so each; nodes from which
// on no more are; and how deep they may rest on each other.
constexpr std::size_t kMostAsked = 50'000;
constexpr std::size_t kMostNodes = 200'000;
constexpr unsigned kDeepest = 1'000;
// Pops tried for a state below.
constexpr std::size_t kMostTried = 256;

}  // namespace

bool LalrFuture::always_ends(std::uint32_t control, std::uint32_t state) {
  const std::uint64_t key = (std::uint64_t{control} << 32) | state;
  if (below_.empty()) find_below();
  for (;;) {
    if (const std::uint32_t* const known = always_.find(key)) return *known != 0;
    assumed_.clear();
    relied_.clear();
    failed_one_ = false;
    const bool holds = assume_always(control, state, 0);
    if (!holds) {
      always_.try_emplace(key, 0);
    } else if (!failed_one_) {
      for (const std::uint64_t pair : assumed_) always_.try_emplace(pair, 1);
    }
  }
}

bool LalrFuture::assume_always(std::uint32_t control, std::uint32_t state, unsigned depth) {
  const std::uint64_t key = (std::uint64_t{control} << 32) | state;
  if (const std::uint32_t* const known = always_.find(key)) return *known != 0;
  if (assumed_.contains(key)) {
    relied_.insert(key);
    return true;
  }
  if (++always_asked_ > kMostAsked || nodes_.size() > kMostNodes || depth > kDeepest) return false;
  const std::uint32_t index = node(control, state);
  saturate();
  if (nodes_[index].ends) {
    always_.try_emplace(key, 1);
    return true;
  }
  assumed_.insert(key);
  bool holds = !below_[state].empty();
  for (std::size_t i = 0; i < below_[state].size() && holds; ++i) {
    holds = false;
    const std::size_t pops = std::min(nodes_[index].pops.size(), kMostTried);
    for (std::size_t k = 0; k < pops && !holds; ++k)
      holds = assume_always(nodes_[index].pops[k], below_[state][i], depth + 1);
  }
  if (!holds) {
    assumed_.erase(key);
    always_.try_emplace(key, 0);
    failed_one_ = failed_one_ || relied_.contains(key);
  }
  return holds;
}

// The states that each may lie on.
void LalrFuture::find_below() {
  below_.resize(source_.states.size());
  for (std::uint32_t state = 0; state < source_.states.size(); ++state) {
    const auto leads_to = [&](std::uint32_t next) {
      std::vector<std::uint32_t>& below = below_[next];
      if (below.empty() || below.back() != state) below.push_back(state);
    };
    for (const auto& [terminal, action] : source_.states[state].actions.listed()) {
      if (action > 0) leads_to(static_cast<std::uint32_t>(action) - 1);
    }
    for (const auto& [left, next] : source_.states[state].gotos.listed()) leads_to(next);
  }
}

// Once all is settled, pops of old nodes are final: new nodes use old ones, never the other way.
bool LalrFuture::reaches_end(std::uint32_t control, StackId stack) {
  enum class Reply : std::uint8_t { Asked, No, Yes };
  questions_.clear();
  // The reply when it is at hand; otherwise the question is put on the list.
  const auto ask = [&](std::uint32_t asked, StackId at) {
    if (at == LalrMachine::kNoStack) return Reply::No;
    const std::uint64_t key = (std::uint64_t{asked} << 32) | at;
    if (const std::uint32_t* const known = reached_.find(key))
      return *known != 0 ? Reply::Yes : Reply::No;
    const std::uint32_t index = node(asked, machine_.top(at));
    saturate();
    if (nodes_[index].ends) {
      reached_.try_emplace(key, 1);
      return Reply::Yes;
    }
    questions_.push_back({key, machine_.below(at), index, 0});
    return Reply::Asked;
  };
  Reply reply = ask(control, stack);
  while (!questions_.empty()) {
    Question& question = questions_.back();
    Node& node = nodes_[question.node];
    const auto pops = static_cast<std::uint32_t>(node.pops.size());
    if (reply == Reply::Yes && question.tried > 0)
      node.likely = (node.likely + question.tried - 1) % pops;
    if (reply == Reply::Yes || question.tried == pops) {
      if (reply == Reply::Asked) reply = Reply::No;
      reached_.try_emplace(question.key, reply == Reply::Yes ? 1 : 0);
      questions_.pop_back();
      continue;
    }
    const std::uint32_t next = node.pops[(node.likely + question.tried++) % pops];
    reply = ask(next, question.below);
  }
  return reply == Reply::Yes;
}

}  // namespace grammaton
