// Constructors of terms and the normal form they keep.
//
// Concatenation nests to the right. Unions and intersections are flat, ordered by structural hash
// (so that a term does not depend on the history of its store), without repeats; unions.cpp has
// what unions rewrite. No rewrite relies on a call being not nullable, so the same constructors
// serve before and after normalise.cpp.
#include "grammar/terms.hpp"

#include <algorithm>
#include <mutex>
#include <random>

namespace grammaton {

std::uint64_t process_key() {
  static const std::uint64_t key = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }();
  return key;
}

namespace {

// Room for a middling grammar from the start; growing there in steps cost a tenth of a compile.
constexpr std::size_t kExpectedTerms = 2048;
// Operands of a store for each term that it may have; a quarter of a gigabyte in all.
constexpr std::uint64_t kOperandsPerTerm = 16;

std::uint8_t inherited(const Node& n) {
  return n.flags & static_cast<std::uint8_t>(kHasCall | kMaybeEmpty | kEndless);
}

}  // namespace

std::uint64_t TermStore::next_salt() {
  static std::mutex mutex;
  static std::mt19937_64 generator{process_key()};
  const std::scoped_lock lock(mutex);
  return generator();
}

void TermStore::reserve() {
  nodes_.reserve(kExpectedTerms);
  facts_.reserve(kExpectedTerms);
  targets_.reserve(kExpectedTerms);
}

TermStore::TermStore(const Limits& limits) : limits_(limits), salt_(next_salt()) {
  reserve();
  intern(Kind::Nothing, 0, 0, 0, 0);
  intern(Kind::Empty, kNullable, 0, 0, 0);
  params_.emplace_back();
}

std::unique_ptr<TermStore> TermStore::copy(const Limits& limits) const {
  auto store = std::make_unique<TermStore>(*this);
  store->limits_ = limits;
  store->salt_ = next_salt();
  store->reserve();
  return store;
}

std::uint32_t TermStore::intern_list(std::span<const Term> items) {
  const std::uint64_t h = hash_words(items);
  const std::uint32_t known =
      list_lookup_.find(h, [&](std::uint32_t i) { return std::ranges::equal(list(i), items); });
  if (known != kNone) return known;
  if ((lists_.size() + items.size()) / kOperandsPerTerm > limits_.max_terms) {
    throw LimitFault("unions and intersections of the grammar have more than " +
                     std::to_string(kOperandsPerTerm) +
                     " * max_terms = " + std::to_string(limits_.max_terms) + " operands");
  }
  const auto index = static_cast<std::uint32_t>(list_index_.size());
  list_index_.emplace_back(static_cast<std::uint32_t>(lists_.size()),
                           static_cast<std::uint32_t>(items.size()));
  lists_.insert(lists_.end(), items.begin(), items.end());
  list_lookup_.insert(h, index);
  return index;
}

std::uint32_t TermStore::intern_set(const ByteSet& set) {
  std::uint64_t h = 3;
  for (const std::uint64_t w : set.words) h = mix64(h + 1, w);
  const std::uint32_t known = set_lookup_.find(h, [&](std::uint32_t i) { return sets_[i] == set; });
  if (known != kNone) return known;
  const auto index = static_cast<std::uint32_t>(sets_.size());
  sets_.push_back(set);
  set_lookup_.insert(h, index);
  return index;
}

std::uint16_t TermStore::height_of(Kind kind, std::uint32_t a, std::uint32_t b) const {
  unsigned height = 0;
  const auto over = [&](Term t) { height = std::max<unsigned>(height, nodes_[t].height + 1u); };
  switch (kind) {
    case Kind::Nothing:
    case Kind::Empty:
    case Kind::Bytes:
    case Kind::Chars:
    case Kind::Call:
    case Kind::Residue:
    case Kind::Token:
    case Kind::Margin:
    case Kind::Take:
    case Kind::Seen:
    case Kind::Members:
      break;
    case Kind::Concat:
      over(a);
      height = std::max<unsigned>(height, nodes_[b].height);
      break;
    case Kind::JsonRaw:
    case Kind::Without:
      over(a);
      over(b);
      break;
    case Kind::Complement:
    case Kind::Repeat:
    case Kind::Json:
    case Kind::NoSplit:
    case Kind::Metered:
    case Kind::Distinct:
      over(a);
      break;
    case Kind::Union:
    case Kind::Intersect:
      for (const Term t : list(a)) over(t);
      break;
    case Kind::Keys:
    case Kind::KeyDigits:
      for (std::size_t i = 1; i < list(a).size(); i += 2) over(list(a)[i]);
      break;
  }
  if (height > kMostHeight) {
    throw LimitFault("the grammar nests operators more than " + std::to_string(kMostHeight) +
                     " deep");
  }
  return static_cast<std::uint16_t>(height);
}

Hash128 TermStore::structural_hash(Kind kind, std::uint32_t a, std::uint32_t b,
                                   std::uint32_t c) const {
  Hash128 h;
  h.add(static_cast<std::uint64_t>(kind));
  switch (kind) {
    case Kind::Nothing:
    case Kind::Empty:
      break;
    case Kind::Bytes:
      for (const std::uint64_t w : sets_[a].words) h.add(w);
      break;
    case Kind::Chars:
      h.add(b);
      for (const CodeRange& r : ranges_[a]) h.add((std::uint64_t{r.low} << 32) | r.high);
      break;
    case Kind::Concat:
    case Kind::JsonRaw:
    case Kind::Without:
      h.add(nodes_[a].hash);
      h.add(nodes_[b].hash);
      break;
    case Kind::Union:
    case Kind::Intersect:
      for (const Term t : list(a)) h.add(nodes_[t].hash);
      break;
    case Kind::Keys:
    case Kind::KeyDigits:
      h.add(b);
      for (std::size_t i = 0; i < list(a).size(); i += 2) {
        h.add(list(a)[i]);
        h.add(nodes_[list(a)[i + 1]].hash);
      }
      break;
    case Kind::Complement:
    case Kind::NoSplit:
      h.add(nodes_[a].hash);
      break;
    case Kind::Repeat:
    case Kind::Json:
    case Kind::Metered:
    case Kind::Distinct:
      h.add(nodes_[a].hash);
      h.add((std::uint64_t{b} << 32) | c);
      break;
    case Kind::Take:
      h.add(a);
      break;
    case Kind::Residue:
    case Kind::Margin:
      h.add((std::uint64_t{a} << 32) | b);
      h.add(c);
      break;
    case Kind::Seen:
      h.add((std::uint64_t{a} << 32) | b);
      h.add(c);
      h.keyed = mix64(h.keyed, salt_);
      break;
    case Kind::Call:
      // Rules are known by number: the same in equal grammars (for printing), told apart between
      // stores by the salt (for caches).
      h.add((std::uint64_t{a} << 32) | b);
      h.keyed = mix64(h.keyed, salt_);
      break;
    case Kind::Members:
      h.add((std::uint64_t{a} << 32) | b);
      h.add(c);
      h.keyed = mix64(h.keyed, salt_);
      break;
    case Kind::Token:
      for (const std::string& name : token_sets_[a].names) {
        for (const char c : name) h.add(static_cast<unsigned char>(c));
        h.add(256);
      }
      for (const IdRange& r : token_sets_[a].ids) h.add((std::uint64_t{r.low} << 32) | r.high);
      h.add(token_sets_[a].negated ? 1 : 0);
      break;
  }
  return h;
}

Term TermStore::intern(Kind kind, std::uint8_t flags, std::uint32_t a, std::uint32_t b,
                       std::uint32_t c) {
  const std::uint64_t h = mix64((std::uint64_t{a} << 32) | b,
                                (std::uint64_t{c} << 8) | static_cast<std::uint64_t>(kind));
  const Term known = table_.find(h, [&](Term t) {
    const Node& n = nodes_[t];
    return n.kind == kind && n.a == a && n.b == b && n.c == c;
  });
  if (known != kNone) return known;
  if (nodes_.size() >= limits_.max_terms) {
    throw LimitFault(
        "the grammar needs more than max_terms = " + std::to_string(limits_.max_terms) + " terms");
  }
  if (nodes_.size() >= step_end_) {
    throw LimitFault(
        "one step made more than max_step_terms = " + std::to_string(limits_.max_step_terms) +
        " new terms; the grammar is too ambiguous to follow");
  }
  const auto id = static_cast<Term>(nodes_.size());
  nodes_.push_back({kind, flags, height_of(kind, a, b), a, b, c, structural_hash(kind, a, b, c)});
  facts_.emplace_back();
  table_.insert(h, id);
  return id;
}

void TermStore::sort_by_hash(std::vector<Term>& items) const {
  std::ranges::sort(items, [this](Term x, Term y) { return nodes_[x].hash < nodes_[y].hash; });
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

Term TermStore::bytes(const ByteSet& set) {
  if (set.empty()) return kNothing;
  return intern(Kind::Bytes, 0, intern_set(set), 0, 0);
}

Term TermStore::concat(Term a, Term b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kEmpty) return b;
  if (b == kEmpty) return a;
  if (nodes_[a].kind == Kind::Concat) {
    std::vector<Term> heads;
    Term rest = a;
    for (; nodes_[rest].kind == Kind::Concat; rest = nodes_[rest].b)
      heads.push_back(nodes_[rest].a);
    Term result = concat(rest, b);
    for (std::size_t i = heads.size(); i-- > 0;) result = concat(heads[i], result);
    return result;
  }
  if (nodes_[a].kind == Kind::Repeat) {  // X{a,b} X{c,d} = X{a+c,b+d}
    const bool tail = nodes_[b].kind == Kind::Concat;
    const Term next = tail ? nodes_[b].a : b;
    if (nodes_[next].kind == Kind::Repeat && nodes_[next].a == nodes_[a].a) {
      const Node x = nodes_[a];
      const Node y = nodes_[next];
      const std::uint64_t low = std::uint64_t{x.b} + y.b;
      const std::uint64_t high =
          (x.c == kUnbounded || y.c == kUnbounded) ? kUnbounded : std::uint64_t{x.c} + y.c;
      if (low < kUnbounded && (high < kUnbounded || x.c == kUnbounded || y.c == kUnbounded)) {
        const Term merged =
            repeat(x.a, static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high));
        return tail ? concat(merged, nodes_[b].b) : merged;
      }
    }
  }
  const Node& x = nodes_[a];
  const Node& y = nodes_[b];
  auto flags =
      static_cast<std::uint8_t>(inherited(x) | inherited(y) | (x.flags & y.flags & kNullable) |
                                (x.flags & (kHasNoSplit | kFirstCall | kStepwise | kTaking)));
  if ((x.flags & kNullable) != 0) flags |= y.flags & (kHasNoSplit | kFirstCall);
  return intern(Kind::Concat, flags, a, b, 0);
}

Term TermStore::concat(std::span<const Term> items) {
  Term result = kEmpty;
  for (std::size_t i = items.size(); i-- > 0;) result = concat(items[i], result);
  return result;
}

Term TermStore::intersect(std::vector<Term> items) {
  intersected_ += items.size();
  std::vector<Term> flat;
  std::vector<Term> excluded;
  ByteSet set = ByteSet::range(0, 255);
  bool has_set = false;
  auto add = [&](auto&& self, Term t) -> void {
    const Node& n = nodes_[t];
    if (n.kind == Kind::Intersect) {
      const std::vector<Term> inner(list(n.a).begin(), list(n.a).end());
      for (const Term u : inner) self(self, u);
    } else if (n.kind == Kind::Complement) {
      excluded.push_back(n.a);
    } else if (n.kind == Kind::Bytes) {
      set = set & sets_[n.a];
      has_set = true;
    } else {
      flat.push_back(t);
    }
  };
  for (const Term t : items) {
    if (has(t, kHasCall)) {
      throw GrammarFault(
          "`&` and `~` apply to regular grammars only, and this operand contains a "
          "rule or a special token; write it without");
    }
    add(add, t);
  }
  if (has_set) flat.push_back(bytes(set));
  if (!excluded.empty()) {
    const Term out = join(std::move(excluded));
    if (out == everything()) return kNothing;
    // a & ~(a | b), or a part of a: what a look-ahead leaves that has been violated, `any & ~(any |
    // .*x any)`, where a search for its end would go through all that stands beside it.
    const std::span<const Term> parts =
        nodes_[out].kind == Kind::Union ? list(nodes_[out].a) : std::span<const Term>(&out, 1);
    for (const Term part : parts) {
      const bool star = is_star(part);
      const auto is_taken = [&](Term t) {
        return part == t || (star && uses_only(t, nodes_[part].a));
      };
      if (std::ranges::any_of(flat, is_taken)) return kNothing;
    }
    if (out != kNothing) flat.push_back(raw_complement(out));
  }
  if (flat.empty()) return everything();
  sort_by_hash(flat);
  if (flat[0] == kNothing || std::ranges::find(flat, kNothing) != flat.end()) return kNothing;
  if (flat.size() == 1) return flat[0];
  if (std::ranges::find(flat, kEmpty) != flat.end()) {
    return std::ranges::all_of(flat, [this](Term t) { return nullable(t); }) ? kEmpty : kNothing;
  }
  std::size_t weighty = 0;
  for (const Term t : flat) {
    const Node& n = nodes_[t];
    if (n.kind == Kind::Complement ? has(n.a, kEndless) : t != any_text_) ++weighty;
  }
  has_algebra_ = has_algebra_ || weighty > 1;
  std::uint8_t flags = kMaybeEmpty | kEndless;
  std::uint8_t common = kNullable;
  for (const Term t : flat) {
    common &= nodes_[t].flags;
    flags = static_cast<std::uint8_t>(flags | (nodes_[t].flags & kHasNoSplit));
  }
  return intern(Kind::Intersect, static_cast<std::uint8_t>(flags | common), intern_list(flat), 0,
                0);
}

Term TermStore::raw_complement(Term a) {
  if (has(a, kHasCall)) {
    throw GrammarFault(
        "`~` applies to regular grammars only, and this operand contains a rule or a "
        "special token; write it without");
  }
  if (nodes_[a].kind == Kind::Complement) return nodes_[a].a;
  return intern(Kind::Complement,
                static_cast<std::uint8_t>(kMaybeEmpty | kEndless | (nullable(a) ? 0 : kNullable)),
                a, 0, 0);
}

Term TermStore::complement(Term a) { return intersect({any_text(), raw_complement(a)}); }

Term TermStore::everything() {
  return intern(Kind::Complement, kNullable | kEndless, kNothing, 0, 0);
}

Term TermStore::repeat(Term a, std::uint32_t min, std::uint32_t max) {
  if (min > max) throw GrammarFault("a repetition's minimum is above its maximum");
  if (max == 0 || a == kEmpty) return kEmpty;
  if (a == kNothing) return min == 0 ? kEmpty : kNothing;
  if (min == 1 && max == 1) return a;
  const Node n = nodes_[a];
  if ((n.flags & kNullable) != 0) {
    min = 0;
    if (n.kind == Kind::Union) {
      const std::vector<Term> inner(list(n.a).begin(), list(n.a).end());
      if (std::ranges::find(inner, kEmpty) != inner.end()) {
        std::vector<Term> rest;
        std::ranges::copy_if(inner, std::back_inserter(rest), [](Term t) { return t != kEmpty; });
        return repeat(join(std::move(rest)), 0, max);
      }
    }
    if (max == 1) return a;
  }
  if (n.kind == Kind::Repeat) {
    // (X{p,q}){m,n} is X{pm,qn} when consecutive counts leave no gap: q*k + 1 >= p*(k+1) at k = m
    // (the gap shrinks as k grows). With m = 0 the empty text needs p <= 1.
    const std::uint64_t p = n.b;
    const std::uint64_t q = n.c;
    const bool no_gap =
        min == max || (min == 0 ? p <= 1 : (n.c == kUnbounded || q * min + 1 >= p * (min + 1)));
    const std::uint64_t low = p * min;
    const std::uint64_t high = (n.c == kUnbounded || max == kUnbounded) ? kUnbounded : q * max;
    if (no_gap && low < kUnbounded && high <= kUnbounded) {
      const bool unbounded = n.c == kUnbounded || max == kUnbounded;
      if (unbounded || high < kUnbounded) {
        return repeat(n.a, static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high));
      }
    }
  }
  auto flags = static_cast<std::uint8_t>(inherited(n) | (n.flags & (kHasNoSplit | kFirstCall)));
  if (min == 0) flags |= kNullable;
  if (max == kUnbounded) flags |= kEndless;
  return intern(Kind::Repeat, flags, a, min, max);
}

Term TermStore::no_split(Term a) {
  if (a == kNothing) return kNothing;
  const auto flags = static_cast<std::uint8_t>((nodes_[a].flags & ~kStepwise) | kHasNoSplit);
  return intern(Kind::NoSplit, flags, a, 0, 0);
}

Term TermStore::at_token_end(Term t) {
  if (!has(t, kHasNoSplit)) return t;
  const Node n = nodes_[t];
  switch (n.kind) {
    case Kind::NoSplit:
      return kNothing;
    case Kind::Metered:
      return after_token(t);
    case Kind::Concat:
      return concat(at_token_end(n.a), n.b);
    case Kind::Union:
    case Kind::Intersect: {
      const std::vector<Term> inner(list(n.a).begin(), list(n.a).end());
      std::vector<Term> kept;
      for (const Term u : inner) kept.push_back(at_token_end(u));
      const Term result =
          n.kind == Kind::Union ? join(std::move(kept)) : intersect(std::move(kept));
      return is_empty(result) ? kNothing : result;
    }
    case Kind::JsonRaw: {
      const Term result = json_raw(n.a, at_token_end(n.b));
      return is_empty(result) ? kNothing : result;
    }
    case Kind::Without: {
      const Term result = without(at_token_end(n.a), n.b);
      return is_empty(result) ? kNothing : result;
    }
    default:
      return t;
  }
}

}  // namespace grammaton
