#include "index/letter_classes.hpp"

#include <algorithm>
#include <bit>

#include "grammar/utf8.hpp"

namespace grammaton {

namespace {

constexpr std::uint32_t kEndOfAscii = 0x80;
constexpr std::uint32_t kFirstSurrogate = 0xD800;
constexpr std::uint32_t kLastSurrogate = 0xDFFF;

unsigned first_byte(std::uint32_t code) {
  return code < 0x800     ? 0xC0 | (code >> 6)
         : code < 0x10000 ? 0xE0 | (code >> 12)
                          : 0xF0 | (code >> 18);
}

}  // namespace

LetterClasses::LetterClasses(const CharacterClasses& classes) {
  static_assert(CharacterClasses::kMostClasses <= 64);
  std::vector<std::size_t> number(classes.count(), classes.count());  // by class, if beyond ASCII
  classes.each_interval([&](std::uint32_t begin, std::uint32_t end, unsigned cls) {
    begin = std::max(begin, kEndOfAscii);
    if (begin >= end || (kFirstSurrogate <= begin && begin <= kLastSurrogate)) return;
    if (number[cls] == classes.count()) {
      number[cls] = characters_.size();
      append_character(begin, characters_.emplace_back());
    }
    for (unsigned byte = first_byte(begin); byte <= first_byte(end - 1); ++byte)
      classes_[byte - Letters::kFirstLead] |= std::uint64_t{1} << number[cls];
  });
}

void LetterClasses::add_edges(TermStore& store, Term t, LetterEdges& out, ByteSet& live) const {
  std::vector<Term> to;
  for (const std::string& character : characters_) to.push_back(store.step_character(t, character));
  for (unsigned byte = Letters::kFirstLead; byte <= Letters::kLastLead; ++byte) {
    std::uint64_t left = classes_[byte - Letters::kFirstLead];
    const Term first = to[static_cast<std::size_t>(std::countr_zero(left))];
    bool same = true;
    bool some = false;
    for (; left != 0; left &= left - 1) {
      const Term next = to[static_cast<std::size_t>(std::countr_zero(left))];
      same = same && next == first;
      some = some || next != kNothing;
    }
    if (some) live.add(byte);
    if (same && some) out.add(first, Letters::lead(byte));
  }
}

const CharacterClasses* KnownClasses::of(TermStore& store, Term t) {
  std::optional<CharacterClasses> classes = CharacterClasses::of(store, t);
  if (!classes) return nullptr;
  const auto found = std::ranges::find_if(
      known_, [&](const Known& known) { return known.classes.has_same_sets(*classes); });
  const Known& known = found != known_.end() ? *found : keep(std::move(*classes));
  return known.classes.few() ? &known.classes : nullptr;
}

// Those of a term that tells more apart do as well.
std::shared_ptr<const LetterClasses> KnownClasses::letters_of(TermStore& store, Term t) {
  std::optional<CharacterClasses> classes = CharacterClasses::of(store, t);
  if (!classes) return nullptr;
  const auto found = std::ranges::find_if(
      known_, [&](const Known& known) { return known.classes.tells(*classes); });
  Known& known = found != known_.end() ? *found : keep(std::move(*classes));
  if (!known.classes.few()) return nullptr;
  if (!known.letters) known.letters = std::make_shared<const LetterClasses>(known.classes);
  return known.letters;
}

KnownClasses::Known& KnownClasses::keep(CharacterClasses classes) {
  classes.settle();
  if (known_.size() == kMost) known_.pop_back();
  return *known_.insert(known_.begin(), Known{std::move(classes), nullptr});
}

}  // namespace grammaton
