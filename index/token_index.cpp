#include "index/token_index.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "index/mask_scratch.hpp"

namespace grammaton {

namespace {

// A walk recurses once a byte of a token. Real tokens have at most some hundred bytes.
constexpr std::size_t kLongestToken = 8192;
// Unions of shared bits take at most this part of what frame masks may.
constexpr std::uint64_t kSharedPart = 32;
// So many are remembered.
constexpr std::size_t kMostTried = 10'000;

}  // namespace

std::size_t FrameMask::memory(std::size_t words) const {
  std::size_t bytes = sizeof(FrameMask) + (dense ? words * sizeof(Word) : 0) + sparse.size() * 4;
  bytes += exits.size() * sizeof(Exit);
  if (counts) {
    bytes += (counts->inside.size() + counts->ending.size()) * sizeof(ItemCounts::Taken);
    bytes += counts->at_most.size() * words * sizeof(Word);
  }
  if (bounds) {
    bytes += (bounds->others.size() + bounds->ending.size()) * sizeof(ItemCounts::Taken);
    for (const Bits& bits : bounds->by_slack) bytes += bits ? words * sizeof(Word) : 0;
    if (bounds->unsure) bytes += bounds->unsure->memory();
    if (bounds->longest) bytes += bounds->longest->memory();
  }
  return bytes;
}

void sort_by_items(std::vector<ItemCounts::Taken>& taken) {
  std::vector<std::size_t> place;  // where the next one with so many items goes
  for (const ItemCounts::Taken& t : taken) {
    if (place.size() <= t.items) place.resize(t.items + 1, 0);
    ++place[t.items];
  }
  std::size_t end = 0;
  for (std::size_t items = place.size(); items-- > 0;) end += std::exchange(place[items], end);
  std::vector<ItemCounts::Taken> sorted(taken.size());
  for (const ItemCounts::Taken& t : taken) sorted[place[t.items]++] = t;
  taken = std::move(sorted);
}

TokenIndex::TokenIndex(std::vector<std::string> tokens, std::vector<bool> ordinary,
                       std::vector<std::uint32_t> eos, std::size_t mask_bits, const Limits& limits)
    : tokens_(std::move(tokens)),
      ordinary_(std::move(ordinary)),
      eos_(std::move(eos)),
      mask_bits_(mask_bits),
      limits_(limits),
      shared_bits_(words(), limits.frame_cache_bytes / kSharedPart),
      scratch_(std::make_unique<ScratchPool>()) {
  if (ordinary_.size() != tokens_.size()) {
    throw VocabularyFault("`ordinary` has " + std::to_string(ordinary_.size()) + " entries for " +
                          std::to_string(tokens_.size()) + " tokens");
  }
  if (mask_bits_ < tokens_.size()) {
    throw VocabularyFault("the mask has " + std::to_string(mask_bits_) + " bits for " +
                          std::to_string(tokens_.size()) +
                          " tokens; logits_size must cover every token id");
  }
  for (const std::uint32_t id : eos_) {
    if (id >= mask_bits_) {
      throw VocabularyFault("end-of-sequence id " + std::to_string(id) + " lies outside the " +
                            std::to_string(mask_bits_) + " token ids");
    }
    if (id < ordinary_.size()) ordinary_[id] = false;  // it ends the text; it is not text
  }
  std::ranges::sort(eos_);
  text_bits_.resize(words());
  std::vector<Entry> entries;
  for (std::uint32_t id = 0; id < tokens_.size(); ++id) {
    if (!matches_text(id)) continue;
    set_bit(text_bits_.data(), id);
    if (tokens_[id].size() > kLongestToken) {
      throw VocabularyFault("token " + std::to_string(id) + " has " +
                            std::to_string(tokens_[id].size()) + " bytes; the most is " +
                            std::to_string(kLongestToken));
    }
    longest_token_ = std::max(longest_token_, tokens_[id].size());
    entries.push_back({id, 0, 0});
  }
  trie_ =
      std::make_unique<Trie>(std::move(entries), [this](std::uint32_t id) { return token(id); });
  with_character_ = CharacterTokens(tokens_.size(), words(), [this](std::size_t id) {
    const auto token = static_cast<std::uint32_t>(id);
    return matches_text(token) ? this->token(token) : std::string_view();
  });
  count_characters();
  measure_spelling();
}

TokenIndex::~TokenIndex() = default;

bool TokenIndex::is_eos(std::uint32_t id) const { return std::ranges::binary_search(eos_, id); }

bool TokenIndex::cut(const Letters& kept, const ByteSet& live, std::vector<Word>& bits,
                     std::vector<std::uint32_t>& others) const {
  Letters dead;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned letter = Letters::of_first_byte(byte);
    if (letter != Letters::kMalformed && !live.has(byte)) dead.add(letter);
  }
  Letters passed = kept;
  passed.add(dead);
  if (!trie_->find_others(Trie::kRoot, passed, others)) return false;
  bits = text_bits_;
  with_character_.clear(dead, bits);
  std::erase_if(others, [&](std::uint32_t other) {
    const std::uint32_t before = trie_->node(other).depth - 1u;
    const std::string_view text = token(trie_->entries_from(other).front().token).substr(0, before);
    return std::ranges::any_of(text, [&dead](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return (byte & 0xC0) != 0x80 && dead.has(Letters::of_first_byte(byte));
    });
  });
  return true;
}

void TokenIndex::measure_spelling() {
  ByteSet single;
  CodeRanges whole_tokens;
  for (std::uint32_t id = 0; id < tokens_.size(); ++id) {
    if (!matches_text(id)) continue;
    const std::string& text = tokens_[id];
    auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.size() == 1) single.add(at(0));
    const unsigned lead = at(0);
    const std::size_t width = lead < 0xC2   ? 1
                              : lead < 0xE0 ? 2
                              : lead < 0xF0 ? 3
                              : lead < 0xF5 ? 4
                                            : 1;
    if (width == 1 || text.size() != width) continue;
    std::uint32_t code = lead & (0xFFu >> (width + 1));
    bool valid = true;
    for (std::size_t i = 1; i < width; ++i) {
      valid = valid && (at(i) & 0xC0) == 0x80;
      code = (code << 6) | (at(i) & 0x3F);
    }
    valid = valid && (width != 3 || code >= 0x800) &&
            (width != 4 || (code >= 0x10000 && code <= 0x10FFFF));
    if (valid) whole_tokens.push_back({code, code});
  }
  const ByteSet needed = ByteSet::range(0, 0xBF) | ByteSet::range(0xC2, 0xF4);
  spelling_.all = (single & needed) == needed;
  if (spelling_.all) return;
  CodeRanges whole;
  auto add = [&whole](std::uint32_t low, std::uint32_t high) {
    if (!whole.empty() && whole.back().high + 1 == low) {
      whole.back().high = high;
    } else {
      whole.push_back({low, high});
    }
  };
  for (std::uint32_t c = 0; c < 0x80; ++c) {
    if (single.has(c)) add(c, c);
  }
  // Blocks of 64 characters share all but the last byte.
  for (std::uint32_t block = 0x80 / 64; block < 0x110000 / 64; ++block) {
    const std::uint32_t code = block * 64;
    bool spelled;
    if (code < 0x800) {
      spelled = single.has(0xC0 | (code >> 6));
    } else if (code < 0x10000) {
      spelled = single.has(0xE0 | (code >> 12)) && single.has(0x80 | ((code >> 6) & 0x3F));
    } else {
      spelled = single.has(0xF0 | (code >> 18)) && single.has(0x80 | ((code >> 12) & 0x3F)) &&
                single.has(0x80 | ((code >> 6) & 0x3F));
    }
    if (!spelled) continue;
    for (std::uint32_t k = 0; k < 64; ++k) {
      if (single.has(0x80 | k)) add(code | k, code | k);
    }
  }
  spelling_.whole = normalise_ranges(std::move(whole));
  CodeRanges joined;
  for (const CodeRange& r : normalise_ranges(std::move(whole_tokens))) {
    for (std::uint32_t c = r.low; c <= r.high; ++c) {
      if (intersect_ranges({{c, c}}, spelling_.whole).empty()) joined.push_back({c, c});
    }
  }
  spelling_.joined = normalise_ranges(std::move(joined));
}

void TokenIndex::count_characters() {
  const auto entries = static_cast<std::uint32_t>(trie_->node(Trie::kRoot).subtree_entry_end);
  std::array<std::shared_ptr<Word[]>, kReadyCharacters + 1> of_count;
  for (std::uint32_t e = 0; e < entries; ++e) {
    const std::uint32_t count = trie_->characters(e);
    if (count > kReadyCharacters) {
      longer_tokens_.push_back({count, trie_->entry(e).token});
      continue;
    }
    if (of_count[count] == nullptr) of_count[count].reset(new Word[words()]());
    set_bit(of_count[count].get(), trie_->entry(e).token);
  }
  sort_by_items(longer_tokens_);
  if (of_count[0] == nullptr) of_count[0].reset(new Word[words()]());
  at_most_characters_.push_back(of_count[0]);
  for (std::size_t count = 1; count <= kReadyCharacters; ++count) {
    const Bits& fewer = at_most_characters_.back();
    Word* const tokens = of_count[count].get();
    for (std::size_t i = 0; tokens != nullptr && i < words(); ++i) tokens[i] |= fewer[i];
    at_most_characters_.push_back(tokens == nullptr ? fewer : Bits(of_count[count]));
  }
}

std::shared_ptr<const FrameMask> TokenIndex::find(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = cache_.find(key);
  return found == cache_.end() ? nullptr : found->second;
}

std::shared_ptr<const FrameMask> TokenIndex::keep(const Key& key, std::shared_ptr<FrameMask> mask) {
  const std::size_t bytes = mask->memory(words());
  mask->bytes = bytes;
  const std::scoped_lock lock(mutex_);
  ++made_;
  make_room(bytes);
  const auto [place, fresh] = cache_.emplace(key, std::move(mask));
  if (fresh) cache_bytes_ += bytes;
  return place->second;
}

void TokenIndex::make_room(std::size_t bytes) {
  if (cache_bytes_ + bytes <= limits_.frame_cache_bytes) return;
  cache_.clear();
  tries_.clear();
  class_tries_.clear();
  tried_.clear();
  cache_bytes_ = 0;
  emptied_.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<const Trie> TokenIndex::keep_trie(std::vector<Entry> entries) {
  Hash128 content;  // in whatever order they were found
  const std::uint64_t key = process_key();
  for (const Entry& entry : entries) {
    const std::uint64_t part = (std::uint64_t{entry.token} << 32) | entry.start;
    content.order += mix64(part, entry.items);
    content.keyed += mix64(part ^ key, entry.items);
  }
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = tries_.find(content); known != tries_.end()) return known->second;
  }
  auto made = std::make_shared<const Trie>(std::move(entries),
                                           [this](std::uint32_t id) { return token(id); });
  const std::size_t bytes = made->memory();
  const std::scoped_lock lock(mutex_);
  make_room(bytes);
  const auto [place, fresh] = tries_.emplace(content, std::move(made));
  if (fresh) cache_bytes_ += bytes;
  return place->second;
}

std::shared_ptr<const ClassTrie> TokenIndex::class_trie(CharacterClasses classes, bool make) {
  const Hash128 key = classes.hash();
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = class_tries_.find(key); known != class_tries_.end())
      return known->second;
  }
  if (!make) return nullptr;
  auto made = std::make_shared<const ClassTrie>(*trie_, std::move(classes));
  const std::size_t bytes = made->memory();
  const std::scoped_lock lock(mutex_);
  make_room(bytes);
  const auto [place, fresh] = class_tries_.emplace(key, std::move(made));
  if (fresh) cache_bytes_ += bytes;
  return place->second;
}

bool TokenIndex::was_tried(const Hash128& term) const {
  const std::scoped_lock lock(mutex_);
  return tried_.contains(term);
}

void TokenIndex::keep_tried(const Hash128& term) {
  const std::scoped_lock lock(mutex_);
  if (tried_.size() == kMostTried) tried_.clear();
  tried_.insert(term);
}

TokenIndex::Stats TokenIndex::stats() const {
  const std::scoped_lock lock(mutex_);
  return {trie_->size(), cache_.size(), cache_bytes_, made_};
}

}  // namespace grammaton
