#include "grammar/witnesses.hpp"

#include <algorithm>
#include <bit>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

// Steps and operands that one question may take; a search is cheaper than more.
constexpr std::uint32_t kMostSteps = 20'000;
constexpr std::uint32_t kMostDepth = 500;
// What is remembered of so many places in texts.
constexpr std::size_t kMostInside = 1U << 17;

// Serial numbers of texts come round.
constexpr std::uint32_t kSerials = 0xFFFFFF;

class Asking {
 public:
  explicit Asking(unsigned& count) : count_(count) { ++count_; }
  ~Asking() { --count_; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  unsigned& count_;
};

bool is_boolean(Kind kind) {
  return kind == Kind::Union || kind == Kind::Intersect || kind == Kind::Complement;
}

}  // namespace

const std::string* Witnesses::find(TermStore& store, Term t) {
  if (kept_ == 0) return nullptr;
  const Asking asking(asking_);
  Query query{kMostSteps};
  const auto latest = static_cast<std::size_t>(std::ranges::max_element(used_) - used_.begin());
  Some found = taken(store, t, Some{1} << latest, query);
  if (found == 0) found = taken(store, t, kept_, query);
  if (found == 0 || query.given_up) return nullptr;
  const auto text = static_cast<std::size_t>(std::countr_zero(found));
  used_[text] = ++now_;
  return &texts_[text];
}

void Witnesses::keep(std::string text) {
  if (text.size() > kLongestText) return;
  if (~kept_ == 0) {
    if (asking_ > 0) return;  // about those that would go
    make_room();
  }
  const auto slot = static_cast<std::size_t>(std::countr_one(kept_));
  kept_ |= Some{1} << slot;
  texts_[slot] = std::move(text);
  serial_[slot] = ++serials_ & kSerials;
  if (serial_[slot] == 0) inside_.clear();
  used_[slot] = ++now_;
}

// Several at once: what is known of all terms is gone through.
void Witnesses::make_room() {
  std::array<std::uint64_t, kTexts> times = used_;
  std::ranges::nth_element(times, times.begin() + kTexts / 4);
  Some gone = 0;
  for (std::size_t slot = 0; slot < kTexts; ++slot) {
    if (used_[slot] < times[kTexts / 4]) gone |= Some{1} << slot;
  }
  kept_ &= ~gone;
  for (Known& known : known_) known.asked &= ~gone;
}

// Those of some texts that are in t.
Witnesses::Some Witnesses::taken(TermStore& store, Term t, Some some, Query& query) {
  if (query.left == 0 || query.depth == kMostDepth) query.given_up = true;
  if (query.given_up || some == 0) return 0;
  --query.left;
  ++query.depth;
  Some found = 0;
  const Node n = store.node(t);
  switch (n.kind) {
    case Kind::Complement:
      found = some & ~taken(store, n.a, some, query);
      break;
    case Kind::Intersect:
      found = some;
      // By index: what is asked on the way may move the lists.
      for (std::size_t i = 0; found != 0 && i < store.operands(t).size(); ++i)
        found = taken(store, store.operands(t)[i], found, query);
      break;
    case Kind::Union:
      for (std::size_t i = 0; found != some && i < store.operands(t).size(); ++i)
        found |= taken(store, store.operands(t)[i], some & ~found, query);
      break;
    default: {
      if (known_.size() <= t) known_.resize(std::max(store.size(), std::size_t{t} + 1));
      for (Some left = some & ~known_[t].asked; left != 0; left &= left - 1) {
        const auto text = static_cast<std::size_t>(std::countr_zero(left));
        const bool takes_it = takes(store, t, text, 0, query);
        if (query.given_up) break;
        const Some bit = Some{1} << text;
        Known& known = known_[t];
        known.asked |= bit;
        known.taken = takes_it ? known.taken | bit : known.taken & ~bit;
      }
      found = known_[t].taken & some;
    }
  }
  --query.depth;
  return query.given_up ? 0 : found;
}

// Whether t takes what is left of a text.
bool Witnesses::takes(TermStore& store, Term t, std::size_t text, std::size_t from, Query& query) {
  for (std::size_t i = from;; ++i) {
    if (t == kNothing) return false;
    if (i == texts_[text].size()) return store.nullable(t);
    if (query.left == 0) {
      query.given_up = true;
      return false;
    }
    --query.left;
    if (is_boolean(store.node(t).kind)) return takes_inside(store, t, text, i, query);
    t = store.step_raw(t, static_cast<std::uint8_t>(texts_[text][i]));
  }
}

bool Witnesses::takes_inside(TermStore& store, Term t, std::size_t text, std::size_t from,
                             Query& query) {
  const std::uint64_t key = (std::uint64_t{t} << 32) | (std::uint64_t{serial_[text]} << 8) | from;
  if (const auto known = inside_.find(key); known != inside_.end()) return known->second;
  if (query.depth == kMostDepth) {
    query.given_up = true;
    return false;
  }
  ++query.depth;
  const Node n = store.node(t);
  bool result = false;
  if (n.kind == Kind::Complement) {
    result = !takes(store, n.a, text, from, query);
  } else {
    const bool all = n.kind == Kind::Intersect;
    result = all;
    for (std::size_t i = 0; result == all && i < store.operands(t).size(); ++i)
      result = takes(store, store.operands(t)[i], text, from, query);
  }
  --query.depth;
  if (query.given_up) return false;
  if (inside_.size() >= kMostInside) inside_.clear();
  inside_.emplace(key, result);
  return result;
}

}  // namespace grammaton
