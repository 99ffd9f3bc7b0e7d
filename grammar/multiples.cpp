// Multiples of a number, in decimal: the remainder of the digits read so far.
//
// A Residue is (divisor, remainder, places, digits after the point so far or none): the texts that
// make what was read, times 10^places, a multiple of the divisor. Missing places are zeros, and
// zeros may follow the last place. A remainder is a term made when it is reached, so a divisor of
// a million costs what is walked. Before the point every remainder can be completed; after it only
// those are kept whose remaining places can.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kBeforePoint = 0;  // else 1 + the digits after the point

std::uint64_t shifted(std::uint64_t remainder, std::uint32_t places, std::uint32_t divisor) {
  for (std::uint32_t i = 0; i < places && remainder != 0; ++i) {
    remainder = remainder * 10 % divisor;
  }
  return remainder;
}

// 10^places, or the divisor if that is less: enough to compare remainders with.
std::uint64_t power_up_to(std::uint32_t places, std::uint32_t divisor) {
  std::uint64_t power = 1;
  for (std::uint32_t i = 0; i < places && power < divisor; ++i) power *= 10;
  return power;
}

// A whole number with so many more digits is a multiple of `divisor` if at the end `remainder` is
// 0.
struct Congruence {
  std::uint64_t divisor;
  std::uint64_t remainder;

  // A whole number w is good when w * 10^places is a multiple: when w is one of this.
  static Congruence of(const Node& residue) {
    std::uint64_t divisor = residue.a;
    for (std::uint32_t i = 0; i < residue.c >> 16; ++i)
      divisor /= std::gcd<std::uint64_t>(divisor, 10);
    return {divisor, residue.b % divisor};
  }
  void shift() { remainder = remainder * 10 % divisor; }
  bool holds(std::uint64_t more) const { return (remainder + more) % divisor == 0; }
};

// Products of divisors beyond this are not looked at.
constexpr std::uint64_t kLargestDivisor = std::uint64_t{1} << 32;
// Multiples that are tried where some are left out.
constexpr std::uint64_t kTriedMultiples = 64;

// The least number that all hold of, and that of which all others differ from it by a multiple.
struct Solution {
  std::uint64_t least = 0;
  std::uint64_t every = 1;
  bool some = true;
};

// Nothing where the numbers get too large.
std::optional<Solution> solve(std::span<const Congruence> all) {
  Solution found;
  for (const Congruence& one : all) {
    const std::uint64_t shared = std::gcd(found.every, one.divisor);
    if (found.every / shared > kLargestDivisor / one.divisor) return std::nullopt;
    // Steps of `every` go through all that is possible modulo the divisor.
    const std::uint64_t most = one.divisor / shared;
    if (most > kLargestDivisor) return std::nullopt;
    const std::uint64_t at = (found.least + one.remainder) % one.divisor;
    if (at % shared != 0) {
      found.some = false;
      return found;
    }
    // (at + k * every) % divisor == 0: k = -(at/shared) * (every/shared)^-1 modulo most.
    std::int64_t inverse = 0;
    std::int64_t next = 1;
    auto low = static_cast<std::int64_t>(most);
    auto high = static_cast<std::int64_t>(found.every / shared % most);
    while (high != 0) {
      const std::int64_t times = low / high;
      inverse = std::exchange(next, inverse - times * next);
      low = std::exchange(high, low - times * high);
    }
    const auto modulus = static_cast<std::int64_t>(most);
    const auto factor = static_cast<std::uint64_t>((inverse % modulus + modulus) % modulus);
    const std::uint64_t steps = (most - at / shared % most) % most * factor % most;
    found.least += steps * found.every;
    found.every *= most;
  }
  return found;
}

// Whether some number of at least `low` and at most `high` more digits makes all of `with` hold and
// none of `without`; nothing when that takes long to see.
std::optional<bool> some_number(std::vector<Congruence> with, std::vector<Congruence> without,
                                std::uint32_t low, std::uint32_t high) {
  std::uint64_t power = 1;  // numbers are less
  bool unsure = false;
  for (std::uint32_t digits = 0;; ++digits) {
    const std::optional<Solution> solution = solve(with);
    if (!solution) return std::nullopt;
    if (digits >= low && solution->some) {
      std::uint64_t more = solution->least;
      std::uint64_t tried = 0;
      for (; more < power && tried < kTriedMultiples; more += solution->every, ++tried) {
        if (std::ranges::none_of(without, [&](const Congruence& c) { return c.holds(more); }))
          return true;
      }
      unsure = unsure || more < power;
    }
    if (digits == high) break;
    if (digits >= low && power >= kLargestDivisor) {
      unsure = true;  // there are more digits, and nothing new to be found by few of them
      break;
    }
    for (Congruence& c : with) c.shift();
    for (Congruence& c : without) c.shift();
    power = std::min(power * 10, kLargestDivisor * 100);
  }
  if (unsure) return std::nullopt;
  return false;
}

}  // namespace

struct TermStore::Remainders {
  std::vector<Congruence> with;
  std::vector<Congruence> without;
  bool whole = false;                 // one of `with` asks for a whole number
  std::optional<std::uint32_t> left;  // places after the point that they all wait for
};

Term TermStore::multiples(std::uint32_t divisor, std::uint32_t places) {
  return residue(divisor, 0, places << 16);
}

Term TermStore::residue(std::uint32_t divisor, std::uint32_t remainder, std::uint32_t places) {
  const std::uint32_t after = places & 0xFFFF;
  const std::uint32_t missing = (places >> 16) - (after == kBeforePoint ? 0 : after - 1);
  const std::uint64_t at_end = shifted(remainder, missing, divisor);
  if (after != kBeforePoint) {
    const std::uint64_t lacking = at_end == 0 ? 0 : divisor - at_end;
    if (lacking >= power_up_to(missing, divisor)) return kNothing;
    if (missing == 0) return repeat(byte('0'), 0, kUnbounded);
  }
  const auto flags = static_cast<std::uint8_t>(kEndless | (at_end == 0 ? kNullable : 0));
  return intern(Kind::Residue, flags, divisor, remainder, places);
}

Row TermStore::residue_row(Term t) {
  const Node n = nodes_[t];
  const bool before = (n.c & 0xFFFF) == kBeforePoint;
  ByteSet live;
  for (unsigned b = '0'; b <= '9'; ++b) live.add(b);
  if (before) live.add('.');
  return sparse_row(live, [&](unsigned b) {
    if (b == '.') return residue(n.a, n.b, n.c + 1);
    const std::uint64_t next = (std::uint64_t{n.b} * 10 + (b - '0')) % n.a;
    return residue(n.a, static_cast<std::uint32_t>(next), before ? n.c : n.c + 1);
  });
}

// Whether remainders can be completed within a shape, where arithmetic knows: when the shape is a
// number of digits, and then nothing that changes the value. A search would try the digits, a
// million paths for a divisor of a million.
TermStore::Ending TermStore::residue_ending(Term t) {
  if (nodes_[t].kind != Kind::Intersect) return Ending::Unknown;
  const Term any = any_text();  // of a complement: nothing to ask of numbers
  Remainders remainders;
  Term shape = kNone;
  // False where it is not one of those before it.
  const auto add = [&](const Node& residue, bool without) {
    const std::uint32_t places = residue.c >> 16;
    const std::uint32_t after = residue.c & 0xFFFF;
    std::optional<std::uint32_t> left;
    if (after != kBeforePoint) left = places - (after - 1);
    const bool first = remainders.with.empty() && remainders.without.empty();
    if (!first && left != remainders.left) return false;
    remainders.left = left;
    (without ? remainders.without : remainders.with)
        .push_back(left ? Congruence{residue.a, residue.b} : Congruence::of(residue));
    if (!without) remainders.whole = remainders.whole || places == 0;
    return true;
  };
  const auto is_residue = [&](Term u) { return nodes_[u].kind == Kind::Residue; };
  for (const Term operand : operands(t)) {
    const Node& n = nodes_[operand];
    const Node& inner = n.kind == Kind::Complement ? nodes_[n.a] : n;
    const bool none_of = n.kind == Kind::Complement && inner.kind == Kind::Union &&
                         std::ranges::all_of(operands(n.a), is_residue);
    if (none_of) {
      for (const Term each : operands(n.a)) {
        if (!add(nodes_[each], true)) return Ending::Unknown;
      }
    } else if (inner.kind == Kind::Residue) {
      if (!add(inner, n.kind == Kind::Complement)) return Ending::Unknown;
    } else if (shape == kNone || shape == any) {
      shape = operand;
    } else if (operand != any) {
      return Ending::Unknown;
    }
  }
  if (shape == kNone || (remainders.with.empty() && remainders.without.empty()))
    return Ending::Unknown;
  if (nodes_[shape].kind != Kind::Union) return ending_in(remainders, shape);
  Ending result = Ending::None;
  for (const Term branch : std::vector<Term>(operands(shape).begin(), operands(shape).end())) {
    const Ending ending = ending_in(remainders, branch);
    if (ending == Ending::Some) return ending;
    if (ending == Ending::Unknown) result = ending;
  }
  return result;
}

TermStore::Ending TermStore::ending_in(const Remainders& remainders, Term shape) {
  const Node n = nodes_[shape];
  const Node head = n.kind == Kind::Concat ? nodes_[n.a] : n;
  const Term tail = n.kind == Kind::Concat ? n.b : kEmpty;
  const Term digit = bytes(ByteSet::range('0', '9'));
  const Term last = bytes(ByteSet::range('1', '9'));
  std::vector<Congruence> without = remainders.without;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  bool exact = tail == kEmpty;
  if (head.kind == Kind::Repeat && head.a == digit) {
    low = head.b;
    high = head.c;
  } else if (n.kind == Kind::Concat ? n.a == digit : shape == digit) {
    low = high = 1;
  } else if (shape != kEmpty && shape != last) {
    return Ending::Unknown;
  }
  if (shape == last || tail == last) {  // no multiple of 10
    if (high == kUnbounded) return Ending::Unknown;
    ++low;
    ++high;
    without.push_back({10, 0});
    exact = true;
  } else if (!nullable(tail)) {
    return Ending::Unknown;
  }
  if (remainders.left && (!exact || low != high || low != *remainders.left)) return Ending::Unknown;
  const std::optional<bool> ends = some_number(remainders.with, std::move(without), low, high);
  if (!ends) return Ending::Unknown;
  if (*ends) return Ending::Some;
  const bool same_value = exact || (remainders.whole && only_point(tail));
  return same_value ? Ending::None : Ending::Unknown;
}

// Whether all texts of a term but the empty one begin with a point.
bool TermStore::only_point(Term t) {
  const Row row = raw_row(t);
  const ByteSet& live = class_map(row).live;
  return live.size() == 1 && live.has('.');
}

}  // namespace grammaton
