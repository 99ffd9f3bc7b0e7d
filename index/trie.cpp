#include "index/trie.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

namespace grammaton {

namespace {

// Smaller subtrees have no Letters: to ask whether they are looped on costs as much as to walk
// them.
constexpr std::uint32_t kLetteredNodes = 4;
// Smaller tries have no lists of characters.
constexpr std::size_t kListedNodes = 256;
// Fewer nodes than one in so many are worth finding by list.
constexpr std::size_t kFewOthers = 12;

bool is_common(unsigned letter) { return 'a' <= letter && letter <= 'z'; }

// The first of a sorted range that is not below `bound`; near ones are found soonest.
const std::uint64_t* leap(const std::uint64_t* at, const std::uint64_t* end, std::uint64_t bound) {
  for (std::ptrdiff_t step = 1; at != end && *at < bound; step *= 2) {
    if (end - at <= step || at[step] >= bound) {
      return std::lower_bound(at + 1, end - at <= step ? end : at + step, bound);
    }
    at += step;
  }
  return at;
}

}  // namespace

// Follows UTF-8 down the paths of a trie, in pre-order, and lists where characters begin.
class Trie::CharacterLists {
 public:
  struct Place {
    std::uint8_t more = 0;                 // bytes of a character still to come
    std::uint8_t low = 0x80, high = 0xBF;  // of the next one
    bool broken = false;
    std::uint32_t begin = kRoot;  // where the character began
  };

  explicit CharacterLists(Trie& trie) : trie_(trie) {
    trie.characters_at_.resize(Letters::kMalformed + 1);
  }

  Place enter(std::uint32_t node, Place at) {
    const unsigned byte = trie_.bytes_[node];
    if (at.broken) return at;
    Place next;
    if (at.more > 0) {
      if (at.low <= byte && byte <= at.high) {
        next.more = static_cast<std::uint8_t>(at.more - 1);
        next.begin = at.begin;
        return next;
      }
      return mark_broken(at.begin);
    }
    next.begin = node;
    if (byte < 0x80) {
      if (!is_common(byte)) list(byte, node);
    } else if (Letters::kFirstLead <= byte && byte <= Letters::kLastLead) {
      list(Letters::lead(byte), node);
      next.more = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      if (byte == 0xE0) next.low = 0xA0;
      if (byte == 0xED) next.high = 0x9F;
      if (byte == 0xF0) next.low = 0x90;
      if (byte == 0xF4) next.high = 0x8F;
    } else {
      return mark_broken(node);
    }
    return next;
  }

  void finish() {
    std::vector<std::uint64_t>& broken = trie_.characters_at_[Letters::kMalformed];
    std::ranges::sort(broken);
    broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
    for (auto& nodes : trie_.characters_at_) {
      nodes.shrink_to_fit();
      trie_.listed_nodes_ += nodes.size();
    }
  }

 private:
  void list(unsigned letter, std::uint32_t node) {
    trie_.characters_at_[letter].push_back(trie_.in_order(node));
  }
  Place mark_broken(std::uint32_t begin) {
    list(Letters::kMalformed, begin);
    Place place;
    place.broken = true;
    return place;
  }

  Trie& trie_;
};

const Letters& Trie::common_letters() {
  static const Letters common = [] {
    Letters letters;
    for (unsigned letter = 0; letter < 0x80; ++letter) {
      if (is_common(letter)) letters.add(letter);
    }
    return letters;
  }();
  return common;
}

bool Trie::find_others(std::uint32_t n, const Letters& looped,
                       std::vector<std::uint32_t>& out) const {
  out.clear();
  const Node& top = nodes_[n];
  if (characters_at_.empty() || top.characters != top.depth) return false;
  if (!common_letters().within(looped)) return false;
  const auto end_of = [this](std::uint64_t place) {
    return std::uint64_t{nodes_[static_cast<std::uint32_t>(place)].subtree_entry_end} << 32;
  };
  // Children over such letters first: in most classes the space is one, and most nodes that are
  // listed lie below it.
  struct Subtree {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<std::uint64_t> found;
  std::vector<Subtree> children;
  for (std::uint32_t c = top.child_begin; c < top.child_end; ++c) {
    if (looped.has(Letters::of_first_byte(bytes_[c]))) continue;
    found.push_back(in_order(c));
    children.push_back({found.back(), end_of(found.back())});
  }
  for (unsigned letter = 0; letter <= Letters::kMalformed; ++letter) {
    if (looped.has(letter)) continue;
    const std::vector<std::uint64_t>& nodes = characters_at_[letter];
    const std::uint64_t* const all = nodes.data() + nodes.size();
    const std::uint64_t* at = std::upper_bound(nodes.data(), all, in_order(n));
    const std::uint64_t* const end =
        std::lower_bound(at, all, std::uint64_t{top.subtree_entry_end} << 32);
    for (auto child = children.begin(); at != end && child != children.end(); ++child) {
      for (; at != end && *at < child->begin; ++at) found.push_back(*at);
      at = leap(at, end, child->end);
    }
    found.insert(found.end(), at, end);
    if (found.size() * kFewOthers > top.subtree_nodes) return false;
  }
  std::ranges::sort(found);
  std::uint64_t done = 0;
  for (const std::uint64_t place : found) {
    if (place < done) continue;  // below another
    done = end_of(place);
    out.push_back(static_cast<std::uint32_t>(place));
  }
  return true;
}

std::uint64_t Trie::first_bytes(std::string_view text) {
  constexpr std::size_t kBytes = sizeof(std::uint64_t);
  std::uint64_t number = 0;
  if (text.size() >= kBytes) {  // one load
    for (std::size_t i = 0; i < kBytes; ++i)
      number = number << 8 | static_cast<std::uint8_t>(text[i]);
    return number;
  }
  for (const char c : text) number = number << 8 | static_cast<std::uint8_t>(c);
  return text.empty() ? 0 : number << (8 * (kBytes - text.size()));
}

std::size_t Trie::common_prefix(const Sorted& a, const Sorted& b) {
  const std::size_t shorter = std::min(a.text.size(), b.text.size());
  if (a.first != b.first)
    return std::min(shorter, static_cast<std::size_t>(std::countl_zero(a.first ^ b.first)) / 8);
  std::size_t i = std::min(shorter, sizeof(a.first));
  while (i < shorter && a.text[i] == b.text[i]) ++i;
  return i;
}

void Trie::build(std::vector<Sorted> sorted) {
  static std::atomic<std::uint64_t> next_uid{1};
  uid_ = next_uid++;
  std::ranges::sort(sorted, [](const Sorted& a, const Sorted& b) {
    if (a.first != b.first) return a.first < b.first;
    // Most remainders are short, and many alike: those that these bytes are all of differ in how
    // many of them there are, if at all.
    if (a.text.size() <= sizeof(a.first) && b.text.size() <= sizeof(b.first)) {
      if (a.text.size() != b.text.size()) return a.text.size() < b.text.size();
    } else if (const auto order = a.text <=> b.text; order != 0) {
      return order < 0;
    }
    return std::tie(a.entry.token, a.entry.items) < std::tie(b.entry.token, b.entry.items);
  });
  // The same remainder of the same token after as many items, by different exits.
  sorted.erase(std::unique(sorted.begin(), sorted.end(),
                           [](const Sorted& a, const Sorted& b) {
                             // From one place in it, if it is as much.
                             return a.entry.token == b.entry.token &&
                                    a.entry.items == b.entry.items &&
                                    a.text.size() == b.text.size();
                           }),
               sorted.end());
  unique_ = all_differ(sorted);
  std::size_t size = 1;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view text = sorted[i].text;
    size += text.size() - (i == 0 ? 0 : common_prefix(sorted[i - 1], sorted[i]));
  }
  nodes_.reserve(size);
  bytes_.reserve(size);

  struct Open {
    std::uint32_t node;
    std::size_t low, high, depth;
    CharacterLists::Place place;
  };
  std::optional<CharacterLists> lists;
  if (size >= kListedNodes) lists.emplace(*this);
  nodes_.emplace_back();
  bytes_.push_back(0);
  entries_.reserve(sorted.size());
  characters_.reserve(sorted.size());
  std::vector<Open> stack{{kRoot, 0, sorted.size(), 0, {}}};
  // Up to where texts have the byte at a depth that the i-th has; near ends are found soonest.
  const auto end_of_byte = [&sorted](std::size_t i, std::size_t high, std::size_t depth) {
    const std::uint8_t byte = sorted[i].byte(depth);
    std::size_t same = i;
    std::size_t other = high;
    for (std::size_t step = 1; same + step < other; step *= 2) {
      if (sorted[same + step].byte(depth) != byte) {
        other = same + step;
        break;
      }
      same += step;
    }
    while (other - same > 1) {
      const std::size_t middle = same + (other - same) / 2;
      (sorted[middle].byte(depth) == byte ? same : other) = middle;
    }
    return other;
  };
  while (!stack.empty()) {
    Open open = stack.back();
    stack.pop_back();
    std::size_t i = open.low;
    nodes_[open.node].entry_begin = static_cast<std::uint32_t>(entries_.size());
    if (lists && open.node != kRoot) open.place = lists->enter(open.node, open.place);
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
      const std::uint8_t byte = sorted[i].byte(open.depth);
      const std::size_t j = end_of_byte(i, open.high, open.depth);
      stack.push_back(
          {static_cast<std::uint32_t>(nodes_.size()), i, j, open.depth + 1, open.place});
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
  if (lists) lists->finish();
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
  std::vector<std::uint16_t> most(nodes_.size());
  const bool with_items =
      std::ranges::any_of(entries_, [](const Entry& entry) { return entry.items != 0; });
  if (with_items) items_.resize(nodes_.size());
  for (auto id = static_cast<std::uint32_t>(nodes_.size()); id-- > 0;) {
    Node& n = nodes_[id];
    most[id] = n.characters;
    for (std::uint32_t c = n.child_begin; c < n.child_end; ++c) {
      most[id] = std::max(most[id], most[c]);
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
      most_characters_.push_back(most[id]);
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
  most_characters_.shrink_to_fit();
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
  // At most 256 bytes in a row: compared 16 or more at a time.
  const Node& node = nodes_[n];
  const void* const found =
      std::memchr(bytes_.data() + node.child_begin, byte, node.child_end - node.child_begin);
  if (found == nullptr) return kRoot;
  return static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(found) - bytes_.data());
}

}  // namespace grammaton
