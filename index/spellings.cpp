#include "index/spellings.hpp"

namespace grammaton {

namespace {

std::uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  std::uint32_t code = lead & (0x7Fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) {
    code = (code << 6) | (static_cast<std::uint8_t>(character[i]) & 0x3F);
  }
  return code;
}

}  // namespace

void find_spellings(const Trie& trie, std::uint32_t node, std::string_view text,
                    std::vector<std::uint32_t>& out) {
  if (text.empty()) {
    out.push_back(node);
    return;
  }
  std::size_t width = 1;
  while (width < text.size() && (static_cast<std::uint8_t>(text[width]) & 0xC0) == 0x80) ++width;
  const std::string_view character = text.substr(0, width);
  const std::string_view rest = text.substr(width);
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (first >= 0x20 && first != '"' && first != '\\') {
    std::uint32_t raw = node;
    for (std::size_t i = 0; i < width; ++i) {
      raw = trie.child(raw, static_cast<std::uint8_t>(character[i]));
      if (raw == Trie::kRoot) break;
    }
    if (raw != Trie::kRoot) find_spellings(trie, raw, rest, out);
  }
  auto pass = [](std::uint32_t) {};
  auto done = [&](std::uint32_t end) { find_spellings(trie, end, rest, out); };
  EscapeSearch(trie, pass, done).run(node, code_point(character));
}

}  // namespace grammaton
