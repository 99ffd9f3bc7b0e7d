#include "index/trie.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>

namespace grammaton {

namespace {

// Smaller subtrees have no Letters: to ask whether they are looped on costs as much as to walk
// them.
constexpr std::uint32_t kLetteredNodes = 4;

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::uint64_t Trie::first_bytes(std::string_view text) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number = number << 8 | (i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0);
  }
  return number;
}

void Trie::build(std::vector<Sorted> sorted) {
  static std::atomic<std::uint64_t> next_uid{1};
  uid_ = next_uid++;
  std::ranges::sort(sorted, [](const Sorted& a, const Sorted& b) {
    if (a.first != b.first) return a.first < b.first;
    return std::tie(a.text, a.entry.token, a.entry.items) <
           std::tie(b.text, b.entry.token, b.entry.items);
  });
  // The same remainder of the same token after as many items, by different exits.
  sorted.erase(std::unique(sorted.begin(), sorted.end(),
                           [](const Sorted& a, const Sorted& b) {
                             return a.entry.token == b.entry.token &&
                                    a.entry.items == b.entry.items && a.text == b.text;
                           }),
               sorted.end());
  unique_ = all_differ(sorted);
  std::size_t size = 1;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view text = sorted[i].text;
    size += text.size() - (i == 0 ? 0 : common_prefix(sorted[i - 1].text, text));
  }
  nodes_.reserve(size);
  bytes_.reserve(size);

  struct Open {
    std::uint32_t node;
    std::size_t low, high, depth;
  };
  nodes_.emplace_back();
  bytes_.push_back(0);
  entries_.reserve(sorted.size());
  characters_.reserve(sorted.size());
  std::vector<Open> stack{{kRoot, 0, sorted.size(), 0}};
  while (!stack.empty()) {
    const Open open = stack.back();
    stack.pop_back();
    std::size_t i = open.low;
    nodes_[open.node].entry_begin = static_cast<std::uint32_t>(entries_.size());
    for (; i < open.high && sorted[i].text.size() == open.depth; ++i) {
      entries_.push_back(sorted[i].entry);
      characters_.push_back(nodes_[open.node].characters);
    }
    nodes_[open.node].entry_end = static_cast<std::uint32_t>(entries_.size());
    nodes_[open.node].subtree_entry_end =
        nodes_[open.node].entry_begin + static_cast<std::uint32_t>(open.high - open.low);
    nodes_[open.node].child_begin = static_cast<std::uint32_t>(nodes_.size());
    const std::size_t first_open = stack.size();
    while (i < open.high) {
      const auto byte = static_cast<std::uint8_t>(sorted[i].text[open.depth]);
      std::size_t j = i + 1;
      while (j < open.high && static_cast<std::uint8_t>(sorted[j].text[open.depth]) == byte) ++j;
      stack.push_back({static_cast<std::uint32_t>(nodes_.size()), i, j, open.depth + 1});
      nodes_.emplace_back();
      nodes_.back().depth = static_cast<std::uint16_t>(open.depth + 1);
      const bool begins = (byte & 0xC0) != 0x80;
      nodes_.back().characters =
          static_cast<std::uint16_t>(nodes_[open.node].characters + (begins ? 1 : 0));
      bytes_.push_back(byte);
      i = j;
    }
    nodes_[open.node].child_end = static_cast<std::uint32_t>(nodes_.size());
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first_open), stack.end());
  }
  summarise();
}

// Whether no token has two entries.
bool Trie::all_differ(const std::vector<Sorted>& sorted) {
  std::uint32_t highest = 0;
  for (const Sorted& s : sorted) highest = std::max(highest, s.entry.token);
  std::vector<bool> seen(std::size_t{highest} + 1);
  for (const Sorted& s : sorted) {
    if (seen[s.entry.token]) return false;
    seen[s.entry.token] = true;
  }
  return true;
}

// Fills in what depends on what lies below; children have higher numbers than their parents.
void Trie::summarise() {
  std::vector<Wellformed> wellformed(nodes_.size());
  const bool with_items =
      std::ranges::any_of(entries_, [](const Entry& entry) { return entry.items != 0; });
  if (with_items) items_.resize(nodes_.size());
  for (auto id = static_cast<std::uint32_t>(nodes_.size()); id-- > 0;) {
    Node& n = nodes_[id];
    for (std::uint32_t c = n.child_begin; c < n.child_end; ++c) {
      n.subtree_nodes += 1 + nodes_[c].subtree_nodes;
      wellformed[id].require(bytes_[c], wellformed[c]);
    }
    if (n.subtree_nodes >= kLetteredNodes) {
      Letters letters;
      add_letters(id, letters);
      // A child may lie inside a character, where none can begin: only this node's view counts.
      letters.remove(Letters::kMalformed);
      if (!wellformed[id].from_boundary()) letters.add(Letters::kMalformed);
      n.letters = static_cast<std::uint32_t>(letters_.size());
      letters_.push_back(letters);
    }
    if (!with_items) continue;
    ItemRange range{~std::uint32_t{0}, 0};
    for (std::uint32_t e = n.entry_begin; e < n.entry_end; ++e) {
      range.low = std::min(range.low, entries_[e].items);
      range.high = std::max(range.high, entries_[e].items);
    }
    for (std::uint32_t c = n.child_begin; c < n.child_end; ++c) {
      range.low = std::min(range.low, items_[c].low);
      range.high = std::max(range.high, items_[c].high);
    }
    items_[id] = range;
  }
  letters_.shrink_to_fit();
}

void Trie::add_letters(std::uint32_t id, Letters& letters) const {
  for (std::uint32_t c = nodes_[id].child_begin; c < nodes_[id].child_end; ++c) {
    letters.add_byte(bytes_[c]);
    if (const Letters* below = letters_below(c)) {
      letters.add(*below);
    } else {
      add_letters(c, letters);
    }
  }
}

std::uint32_t Trie::child(std::uint32_t n, std::uint8_t byte) const {
  const auto first = bytes_.begin() + nodes_[n].child_begin;
  const auto last = bytes_.begin() + nodes_[n].child_end;
  const auto found = std::lower_bound(first, last, byte);
  return found != last && *found == byte ? static_cast<std::uint32_t>(found - bytes_.begin()) : 0;
}

}  // namespace grammaton
