#include "grammar/whole_characters.hpp"

namespace grammaton {

WholeCharacters::State WholeCharacters::after(State state, unsigned byte) {
  const auto within = [byte](unsigned low, unsigned high) { return low <= byte && byte <= high; };
  switch (state) {
    case kStart:
      if (byte < 0x80) return kStart;
      if (within(0xC2, 0xDF)) return kOne;
      if (byte == 0xE0) return kE0;
      if (byte == 0xED) return kED;
      if (within(0xE1, 0xEF)) return kTwo;
      if (byte == 0xF0) return kF0;
      if (byte == 0xF4) return kF4;
      return within(0xF1, 0xF3) ? kThree : kBroken;
    case kOne:
      return within(0x80, 0xBF) ? kStart : kBroken;
    case kTwo:
      return within(0x80, 0xBF) ? kOne : kBroken;
    case kThree:
      return within(0x80, 0xBF) ? kTwo : kBroken;
    case kE0:
      return within(0xA0, 0xBF) ? kOne : kBroken;
    case kED:
      return within(0x80, 0x9F) ? kOne : kBroken;
    case kF0:
      return within(0x90, 0xBF) ? kTwo : kBroken;
    case kF4:
      return within(0x80, 0x8F) ? kTwo : kBroken;
    default:
      return kBroken;
  }
}

bool WholeCharacters::is_text(std::string_view bytes) {
  State state = kStart;
  for (const char c : bytes) state = after(state, static_cast<unsigned char>(c));
  return state == kStart;
}

WholeCharacters::Reach WholeCharacters::then(const Reach& a, const Reach& b) {
  Reach result{};
  for (unsigned from = 0; from < kStates; ++from) {
    for (unsigned over = 0; over < kStates; ++over) {
      if ((a[from] & bit(over)) != 0) result[from] |= b[over];
    }
  }
  return result;
}

// From between characters to between characters; elsewhere it would break one.
WholeCharacters::Reach WholeCharacters::whole() {
  Reach result;
  result.fill(bit(kBroken));
  result[kStart] = bit(kStart);
  return result;
}

WholeCharacters::Reach WholeCharacters::nothing_read() {
  Reach result;
  for (unsigned state = 0; state < kStates; ++state) result[state] = bit(state);
  return result;
}

WholeCharacters::Reach WholeCharacters::anywhere() {
  Reach result;
  result.fill((1U << kStates) - 1);
  return result;
}

WholeCharacters::WholeCharacters(const TermStore& store) : store_(store) {
  reaches_.reserve(store.size());
  for (Term t = 0; t < store.size(); ++t) reaches_.push_back(reach_of(t));
}

WholeCharacters::Reach WholeCharacters::repeated(const Node& n) const {
  const Reach once = reaches_[n.a];
  // Any number of rounds leads where at most as many as there are states do.
  Reach result = nothing_read();
  for (unsigned round = 0; round < kStates && round < n.c; ++round) {
    const Reach more = then(result, once);
    for (unsigned state = 0; state < kStates; ++state) result[state] |= more[state];
  }
  return result;
}

WholeCharacters::Reach WholeCharacters::reach_of(Term t) const {
  const Node& n = store_.node(t);
  switch (n.kind) {
    case Kind::Nothing:
      return Reach{};
    case Kind::Empty:
      return nothing_read();
    case Kind::Bytes: {
      Reach result{};
      store_.byte_set(t).each([&](unsigned byte) {
        for (unsigned from = 0; from < kStates; ++from)
          result[from] |= bit(after(static_cast<State>(from), byte));
      });
      return result;
    }
    case Kind::Concat:
      return then(reaches_[n.a], reaches_[n.b]);
    case Kind::Union: {
      Reach result{};
      for (const Term u : store_.operands(t)) {
        for (unsigned from = 0; from < kStates; ++from) result[from] |= reaches_[u][from];
      }
      return result;
    }
    case Kind::Intersect: {
      Reach result = anywhere();
      for (const Term u : store_.operands(t)) {
        for (unsigned from = 0; from < kStates; ++from) result[from] &= reaches_[u][from];
      }
      return result;
    }
    case Kind::Complement:
      return anywhere();
    case Kind::Repeat:
      return repeated(n);
    case Kind::Json:
    case Kind::Distinct:
      return holds(n.a) ? whole() : Reach{bit(kBroken)};
    default:
      return whole();
  }
}

}  // namespace grammaton
