// Characters as bytes.
//
// A character set becomes a trie of UTF-8 sequences: one branch a distinct remainder, so `\w` is a
// few dozen terms and not 700 alternatives. In a store restricted to a vocabulary, characters that
// the vocabulary holds only as whole tokens get NoSplit around every inner position: a walk may
// pass through, a token may not end there (docs/machine.md, "What a vocabulary spells").
#include <algorithm>

#include "grammar/terms.hpp"

namespace grammaton {

namespace {

constexpr CodeRange kSurrogates{0xD800, 0xDFFF};
constexpr std::uint32_t kLastCodePoint = 0x10FFFF;
constexpr unsigned kMostBranches = 200;  // of a literal trie, one inside another

// The part of `ranges` inside [low, high], shifted down by low.
CodeRanges slice(const CodeRanges& ranges, std::uint32_t low, std::uint32_t high) {
  CodeRanges result;
  for (const CodeRange& r : ranges) {
    const std::uint32_t a = std::max(r.low, low);
    const std::uint32_t b = std::min(r.high, high);
    if (a <= b) result.push_back({a - low, b - low});
  }
  return result;
}

}  // namespace

CodeRanges normalise_ranges(CodeRanges ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::low);
  CodeRanges result;
  auto add = [&result](std::uint32_t low, std::uint32_t high) {
    if (low > high) return;
    if (!result.empty() && low <= result.back().high + 1) {
      result.back().high = std::max(result.back().high, high);
    } else {
      result.push_back({low, high});
    }
  };
  for (const CodeRange& r : ranges) {
    const std::uint32_t high = r.high;
    if (r.low < kSurrogates.low) add(r.low, std::min(high, kSurrogates.low - 1));
    if (high > kSurrogates.high) add(std::max(r.low, kSurrogates.high + 1), high);
  }
  return result;
}

CodeRanges intersect_ranges(const CodeRanges& a, const CodeRanges& b) {
  CodeRanges result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::uint32_t low = std::max(a[i].low, b[j].low);
    const std::uint32_t high = std::min(a[i].high, b[j].high);
    if (low <= high) result.push_back({low, high});
    if (a[i].high < b[j].high) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

void TermStore::restrict_characters(CodeRanges whole, CodeRanges joined) {
  restricted_ = true;
  whole_ = normalise_ranges(std::move(whole));
  joined_ = normalise_ranges(std::move(joined));
}

Term TermStore::chars(CodeRanges ranges, bool restricted) {
  ranges = normalise_ranges(std::move(ranges));
  if (restricted) {
    CodeRanges spelled = whole_;
    spelled.insert(spelled.end(), joined_.begin(), joined_.end());
    ranges = intersect_ranges(ranges, normalise_ranges(std::move(spelled)));
  }
  if (ranges.empty()) return kNothing;
  if (ranges.back().high < 0x80) {
    ByteSet set;
    for (const CodeRange& r : ranges) {
      for (std::uint32_t c = r.low; c <= r.high; ++c) set.add(c);
    }
    return bytes(set);
  }
  std::uint64_t h = 5;
  for (const CodeRange& r : ranges) h = mix64(h + 1, (std::uint64_t{r.low} << 32) | r.high);
  std::uint32_t index =
      range_lookup_.find(h, [&](std::uint32_t i) { return ranges_[i] == ranges; });
  if (index == kNone) {
    index = static_cast<std::uint32_t>(ranges_.size());
    ranges_.push_back(std::move(ranges));
    range_lookup_.insert(h, index);
  }
  return intern(Kind::Chars, 0, index, restricted ? 1 : 0, 0);
}

Term TermStore::continuation_term(const CodeRanges& ranges, unsigned count, bool joined) {
  if (count == 0) return kEmpty;
  const Term result = block_terms(ranges, count - 1, 0x80, joined);
  return joined ? no_split(result) : result;
}

// The characters whose blocks of 64 ** `count` are told apart by one byte, `first` for the lowest.
Term TermStore::block_terms(const CodeRanges& ranges, unsigned count, unsigned first, bool joined) {
  const std::uint32_t width = std::uint32_t{1} << (6 * count);
  std::vector<std::pair<Term, ByteSet>> groups;
  const auto add = [&](Term rest, std::uint32_t low, std::uint32_t high) {
    const ByteSet set = ByteSet::range(first | low, first | high);
    const auto found = std::ranges::find(groups, rest, &std::pair<Term, ByteSet>::first);
    if (found == groups.end()) {
      groups.emplace_back(rest, set);
    } else {
      found->second = found->second | set;
    }
  };
  for (const CodeRange& r : ranges) {
    for (std::uint32_t v = r.low / width; v <= r.high / width; ++v) {
      // A range that starts inside this block shares it with an earlier range: done then.
      if (&r != &ranges.front() && (&r - 1)->high / width == v) continue;
      const bool whole = v * width >= r.low && v * width + width - 1 <= r.high;
      if (whole) {  // and so are the next ones, of which a wide class has dozens
        const std::uint32_t last = (r.high + 1) / width - 1;
        add(continuation_term({{0, width - 1}}, count, joined), v, last);
        v = last;
      } else {
        add(continuation_term(slice(ranges, v * width, v * width + width - 1), count, joined), v,
            v);
      }
    }
  }
  std::vector<Term> branches;
  for (const auto& [rest, set] : groups) branches.push_back(concat(bytes(set), rest));
  return join(std::move(branches));
}

Term TermStore::utf8_term(const CodeRanges& ranges, bool joined) {
  ByteSet ascii;
  for (const CodeRange& r : ranges) {
    for (std::uint32_t c = r.low; c <= r.high && c < 0x80; ++c) ascii.add(c);
  }
  auto part = [&ranges](std::uint32_t low, std::uint32_t high) {
    CodeRanges result = slice(ranges, low, high);
    for (CodeRange& r : result) {
      r.low += low;
      r.high += low;
    }
    return result;
  };
  return join({bytes(ascii), block_terms(part(0x80, 0x7FF), 1, 0xC0, joined),
               block_terms(part(0x800, 0xFFFF), 2, 0xE0, joined),
               block_terms(part(0x10000, kLastCodePoint), 3, 0xF0, joined)});
}

Term TermStore::expand_chars(Term t) {
  if (const auto found = expansions_.find(t); found != expansions_.end()) return found->second;
  const CodeRanges ranges = ranges_[nodes_[t].a];
  Term result;
  if (nodes_[t].b == 0) {
    result = utf8_term(ranges, false);
  } else {
    result = join({utf8_term(intersect_ranges(ranges, whole_), false),
                   utf8_term(intersect_ranges(ranges, joined_), true)});
  }
  expansions_.emplace(t, result);
  return result;
}

Term TermStore::any_char() {
  if (any_char_ == kNone) {
    any_char_ = chars({{0, kLastCodePoint}});
  }
  return any_char_;
}

Term TermStore::any_text() {
  if (any_text_ == kNone) any_text_ = repeat(any_char(), 0, kUnbounded);
  return any_text_;
}

// One ASCII character.
Term TermStore::ascii(unsigned char c) {
  Term& known = ascii_[c];
  return known != kNothing ? known : known = bytes(ByteSet::of(c));
}

Term TermStore::literal(std::string_view text) {
  std::vector<Term> items;
  items.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      items.push_back(ascii(lead));
      ++i;
      continue;
    }
    const unsigned more = lead < 0xC2 ? 4 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : lead < 0xF5 ? 3 : 4;
    bool valid = more < 4 && i + more < text.size();
    std::uint32_t code = lead & (0x3Fu >> more);
    for (unsigned k = 1; valid && k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      valid = (next & 0xC0) == 0x80;
      code = (code << 6) | (next & 0x3F);
    }
    valid = valid && !(more == 2 && code < 0x800) &&
            !(more == 3 && (code < 0x10000 || code > kLastCodePoint)) &&
            !(code >= kSurrogates.low && code <= kSurrogates.high);
    if (!valid) {
      throw GrammarFault("a literal is not valid UTF-8 (at byte " + std::to_string(i) +
                         "); grammars describe text, encode it as UTF-8");
    }
    items.push_back(chars({{code, code}}));
    i += more + 1;
  }
  return concat(items);
}

// texts are sorted and distinct and agree on their first `depth` bytes.
Term TermStore::literal_trie(std::span<const std::string> texts, std::size_t depth,
                             unsigned branches) {
  const std::string_view first = std::string_view(texts.front()).substr(depth);
  if (texts.size() == 1) return literal(first);
  if (branches == kMostBranches) {  // each text begins the next: no trie worth its recursion
    std::vector<Term> all;
    for (const std::string& text : texts)
      all.push_back(literal(std::string_view(text).substr(depth)));
    return join(std::move(all));
  }
  // Sorted, so what the first and the last share all of them share; characters stay whole.
  const std::string_view last = std::string_view(texts.back()).substr(depth);
  std::size_t common = 0;
  while (common < first.size() && common < last.size() && first[common] == last[common]) ++common;
  while (common > 0 && common < last.size() &&
         (static_cast<unsigned char>(last[common]) & 0xC0) == 0x80)
    --common;
  const std::size_t fork = depth + common;
  std::vector<Term> ways;
  std::size_t i = 0;
  if (texts[0].size() == fork) {
    ways.push_back(kEmpty);
    i = 1;
  }
  while (i < texts.size()) {
    const auto lead = static_cast<unsigned char>(texts[i][fork]);
    const std::size_t width = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const std::string_view head = std::string_view(texts[i]).substr(fork, width);
    if (head.size() < width) {
      throw GrammarFault("a literal is not valid UTF-8; it ends inside a character");
    }
    std::size_t j = i + 1;
    while (j < texts.size() && std::string_view(texts[j]).substr(fork, width) == head) ++j;
    ways.push_back(
        concat(literal(head), literal_trie(texts.subspan(i, j - i), fork + width, branches + 1)));
    i = j;
  }
  return concat(literal(first.substr(0, common)), join(std::move(ways)));
}

Term TermStore::literals(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.empty()) return kNothing;
  return literal_trie(texts, 0, 0);
}

}  // namespace grammaton
