// The term store: the expression language, hash-consed (docs/machine.md).
//
// A *term* is a 32-bit id of a node in one store; equal ids mean equal languages by construction,
// and most equal languages that front ends produce get equal ids, because the constructors
// normalise (see terms.cpp). A *rule* is a named body that terms reach by `call`; the pair (rule,
// parameter) has one body, instantiated when first asked for. A *row* is the whole derivative of a
// term: for each byte the residual term, stored as a shared map byte -> class and one target a
// class, so a warm step is two loads. Rows are computed on first use and kept.
//
// Costs: a node is 48 bytes; interning one takes 30 to 100 ns; a row 0.1 to 2 us when it is made.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/bytes.hpp"
#include "grammar/hash.hpp"
#include "grammar/join_memo.hpp"
#include "grammar/term.hpp"
#include "grammar/witnesses.hpp"

namespace grammaton {

class CharacterClasses;  // character_classes.hpp
struct Kept;             // normalise.hpp
struct TemplateFacts;    // endings.hpp

class TermStore {
 public:
  explicit TermStore(const Limits& limits);
  // A store that knows what any JSON string is and has its rows: a copy of one that is kept. Making
  // them anew was a third of the first mask in a string.
  static std::unique_ptr<TermStore> with_json_strings(const Limits& limits);
  // A store that begins with all that this one has, under the same ids. What is said of this one
  // in `kept` holds of the copy.
  std::unique_ptr<TermStore> copy(const Limits& limits) const;
  const Kept* kept() const { return kept_.get(); }
  void set_kept(std::shared_ptr<const Kept> kept) { kept_ = std::move(kept); }

  // --- constructors: each returns the normalised term ---
  Term bytes(const ByteSet& set);
  Term byte(unsigned value) { return bytes(ByteSet::of(value)); }
  // `restricted`: only the characters that restrict_characters() allowed.
  Term chars(CodeRanges ranges, bool restricted = false);
  Term literal(std::string_view text);
  Term literals(std::vector<std::string> texts);
  Term concat(Term a, Term b);
  Term concat(std::span<const Term> items);
  Term join(std::vector<Term> items);       // union
  Term intersect(std::vector<Term> items);  // regular terms only
  // Whether there was an intersection that is more than something less a few texts.
  bool has_algebra() const { return has_algebra_; }
  Term raw_complement(Term a);  // over all byte strings
  Term complement(Term a);      // over valid UTF-8
  Term repeat(Term a, std::uint32_t min, std::uint32_t max);
  Term json(Term a, bool restricted = false) { return json(a, 0, restricted); }
  // The same where a spelling of its next character is under way: `b` of a Json's node.
  Term json_within(Term a, std::uint32_t phase) { return json(a, phase, false); }
  Term json_raw(Term a, Term rest);
  Term no_split(Term a);
  // Digits with at most one point among them, whose value times 10^places is a multiple of divisor.
  Term multiples(std::uint32_t divisor, std::uint32_t places);
  Term call(Rule rule, Param param = 0);
  Term token(TokenSet set);
  // Spaces and tabs that are as wide as the counter of the parameter says; a tab counts as `tab`
  // columns, or is not used when that is 0. `some`: not the empty text.
  Term margin(std::uint32_t counter, std::uint32_t tab, bool some);
  Term distinct(Term a, Written written, bool restricted = false);

  Term any_char();    // one valid UTF-8 character
  Term any_text();    // any valid UTF-8 text
  Term everything();  // any byte string

  // --- rules and parameters ---
  Rule rule(std::string name);
  void define(Rule rule, Term body);
  void define_template(Rule rule, std::vector<Alternative> alternatives);
  void set_attributes(Rule rule, RuleAttributes attributes) {
    rules_[rule].attributes = std::move(attributes);
    has_captures_ = has_captures_ || !rules_[rule].attributes.capture.empty() ||
                    !rules_[rule].attributes.stop_capture.empty();
  }
  bool has_captures() const { return has_captures_; }
  void set_loop(Rule rule, Term loop) { rules_[rule].loop = loop; }
  void set_scoped(Rule rule) { rules_[rule].scoped = true; }
  void set_unordered(Rule rule) { rules_[rule].unordered = true; }
  void set_sound(Rule rule) { rules_[rule].sound = true; }
  // From here on, alternatives of templates that go on to this one are left out when they lead to
  // no end.
  void set_cut(Rule rule) { rules_[rule].cut = has_cut_ = true; }
  Param param(ParamValue value);
  const ParamValue& param_value(Param param) const { return params_[param]; }
  const RuleInfo& rule_info(Rule rule) const { return rules_[rule]; }
  std::size_t rule_count() const { return rules_.size(); }
  std::size_t param_count() const { return params_.size(); }
  // A regular term of which at most so many tokens may hold a part (metered.cpp).
  Term metered(Term a, std::uint32_t tokens, std::uint32_t temperature);
  // What is left of a term at the end of a token: one token fewer, where they are counted.
  Term after_token(Term t);
  bool has_meters() const { return has_meters_; }
  // Bytes of the shortest text of a regular term.
  std::uint32_t shortest(Term t);
  // A metered term whose meter has no say in which tokens can come next, without it; others as they
  // are.
  Term without_meter(Term t);
  // Whether a margin or a call with kInherited is inside.
  bool depends_on_parameter(Term t);
  // What a term is but for the levels of indentation in it (levels.cpp).
  const Levelless& without_levels(Term t);
  // Whether the body of a call tells one level of indentation from another.
  bool tells_level(Rule rule, Param param);
  // Whether the body of a call is the same at every level but for the levels in it.
  bool alike_at_levels(Rule rule, Param param) const {
    const RuleInfo& info = rules_[rule];
    return info.inherits && !info.is_margin && !info.is_template && !has_other_margins_ &&
           is_level(param);
  }
  // The body of a call; instantiates templates on first use.
  Term body(Rule rule, Param param);

  // --- values that scopes have seen (distinct.cpp) ---
  // Whether any term speaks of them.
  bool remembers() const { return remembers_; }
  Term take(Written written);
  Term seen(SeenId set, std::uint32_t mark, bool unknown);
  // What a Distinct may still say where a set was seen; kNothing when nothing.
  Term distinct_body(Term distinct, SeenId set);
  // The set with the value of a text that a Distinct said; the same set when it is in it.
  SeenId remember(SeenId set, std::string_view text, Written written);
  Term without(Term a, Term b);
  // Whether some byte leads from a, not to be empty, to where no text of b goes on; true at once
  // for any string but a few, with a few texts b.
  bool goes_beyond(Term a, Term b);

  // --- what a term is and does ---
  const Node& node(Term t) const { return nodes_[t]; }
  bool has(Term t, Flag flag) const { return (nodes_[t].flags & flag) != 0; }
  bool nullable(Term t) const { return has(t, kNullable); }
  std::span<const Term> operands(Term t) const { return list(nodes_[t].a); }
  const ByteSet& byte_set(Term t) const { return sets_[nodes_[t].a]; }
  const CodeRanges& code_ranges(Term t) const { return ranges_[nodes_[t].a]; }
  std::size_t size() const { return nodes_.size(); }

  // Row with empty targets removed: what machines and walks step on.
  Row row(Term t) {
    if (facts_[t].row.map == kNone) fill_row(t);
    return facts_[t].row;
  }
  const ClassMap& class_map(const Row& row) const { return maps_[row.map]; }
  Term target(const Row& row, unsigned cls) const { return targets_[row.targets + cls]; }
  Term step(Term t, unsigned byte) {
    if (facts_[t].row.map == kNone && has(t, kStepwise)) return step_alone(t, byte);
    const Row r = row(t);
    return targets_[r.targets + maps_[r.map].of[byte]];
  }
  // The same with what may have no text.
  Term step_raw(Term t, unsigned byte) {
    const Row r = raw_row(t);
    return targets_[r.targets + maps_[r.map].of[byte]];
  }
  // step(), but of what may be empty only the residual that is asked for is made (lazy_steps.cpp).
  Term step_lazily(Term t, unsigned byte);
  // The same of any term: where few bytes of each are asked for.
  Term step_once(Term t, unsigned byte);
  // step() over the bytes of a character beyond ASCII, without a look at what stands inside it.
  Term step_character(Term t, std::string_view character);
  // The bytes of its row, or more where that is not made and the term may be empty.
  ByteSet may_begin_with(Term t);
  std::span<const FirstCall> first_calls(Term t);

  // --- tokens as letters (token_sets.cpp) ---
  bool has_tokens() const { return !token_sets_.empty(); }
  std::size_t token_set_count() const { return token_sets_.size(); }
  const TokenSet& token_set(std::uint32_t set) const { return token_sets_[set]; }
  // Whether some token can be it; without a vocabulary, one is taken to have it.
  bool token_ends(Term token) const {
    const TokenSet& set = token_sets_[nodes_[token].a];
    return !set.resolved || !set.ids.empty();
  }
  // The sets that a term and the rules it reaches use, ascending.
  std::vector<std::uint32_t> token_sets_of(Term t);
  // Says which ids a set has in the vocabulary at hand.
  void resolve_tokens(std::uint32_t set, std::vector<IdRange> ids);
  std::span<const FirstToken> first_tokens(Term t);
  // Whether no text at all; searches derivatives where it must. Calls count as non-empty.
  bool is_empty(Term t);
  // Whether a text of it is found in so many states; no means nothing.
  bool ends_within(Term t, std::size_t states);
  // The term without the branches in which a token must not end; kNothing when none is left.
  Term at_token_end(Term t);
  // Byte-level form of a character set.
  Term expand_chars(Term t);

  // --- containment, as far as terms show it (within.cpp) ---
  // Whether every text of a is seen to be one of b; false when it is not seen.
  bool within(Term a, Term b);
  // Holds the term, all that any text of whole characters leaves of it, and all that such a text
  // leaves of this: so it never grows. Nothing when that isn't known.
  std::optional<Term> rests(Term t);
  // Whether t is seen to be made of the characters of `letter` alone, a Chars or Bytes term.
  bool uses_only(Term t, Term letter);

  // Restricts characters to what a vocabulary spells: whole holds characters whose bytes are all
  // tokens, joined those that are tokens but whose bytes are not (see index/spelling.hpp).
  void restrict_characters(CodeRanges whole, CodeRanges joined);
  bool restricted() const { return restricted_; }

  // Whether t is json(any text & ~u)·tail for a few literal texts u.
  std::optional<AllBut> all_but(Term t);
  // Whether t is json(x & ~u)·tail so, x any other term.
  std::optional<AllBut> all_but_of_some(Term t);
  // One character of json(any text).
  Term any_json_character() { return json_char(false); }
  // json(any text)·tail.
  Term any_json_then(Term tail) {
    return concat(repeat(any_json_character(), 0, kUnbounded), tail);
  }

  // For Keys terms: operands() are edges (byte, residual), sorted; no escape is under way.
  bool between_key_characters(Term t) const {
    return nodes_[t].kind == Kind::Keys && nodes_[t].b == 0;
  }
  // Whether a character can begin here, rather than go on.
  bool at_key_character(Term t) const { return (operands(t)[0] & 0xC0) != 0x80; }
  // Whether a term is seen to have only texts that are sequences of characters.
  bool is_text(Term t) const;

  // The characters that can come next, as (code point, residual).
  std::vector<Term> key_characters(Term t) const;

  // t = json(x)·rest for a few texts x, or Members, or Keys already, as Keys; kNothing when it is
  // neither. Only the tails of branches stay lifts.
  Term as_keys(Term t);
  // The same for one text.
  std::optional<KeyText> key_text(Term t) const;

  // Whether t begins with one of some texts in JSON's spelling, or any but some, or with counted
  // items.
  bool leaps(Term t) const;
  // What is left of t after `text`, bytes that stand for themselves in a JSON string. Nothing when
  // that can't be told of t alone: on the way it may end, or begin with a call.
  std::optional<Term> leap(Term t, std::string_view text);

  bool is_members(Term t) const { return nodes_[t].kind == Kind::Members; }
  Members members(Term t) const {
    const Node& n = nodes_[t];
    return {n.a, n.b & 0xFFFF, n.b >> 16, n.c};
  }
  // What is left of the text of the i-th of a list; valid while no rule is added.
  std::string_view member_text(const Members& m, std::uint32_t i) const {
    return std::string_view(member_key(m, i).text).substr(m.depth);
  }
  // What follows that text.
  Term after_key(const Members& m, std::uint32_t i);

  // From here on, unions merge lifted literals into key tries, and their rows are those of tries.
  void merge_keys() {
    merge_keys_ = true;
    tails_ = JoinMemo();
  }

  // From begin_step() on, until the next or end_step(), at most max_step_terms terms may be made,
  // and kStepOperands times as many operands joined: unions can be taken apart and put together
  // again without a new term.
  void begin_step() {
    step_end_ = nodes_.size() + limits_.max_step_terms;
    operands_end_ = operands_ + kStepOperands * limits_.max_step_terms;
  }
  void end_step() { step_end_ = operands_end_ = ~std::uint64_t{0}; }
  // Operands joined so far, in all.
  std::uint64_t operands_joined() const { return operands_; }
  // And those of intersections.
  std::uint64_t operands_met() const { return operands_ + intersected_; }
  // Whether (rule, param) can end, given that every head in its alternatives can.
  bool can_end(Rule rule, Param param);
  // So many alternatives may be tried for that.
  std::uint64_t max_tries() const {
    return 10 * std::min(limits_.max_step_terms, std::uint64_t{1} << 32);
  }
  LimitFault too_many_tries(Rule rule) const;
  const Limits& limits() const { return limits_; }

 private:
  static std::uint64_t next_salt();
  void reserve();
  Term intern(Kind kind, std::uint8_t flags, std::uint32_t a, std::uint32_t b, std::uint32_t c);
  std::uint16_t height_of(Kind kind, std::uint32_t a, std::uint32_t b) const;
  Hash128 structural_hash(Kind kind, std::uint32_t a, std::uint32_t b, std::uint32_t c) const;
  std::span<const Term> list(std::uint32_t index) const {
    return {lists_.data() + list_index_[index].first, list_index_[index].second};
  }
  std::uint32_t intern_list(std::span<const Term> items);
  std::uint32_t intern_set(const ByteSet& set);
  std::uint32_t intern_map(const std::array<std::uint8_t, 256>& of);
  void sort_by_hash(std::vector<Term>& items) const;
  bool factor(std::vector<Term>& items);
  Term join_tails(std::vector<Term> tails);
  bool merge_counts(std::vector<Term>& items);
  Term literal_trie(std::span<const std::string> texts, std::size_t depth, unsigned branches);
  Term ascii(unsigned char c);
  Term utf8_term(const CodeRanges& ranges, bool joined);
  Term continuation_term(const CodeRanges& ranges, unsigned count, bool joined);
  Term block_terms(const CodeRanges& ranges, unsigned count, unsigned first, bool joined);

  // leaps.cpp
  std::optional<Term> leap_items(Term t, std::string_view text);
  std::optional<Term> leap_key(Term t, std::string_view text);
  std::optional<Term> leap_bytewise(Term t, std::string_view text);

  // within.cpp
  bool letter_within(Term a, Term b) const;
  bool is_star(Term t) const;
  void drop_within_stars(std::vector<Term>& items);
  bool within(Term a, Term b, unsigned& budget);
  Term rests(Term t, unsigned& budget);

  void split_after_key(Rule rule, Alternative& alternative);

  std::uint32_t farthest(Term t);

  // indentation.cpp
  Term with_parameter(Term t, Param param, std::unordered_map<Term, Term>& known);
  Term blanks(std::uint32_t width, std::uint32_t tab);
  Term call_margin(std::uint32_t counter, std::uint32_t tab, Param param);
  bool is_relative(Rule rule);
  bool is_level(Param param) const;
  Levelless levelless_call(Term t);

  // key_trie.cpp
  struct KeyEntry {
    std::string text;  // empty: `rest` is a Keys term
    Term rest;
    Term literal;  // the text as a term, or kNothing
  };
  bool append_single(Term t, std::string& text) const;
  bool append_literal(Term t, std::string& text) const;
  std::vector<std::string> choices(Term t, std::size_t most) const;
  bool may_be_keys(Term t) const;
  std::size_t count_texts(Term t, std::size_t most) const;
  using Exclusions = std::unordered_map<Term, std::shared_ptr<const Exclusion>>;
  template <typename Find>
  std::optional<AllBut> all_but_lifted(Term t, Find&& find, Exclusions& known);
  std::optional<Exclusion> find_exclusion(Term x);
  bool list_texts(Term t, std::string prefix, std::size_t most,
                  std::vector<std::string>& out) const;
  bool add_entries(Term t, std::size_t most, std::vector<KeyEntry>& entries) const;
  bool merge_lifts(std::vector<Term>& items);
  Term key_tail(const KeyEntry& entry, std::size_t depth);
  Term key_trie(std::vector<KeyEntry> entries);
  std::vector<Term> key_edges(std::span<const KeyEntry> entries, std::size_t depth);
  Term keys(std::span<const Term> edges, std::uint32_t phase);
  Term key_digits(std::span<const Term> candidates, std::uint32_t position);
  void add_key_characters(Term t, std::uint32_t code, unsigned more, std::vector<Term>& out) const;
  Row keys_row(Term t);
  Row key_digits_row(Term t);
  Row row_of(std::span<const std::pair<unsigned, Term>> targets);

  // members.cpp
  struct MemberList {
    Rule rule;
    Param param;
    std::uint32_t group;
    std::vector<std::uint32_t> keys;  // of the group, ascending
  };
  bool holds(const Alternative& alternative, Param param) const;
  void group_members(RuleInfo& info) const;
  Term members_left(Rule rule, Param param, std::uint32_t group);
  Term members_term(Members m);
  const MemberGroup::Key& member_key(const Members& m, std::uint32_t i) const;
  Term members_after(Members m);
  Members alike(Members m) const;
  std::vector<Term> member_edges(Members m);
  Term step_members(Term t, unsigned char byte);

  // distinct.cpp
  struct SeenSet {
    SeenId from = 0;  // and one value more
    std::uint32_t value = 0;
    std::array<Term, 2> texts{kNone, kNone};  // of its values, by how they are written
  };
  Row without_row(Term t);
  std::uint32_t intern_value(std::string value);
  Term value_texts(const std::string& value, Written written);
  Term seen_texts(SeenId set, Written written);

  // multiples.cpp
  Term residue(std::uint32_t divisor, std::uint32_t remainder, std::uint32_t places);
  Row residue_row(Term t);
  enum class Ending { Unknown, Some, None };
  Ending residue_ending(Term t);
  struct Remainders;
  Ending ending_in(const Remainders& remainders, Term shape);
  bool only_point(Term t);

  // json_lift.cpp
  Term json(Term x, std::uint32_t phase, bool restricted);
  Term json_char(bool restricted);  // one character of a JSON string, in any spelling

  // lazy_steps.cpp
  struct LazyRow {
    std::uint32_t map = kNone;
    std::uint32_t targets = 0;
  };
  bool is_composed(Term t);
  void add_maps(Term t, std::vector<std::uint32_t>& maps);
  LazyRow lazy_row(Term t);
  Term residual(Term t, unsigned byte);

  // derivatives.cpp
  void fill_row(Term t);
  Row raw_row(Term t);
  Row compute_row(Term t);
  Row make_row(const std::array<Term, 256>& target);
  Row make_sparse_row(std::span<const std::pair<unsigned, Term>> targets);
  // A row of a few live bytes; bytes that `of_byte` sends to kNothing are left out.
  template <typename OfByte>
  Row sparse_row(const ByteSet& live, OfByte&& of_byte) {
    std::vector<std::pair<unsigned, Term>> targets;
    live.each([&](unsigned b) {
      const Term t = of_byte(b);
      if (t != kNothing) targets.emplace_back(b, t);
    });
    return make_sparse_row(targets);
  }
  Row map_row(const Row& source, const std::vector<Term>& targets);
  Row union_row(std::span<const std::pair<Row, Term>> pieces);
  Row intersect_row(std::span<const Term> items);
  Row json_row(Term t);
  Row json_all_but_few_row(Term x);
  Term excluded_from_any(Term x) const;
  Term json_after_byte(Term u, unsigned byte);
  Term step_alone(Term t, unsigned byte);
  Row json_raw_row(Term t);
  Term json_after(Term x, std::uint32_t code_point);
  bool json_live(Term x, std::uint32_t phase);
  bool json_like_any(Term x, std::uint32_t phase);
  bool at_character_start(Term x);
  bool search_empty(Term t);
  std::optional<bool> search_empty(Term t, std::size_t states);
  // character_search.cpp. In vain: so it would be for what the term leads to, and looking at the
  // sets of its characters is 60 us.
  enum class Search { Empty, Ends, InVain, NotByCharacters };
  Search search_by_characters(Term t, std::size_t states);
  Term after_character(Term t, std::string_view character);
  bool dive(Term t, unsigned byte, std::size_t& budget);
  Term all_but_few(Term t) const;

  Limits limits_;
  std::shared_ptr<const Kept> kept_;
  std::vector<Node> nodes_;
  InternTable table_;
  std::vector<Term> lists_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> list_index_;
  InternTable list_lookup_;
  std::vector<ByteSet> sets_;
  InternTable set_lookup_;
  std::vector<CodeRanges> ranges_;
  InternTable range_lookup_;
  std::vector<ClassMap> maps_;
  InternTable map_lookup_;
  InternTable sparse_map_lookup_;

  // What is known of a term beyond its node, all of it found on first use.
  struct Facts {
    Row row;      // live targets only
    Row raw_row;  // before the emptiness filter
    std::uint32_t calls_begin = kNone;
    std::uint32_t calls_count = 0;
    std::uint8_t emptiness = 0;  // 0 unknown, 1 live, 2 empty
  };
  std::vector<Facts> facts_;
  std::vector<Term> targets_;
  std::vector<FirstCall> first_calls_;
  std::unordered_map<Term, Term> expansions_;
  Witnesses witnesses_;
  std::shared_ptr<const CharacterClasses> searched_by_;          // the last time
  std::vector<LazyRow> lazy_rows_;                               // by term
  std::vector<Term> lazy_targets_;                               // kNone: not made yet
  std::map<std::vector<std::uint32_t>, std::uint32_t> refined_;  // of add_maps()
  std::uint32_t spelled_map_ = kNone;  // bytes that stand for themselves in JSON strings, and not

  std::vector<TokenSet> token_sets_;
  std::map<TokenSet, std::uint32_t> token_set_lookup_;
  std::unordered_map<Term, std::vector<FirstToken>> first_tokens_;

  bool has_algebra_ = false;
  bool has_captures_ = false;
  bool has_meters_ = false;
  std::unordered_map<Term, std::uint32_t> shortest_;
  std::unordered_map<Term, std::uint32_t> farthest_;  // of metered.cpp
  bool has_inherited_ = false;
  bool has_other_margins_ = false;  // of another counter than the first
  std::unordered_map<std::uint64_t, Rule> margin_rules_;
  std::vector<std::uint32_t> levelless_of_;  // by term; an index, kNone when not known
  std::vector<Levelless> levelless_;
  std::unordered_map<Rule, bool> relative_;
  std::unordered_map<Term, bool> depends_on_parameter_;
  std::unordered_map<std::uint64_t, Term> blanks_;  // by width and tab

  std::vector<RuleInfo> rules_;
  std::vector<ParamValue> params_;
  InternTable param_lookup_;
  std::unordered_map<std::uint64_t, Term> bodies_;  // template instances, by (rule, param)

  std::vector<MemberList> member_lists_;

  bool remembers_ = false;
  std::vector<std::string> values_;
  InternTable value_lookup_;
  std::vector<SeenSet> seen_{SeenSet{}};
  InternTable seen_lookup_;
  std::unordered_map<std::uint64_t, Term> distinct_bodies_;  // by Distinct and set

  std::unordered_map<Term, Term> as_keys_;
  // By what is lifted, null where it is none: undeclared keys exclude the same in every state.
  Exclusions exclusions_[2];  // any text, others

  std::unordered_map<std::uint64_t, bool> uses_only_;  // by term and letter

  Term any_char_ = kNone;
  Term any_text_ = kNone;
  std::unordered_map<std::uint64_t, Term> steps_;  // of step_alone, by term and byte
  std::unordered_map<std::string, Term> leapt_;    // by text and term
  Term json_char_[2] = {kNone, kNone};             // plain, restricted
  bool restricted_ = false;
  unsigned depth_ = 0;             // of raw_row
  unsigned factor_depth_ = 0;      // of factor
  JoinMemo tails_;                 // of join_tails
  std::array<Term, 128> ascii_{};  // kNothing: not made yet
  CodeRanges whole_;
  CodeRanges joined_;
  std::uint64_t step_end_ = ~std::uint64_t{0};
  std::uint64_t operands_ = 0;
  std::uint64_t intersected_ = 0;
  std::uint64_t operands_end_ = ~std::uint64_t{0};
  bool has_cut_ = false;
  bool merge_keys_ = false;
  std::unordered_map<std::uint64_t, bool> can_end_;
  std::unordered_map<Rule, std::shared_ptr<const TemplateFacts>> template_facts_;
  std::uint64_t salt_;  // keeps call-bearing hashes of different stores apart
};

CodeRanges normalise_ranges(CodeRanges ranges);
CodeRanges intersect_ranges(const CodeRanges& a, const CodeRanges& b);

}  // namespace grammaton
