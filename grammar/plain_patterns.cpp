#include "grammar/plain_patterns.hpp"

#include <charconv>
#include <string>
#include <vector>

#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr unsigned kMostNesting = 50;
constexpr std::size_t kMostDigits = 9;  // of a count
constexpr std::uint32_t kLast = 0x10FFFF;

const CodeRanges kDigits{{'0', '9'}};
const CodeRanges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// WhiteSpace and LineTerminator of ECMA-262, sections 12.2 and 12.3.
const CodeRanges kSpace{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                        {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CodeRanges kLineTerminators{{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Every character outside of some sorted ranges.
CodeRanges inverted(const CodeRanges& ranges) {
  CodeRanges result;
  std::uint32_t start = 0;
  for (const CodeRange& r : ranges) {
    if (start < r.low) result.push_back({start, r.low - 1});
    start = r.high + 1;
  }
  if (start <= kLast) result.push_back({start, kLast});
  return result;
}

// What a part of a branch says.
struct Part {
  Term term = kEmpty;
  std::string text;  // the one text it stands for, if `is_text`
  bool is_text = false;
  bool is_character = false;  // and that is one character, not a group of them
  bool is_choice = false;
};

class Reader {
 public:
  Reader(TermStore& store, std::string_view text) : store_(store), text_(text) {}

  std::optional<Term> pattern();

 private:
  bool more() const { return at_ < text_.size(); }
  bool next_is(char c) const { return more() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  struct Branch {
    std::vector<Part> parts;
    bool starts = false;  // at the start of the text
    bool ends = false;
  };
  bool branch(Branch& result, bool outermost);
  bool group(Part& part);
  bool quantifier(Part& part);
  bool count(std::uint32_t& low, std::uint32_t& high);
  bool number(std::uint32_t& value);
  bool atom(Part& part);
  bool class_of_characters(CodeRanges& result);
  bool class_item(CodeRanges& result, bool& single);
  // A character, or a class by its letter.
  bool escape(CodeRanges& result, bool& single);
  bool hexadecimal(std::string_view digits, CodeRanges& result);
  Part as_part(CodeRanges ranges);
  Part as_part(std::vector<Branch> branches);
  Term sequence(const std::vector<Part>& parts);

  TermStore& store_;
  std::string_view text_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
};

std::optional<Term> Reader::pattern() {
  const Term any = store_.any_text();
  std::vector<Branch> branches;
  do {
    if (!branch(branches.emplace_back(), true)) return std::nullopt;
  } while (take('|'));
  if (more()) return std::nullopt;
  // The branches of a pattern that is one group are the pattern's.
  const Branch& first = branches.front();
  if (branches.size() == 1 && first.parts.size() == 1 && first.parts[0].is_choice &&
      !first.starts && !first.ends) {
    return std::nullopt;
  }
  std::vector<Term> ways;
  for (const Branch& each : branches) {
    Term way = sequence(each.parts);
    if (!each.ends) way = store_.concat(way, any);
    if (!each.starts) way = store_.concat(any, way);
    ways.push_back(way);
  }
  return store_.join(std::move(ways));
}

// Up to a bar, the end of a group or that of the pattern.
bool Reader::branch(Branch& result, bool outermost) {
  while (more() && text_[at_] != '|' && text_[at_] != ')') {
    if (text_[at_] == '^' || text_[at_] == '$') {
      const bool start = text_[at_++] == '^';
      if (!outermost || (start && (!result.parts.empty() || result.ends))) return false;
      (start ? result.starts : result.ends) = true;
      continue;
    }
    if (result.ends) return false;
    Part part;
    if (!atom(part) || !quantifier(part)) return false;
    result.parts.push_back(std::move(part));
  }
  return true;
}

bool Reader::group(Part& part) {
  if (depth_ == kMostNesting) return false;
  if (take('?') && !take(':')) return false;
  std::vector<Branch> branches;
  ++depth_;
  do {
    if (!branch(branches.emplace_back(), false)) return false;
  } while (take('|'));
  --depth_;
  part = as_part(std::move(branches));
  return take(')');
}

bool Reader::atom(Part& part) {
  const char c = text_[at_++];
  CodeRanges ranges;
  bool single = false;
  switch (c) {
    case '(':
      return group(part);
    case '[':
      if (!class_of_characters(ranges)) return false;
      break;
    case '.':
      ranges = inverted(kLineTerminators);
      break;
    case '\\':
      if (!escape(ranges, single)) return false;
      break;
    case '*':
    case '+':
    case '?':
    case '{':
      return false;  // nothing to repeat, or no count
    default: {
      const auto code = static_cast<unsigned char>(c);
      if (code >= 0x80) return false;
      ranges = {{code, code}};
    }
  }
  part = as_part(std::move(ranges));
  return true;
}

bool Reader::quantifier(Part& part) {
  std::uint32_t low = 0;
  std::uint32_t high = kUnbounded;
  if (take('+')) {
    low = 1;
  } else if (take('?')) {
    high = 1;
  } else if (take('{')) {
    if (!count(low, high)) return false;
  } else if (!take('*')) {
    return true;
  }
  take('?');  // as few as possible: the same texts
  if (more() && std::string_view("*+?{").find(text_[at_]) != std::string_view::npos) return false;
  part = Part{store_.repeat(part.term, low, high), {}, false, false, false};
  return true;
}

// What follows the brace.
bool Reader::count(std::uint32_t& low, std::uint32_t& high) {
  if (!number(low)) return false;
  high = low;
  if (take(',')) {
    high = kUnbounded;
    if (!next_is('}') && !number(high)) return false;
  }
  return take('}') && low <= high;
}

bool Reader::number(std::uint32_t& value) {
  const std::size_t start = at_;
  while (more() && is_digit(text_[at_])) ++at_;
  if (at_ == start || at_ - start > kMostDigits) return false;
  std::from_chars(text_.data() + start, text_.data() + at_, value);
  return true;
}

// What follows the bracket.
bool Reader::class_of_characters(CodeRanges& result) {
  const bool negated = take('^');
  if (next_is(']')) return false;  // no character, or any
  while (!take(']')) {
    bool is_low = false;
    if (!class_item(result, is_low)) return false;
    if (!next_is('-') || text_.substr(at_, 2) == "-]") continue;
    ++at_;
    const std::uint32_t low = result.back().low;
    bool is_high = false;
    if (!class_item(result, is_high)) return false;
    if (is_low && is_high) {
      const std::uint32_t high = result.back().high;
      if (low > high) return false;
      result.push_back({low, high});
    } else {
      result.push_back({'-', '-'});
    }
  }
  result = normalise_ranges(std::move(result));
  if (negated) result = inverted(result);
  return true;
}

// Adds a character, which is then the last, or a class.
bool Reader::class_item(CodeRanges& result, bool& single) {
  if (!more()) return false;
  const auto c = static_cast<unsigned char>(text_[at_++]);
  if (c >= 0x80) return false;
  if (c != '\\') {
    single = true;
    result.push_back({c, c});
    return true;
  }
  CodeRanges escaped;
  if (!escape(escaped, single)) return false;
  result.insert(result.end(), escaped.begin(), escaped.end());
  return true;
}

// What follows the backslash.
bool Reader::escape(CodeRanges& result, bool& single) {
  if (!more()) return false;
  const char c = text_[at_++];
  switch (c) {
    case 'd':
    case 'D':
      result = c == 'd' ? kDigits : inverted(kDigits);
      return true;
    case 'w':
    case 'W':
      result = c == 'w' ? kWord : inverted(kWord);
      return true;
    case 's':
    case 'S':
      result = c == 's' ? kSpace : inverted(kSpace);
      return true;
    default:
      break;
  }
  single = true;
  if (c == 'u' && take('{')) {
    const std::size_t end = text_.find('}', at_);
    if (end == std::string_view::npos || !hexadecimal(text_.substr(at_, end - at_), result)) {
      return false;
    }
    at_ = end + 1;
    return true;
  }
  if (c == 'x' || c == 'u') {
    const std::size_t digits = c == 'x' ? 2 : 4;
    if (text_.size() - at_ < digits || !hexadecimal(text_.substr(at_, digits), result))
      return false;
    at_ += digits;
    return true;
  }
  constexpr std::string_view kLetters = "tnvfr";
  constexpr std::string_view kControls = "\t\n\v\f\r";
  const std::size_t control = kLetters.find(c);
  auto code = static_cast<unsigned char>(c);
  if (control != std::string_view::npos) {
    code = static_cast<unsigned char>(kControls[control]);
  } else if (is_letter(c) || is_digit(c) || code >= 0x80) {
    return false;
  }
  result = {{code, code}};
  return true;
}

bool Reader::hexadecimal(std::string_view digits, CodeRanges& result) {
  std::uint32_t code = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, code, 16);
  if (read.ec != std::errc() || read.ptr != end || code > kLast) return false;
  if (code >= 0xD800 && code <= 0xDFFF) return false;
  result = {{code, code}};
  return true;
}

Part Reader::as_part(CodeRanges ranges) {
  Part part;
  part.is_text = part.is_character = ranges.size() == 1 && ranges[0].low == ranges[0].high;
  if (part.is_character) append_character(ranges[0].low, part.text);
  part.term = store_.chars(std::move(ranges));
  return part;
}

Part Reader::as_part(std::vector<Branch> branches) {
  Part whole;
  std::vector<Term> ways;
  std::vector<std::string> texts;
  for (Branch& branch : branches) {
    if (branches.size() == 1 && branch.parts.size() == 1) return std::move(branch.parts[0]);
    std::string text;
    bool is_text = !branch.parts.empty();
    for (const Part& part : branch.parts) {
      is_text = is_text && (branch.parts.size() == 1 ? part.is_text : part.is_character);
      if (is_text) text += part.text;
    }
    if (branches.size() == 1) return {sequence(branch.parts), text, is_text, false, false};
    if (is_text)
      texts.push_back(std::move(text));
    else
      ways.push_back(sequence(branch.parts));
  }
  if (!texts.empty()) ways.push_back(store_.literals(std::move(texts)));
  whole.term = store_.join(std::move(ways));
  whole.is_choice = true;
  return whole;
}

Term Reader::sequence(const std::vector<Part>& parts) {
  Term result = kEmpty;
  for (std::size_t i = parts.size(); i-- > 0;) result = store_.concat(parts[i].term, result);
  return result;
}

}  // namespace

std::optional<Term> plain_pattern(TermStore& store, std::string_view pattern) {
  return Reader(store, pattern).pattern();
}

}  // namespace grammaton
