// Values that must differ: the items of a `uniqueItems` array, the keys of an object.
//
// Distinct(x) is a JSON value with a text of x that no other Distinct of its *scope*, a call of a
// rule that is marked as one, has said. What was seen is a *set*: a list of values, newest first,
// interned, so that one value more is one link. Values are known by what they mean: "\u0061" is
// "a", and 1, 1.0 and 1e0 are one number.
//
// While a Distinct is being said the machine remembers its text (automata/machine.hpp), and reads
// the value at its end, which is the term Take. What may be said is x Without the texts of all
// values seen. That difference is a term of its own kind: it is stepped by single bytes, and
// becomes x again as soon as no value seen goes on like the text, so that it shares everything with
// x.
#include <algorithm>
#include <limits>

#include "grammar/json_escapes.hpp"
#include "grammar/terms.hpp"
#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

// What a value begins with as it is kept, which tells its kind.
constexpr char kString = 's';
constexpr char kNumber = 'n';
constexpr char kOther = 'x';  // any other text

constexpr std::int64_t kMostExponent = std::numeric_limits<std::int32_t>::max();

unsigned hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a') + 10;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A kind, and the characters that a JSON string's spell, up to its closing quote.
std::string unescaped(std::string_view text, char kind) {
  std::string result(1, kind);
  const auto unit = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4 && i < text.size(); ++i)
      value = (value << 4) | hex_digit(text[i]);
    return value;
  };
  for (std::size_t i = 0; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      result += text[i];
      continue;
    }
    const char letter = text[++i];
    if (letter != 'u') {
      for (const JsonEscape& e : kJsonEscapes) {
        if (e.letter == letter) result += e.meaning;
      }
      continue;
    }
    std::uint32_t code = unit(i + 1);
    i += 4;
    if (code >= 0xD800 && code <= 0xDBFF) {
      code = 0x10000 + ((code - 0xD800) << 10) + ((unit(i + 3) - 0xDC00) & 0x3FF);
      i += 6;
    }
    append_character(code, result);
  }
  return result;
}

// A number as its digits, without zeros on either side, and the power of ten of the last one:
// "-12e3". Empty for a text that is no number.
std::string plain_number(std::string_view text) {
  std::string digits;
  std::int64_t exponent = 0;
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const std::size_t first = i;
  for (; i < text.size() && is_digit(text[i]); ++i) digits += text[i];
  if (i == first) return {};
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && is_digit(text[i]); ++i, --exponent) digits += text[i];
  }
  if (i < text.size() && (text[i] | 0x20) == 'e') {
    const bool below = ++i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    std::int64_t power = 0;
    for (; i < text.size() && is_digit(text[i]); ++i)
      power = std::min(power * 10 + (text[i] - '0'), kMostExponent);
    exponent += below ? -power : power;
  }
  if (i != text.size()) return {};
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return "0e0";
  if (negative) digits.insert(0, 1, '-');
  digits += 'e';
  digits += std::to_string(exponent);
  return digits;
}

}  // namespace

Term TermStore::distinct(Term a, Written written, bool restricted) {
  if (has(a, kHasCall)) throw GrammarFault("distinct values are of regular grammars only");
  if (written == Written::Scalar && nullable(a))
    throw GrammarFault("a distinct value may not be the empty text");
  if (a == kNothing) return kNothing;
  remembers_ = true;
  return intern(Kind::Distinct, kHasCall | kFirstCall | kEndless, a,
                static_cast<std::uint32_t>(written), restricted ? 1 : 0);
}

Term TermStore::take(Written written) {
  return intern(Kind::Take, kHasCall | kTaking, static_cast<std::uint32_t>(written), 0, 0);
}

Term TermStore::seen(SeenId set, std::uint32_t mark, bool unknown) {
  return intern(Kind::Seen, kNullable, set, mark, unknown ? 1 : 0);
}

Term TermStore::distinct_body(Term distinct, SeenId set) {
  const std::uint64_t key = (std::uint64_t{distinct} << 32) | set;
  if (const auto found = distinct_bodies_.find(key); found != distinct_bodies_.end())
    return found->second;
  const Node n = nodes_[distinct];
  const Written written{n.b};
  Term all = n.a;
  if (written == Written::Text) all = concat(json(n.a, n.c != 0), byte('"'));
  const Term body = without(all, seen_texts(set, written));
  const Term result = is_empty(body) ? kNothing : body;
  distinct_bodies_.emplace(key, result);
  return result;
}

SeenId TermStore::remember(SeenId set, std::string_view text, Written written) {
  std::string value;
  if (written == Written::Text) {
    value = unescaped(text, kString);
  } else if (!text.empty() && text[0] == '"') {
    value = unescaped(text.substr(1), kString);
  } else {
    value = plain_number(text);
    const bool number = !value.empty();
    if (!number) value = text;
    value.insert(0, 1, number ? kNumber : kOther);
  }
  const std::uint32_t id = intern_value(std::move(value));
  for (SeenId at = set; at != 0; at = seen_[at].from) {
    if (seen_[at].value == id) return set;
  }
  const std::uint64_t h = mix64(set + 1, id);
  const SeenId known =
      seen_lookup_.find(h, [&](SeenId i) { return seen_[i].from == set && seen_[i].value == id; });
  if (known != kNone) return known;
  if (seen_.size() >= limits_.max_terms) {
    throw LimitFault("more than max_terms = " + std::to_string(limits_.max_terms) +
                     " sets of values were seen");
  }
  const auto made = static_cast<SeenId>(seen_.size());
  seen_.push_back({set, id, {kNone, kNone}});
  seen_lookup_.insert(h, made);
  return made;
}

std::uint32_t TermStore::intern_value(std::string value) {
  std::uint64_t h = process_key();
  for (const char c : value) h = mix64(h + 1, static_cast<unsigned char>(c));
  const std::uint32_t known =
      value_lookup_.find(h, [&](std::uint32_t i) { return values_[i] == value; });
  if (known != kNone) return known;
  const auto id = static_cast<std::uint32_t>(values_.size());
  values_.push_back(std::move(value));
  value_lookup_.insert(h, id);
  return id;
}

// The texts of a value, as a Distinct writes it: all of them that a number's language here has
// (grammar/json_schema/numbers.py), and perhaps more. kNothing where it isn't written so.
Term TermStore::value_texts(const std::string& value, Written written) {
  const std::string_view rest = std::string_view(value).substr(1);
  if (value[0] == kString) {
    const Term text = concat(json(literal(rest)), byte('"'));
    return written == Written::Text ? text : concat(byte('"'), text);
  }
  if (written == Written::Text) return kNothing;
  if (value[0] == kOther) return literal(rest);
  const Term zeros = repeat(byte('0'), 0, kUnbounded);
  const Term no_fraction = join({kEmpty, concat(byte('.'), concat(byte('0'), zeros))});
  const bool negative = rest[0] == '-';
  const Term sign = negative ? byte('-') : kEmpty;
  const std::size_t e = rest.find('e');
  const std::string digits(rest.substr(negative ? 1 : 0, e - (negative ? 1 : 0)));
  const std::int64_t exponent = std::stoll(std::string(rest.substr(e + 1)));
  if (digits == "0") return concat(join({kEmpty, byte('-')}), concat(byte('0'), no_fraction));
  std::vector<Term> ways;
  // Plain, unless it had more zeros than any text here is long.
  constexpr std::int64_t kMostZeros = 100'000;
  const auto size = static_cast<std::int64_t>(digits.size());
  if (exponent >= 0 && exponent <= kMostZeros) {
    const std::string whole = digits + std::string(static_cast<std::size_t>(exponent), '0');
    ways.push_back(concat(literal(whole), no_fraction));
  } else if (exponent < 0 && exponent >= -kMostZeros) {
    const std::int64_t before = size + exponent;  // digits before the point
    std::string plain = digits;
    if (before <= 0) plain.insert(0, static_cast<std::size_t>(1 - before), '0');
    plain.insert(static_cast<std::size_t>(std::max<std::int64_t>(before, 1)), 1, '.');
    ways.push_back(concat(literal(plain), zeros));
  }
  // d.ddde+NN, whatever zeros there are.
  const std::int64_t power = exponent + size - 1;
  Term mantissa = no_fraction;
  if (size > 1) {
    std::string fraction = digits;
    fraction[0] = '.';
    mantissa = concat(literal(fraction), zeros);
  }
  mantissa = concat(literal(digits.substr(0, 1)), mantissa);
  const Term scientific =
      concat(join({byte('e'), byte('E')}),
             concat(power < 0 ? byte('-') : join({kEmpty, byte('+')}),
                    concat(zeros, literal(std::to_string(power < 0 ? -power : power)))));
  ways.push_back(concat(mantissa, scientific));
  return concat(sign, join(std::move(ways)));
}

Term TermStore::seen_texts(SeenId set, Written written) {
  const auto kind = static_cast<std::size_t>(written);
  std::vector<SeenId> open;
  SeenId at = set;
  for (; at != 0 && seen_[at].texts[kind] == kNone; at = seen_[at].from) open.push_back(at);
  Term texts = at == 0 ? kNothing : seen_[at].texts[kind];
  for (std::size_t i = open.size(); i-- > 0;) {
    const std::string value = values_[seen_[open[i]].value];
    texts = join({texts, value_texts(value, written)});
    seen_[open[i]].texts[kind] = texts;
  }
  return texts;
}

Term TermStore::without(Term a, Term b) {
  if (a == kNothing || b == kNothing) return a;
  if (a == b) return kNothing;
  auto flags = static_cast<std::uint8_t>(nodes_[a].flags & (kEndless | kHasNoSplit));
  flags |= kMaybeEmpty | kStepwise;
  if (nullable(a) && !nullable(b)) flags |= kNullable;
  return intern(Kind::Without, flags, a, b, 0);
}

Row TermStore::without_row(Term t) {
  const Node n = nodes_[t];
  const Row all = row(n.a);
  const Row out = raw_row(n.b);
  const ClassMap all_map = maps_[all.map];
  const ClassMap out_map = maps_[out.map];
  std::array<Term, 256> target{};
  all_map.live.each([&](unsigned b) { target[b] = this->target(all, all_map.of[b]); });
  (all_map.live & out_map.live).each([&](unsigned b) {
    target[b] = without(target[b], this->target(out, out_map.of[b]));
  });
  return make_row(target);
}

bool TermStore::goes_beyond(Term a, Term b) {
  if (nodes_[a].kind != Kind::Without && has(a, kStepwise)) return true;
  const ByteSet all = maps_[row(a).map].live;
  const ByteSet out = maps_[raw_row(b).map].live;
  return !((all & out) == all);
}

}  // namespace grammaton
