#include "index/constraint.hpp"

#include <algorithm>
#include <bit>

namespace grammaton {

namespace {

// How far ahead forced text is followed in one call.
constexpr std::size_t kMostForcedBytes = 4096;
constexpr std::size_t kMostForcedTokens = 64;
// As measured on schemas: what a constraint takes that has hardly a term (its store knows any JSON
// string), a term with its row and all tables, a frame or a set.
constexpr std::size_t kBaseBytes = 90'000;
constexpr std::size_t kTermBytes = 160;
constexpr std::size_t kFrameBytes = 40;

// How many bytes stand for themselves in a JSON string, each a character.
std::size_t plain_bytes(std::string_view text) {
  const auto end = std::ranges::find_if(
      text, [](char c) { return c < 0x20 || c > 0x7E || c == '"' || c == '\\'; });
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

Constraint::Constraint(TermStore& source, Term start, std::shared_ptr<TokenIndex> index,
                       const Limits& limits, bool rehearse)
    : limits_(limits), index_(std::move(index)) {
  if (source.has_captures()) {
    written_ = std::make_unique<TermStore>(source);
    written_start_ = start;
  }
  NormalForm form = normalise(source, start, index_->spelling(), limits);
  store_ = std::move(form.store);
  has_tokens_ = store_->has_tokens();
  for (std::uint32_t set = 0; set < store_->token_set_count(); ++set) {
    const TokenSet& tokens = store_->token_set(set);
    if (!tokens.resolved) throw GrammarFault("tokens of the grammar were not looked up");
    if (tokens.ids.back().high >= index_->mask_bits()) {
      throw VocabularyFault("token id " + std::to_string(tokens.ids.back().high) +
                            " of the grammar is out of range");
    }
  }
  machine_ = std::make_unique<Machine>(*store_, limits);
  walker_ = std::make_unique<Walker>(*machine_, *index_, limits);
  start_term_ = form.start;
  start_ = machine_->start(start_term_);
  if (rehearse) walker_->rehearse(start_term_);
  walker_->probe(start_term_);
  measure();
}

Constraint::Constraint(Constraint& first)
    : limits_(first.limits_),
      index_(first.index_),
      store_(first.store_->copy(limits_)),
      machine_(std::make_unique<Machine>(*store_, limits_)),
      walker_(std::make_unique<Walker>(*machine_, *index_, limits_)),
      start_term_(first.start_term_),
      has_tokens_(first.has_tokens_) {
  start_ = machine_->start(start_term_);
  measure();
}

std::shared_ptr<Constraint> Constraint::newest_generation() {
  const std::scoped_lock lock(newest_mutex_);
  return newest_;
}

std::shared_ptr<Constraint> Constraint::for_sequence(
    const std::shared_ptr<Constraint>& constraint) {
  Constraint& first = *constraint;
  if (first.source_ || !first.store_->remembers()) return constraint;
  if (auto newest = first.newest_generation(); newest && !newest->worn_) return newest;
  std::shared_ptr<Constraint> made;
  {
    const Hold hold(first);
    made.reset(new Constraint(first));
  }
  const std::scoped_lock lock(first.newest_mutex_);
  if (!first.newest_ || first.newest_->worn_) {
    made->generation_ = first.newest_ ? first.newest_->generation_ + 1 : 1;
    first.newest_ = std::move(made);
  }
  return first.newest_;
}

std::size_t Constraint::memory() {
  const std::shared_ptr<Constraint> newest = newest_generation();
  return grown_ + mask_bytes_ + (newest ? newest->memory() : 0);
}

Constraint::Constraint(std::unique_ptr<StateSource> source, std::shared_ptr<TokenIndex> index,
                       const Limits& limits)
    : limits_(limits), index_(std::move(index)), source_(std::move(source)) {
  start_ = source_->start();
  measure();
}

void Constraint::measure() {
  if (source_) {
    grown_.store(kBaseBytes + source_->memory() + steps_.memory(), std::memory_order_relaxed);
    return;
  }
  const std::size_t frames =
      machine_->frame_count() + machine_->set_count() + machine_->text_count();
  grown_.store(kBaseBytes + store_->size() * kTermBytes + frames * kFrameBytes + walker_->memory() +
                   steps_.memory(),
               std::memory_order_relaxed);
  worn_.store(store_->size() > limits_.max_terms / 2 || frames > limits_.max_frames / 2,
              std::memory_order_relaxed);
}

std::shared_ptr<const FinishedMask> Constraint::find_mask(State state) {
  const std::scoped_lock lock(masks_mutex_);
  auto found = masks_.find(set_of(state));
  if (found == masks_.end() && text_of(state) != kNoText) found = masks_.find(state);
  if (found == masks_.end()) return nullptr;
  ++mask_hits_;
  return found->second;
}

// Under mutex_, so that a mask is made once however many wait for it.
std::shared_ptr<const FinishedMask> Constraint::make_mask(State state) {
  if (auto kept = find_mask(state)) return kept;
  const auto mask = std::make_shared<const FinishedMask>(source_ ? source_->mask(set_of(state))
                                                                 : walker_->mask(state));
  std::size_t bytes = mask->memory();
  std::unordered_map<State, std::shared_ptr<const FinishedMask>> evicted;  // freed without the lock
  const std::scoped_lock lock(masks_mutex_);
  ++mask_misses_;
  // A base may outlive its frame's eviction from the vocabulary's cache: each is counted once.
  if (mask->base() && !bases_.contains(mask->base().get())) bytes += index_->words() * sizeof(Word);
  if (mask_bytes_ + bytes > limits_.mask_cache_bytes) {
    masks_.swap(evicted);
    bases_.clear();
    mask_bytes_.store(0, std::memory_order_relaxed);
  }
  const bool by_text = walker_ && walker_->by_text();
  masks_.emplace(by_text ? state : State{set_of(state)}, mask);
  if (mask->base()) bases_.insert(mask->base().get());
  mask_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return mask;
}

std::shared_ptr<const FinishedMask> Constraint::mask(State state) {
  if (auto kept = find_mask(state)) return kept;
  const Hold hold(*this);
  return make_mask(state);
}

void Constraint::fill(State state, std::uint32_t* out) {
  const std::span<std::uint32_t> words(out, index_->mask_words());
  if (state == kFinished) {
    std::ranges::fill(words, 0);
  } else {
    mask(state)->write(words);
  }
}

// The configuration after `text`, at whose end a token may end.
State Constraint::follow(State state, std::string_view text) {
  if (source_) return source_->follow(set_of(state), text);
  constexpr std::size_t kPiece = 4096;  // a budget of terms belongs to a step; long text is many
  machine_->load(state, groups_);
  std::size_t leapt = 0;  // up to here there is nothing more to leap over
  for (std::size_t i = 0, piece = 0; i < text.size();) {
    if (i >= piece) {
      machine_->begin_step();
      piece = i + kPiece;
    }
    machine_->close(groups_, ByteSet::of(static_cast<unsigned char>(text[i])));
    std::size_t run = 0;
    if (i >= leapt && machine_->leaps(groups_)) {
      run = plain_bytes(text.substr(i, kPiece));
      leapt = i + run;
      if (!machine_->leap(groups_, text.substr(i, run), next_)) run = 0;
    }
    if (run == 0) machine_->step(groups_, static_cast<unsigned char>(text[i]), next_);
    if (next_.items.empty()) return kRejected;
    std::swap(groups_, next_);
    i += run == 0 ? 1 : run;
  }
  if (!machine_->token_may_end(groups_)) return kRejected;
  machine_->end_token(groups_);
  return machine_->intern(groups_);
}

State Constraint::accept(State state, std::uint32_t token) {
  if (token >= index_->mask_bits()) {
    throw VocabularyFault("token id " + std::to_string(token) +
                          " is out of range; the vocabulary has ids 0 to " +
                          std::to_string(index_->mask_bits() - 1));
  }
  if (state == kFinished) return kRejected;
  if (!has_tokens_) {
    if (index_->is_eos(token)) return is_complete(state) ? kFinished : kRejected;
    if (!index_->matches_text(token)) return kRejected;
  }
  Hold hold(*this);
  if (const State* const known = steps_.find(state, token)) {
    hold.nothing_grew();
    return *known;
  }
  const State next = take(state, token);
  if (next != kRejected) steps_.keep(state, token, next);
  return next;
}

std::optional<State> Constraint::find_step(State state, std::uint32_t token) {
  if (token >= index_->mask_bits()) return std::nullopt;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const State* const known = lock ? steps_.find(state, token) : nullptr;
  return known ? std::optional(*known) : std::nullopt;
}

// Where a token leads that may be text, a letter of its own, or the end, and more than one of them
// at once.
State Constraint::take(State state, std::uint32_t token) {
  State as_text = kRejected;
  if (index_->matches_text(token)) as_text = follow(state, index_->token(token));
  if (!has_tokens_) return as_text;
  machine_->begin_step();
  machine_->load(state, groups_);
  machine_->close(groups_);
  const bool ends = groups_.ended && index_->is_eos(token);
  next_.clear();
  next_.text = kNoText;
  machine_->step_token(groups_, token, next_);
  if (next_.items.empty()) return ends ? kFinished : as_text;
  if (as_text != kRejected) machine_->merge(as_text, next_);
  // An end of sequence that goes on here as well: the text is complete, whatever follows.
  if (ends) machine_->merge(machine_->start(kEmpty), next_);
  return machine_->intern(next_);
}

State Constraint::accept_bytes(State state, std::string_view text) {
  if (state == kFinished) return text.empty() ? state : kRejected;
  if (text.empty()) return state;
  const Hold hold(*this);
  return follow(state, text);
}

bool Constraint::is_complete(State state) {
  if (state == kFinished) return true;
  const Hold hold(*this);
  if (source_) return source_->may_end(set_of(state));
  machine_->begin_step();
  machine_->load(state, groups_);
  machine_->close_pops(groups_);
  return groups_.ended;
}

std::string Constraint::forced_bytes(State state) {
  std::string forced;
  if (state == kFinished) return forced;
  const Hold hold(*this);
  if (source_) return source_->forced_bytes(set_of(state), kMostForcedBytes);
  machine_->begin_step();
  machine_->load(state, groups_);
  while (forced.size() < kMostForcedBytes) {
    machine_->close(groups_);
    if (groups_.ended) break;
    ByteSet live;
    bool token = false;
    for (const Group& group : groups_.items) {
      live = live | store_->class_map(store_->row(group.term)).live;
      token = token || (has_tokens_ && !store_->first_tokens(group.term).empty());
    }
    if (live.size() != 1 || token) break;
    const unsigned byte = live.first();
    machine_->step(groups_, byte, next_);
    std::swap(groups_, next_);
    forced.push_back(static_cast<char>(byte));
  }
  return forced;
}

std::vector<std::uint32_t> Constraint::forced_tokens(State state) {
  std::vector<std::uint32_t> forced;
  if (state == kFinished) return forced;
  const Hold hold(*this);
  std::vector<std::uint32_t> mask(index_->mask_words());
  while (forced.size() < kMostForcedTokens) {
    make_mask(state)->write(mask);
    int bits = 0;
    std::uint32_t token = 0;
    for (std::size_t i = 0; i < mask.size() && bits < 2; ++i) {
      if (mask[i] == 0) continue;
      bits += std::popcount(mask[i]);
      token = static_cast<std::uint32_t>(i * 32) +
              static_cast<std::uint32_t>(std::countr_zero(mask[i]));
    }
    if (bits != 1 || index_->is_eos(token)) break;
    state = take(state, token);
    if (state == kRejected) break;
    forced.push_back(token);
  }
  return forced;
}

std::optional<float> Constraint::temperature(State state) {
  std::optional<float> highest;
  if (state == kFinished || source_) return highest;
  const Hold hold(*this);
  if (!store_->has_meters()) return highest;
  machine_->begin_step();
  machine_->load(state, groups_);
  machine_->close(groups_);
  for (const Group& group : groups_.items) {
    const Node& n = store_->node(group.term);
    if (n.kind != Kind::Metered || n.c == kNone) continue;
    const float found = std::bit_cast<float>(n.c);
    highest = std::max(found, highest.value_or(found));
  }
  return highest;
}

std::vector<Captured> Constraint::captures(std::vector<ReadPiece> pieces) {
  if (written_ == nullptr) return {};
  for (ReadPiece& piece : pieces) {
    if (piece.token != kNone && index_->matches_text(piece.token))
      piece.text = index_->token(piece.token);
  }
  const std::scoped_lock lock(written_mutex_);
  return find_captures(*written_, written_start_, pieces);
}

std::vector<std::vector<Term>> Constraint::stacks(State state, std::size_t limit) {
  std::vector<std::vector<Term>> found;
  if (state == kFinished || source_) return found;
  const Hold hold(*this);
  // The set under each frame of the path, and the index of the frame that is to be tried next.
  std::vector<std::pair<SetId, std::size_t>> path{{set_of(state), 0}};
  std::vector<Term> terms;
  while (!path.empty() && found.size() < limit) {
    auto& [set, next] = path.back();
    const std::vector<FrameId> frames = machine_->frames(set);
    if (next == frames.size()) {
      path.pop_back();
      if (!terms.empty()) terms.pop_back();
      continue;
    }
    const FrameId id = frames[next++];
    if (id == kBottom) {
      found.push_back(terms);
      continue;
    }
    const Frame frame = machine_->frame(id);
    terms.push_back(frame.term);
    path.emplace_back(frame.parents, 0);
  }
  return found;
}

Constraint::Stats Constraint::stats() {
  if (const auto newest = newest_generation()) return newest->stats();
  const std::scoped_lock lock(mutex_, masks_mutex_);
  if (source_) {
    const StateSource::Sizes sizes = source_->sizes();
    return {source_->walk_stats(), sizes.terms, sizes.frames, sizes.sets, masks_.size(),
            mask_bytes_,           mask_hits_,  mask_misses_, 0};
  }
  return {walker_->stats(),
          store_->size(),
          machine_->frame_count(),
          machine_->set_count(),
          masks_.size(),
          mask_bytes_,
          mask_hits_,
          mask_misses_,
          store_->operands_joined()};
}

Matcher::Matcher(std::shared_ptr<Constraint> constraint) : origin_(std::move(constraint)) {
  reset();
}

void Matcher::reset() {
  constraint_ = Constraint::for_sequence(origin_);
  states_.assign(1, constraint_->start());
  read_.clear();
}

bool Matcher::take(State next, std::uint32_t token, std::string_view text) {
  if (next == Constraint::kRejected) return false;
  states_.push_back(next);
  if (origin_->has_captures()) read_.push_back({token, std::string(text)});
  return true;
}

bool Matcher::fill_known(std::uint32_t* out) {
  if (is_finished()) return false;
  const std::shared_ptr<const FinishedMask> mask = constraint_->find_mask(state());
  if (mask) mask->write({out, constraint_->index().mask_words()});
  return mask != nullptr;
}

std::optional<bool> Matcher::accept_known(std::uint32_t token) {
  const std::optional<State> next = constraint_->find_step(state(), token);
  return next ? std::optional(take(*next, token, {})) : std::nullopt;
}

std::vector<Captured> Matcher::captures() {
  std::vector<ReadPiece> pieces = read_;
  if (is_finished() && !pieces.empty()) pieces.pop_back();  // the end of sequence
  return origin_->captures(std::move(pieces));
}

std::size_t Matcher::validate(std::span<const std::uint32_t> tokens) {
  State at = state();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    at = constraint_->accept(at, tokens[i]);
    if (at == Constraint::kRejected) return i;
  }
  return tokens.size();
}

bool Matcher::rollback(std::size_t n) {
  if (n > accepted()) return false;
  states_.resize(states_.size() - n);
  if (!read_.empty()) read_.resize(read_.size() - n);
  return true;
}

}  // namespace grammaton
