#include "index/distances.hpp"

#include <deque>

#include "grammar/json_escapes.hpp"

namespace grammaton {

Distances::Distances(TermStore& store, Measured start, bool lifted, bool closed,
                     std::size_t most_terms)
    : store_(store), meter_(start.meter), lifted_(lifted), closed_(closed) {
  add(start);
  const std::size_t before = store.size();
  for (std::uint32_t i = 0; i < states_.size() && complete_; ++i) {
    expand(i);
    const std::size_t open = states_.size() - i;
    complete_ = states_.size() <= kMostStates && store.size() - before <= most_terms &&
                (i < kSurveyed || open <= kMostOpen);
  }
  measure();
}

std::uint32_t Distances::of(Measured state) const {
  const auto found = known_.find(key(state));
  return found == known_.end() ? kNone : distance_[found->second];
}

std::uint32_t Distances::add(Measured state) {
  const auto [place, fresh] =
      known_.emplace(key(state), static_cast<std::uint32_t>(states_.size()));
  if (fresh) {
    states_.push_back(state);
    into_.emplace_back();
    loops_.push_back(false);
  }
  return place->second;
}

void Distances::connect(std::uint32_t from, Measured to, std::uint32_t items) {
  const std::uint32_t id = add(to);
  if (id == from && items == 1) loops_[id] = true;
  into_[id].push_back({from, items});
}

void Distances::expand(std::uint32_t from) {
  const Measured at = states_[from];
  const bool boundary = at.meter == meter_;
  Measured before;
  for (unsigned b = 0; b < 256; ++b) {
    if (lifted_ && boundary && b == '\\') continue;
    const Term term = store_.step(at.term, b);
    if (term == kNothing) continue;
    const Measured next{term, store_.step(at.meter, b)};
    if (next.term == before.term && next.meter == before.meter) continue;
    before = next;
    connect(from, next, boundary && next.meter != kEmpty ? 1 : 0);
  }
  if (!lifted_ || !boundary || store_.step(at.term, '\\') == kNothing) return;
  for (unsigned code = 0; code < 0x20; ++code) write(from, code);
  write(from, '"');
  write(from, '\\');
}

// The step over a character that has to be escaped.
void Distances::write(std::uint32_t from, unsigned code) {
  Measured at = states_[from];
  const auto take = [&](unsigned byte) {
    at = {store_.step(at.term, byte), store_.step(at.meter, byte)};
  };
  take('\\');
  if (const unsigned char letter = json_escape_letter(code); letter != 0) {
    take(letter);
  } else {
    for (const unsigned byte : {'u', '0', '0'}) take(byte);
    take(static_cast<unsigned char>('0' + (code >> 4)));
    take(static_cast<unsigned char>("0123456789abcdef"[code & 15]));
  }
  if (at.term != kNothing) connect(from, at, 1);
}

void Distances::measure() {
  distance_.assign(states_.size(), kNone);
  if (!complete()) return;
  std::deque<std::uint32_t> queue;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (!is_end(states_[i])) continue;
    distance_[i] = 0;
    queue.push_back(i);
  }
  std::vector<bool> done(states_.size(), false);
  while (!queue.empty()) {
    const std::uint32_t i = queue.front();
    queue.pop_front();
    if (done[i]) continue;
    done[i] = true;
    for (const Edge& edge : into_[i]) {
      const std::uint32_t found = distance_[i] + edge.items;
      if (found >= distance_[edge.from]) continue;
      distance_[edge.from] = found;
      if (edge.items == 0) {
        queue.push_front(edge.from);
      } else {
        queue.push_back(edge.from);
      }
    }
  }
  find_growing();
}

// A state grows when texts of each length lead from it to an end, from its distance on. One that
// loops does; so does one that leads to a state that grows, if that is not too far.
void Distances::find_growing() {
  std::vector<bool> grows = loops_;
  std::vector<std::uint32_t> queue;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (grows[i]) queue.push_back(i);
  }
  while (!queue.empty()) {
    const std::uint32_t i = queue.back();
    queue.pop_back();
    for (const Edge& edge : into_[i]) {
      if (grows[edge.from] || distance_[i] == kNone) continue;
      if (distance_[i] + edge.items > distance_[edge.from] + 1) continue;
      grows[edge.from] = true;
      queue.push_back(edge.from);
    }
  }
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    // Nothing follows the closing byte; what comes before it has to grow.
    const bool closed = closed_ && states_[i].term == kEmpty;
    extensible_ = extensible_ && (grows[i] || closed || distance_[i] == kNone);
  }
}

}  // namespace grammaton
