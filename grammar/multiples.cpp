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

}  // namespace

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

// Whether a remainder can be completed within a shape, where arithmetic knows: when the shape is a
// number of digits, and then nothing that changes the value. A search would try the digits, a
// million paths for a divisor of a million.
TermStore::Ending TermStore::residue_ending(Term t) {
  if (nodes_[t].kind != Kind::Intersect || operands(t).size() != 2) return Ending::Unknown;
  const bool first = nodes_[operands(t)[0]].kind == Kind::Residue;
  const Node residue = nodes_[operands(t)[first ? 0 : 1]];
  const Term shape = operands(t)[first ? 1 : 0];
  if (residue.kind != Kind::Residue || (residue.c & 0xFFFF) != kBeforePoint) return Ending::Unknown;
  if (nodes_[shape].kind != Kind::Union) return ending_in(residue, shape);
  Ending result = Ending::None;
  for (const Term branch : std::vector<Term>(operands(shape).begin(), operands(shape).end())) {
    const Ending ending = ending_in(residue, branch);
    if (ending == Ending::Some) return ending;
    if (ending == Ending::Unknown) result = ending;
  }
  return result;
}

TermStore::Ending TermStore::ending_in(const Node& residue, Term shape) {
  const Node n = nodes_[shape];
  const Node head = n.kind == Kind::Concat ? nodes_[n.a] : n;
  const Term tail = n.kind == Kind::Concat ? n.b : kEmpty;
  const bool counted = head.kind == Kind::Repeat;
  if (!nullable(tail) || (shape != kEmpty && !counted)) return Ending::Unknown;
  if (counted) {
    ByteSet digits;
    for (unsigned b = '0'; b <= '9'; ++b) digits.add(b);
    if (nodes_[head.a].kind != Kind::Bytes || !(byte_set(head.a) == digits)) return Ending::Unknown;
  }
  const std::uint32_t low = counted ? head.b : 0;
  const std::uint32_t high = counted ? head.c : 0;
  // A whole number w is good when w * 10^places is a multiple: when w is one of this.
  const std::uint32_t places = residue.c >> 16;
  std::uint64_t divisor = residue.a;
  for (std::uint32_t i = 0; i < places; ++i) {
    divisor /= std::gcd<std::uint64_t>(divisor, 10);
  }
  std::uint64_t at_end = residue.b % divisor;
  std::uint64_t power = 1;
  for (std::uint32_t digits = 0;; ++digits) {
    const std::uint64_t lacking = at_end == 0 ? 0 : divisor - at_end;
    if (digits >= low && lacking < power) return Ending::Some;
    if (digits == high || (digits >= low && power >= divisor)) break;
    at_end = at_end * 10 % divisor;
    power = std::min(power * 10, divisor);
  }
  return tail == kEmpty || (places == 0 && only_point(tail)) ? Ending::None : Ending::Unknown;
}

// Whether all texts of a term but the empty one begin with a point.
bool TermStore::only_point(Term t) {
  const Row row = raw_row(t);
  const ByteSet& live = class_map(row).live;
  return live.size() == 1 && live.has('.');
}

}  // namespace grammaton
