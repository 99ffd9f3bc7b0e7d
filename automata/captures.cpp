#include "automata/captures.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace grammaton {

namespace {

using CallKey = std::uint64_t;
constexpr CallKey kWhole = ~CallKey{0};  // the text as a whole, rather than a call

struct Place {
  std::uint32_t set = kNone;
  std::uint32_t item = kNone;
};

struct Item {
  CallKey key;           // the rule that is read
  std::uint32_t origin;  // where it began
  Term rest;             // what is left of it
  Place before;          // the item that this one goes on from
  Place part;            // the rule that was read in between, if any
};

struct ItemKey {
  CallKey key;
  std::uint32_t origin;
  Term rest;
  friend bool operator==(const ItemKey&, const ItemKey&) = default;
};
struct ItemKeyHasher {
  std::size_t operator()(const ItemKey& k) const {
    return static_cast<std::size_t>(mix64(k.key, (std::uint64_t{k.origin} << 32) | k.rest));
  }
};

struct Waiting {
  std::uint32_t item;
  Term rest;
};

struct Set {
  std::vector<Item> items;
  std::unordered_map<ItemKey, std::uint32_t, ItemKeyHasher> known;
  std::unordered_map<CallKey, std::vector<Waiting>> waiting;  // for a rule that begins here
  std::unordered_map<CallKey, std::uint32_t> empty;           // rules that were read as no text
};

// A byte, or a token that spells nothing.
struct Letter {
  int byte = -1;
  std::uint32_t token = kNone;  // that begins here
  std::uint32_t length = 0;     // letters of that token
  bool is_last = false;         // of a token, or of text that no token is known of
};

class Parse {
 public:
  Parse(TermStore& store, Term start, const std::vector<ReadPiece>& pieces) : store_(store) {
    for (const ReadPiece& piece : pieces) add_letters(piece);
    sets_.resize(letters_.size() + 1);
    add(0, {kWhole, 0, start, {}, {}});
    for (std::uint32_t at = 0; at < sets_.size(); ++at) {
      store_.begin_step();
      read(at);
    }
    store_.end_step();
  }

  std::vector<Captured> captures() {
    struct Span {
      std::uint32_t begin, end, depth;
      Rule rule;
    };
    std::vector<Span> spans;
    struct Visit {
      Place place;
      std::uint32_t depth;
    };
    std::vector<Visit> pending;
    const auto last = static_cast<std::uint32_t>(sets_.size() - 1);
    // The way to the end, and what is still open there with what it stands in.
    Place open{last, best_of(last)};
    std::uint32_t depth = 0;
    while (open.item != kNone) {
      const Item& item = at(open);
      pending.push_back({open, depth});
      if (item.key == kWhole) break;
      const Waiting& outer = sets_[item.origin].waiting.at(item.key).front();
      open = {item.origin, outer.item};
    }
    while (!pending.empty()) {
      Visit visit = pending.back();
      pending.pop_back();
      for (Place place = visit.place; place.item != kNone; place = at(place).before) {
        const Place part = at(place).part;
        if (part.item == kNone) continue;
        const Item& inner = at(part);
        const auto rule = static_cast<Rule>(inner.key >> 32);
        if (!store_.rule_info(rule).attributes.capture.empty() ||
            !store_.rule_info(rule).attributes.stop_capture.empty())
          spans.push_back({inner.origin, part.set, visit.depth, rule});
        pending.push_back({part, visit.depth + 1});
      }
    }
    std::ranges::sort(spans, [](const Span& x, const Span& y) {
      return std::tuple(x.begin, y.end, x.depth) < std::tuple(y.begin, x.end, y.depth);
    });
    std::vector<Captured> found;
    for (const Span& span : spans) append(span.rule, text(span.begin, span.end), found);
    return found;
  }

 private:
  const Item& at(Place place) const { return sets_[place.set].items[place.item]; }

  void add_letters(const ReadPiece& piece) {
    const auto length = static_cast<std::uint32_t>(std::max<std::size_t>(piece.text.size(), 1));
    const std::size_t first = letters_.size();
    if (piece.text.empty()) letters_.emplace_back();
    for (const char c : piece.text) letters_.push_back({static_cast<unsigned char>(c), kNone, 0});
    letters_[first].token = piece.token;
    letters_[first].length = length;
    letters_.back().is_last = true;
  }

  void add(std::uint32_t set, const Item& item) {
    if (item.rest == kNothing) return;
    const auto next = static_cast<std::uint32_t>(sets_[set].items.size());
    if (!sets_[set].known.emplace(ItemKey{item.key, item.origin, item.rest}, next).second) return;
    if (++items_ > store_.limits().max_frames) {
      throw LimitFault("captures take more than max_frames = " +
                       std::to_string(store_.limits().max_frames) + " items to find");
    }
    sets_[set].items.push_back(item);
  }

  void read(std::uint32_t here) {
    Set& set = sets_[here];
    for (std::uint32_t i = 0; i < set.items.size(); ++i) {
      const Item item = set.items[i];
      const std::vector<FirstCall> calls(store_.first_calls(item.rest).begin(),
                                         store_.first_calls(item.rest).end());
      for (const FirstCall& call : calls) {
        const CallKey key = (std::uint64_t{call.rule} << 32) | call.param;
        set.waiting[key].push_back({i, call.rest});
        add(here, {key, here, body(call), {}, {}});
        if (const auto empty = set.empty.find(key); empty != set.empty.end())
          add(here, {item.key, item.origin, call.rest, {here, i}, {here, empty->second}});
      }
      if (store_.nullable(item.rest) && item.key != kWhole) complete(here, i);
      if (here == letters_.size()) continue;
      const Letter& letter = letters_[here];
      if (letter.byte >= 0) {
        Term next = store_.step(item.rest, static_cast<unsigned>(letter.byte));
        if (letter.is_last) next = store_.after_token(next);
        add(here + 1, {item.key, item.origin, next, {here, i}, {}});
      }
      if (letter.token == kNone) continue;
      for (const FirstToken& first : store_.first_tokens(item.rest)) {
        if (store_.token_set(first.set).has(letter.token))
          add(here + letter.length, {item.key, item.origin, first.rest, {here, i}, {}});
      }
    }
  }

  // What a rule says, its tokens counted where that bounds them (grammar/metered.cpp).
  Term body(const FirstCall& call) {
    const Term written = store_.body(call.rule, call.param);
    const std::uint32_t tokens = store_.rule_info(call.rule).attributes.tokens;
    return tokens == kUnbounded ? written : store_.metered(written, tokens, kNone);
  }

  // Item i of a set is a whole rule: those that waited for it go on.
  void complete(std::uint32_t here, std::uint32_t i) {
    const Item item = sets_[here].items[i];
    if (item.origin == here && !sets_[here].empty.emplace(item.key, i).second) return;
    const auto waiting = sets_[item.origin].waiting.find(item.key);
    if (waiting == sets_[item.origin].waiting.end()) return;
    for (std::size_t k = 0; k < waiting->second.size(); ++k) {
      const Waiting outer = waiting->second[k];
      const Item& user = sets_[item.origin].items[outer.item];
      add(here, {user.key, user.origin, outer.rest, {item.origin, outer.item}, {here, i}});
    }
  }

  // The item that a text ends with: a whole text where it is one, or else something that is not
  // over yet, so that all that is over is behind it.
  std::uint32_t best_of(std::uint32_t set) const {
    const std::vector<Item>& items = sets_[set].items;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (items[i].key == kWhole && store_.nullable(items[i].rest)) return i;
    }
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (!store_.nullable(items[i].rest)) return i;
    }
    return items.empty() ? kNone : 0;
  }

  std::string text(std::uint32_t begin, std::uint32_t end) const {
    std::string result;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (letters_[i].byte >= 0) result.push_back(static_cast<char>(letters_[i].byte));
    }
    return result;
  }

  void append(Rule rule, std::string text, std::vector<Captured>& out) {
    const RuleAttributes attributes = store_.rule_info(rule).attributes;
    std::string stop;
    if (attributes.suffix != kNothing) {
      std::size_t cut = 0;
      while (cut < text.size() && !matches(attributes.suffix, std::string_view(text).substr(cut)))
        ++cut;
      stop = text.substr(cut);
      text.resize(cut);
    }
    if (!attributes.capture.empty()) out.push_back({attributes.capture, std::move(text)});
    if (!attributes.stop_capture.empty()) out.push_back({attributes.stop_capture, std::move(stop)});
  }

  bool matches(Term t, std::string_view text) {
    for (const char c : text) {
      t = store_.step(t, static_cast<unsigned char>(c));
      if (t == kNothing) return false;
    }
    return store_.nullable(t);
  }

  TermStore& store_;
  std::vector<Letter> letters_;
  std::vector<Set> sets_;
  std::uint64_t items_ = 0;
};

}  // namespace

std::vector<Captured> find_captures(TermStore& source, Term start,
                                    const std::vector<ReadPiece>& pieces) {
  return Parse(source, start, pieces).captures();
}

}  // namespace grammaton
