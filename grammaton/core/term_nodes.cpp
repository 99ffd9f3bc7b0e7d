#include "grammaton/core/term_nodes.hpp"

#include <nanobind/stl/string.h>

#include <bit>

namespace grammaton {

namespace {

nb::tuple term_tuple(const std::vector<Term>& terms) {
  nb::list items;
  for (const Term t : terms) items.append(t);
  return nb::tuple(items);
}

}  // namespace

nb::object optional_count(std::uint32_t value) {
  return value == kUnbounded ? nb::object(nb::none()) : nb::object(nb::int_(value));
}

nb::object temperature_of(std::uint32_t bits) {
  return bits == kNone ? nb::object(nb::none())
                       : nb::object(nb::float_(std::bit_cast<float>(bits)));
}

nb::tuple token_set_tuple(const TokenSet& set) {
  nb::list names;
  for (const std::string& name : set.names) names.append(name);
  nb::list ids;
  for (const IdRange& range : set.ids) ids.append(nb::make_tuple(range.low, range.high));
  return nb::make_tuple(nb::tuple(names), nb::tuple(ids), set.negated);
}

nb::tuple term_node(const TermStore& store, Term t) {
  const Node& n = store.node(t);
  const auto operands = [&] {
    return term_tuple({store.operands(t).begin(), store.operands(t).end()});
  };
  switch (n.kind) {
    case Kind::Nothing:
      return nb::make_tuple("nothing");
    case Kind::Empty:
      return nb::make_tuple("empty");
    case Kind::Bytes: {
      nb::list ranges;
      const ByteSet& set = store.byte_set(t);
      for (unsigned b = 0; b < 256; ++b) {
        if (!set.has(b)) continue;
        const unsigned low = b;
        while (b < 255 && set.has(b + 1)) ++b;
        ranges.append(nb::make_tuple(low, b));
      }
      const bool ascii = (set.words[2] | set.words[3]) == 0;
      return nb::make_tuple(ascii ? "chars" : "bytes", nb::tuple(ranges));
    }
    case Kind::Chars: {
      nb::list ranges;
      for (const CodeRange& r : store.code_ranges(t)) ranges.append(nb::make_tuple(r.low, r.high));
      return nb::make_tuple("chars", nb::tuple(ranges));
    }
    case Kind::Concat: {
      std::vector<Term> items;
      Term rest = t;
      for (; store.node(rest).kind == Kind::Concat; rest = store.node(rest).b)
        items.push_back(store.node(rest).a);
      items.push_back(rest);
      return nb::make_tuple("concat", term_tuple(items));
    }
    case Kind::Union:
      return nb::make_tuple("union", operands());
    case Kind::Intersect:
      return nb::make_tuple("intersect", operands());
    case Kind::Complement:
      return nb::make_tuple("complement", n.a);
    case Kind::Repeat:
      return nb::make_tuple("repeat", n.a, n.b,
                            n.c == kUnbounded ? nb::object(nb::none()) : nb::object(nb::int_(n.c)));
    case Kind::Call:
      return nb::make_tuple("call", n.a,
                            n.b == kInherited ? nb::object(nb::none()) : nb::object(nb::int_(n.b)));
    case Kind::Json:
      if (n.b == 0) return nb::make_tuple("json", n.a);
      break;
    case Kind::Residue:
      if (n.b == 0 && (n.c & 0xFFFF) == 0) return nb::make_tuple("multiples", n.a, n.c >> 16);
      break;
    case Kind::Keys: {
      if (n.b != 0) break;
      nb::list edges;
      const std::span<const Term> pairs = store.operands(t);
      for (std::size_t i = 0; i < pairs.size(); i += 2)
        edges.append(nb::make_tuple(pairs[i], pairs[i + 1]));
      return nb::make_tuple("keys", nb::tuple(edges));
    }
    case Kind::Members: {
      nb::list texts;
      const Members members = store.members(t);
      for (std::uint32_t i = members.begin; i < members.end; ++i) {
        const std::string_view text = store.member_text(members, i);
        texts.append(nb::bytes(text.data(), text.size()));
      }
      return nb::make_tuple("members", nb::tuple(texts));
    }
    case Kind::Margin:
      return nb::make_tuple("margin", n.a, n.b, n.c != 0);
    case Kind::Token:
      return nb::tuple(nb::make_tuple("tokens") + token_set_tuple(store.token_set(n.a)));
    case Kind::Metered:
      return nb::make_tuple("metered", n.a, optional_count(n.b), temperature_of(n.c));
    case Kind::Distinct:
      return nb::make_tuple(Written{n.b} == Written::Text ? "distinct_text" : "distinct", n.a);
    case Kind::Without:
      return nb::make_tuple("without", n.a, n.b);
    case Kind::JsonRaw:
    case Kind::NoSplit:
    case Kind::KeyDigits:
      break;
    case Kind::Take:
    case Kind::Seen:
      return nb::make_tuple("empty");
  }
  return nb::make_tuple("residual");
}

}  // namespace grammaton
