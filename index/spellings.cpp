#include "index/spellings.hpp"

namespace grammaton {

Character::Character(std::string_view text) {
  std::size_t width = 1;
  while (width < text.size() && (static_cast<std::uint8_t>(text[width]) & 0xC0) == 0x80) ++width;
  bytes = text.substr(0, width);
  code = static_cast<std::uint8_t>(bytes[0]);
  if (width == 1) return;
  code &= 0x7Fu >> width;
  for (std::size_t i = 1; i < width; ++i) {
    code = (code << 6) | (static_cast<std::uint8_t>(bytes[i]) & 0x3F);
  }
}

void find_spellings(const Trie& trie, std::uint32_t node, std::string_view text,
                    std::vector<std::uint32_t>& out) {
  if (text.empty()) {
    out.push_back(node);
    return;
  }
  const Character character(text);
  const std::string_view rest = text.substr(character.bytes.size());
  if (character.stands_for_itself()) {
    std::uint32_t raw = node;
    for (const char byte : character.bytes) {
      raw = trie.child(raw, static_cast<std::uint8_t>(byte));
      if (raw == Trie::kRoot) break;
    }
    if (raw != Trie::kRoot) find_spellings(trie, raw, rest, out);
  }
  auto pass = [](std::uint32_t) {};
  auto done = [&](std::uint32_t end) { find_spellings(trie, end, rest, out); };
  EscapeSearch(trie, pass, done).run(node, character.code);
}

}  // namespace grammaton
