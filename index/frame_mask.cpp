// Making frame masks: the walk of one regular term over a subtree, and its exits.
#include <algorithm>
#include <array>
#include <utility>

#include "index/parts.hpp"
#include "index/path_states.hpp"
#include "index/remainders.hpp"
#include "index/walk.hpp"

namespace grammaton {

namespace {

// Below a node with at least so many others it pays to ask whether all of them stay inside.
constexpr std::uint32_t kKeptSubtree = 8;
// A study that visits more nodes, or makes more terms, starts again and looks for forms
// (keeping.hpp).
constexpr std::uint64_t kHardNodes = 4000;
constexpr std::size_t kHardTerms = 400;
// And one of those that does so is done by classes of characters (class_trie.hpp).
constexpr std::uint64_t kHardestNodes = 40'000;
constexpr std::size_t kHardestTerms = 1500;
// Where texts of so many characters leave something, longer ones are looked at one by one.
constexpr std::uint32_t kManyCharacters = 8;
// Operands of a union that are looked at one by one.
constexpr std::size_t kMostOperands = 6;
// So many terms in a row are followed through their regions in vain.
constexpr unsigned kRegionCredit = 12;
// Added to a frame's hash for its remainders that go on, and for all of them.
constexpr std::uint64_t kGoingOn = 1;
constexpr std::uint64_t kAllRests = 3;

// Terms that are looked at to see what a term is made of.
constexpr std::size_t kMostParts = 500;

// Whether multiples of a number are in it: many terms, but each is made of one by arithmetic, and
// few tokens are digits.
bool has_multiples(const TermStore& store, Term t) {
  bool found = false;
  each_part(store, t, kMostParts, [&](Term part) {
    const Kind kind = store.node(part).kind;
    found = found || kind == Kind::Residue;
    return !found && kind != Kind::Json;
  });
  return found;
}

struct OnPath {
  Term term = kNothing;
  std::uint32_t items = 0;  // not counted there
};

}  // namespace

std::shared_ptr<const FrameMask> Walker::known_frame(Place place, Term t) {
  const auto found = frames_.find({place.trie->uid(), place.node, t});
  if (found != frames_.end()) return found->second;
  std::shared_ptr<const FrameMask> mask =
      index_.find({place.trie->uid(), place.node, store_.node(t).hash});
  if (mask != nullptr) {
    // References kept here outlive an eviction from the vocabulary's cache; they are bounded too.
    if (frame_bytes_ + mask->bytes > limits_.mask_cache_bytes) {
      frames_.clear();
      frame_bytes_ = 0;
    }
    frame_bytes_ += mask->bytes;
    frames_.emplace(FrameKey{place.trie->uid(), place.node, t}, mask);
  }
  return mask;
}

std::shared_ptr<const FrameMask> Walker::frame(Place place, Term t, bool last) {
  std::shared_ptr<const FrameMask> mask = known_frame(place, t);
  if (mask == nullptr) {
    ++stats_.frames_made;
    mask = index_.keep({place.trie->uid(), place.node, store_.node(t).hash},
                       study(place, t, Rests::Others, last));
  }
  return mask;
}

// The remainders that the mask of a frame leaves out, and nothing else.
std::shared_ptr<const FrameMask> Walker::left_out(const Source& source, bool all) {
  Hash128 hash = store_.node(source.term).hash;
  if (source.bounded != nullptr) hash.add(store_.node(source.bounded->meter).hash);
  hash.add(all ? kAllRests : kGoingOn);
  const TokenIndex::Key key{source.place.trie->uid(), source.place.node, hash};
  if (auto known = index_.find(key)) return known;
  ++stats_.frames_made;
  return index_.keep(
      key, source.bounded != nullptr
               ? measure_going_on(source.place, *source.bounded)
               : study(source.place, source.term, all ? Rests::All : Rests::GoingOn, false));
}

// `hard`: a first try took long, so forms are looked for. Where that takes long, too, classes of
// characters are made, which serve the next such term at once.
std::shared_ptr<FrameMask> Walker::study(Place place, Term t, Rests rests, bool last, bool hard) {
  const Trie& trie = *place.trie;
  if (const Counted* const form = counted_form(t);
      form != nullptr && form->reference == t && trie.unique() && !hard && rests != Rests::All) {
    if (auto counted = study_counted(place, *form, rests)) return counted;
  }

  const bool of_all = place.node == Trie::kRoot && &trie == &index_.trie();
  if (hard && of_all) {
    if (const auto classes = class_trie(t, false)) return study_by_class(*classes, t, rests, last);
  }

  struct Visit {
    std::uint32_t node;
    Term term;
  };
  std::vector<Word>& bits = scratch_->studied;
  bits.assign(index_.words(), 0);
  std::vector<std::uint32_t> tokens;
  std::vector<Visit> exits;
  const bool restricted = store_.restricted() || store_.has(t, kHasNoSplit);
  // Tokens are listed for as long as the list may be what is kept.
  auto take = [&](std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      if (tokens.size() <= kSparseTokens && (trie.unique() || !get_bit(bits.data(), entry.token))) {
        tokens.push_back(entry.token);
      }
      set_bit(bits.data(), entry.token);
    }
  };
  const auto step_term = [&](Term from, unsigned byte) {
    return hard ? store_.step_lazily(from, byte) : store_.step(from, byte);
  };
  // Takes everything below a node if all of it leads from the term back to it.
  std::unordered_map<Term, LoopedLetters> loops;
  LetterRegions regions(store_, known_classes_, t, Trie::common_letters(),
                        static_cast<std::uint32_t>(index_.longest_token()), hard);
  keeping_.begin_study();
  auto take_looped = [&](const Visit& at, const Letters& letters) {
    if (hard && store_.has(at.term, kMaybeEmpty)) {
      bool loops_on_all = true;
      for (unsigned letter = 0; letter < 0x80 && loops_on_all; ++letter)
        loops_on_all = !letters.has(letter) || store_.step_lazily(at.term, letter) == at.term;
      if (!loops_on_all) return false;
    }
    const auto [found, fresh] = loops.try_emplace(at.term);
    if (fresh && (!restricted || store_.at_token_end(at.term) != kNothing)) {
      found->second = LoopedLetters(store_, at.term, !restricted);
    }
    if (!found->second.include(store_, letters)) return false;
    const Trie::Node& here = trie.node(at.node);
    take(trie.entries(here.entry_end, here.subtree_entry_end));
    return true;
  };
  std::vector<Visit> stack{{place.node, t}};
  const auto visit = [&](std::uint32_t child, Term next) {
    count_nodes(stats_.study_nodes);
    const Trie::Node& below = trie.node(child);
    if (below.entry_begin != below.entry_end &&
        (!restricted || store_.at_token_end(next) != kNothing)) {
      take(trie.entries_at(child));
    }
    if (below.child_begin == below.child_end) return;
    const Visit deeper{child, next};
    if (store_.nullable(next)) exits.push_back(deeper);
    stack.push_back(deeper);
  };
  // Where nearly all characters below keep the term alive: takes all but what other characters
  // begin.
  Remainders remainders(trie, bits.data(), false, rests);
  std::vector<Entry> passed;  // remainders at ends of the frame that are not visited
  std::vector<std::uint32_t> others;
  unsigned region_credit = kRegionCredit;
  const auto form_letters = [&](const Visit& at) -> const Letters* {
    const Keeping::Kept& any = keeping_.kept(at.term, trie.node(at.node).subtree_nodes);
    return any.characters < trie.characters_below(at.node) ? nullptr : &any.letters;
  };
  const auto step_on = [&](const OnPath& from, std::uint8_t byte) {
    return OnPath{from.term == kNothing ? kNothing : step_term(from.term, byte)};
  };
  // Of some entries below `here`, takes those of at most so many characters from there on, unless
  // they are `taken`; the longer ones are followed one by one from the term that `path` begins
  // with.
  const auto take_short = [&](PathStates<OnPath>& path, const Trie::Node& here, std::uint32_t begin,
                              std::uint32_t end, std::uint32_t characters, bool taken) {
    for (std::uint32_t e = begin; e < end; ++e) {
      const Entry& entry = trie.entry(e);
      if (trie.characters(e) <= here.characters + characters) {
        if (!taken) take({&entry, 1});
        continue;
      }
      const std::string_view text = index_.token(entry.token).substr(entry.start + here.depth);
      path.follow(text, step_on);
      if (path.states().back().term != kNothing) {
        take({&entry, 1});
      } else {
        if (taken) clear_bit(bits.data(), entry.token);
        pass_exits(store_, path, text, {&entry, 1}, here.depth, remainders, passed, step_term);
      }
    }
  };
  const auto lives_on_common = [&](Term at) {
    if (!hard || !store_.has(at, kMaybeEmpty))
      return Trie::common_letters().within(store_.class_map(store_.row(at)).live);
    bool lives = true;
    Trie::common_letters().each_ascii(
        [&](unsigned letter) { lives = lives && store_.step_lazily(at, letter) != kNothing; });
    return lives;
  };
  const auto take_but_others = [&](const Visit& at) {
    const Letters* kept = nullptr;
    const LetterRegions::Keeping* keeping = nullptr;
    bool by_path = false;  // a path leads through other terms, or the frame may end on it
    const bool may_all = lives_on_common(at.term);
    // Of what is cut out of others there are often too many terms to go through.
    if (hard && may_all && store_.has(at.term, kMaybeEmpty)) kept = form_letters(at);
    by_path = kept != nullptr;
    if (kept == nullptr && region_credit > 0) {
      keeping = regions.keeping(at.term);
      if (keeping != nullptr) {
        kept = &keeping->letters;
        by_path = !keeping->loops || store_.nullable(at.term);
      } else {
        --region_credit;
      }
    }
    if (hard && kept == nullptr && may_all) {
      kept = form_letters(at);
      by_path = true;
    }
    if (kept == nullptr) return false;
    const bool at_root = at.node == Trie::kRoot && &trie == &index_.trie();
    const bool cut = at_root && keeping != nullptr && !keeping->ends &&
                     index_.cut(*kept, keeping->live, bits, others);
    if (!cut && !trie.find_others(at.node, *kept, others)) return false;
    const Trie::Node& here = trie.node(at.node);
    std::size_t left_out = 0;
    for (const std::uint32_t other : others) left_out += trie.entries_from(other).size();
    // At the root the rest may be most of the vocabulary.
    const bool whole = cut || (at_root && left_out * 2 < trie.entries_from(Trie::kRoot).size());
    if (whole) {
      if (!cut) bits = index_.text_bits();
      tokens.resize(kSparseTokens + 1);  // more than are listed
    }
    std::uint32_t done = here.entry_end;
    PathStates<OnPath> path({at.term});
    const bool some_longer =
        keeping != nullptr && keeping->characters < trie.characters_below(at.node);
    const auto take_up_to = [&](std::uint32_t end) {
      if (some_longer) {
        take_short(path, here, done, end, keeping->characters, whole);
      } else if (!whole) {
        take(trie.entries(done, end));
      }
    };
    for (const std::uint32_t other : others) {
      const Trie::Node& below = trie.node(other);
      const std::span<const Entry> entries = trie.entries_from(other);
      if (whole) {
        for (const Entry& entry : entries) clear_bit(bits.data(), entry.token);
      }
      take_up_to(below.entry_begin);
      done = below.subtree_entry_end;
      if (by_path) {
        const Entry& first = entries.front();
        const auto text =
            index_.token(first.token).substr(first.start + here.depth, below.depth - here.depth);
        path.follow(text.substr(0, text.size() - 1), step_on);
        pass_exits(store_, path, text, entries, here.depth, remainders, passed, step_term);
      }
      const Term from = path.states().back().term;
      const Term next = from == kNothing ? kNothing : step_term(from, trie.byte(other));
      if (next != kNothing) visit(other, next);
    }
    take_up_to(here.subtree_entry_end);
    return true;
  };
  const auto kept_characters = [&](const Visit& at, const Letters& letters) {
    const std::uint32_t characters = trie.characters_below(at.node);
    std::uint32_t most = regions.kept(at.term, letters, characters);
    // What one operand keeps alive, all of them do.
    if (hard && most < characters && store_.node(at.term).kind == Kind::Union) {
      const std::vector<Term> items(store_.operands(at.term).begin(),
                                    store_.operands(at.term).end());
      for (std::size_t i = 0; i < std::min(items.size(), kMostOperands); ++i)
        most = std::max(most, regions.kept(items[i], letters, characters));
    }
    return most;
  };
  const auto take_inside = [&](const Visit& at, const Letters& letters) {
    const Trie::Node& here = trie.node(at.node);
    if (letters.has(Letters::kMalformed)) return false;
    if (region_credit > 0) {
      const std::uint32_t kept = kept_characters(at, letters);
      if (kept >= trie.characters_below(at.node)) {
        region_credit = std::max(region_credit, kRegionCredit);
        take(trie.entries(here.entry_end, here.subtree_entry_end));
        return true;
      }
      if (hard && kept >= kManyCharacters && here.subtree_nodes >= kWideSubtree) {
        region_credit = std::max(region_credit, kRegionCredit);
        PathStates<OnPath> path({at.term});
        take_short(path, here, here.entry_end, here.subtree_entry_end, kept, false);
        return true;
      }
      if (store_.has(at.term, kMaybeEmpty)) --region_credit;
    }
    if (!hard ||
        !keeping_.keeps(at.term, letters, trie.characters_below(at.node), here.subtree_nodes))
      return false;
    take(trie.entries(here.entry_end, here.subtree_entry_end));
    return true;
  };
  std::array<std::uint8_t, 256> moved;
  const std::uint64_t nodes_before = stats_.study_nodes;
  const std::size_t terms_before = store_.size();
  bool may_be_harder = hard ? of_all : !restricted;
  while (!stack.empty()) {
    if (may_be_harder && (stats_.study_nodes - nodes_before > (hard ? kHardestNodes : kHardNodes) ||
                          store_.size() - terms_before > (hard ? kHardestTerms : kHardTerms))) {
      may_be_harder = !hard && !has_multiples(store_, t);
      if (may_be_harder) return study(place, t, rests, last, true);
      if (const auto classes = hard ? class_trie(t, true) : nullptr)
        return study_by_class(*classes, t, rests, last);
    }
    const Visit at = stack.back();
    stack.pop_back();
    const Trie::Node& here = trie.node(at.node);
    const Letters* letters = trie.letters_below(at.node);
    if (letters != nullptr && take_looped(at, *letters)) continue;
    if (here.subtree_nodes >= kWideSubtree && !restricted && take_but_others(at)) continue;
    if (letters != nullptr && here.subtree_nodes >= kKeptSubtree && !restricted &&
        take_inside(at, *letters))
      continue;
    if (hard && store_.has(at.term, kMaybeEmpty)) {
      for (std::uint32_t child = here.child_end; child-- > here.child_begin;) {
        const Term next = store_.step_lazily(at.term, trie.byte(child));
        if (next != kNothing) visit(child, next);
      }
      continue;
    }
    const Row row = store_.row(at.term);
    // Only a restricted store computes rows in the loop below, which may move the class maps.
    if (restricted) moved = store_.class_map(row).of;
    const std::uint8_t* of = restricted ? moved.data() : store_.class_map(row).of.data();
    // Last child first onto the stack, so that nodes are visited in the order they lie in memory.
    for (std::uint32_t child = here.child_end; child-- > here.child_begin;) {
      const std::uint8_t byte = trie.byte(child);
      if (of[byte] != 0) visit(child, store_.target(row, of[byte]));
    }
  }

  auto mask = std::make_shared<FrameMask>();
  if (last && exits.size() + passed.size() > kManyExits) {
    mask->leaves_all_out = true;
    mask->left_out = ByteSet::range(0, 255);
  } else {
    for (const Visit& exit : exits) {
      remainders.add_exit(
          exit.node, [&](unsigned byte) { return step_term(exit.term, byte) != kNothing; }, 0);
    }
    for (const Entry& entry : passed) remainders.take(entry);
    count_listed(remainders.count());
    remainders.finish(*mask, index_);
  }
  if (rests != Rests::Others) return mask;
  const bool dense = tokens.size() > kSparseTokens;
  if (dense) {
    mask->dense = copy_bits(bits);
  } else {
    mask->sparse = std::move(tokens);
  }
  return mask;
}

}  // namespace grammaton
