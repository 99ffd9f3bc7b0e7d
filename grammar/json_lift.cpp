// json(x): every JSON spelling of the texts of x (RFC 8259 section 7), lifted lazily.
//
// A lifted term is (x, phase). The phase says where in a spelling the text stands; x is the
// residual after the bytes of the decoded text that are settled so far:
//   stage 0      between characters; a raw byte advances x by itself
//   stage 1      after `\`
//   stage 2 - 5  after `\u` and 0 - 3 hex digits; value = the digits
//   stage 6, 7   after a high surrogate, expecting `\`, then `u`; value = bits 10 and 11 of the
//                code point; x is past the first two of its four UTF-8 bytes
//   stage 8 - 11 in the low surrogate's digits; value as before, then what of it is still open
// Raw control characters, quotes, and surrogates that pair with nothing have no spelling. Only
// phases that can be completed are made, so a lifted term is never a dead end. Spelling a literal
// out as a term costs about six terms a character; this costs only the states that are visited.
#include <algorithm>

#include "grammar/json_escapes.hpp"
#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t stage_of(std::uint32_t phase) { return phase >> 16; }
constexpr std::uint32_t value_of(std::uint32_t phase) { return phase & 0xFFFF; }
constexpr std::uint32_t phase_of(std::uint32_t stage, std::uint32_t value) {
  return (stage << 16) | value;
}

// The value of a hexadecimal digit, or 16.
constexpr unsigned hex_value(unsigned byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return 16;
}

// Bytes that only stand inside a character.
bool continues_character(const ByteSet& set) {
  return (set.words[0] | set.words[1] | set.words[3]) == 0;
}

}  // namespace

Term TermStore::json(Term x, std::uint32_t phase, bool restricted) {
  if (x == kNothing) return kNothing;
  if (!restricted && stage_of(phase) >= 1 && stage_of(phase) <= 5) {
    if (json_like_any(x, phase)) {  // the residual that any string has here, so that they meet
      Term t = step(repeat(json_char(restricted), 0, kUnbounded), '\\');
      if (stage_of(phase) >= 2) t = step(t, 'u');
      for (std::uint32_t digits = stage_of(phase) - 2; stage_of(phase) > 2 && digits > 0;
           --digits) {
        t = step(t, static_cast<unsigned char>(
                        "0123456789abcdef"[(value_of(phase) >> (4 * (digits - 1))) & 15]));
      }
      return t;
    }
  }
  if (phase == 0) {
    // Homomorphic over whole characters, so that strings of any content are one shared term and
    // bounded ones are counts of it. Inside a raw character there is one way to go on: its next
    // byte.
    std::vector<Term> heads;
    for (;;) {
      if (x == kEmpty) return concat(heads);
      const Node n = nodes_[x];
      const Term head = n.kind == Kind::Concat ? n.a : x;
      const Node h = nodes_[head];
      if (head == any_char()) {
        heads.push_back(json_char(restricted));
      } else if (h.kind == Kind::Repeat && h.a == any_char()) {
        heads.push_back(repeat(json_char(restricted), h.b, h.c));
      } else if (h.kind == Kind::Bytes && !restricted && continues_character(sets_[h.a])) {
        heads.push_back(head);
      } else {
        break;
      }
      x = n.kind == Kind::Concat ? n.b : kEmpty;
    }
    if (!heads.empty()) {
      heads.push_back(json(x, 0, restricted));
      return concat(heads);
    }
  }
  const Node& n = nodes_[x];
  auto flags = static_cast<std::uint8_t>(n.flags & (kMaybeEmpty | kEndless));
  if (restricted) flags |= kMaybeEmpty;
  if (phase == 0) flags |= n.flags & kNullable;
  if (phase == 0 && !restricted && n.kind == Kind::Intersect && all_but_few(x) == any_text()) {
    flags |= kStepwise;
  }
  if (has(x, kHasCall)) throw GrammarFault("json(...) applies to regular grammars only");
  return intern(Kind::Json, flags, x, phase, restricted ? 1 : 0);
}

std::unique_ptr<TermStore> TermStore::with_json_strings(const Limits& limits) {
  static const TermStore kept = [] {
    TermStore store{Limits{}};
    std::vector<Term> queue{store.concat(store.json(store.any_text()), store.byte('"'))};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Row row = store.row(queue[i]);
      for (unsigned c = 1; c < row.classes; ++c) {
        const Term next = store.target(row, c);
        if (std::ranges::find(queue, next) == queue.end()) queue.push_back(next);
      }
    }
    return store;
  }();
  return kept.copy(limits);
}

Term TermStore::json_raw(Term x, Term rest) {
  if (x == kNothing || rest == kNothing) return kNothing;
  if (rest == kEmpty) return json(x, 0, true);
  return intern(
      Kind::JsonRaw,
      static_cast<std::uint8_t>(kMaybeEmpty | kEndless | (nodes_[rest].flags & kHasNoSplit)), x,
      rest, 0);
}

Term TermStore::json_char(bool restricted) {
  Term& made = json_char_[restricted ? 1 : 0];
  if (made != kNone) return made;
  auto one_of = [&](std::initializer_list<CodeRange> ranges) {
    return chars(CodeRanges(ranges), restricted);
  };
  const Term backslash = one_of({{'\\', '\\'}});
  const Term u = one_of({{'u', 'u'}});
  const Term hex = one_of({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  const Term d = one_of({{'D', 'D'}, {'d', 'd'}});
  const Term plain =
      join({concat(one_of({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}),
                   repeat(hex, 3, 3)),
            concat(d, concat(one_of({{'0', '7'}}), repeat(hex, 2, 2)))});
  const Term high = concat(one_of({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), repeat(hex, 2, 2));
  const Term low = concat(one_of({{'C', 'F'}, {'c', 'f'}}), repeat(hex, 2, 2));
  const Term pair[] = {d, high, backslash, u, d, low};
  CodeRanges letters;
  for (const JsonEscape& e : kJsonEscapes) {
    const auto c = static_cast<std::uint32_t>(e.letter);
    letters.push_back({c, c});
  }
  made = join({one_of({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}),
               concat(backslash,
                      join({chars(letters, restricted), concat(u, join({plain, concat(pair)}))}))});
  return made;
}

bool TermStore::at_character_start(Term x) {
  const ByteSet& live = maps_[row(x).map].live;
  return (live.words[0] | live.words[1] | live.words[3]) != 0;
}

// x after one code point of the basic plane, or above.
Term TermStore::json_after(Term x, std::uint32_t code) {
  if (code < 0x80) return step(x, code);
  if (code < 0x800) {
    x = step(x, 0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      x = step(x, 0xE0 | (code >> 12));
    } else {
      x = step(x, 0xF0 | (code >> 18));
      x = step(x, 0x80 | ((code >> 12) & 0x3F));
    }
    x = step(x, 0x80 | ((code >> 6) & 0x3F));
  }
  return step(x, 0x80 | (code & 0x3F));
}

// Whether x and any text have the same residuals after every character that the digits leave open.
bool TermStore::json_like_any(Term x, std::uint32_t phase) {
  const Term any = any_text();
  if (x == any) return true;
  const std::uint32_t stage = stage_of(phase);
  if (stage < 3) return false;
  const std::uint32_t shift = 4 * (6 - stage);
  const std::uint32_t low = value_of(phase) << shift;
  const std::uint32_t high = low | ((1u << shift) - 1);
  const auto same = [&](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t lead = from; lead <= to; ++lead) {
      if (step(x, lead) != step(any, lead)) return false;
    }
    return true;
  };
  if (low < 0x80 && !same(low, std::min(high, 0x7Fu))) return false;
  if (low < 0x800 && high >= 0x80 &&
      !same(0xC0 | (std::max(low, 0x80u) >> 6), 0xC0 | (std::min(high, 0x7FFu) >> 6))) {
    return false;
  }
  if (high >= 0x800 && !same(0xE0 | (std::max(low, 0x800u) >> 12), 0xE0 | (high >> 12)))
    return false;
  return high < 0xD800 || low > 0xDBFF || same(0xF0, 0xF4);
}

bool TermStore::json_live(Term x, std::uint32_t phase) {
  if (x == kNothing) return false;
  const std::uint32_t value = value_of(phase);
  const std::uint32_t stage = stage_of(phase);
  // Any of these code points, or the surrogate pairs that start so.
  auto any_of = [&](std::uint32_t low, std::uint32_t high) {
    for (std::uint32_t code = low; code <= high;) {
      if (code >= 0xD800 && code <= 0xDBFF) {  // a high surrogate: 1,024 characters
        const std::uint32_t upper = (code - 0xD800) + 0x40;
        Term y = step(x, 0xF0 | (upper >> 8));
        if (y != kNothing) y = step(y, 0x80 | ((upper >> 2) & 0x3F));
        if (y != kNothing && json_live(y, phase_of(6, upper & 3))) return true;
        ++code;
      } else if (code >= 0xDC00 && code <= 0xDFFF) {
        code = 0xE000;
      } else {
        if (json_after(x, code) != kNothing) return true;
        // No text goes on with this lead byte, or with the byte after it: skip what shares them.
        const Term lead = code >= 0x800 ? step(x, 0xE0 | (code >> 12)) : x;
        if (lead == kNothing) {
          code = (code >> 12) == 0xD ? 0xD800 : (code | 0xFFF) + 1;
        } else if (code >= 0x800 && step(lead, 0x80 | ((code >> 6) & 0x3F)) == kNothing) {
          code = (code | 0x3F) + 1;
        } else if (code >= 0x80 && code < 0x800 && step(x, 0xC0 | (code >> 6)) == kNothing) {
          code = (code | 0x3F) + 1;
        } else {
          ++code;
        }
      }
    }
    return false;
  };
  switch (stage) {
    case 0:
      return true;
    case 1:
    case 2:
      return at_character_start(x);
    case 3:
    case 4:
    case 5: {
      const std::uint32_t shift = 4 * (6 - stage);
      return at_character_start(x) &&
             any_of(value << shift, (value << shift) | ((1u << shift) - 1));
    }
    case 6:
    case 7:
    case 8:
    case 9:
      for (std::uint32_t top = 0; top < 16; ++top) {
        if (step(x, 0x80 | (value << 4) | top) != kNothing) return true;
      }
      return false;
    case 10:  // value: bits 8 and 9 of the low surrogate above bits 10 and 11 of the code point
      for (std::uint32_t h = 0; h < 4; ++h) {
        if (step(x, 0x80 | ((value & 3) << 4) | ((value >> 2) << 2) | h) != kNothing) return true;
      }
      return false;
    case 11:
      for (std::uint32_t h = 0; h < 16; ++h) {
        if (step(x, 0x80 | (value << 4) | h) != kNothing) return true;
      }
      return false;
    default:
      return false;
  }
}

// Of x = any text & ~u with u finite, "any string but a few", the u.
Term TermStore::excluded_from_any(Term x) const {
  const std::span<const Term> items = list(nodes_[x].a);
  return nodes_[nodes_[items[0]].kind == Kind::Complement ? items[0] : items[1]].a;
}

// json(x) after a byte that stands for itself and that some text of u goes on with.
Term TermStore::json_after_byte(Term u, unsigned byte) {
  return json(intersect({step(any_text(), byte), raw_complement(step(u, byte))}));
}

// One residual of a kStepwise term, without its row: the row of a key beside fifteen declared ones
// leads to some fifteen residuals of four terms each, and a text needs one of them.
Term TermStore::step_alone(Term t, unsigned byte) {
  const std::uint64_t key = (std::uint64_t{t} << 8) | byte;
  if (const auto found = steps_.find(key); found != steps_.end()) return found->second;
  const Node n = nodes_[t];
  Term result = kNothing;
  if (n.kind == Kind::Without) {
    result = without(step(n.a, byte), step(n.b, byte));
    if (is_empty(result)) result = kNothing;
  } else if (n.kind == Kind::Concat) {
    result = concat(step(n.a, byte), n.b);
    if (nullable(n.a)) result = join({result, step(n.b, byte)});
  } else if (byte == '\\') {
    fill_row(t);
    return step(t, byte);
  } else {
    const Term u = excluded_from_any(n.a);
    const Term unlike = step(repeat(json_char(false), 0, kUnbounded), byte);
    const bool goes_on = unlike != kNothing && step(u, byte) != kNothing;
    result = goes_on ? json_after_byte(u, byte) : unlike;
  }
  steps_.emplace(key, result);
  return result;
}

// The row of json(x), x being any text but a few: that of any string, changed where one of the few
// goes on. Its own row would be made from that of x, byte by byte, for every key prefix.
Row TermStore::json_all_but_few_row(Term x) {
  const Term u = excluded_from_any(x);
  const Row any = row(repeat(json_char(false), 0, kUnbounded));
  std::array<std::uint8_t, 256> of = maps_[any.map].of;
  std::vector<Term> targets;
  for (unsigned c = 0; c < any.classes; ++c) targets.push_back(target(any, c));
  const auto change = [&](unsigned byte, Term to) {
    const auto cls = static_cast<std::size_t>(std::ranges::find(targets, to) - targets.begin());
    if (cls == targets.size()) targets.push_back(to);
    of[byte] = static_cast<std::uint8_t>(cls);
  };
  const Row excluded = row(u);
  ByteSet raw = maps_[excluded.map].live & maps_[any.map].live;
  raw.remove('\\');
  raw.each([&](unsigned b) { change(b, json_after_byte(u, b)); });
  change('\\', json(x, phase_of(1, 0), false));
  Row result;
  result.map = intern_map(of);
  result.targets = static_cast<std::uint32_t>(targets_.size());
  result.classes = static_cast<std::uint32_t>(targets.size());
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  return result;
}

Row TermStore::json_row(Term t) {
  const Node n = nodes_[t];
  const Term x = n.a;
  const bool restricted = n.c != 0;
  const std::uint32_t stage = stage_of(n.b);
  const std::uint32_t value = value_of(n.b);
  std::array<Term, 256> target{};
  ByteSet live;
  auto spelled = [this, restricted](unsigned byte) {  // ASCII that a restricted store may use
    if (!restricted) return true;
    for (const CodeRange& r : whole_) {
      if (r.low <= byte && byte <= r.high) return true;
    }
    return false;
  };
  auto put = [&](unsigned byte, Term y) {
    if (y == kNothing) return;
    target[byte] = y;
    live.add(byte);
  };
  auto go = [&](unsigned byte, Term y, std::uint32_t phase) {
    if (y != kNothing && spelled(byte) && json_live(y, phase))
      put(byte, json(y, phase, restricted));
  };
  if (stage == 0 && !restricted && nodes_[x].kind == Kind::Intersect &&
      all_but_few(x) == any_text()) {
    return json_all_but_few_row(x);
  }
  if (stage == 0) {
    const Row inner = row(x);
    std::vector<Term> lifted(inner.classes, kNone);
    Term rest_of_char = kNothing;
    if (restricted) {
      rest_of_char = chars({{0x80, 0x10FFFF}}, true);
    }
    const ClassMap& map = maps_[inner.map];
    const std::array<std::uint8_t, 256> of = map.of;
    ByteSet raw = map.live & ByteSet::range(0x20, 0xFF);
    raw.remove('"');
    raw.remove('\\');
    raw.each([&](unsigned b) {
      const unsigned cls = of[b];
      if (restricted && b >= 0x80) {
        put(b, json_raw(this->target(inner, cls),
                        rest_of_char == kNothing ? kNothing : step(rest_of_char, b)));
      } else if (spelled(b)) {
        if (lifted[cls] == kNone) lifted[cls] = json(this->target(inner, cls), 0, restricted);
        put(b, lifted[cls]);
      }
    });
    go('\\', x, phase_of(1, 0));
  } else if (stage == 1) {
    for (const JsonEscape& e : kJsonEscapes) {
      const Term y = step(x, static_cast<unsigned char>(e.meaning));
      if (y != kNothing) go(static_cast<unsigned char>(e.letter), y, 0);
    }
    go('u', x, phase_of(2, 0));
  } else if (stage == 6) {
    go('\\', x, phase_of(7, value));
  } else if (stage == 7) {
    go('u', x, phase_of(8, value));
  } else {
    for (const char digit : std::string_view("0123456789ABCDEFabcdef")) {
      const auto b = static_cast<unsigned char>(digit);
      const unsigned h = hex_value(b);
      if (stage < 5) {
        go(b, x, phase_of(stage + 1, (value << 4) | h));
      } else if (stage == 5) {
        const std::uint32_t code = (value << 4) | h;
        if (code >= 0xD800 && code <= 0xDBFF) {
          const std::uint32_t upper = (code - 0xD800) + 0x40;
          Term y = step(x, 0xF0 | (upper >> 8));
          if (y != kNothing) y = step(y, 0x80 | ((upper >> 2) & 0x3F));
          go(b, y, phase_of(6, upper & 3));
        } else if (code < 0xDC00 || code > 0xDFFF) {
          go(b, json_after(x, code), 0);
        }
      } else if (stage == 8) {
        if (h == 0xD) go(b, x, phase_of(9, value));
      } else if (stage == 9) {
        if (h >= 0xC) go(b, x, phase_of(10, value | ((h - 0xC) << 2)));
      } else if (stage == 10) {
        const unsigned third = 0x80 | ((value & 3) << 4) | ((value >> 2) << 2) | (h >> 2);
        go(b, step(x, third), phase_of(11, h & 3));
      } else {
        go(b, step(x, 0x80 | (value << 4) | h), 0);
      }
    }
  }
  if (live.size() <= kSparseBytes) return sparse_row(live, [&](unsigned b) { return target[b]; });
  return make_row(target);
}

Row TermStore::json_raw_row(Term t) {
  const Node n = nodes_[t];
  const Row text = row(n.a);
  const Row rest = row(n.b);
  std::array<Term, 256> target{};
  for (unsigned b = 0x80; b < 256; ++b) {
    const unsigned i = maps_[text.map].of[b];
    const unsigned j = maps_[rest.map].of[b];
    if (i != 0 && j != 0) target[b] = json_raw(this->target(text, i), this->target(rest, j));
  }
  return make_row(target);
}

}  // namespace grammaton
