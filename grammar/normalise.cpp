#include "grammar/normalise.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "grammar/endings.hpp"
#include "grammar/left_recursion.hpp"
#include "grammar/rule_facts.hpp"

namespace grammaton {

namespace {

class Copy {
 public:
  Copy(TermStore& source, TermStore& target, const Kept* kept = nullptr)
      : source_(source), target_(target) {
    if (kept == nullptr) return;
    plain_ = restricted_ = kept->terms;
    rules_ = kept->rules;
  }

  Term term(Term t, bool restricted) {
    auto& memo = restricted ? restricted_ : plain_;
    if (memo.size() < source_.size()) memo.resize(source_.size(), kNone);
    if (memo[t] != kNone) return memo[t];
    if (facts_.ends && !sound_ && source_.has(t, kHasCall) && !facts_.ends(t))
      return memo[t] = kNothing;
    const Node n = source_.node(t);
    Term result = kNothing;
    switch (n.kind) {
      case Kind::Nothing:
        break;
      case Kind::Empty:
        result = kEmpty;
        break;
      case Kind::Bytes:
      case Kind::Chars:
        result = characters(t, restricted);
        break;
      case Kind::Concat: {
        std::vector<Term> heads;
        Term rest = t;
        for (; source_.node(rest).kind == Kind::Concat && memo[rest] == kNone;
             rest = source_.node(rest).b) {
          heads.push_back(rest);
        }
        result = term(rest, restricted);
        auto& again = restricted ? restricted_ : plain_;
        for (std::size_t i = heads.size(); i-- > 0;) {
          result = target_.concat(term(source_.node(heads[i]).a, restricted), result);
          again[heads[i]] = result;
        }
        break;
      }
      case Kind::Union:
      case Kind::Intersect: {
        const std::vector<Term> items(source_.operands(t).begin(), source_.operands(t).end());
        std::vector<Term> copied;
        for (const Term u : items) copied.push_back(term(u, restricted));
        result = n.kind == Kind::Union ? target_.join(std::move(copied))
                                       : target_.intersect(std::move(copied));
        break;
      }
      case Kind::Complement:
        // What is excluded stays whole: a text is excluded whether it can be spelled or not.
        result = target_.raw_complement(term(n.a, false));
        break;
      case Kind::Repeat:
        result = target_.repeat(term(n.a, restricted), n.b, n.c);
        break;
      case Kind::Json:
        // The decoded text is not what tokens spell; the lift restricts its raw characters itself.
        if (n.b != 0) throw_residual();
        result = target_.json(term(n.a, false), restricted && target_.restricted());
        break;
      case Kind::Call:
        result = call(n.a, n.b);
        break;
      case Kind::Token:
        result = target_.token(source_.token_set(n.a));
        break;
      case Kind::Margin:
        result = margin(n, restricted && target_.restricted());
        break;
      case Kind::Residue:
        if (n.b != 0 || (n.c & 0xFFFF) != 0) throw_residual();
        result = target_.multiples(n.a, n.c >> 16);
        if (restricted && target_.restricted()) result = spelled(result);
        break;
      case Kind::Distinct: {
        // As a lift is copied, or as any other term.
        const bool lifted = Written{n.b} == Written::Text;
        result = target_.distinct(term(n.a, restricted && !lifted), Written{n.b},
                                  lifted && restricted && target_.restricted());
        break;
      }
      case Kind::JsonRaw:
      case Kind::NoSplit:
      case Kind::Keys:
      case Kind::Members:
      case Kind::KeyDigits:
      case Kind::Metered:
      case Kind::Take:
      case Kind::Seen:
      case Kind::Without:
        throw_residual();
    }
    auto& last = restricted ? restricted_ : plain_;
    last[t] = result;
    return result;
  }

  Rule rule(Rule source_rule) {
    if (rules_.size() < source_.rule_count()) rules_.resize(source_.rule_count(), kNone);
    if (rules_[source_rule] != kNone) return rules_[source_rule];
    const RuleInfo& info = source_.rule_info(source_rule);
    const Rule made = rules_[source_rule] = target_.rule(info.name);
    if (info.scoped) target_.set_scoped(made);
    if (info.unordered) target_.set_unordered(made);
    if (!facts_.ends) {  // a copy, not a normal form
      RuleAttributes attributes = info.attributes;
      if (attributes.suffix != kNothing) attributes.suffix = term(attributes.suffix, false);
      target_.set_attributes(made, std::move(attributes));
    }
    return made;
  }

  const std::vector<Term>& terms() const { return restricted_; }
  const std::vector<Rule>& rules() const { return rules_; }

  // What is known of source terms and rules.
  struct Facts {
    std::function<bool(Term)> ends;      // of terms with calls
    std::function<bool(Rule)> nullable;  // may be empty
    std::function<bool(Rule)> has_text;  // of nullable rules: may be more than empty
  };
  // From here on, what cannot end becomes nothing, and calls that may be empty an option.
  void set_facts(Facts facts) { facts_ = std::move(facts); }
  // Whether all terms that are copied until the next call can end.
  void set_sound(bool sound) { sound_ = sound; }

 private:
  Term call(Rule source_rule, Param source_param) {
    // A plain rule has one body, whatever the parameter, unless it passes it on.
    const RuleInfo& info = source_.rule_info(source_rule);
    const bool plain = facts_.ends && !info.is_template && !info.inherits;
    const Param param = plain ? 0
                        : source_param == kInherited
                            ? kInherited
                            : target_.param(source_.param_value(source_param));
    const Term made = target_.call(rule(source_rule), param);
    if (!facts_.nullable || !facts_.nullable(source_rule)) return made;
    return facts_.has_text(source_rule) ? target_.join({kEmpty, made}) : kEmpty;
  }

  [[noreturn]] static void throw_residual() {
    throw GrammarFault("a residual is not a grammar: it cannot be copied or compiled");
  }

  Term characters(Term t, bool restricted) {
    CodeRanges ranges;
    if (source_.node(t).kind == Kind::Chars) {
      ranges = source_.code_ranges(t);
    } else {
      const ByteSet set = source_.byte_set(t);
      if ((set.words[2] | set.words[3]) != 0) return target_.bytes(set);
      set.each([&ranges](unsigned b) { ranges.push_back({b, b}); });
    }
    return target_.chars(std::move(ranges), restricted && target_.restricted());
  }

  Term margin(const Node& n, bool restricted) {
    const auto spelled = [&](std::uint32_t code) {
      return !restricted || target_.chars({{code, code}}, true) != kNothing;
    };
    if (!spelled(' ')) throw VocabularyFault("indentation needs a vocabulary with a space");
    return target_.margin(n.a, spelled('\t') ? n.b : 0, n.c != 0);
  }

  // Multiples of which only some characters can be spelled; then they may have no end.
  Term spelled(Term multiples) {
    const CodeRanges used{{'.', '.'}, {'0', '9'}};
    const Term some = target_.chars(used, true);
    if (some == target_.chars(used)) return multiples;
    return target_.intersect({multiples, target_.repeat(some, 0, kUnbounded)});
  }

  TermStore& source_;
  TermStore& target_;
  std::vector<Term> plain_;
  std::vector<Term> restricted_;
  std::vector<Rule> rules_;
  Facts facts_;
  bool sound_ = false;
};

// Which rules can end: a least fixpoint over their bodies, with call-free parts copied into the
// target store, where characters are restricted and emptiness is decided. Templates, whose calls
// differ by parameter, make it a search in rounds.
class ProductiveRules {
 public:
  ProductiveRules(TermStore& source, TermStore& target, Copy& copy, Term start,
                  const std::vector<Rule>& order, bool spelled, const Kept* kept = nullptr)
      : source_(source),
        target_(target),
        copy_(copy),
        kept_(kept),
        spelled_(spelled),
        of_(source.rule_count(), false),
        complete_(source.rule_count(), false) {
    if (kept != nullptr) std::fill_n(of_.begin(), kept->rules.size(), true);
    std::vector<Rule> open;
    bool any_template = false;
    for (const Rule rule : order) {
      any_template = any_template || source.rule_info(rule).is_template;
      if (sound(rule))
        of_[rule] = complete_[rule] = true;
      else
        open.push_back(rule);
    }
    if (!any_template) {
      find_plain(start, order);
      return;
    }
    // Short searches first: one that runs long usually waits for a rule that a later round settles.
    find(open, kShortSearch);
    if (gave_up_) find(open, source.max_tries());
  }

  // Whether a rule's front end knows all there is to know. What a vocabulary can't spell it does
  // not know.
  bool sound(Rule rule) const { return spelled_ && source_.rule_info(rule).sound; }

  bool call_ends(Rule rule, Param param) {
    // Where a parameter is passed on, no alternative depends on it in a way that bears on ends.
    if (param == kInherited) param = 0;
    return source_.rule_info(rule).is_template ? template_ends(rule, param) : of_[rule];
  }

  bool ends(Term t) {
    if (const std::optional<bool> settled = settle(t)) return *settled;
    if (known_[t] != 0) return known_[t] == 1;
    const std::uint64_t cut_before = cut_short_;
    const Node n = source_.node(t);
    bool result = false;
    switch (n.kind) {
      case Kind::Concat: {
        Term rest = t;
        result = true;
        for (; result && source_.node(rest).kind == Kind::Concat; rest = source_.node(rest).b) {
          result = ends(source_.node(rest).a);
        }
        result = result && ends(rest);
        break;
      }
      case Kind::Union: {
        const std::vector<Term> items(source_.operands(t).begin(), source_.operands(t).end());
        result = std::ranges::any_of(items, [this](Term u) { return ends(u); });
        break;
      }
      case Kind::Repeat:
        result = n.b == 0 || ends(n.a);
        break;
      case Kind::Call:
        result = call_ends(n.a, n.b);
        break;
      case Kind::Distinct:
        result = distinct_ends(t);
        break;
      default:
        break;
    }
    // A "no" holds for this round, unless it rests on a question that is still open further out.
    if (result) {
      known_[t] = 1;
    } else if (cut_short_ == cut_before) {
      known_[t] = 2;
    }
    return result;
  }

  // Whether an alternative's own parts can end.
  bool present(const Alternative& alternative) {
    const bool next_ends = alternative.next == kNone || of_[alternative.next] ||
                           source_.rule_info(alternative.next).is_template;
    return next_ends && ends(alternative.head) && ends(alternative.tail);
  }

 private:
  static constexpr std::uint64_t kShortSearch = 4096;

  // The first one of a scope; that there are values enough is for the grammar's author to see to.
  bool distinct_ends(Term t) {
    const Node n = source_.node(t);  // not copied whole: Copy asks here whether it ends
    const bool lifted = Written{n.b} == Written::Text;
    const Term inner = copy_.term(n.a, !lifted);
    const Term copied = target_.distinct(inner, Written{n.b}, lifted && target_.restricted());
    return copied != kNothing && target_.distinct_body(copied, 0) != kNothing;
  }

  // What takes no look at rules.
  std::optional<bool> settle(Term t) {
    if (kept_ != nullptr && t < kept_->terms.size()) return kept_->terms[t] != kNothing;
    if (source_.node(t).kind == Kind::Token) return source_.token_ends(t);
    if (source_.node(t).kind == Kind::Margin) return true;
    if (source_.node(t).kind == Kind::Distinct) return distinct_ends(t);
    if (!source_.has(t, kHasCall)) return !target_.is_empty(copy_.term(t, true));
    return std::nullopt;
  }

  void find_plain(Term start, const std::vector<Rule>& order) {
    const std::vector<Term> roots = roots_of(source_, start, order);
    const LeastFixpoint ending(source_, roots, LeastFixpoint::Sequences::AllParts,
                               [this](Term t) { return settle(t); });
    known_.resize(source_.size());
    for (Term t = 0; t < known_.size(); ++t) known_[t] = ending.holds(t) ? 1 : 2;
    for (const Rule rule : order) of_[rule] = ending.holds(source_.rule_info(rule).body);
  }

  void find(const std::vector<Rule>& order, std::uint64_t search_limit) {
    search_limit_ = search_limit;
    gave_up_ = false;
    for (bool changed = true; changed;) {
      changed = false;
      known_.assign(source_.size(), 0);
      for (const Rule rule : order) {
        const RuleInfo& info = source_.rule_info(rule);
        if (of_[rule]) continue;
        if (info.is_template ? template_ends(rule, 0) : ends(info.body)) of_[rule] = changed = true;
      }
    }
  }

  // Whether a template and those it goes on to have all their alternatives, and an end among them.
  // Whoever defined it then vouches that it ends for every parameter that can be reached.
  bool complete(Rule rule) {
    bool has_end = false;
    std::vector<Rule> queue{rule};
    std::set<Rule> visited{rule};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Rule here = queue[i];
      if (!source_.rule_info(here).is_template) {
        if (!of_[here]) return false;
        has_end = true;
        continue;
      }
      const std::size_t count = source_.rule_info(here).alternatives.size();
      if (count == 0) return false;
      for (std::size_t k = 0; k < count; ++k) {
        const Alternative& alternative = source_.rule_info(here).alternatives[k];
        if (!present(alternative)) return false;
        has_end = has_end || alternative.next == kNone;
        if (alternative.next != kNone && visited.insert(alternative.next).second)
          queue.push_back(alternative.next);
      }
    }
    complete_[rule] = has_end;
    return has_end;
  }

  bool template_ends(Rule rule, Param param) {
    if (complete_[rule]) return true;
    const std::pair asked{rule, param};
    if (templates_that_end_.contains(asked)) return true;
    if (!templates_asked_.insert(asked).second) {  // within itself: no shorter end this way
      ++cut_short_;
      return false;
    }
    const bool result = complete(rule) || search(rule, param);
    templates_asked_.erase(asked);
    if (result) templates_that_end_.insert(asked);
    return result;
  }

  // A search through the parameters, with the alternatives that can end so far.
  bool search(Rule rule, Param param) {
    std::shared_ptr<const TemplateFacts>& facts = facts_[rule];
    if (facts == nullptr) facts = template_facts(source_, rule);
    const EndOracle oracle{[this, rule](const Alternative& alternative) {
                             // Searches ask each other, and a "no" that rests on an open question
                             // is asked again.
                             if (++tries_ > source_.max_tries()) throw source_.too_many_tries(rule);
                             return present(alternative);
                           },
                           [this](Rule plain) -> bool { return of_[plain]; },
                           [this](Call call) {
                             return templates_that_end_.contains(call) ? std::optional(true)
                                                                       : std::nullopt;
                           }};
    const EndAnswer answer = search_end(source_, *facts, {rule, param}, oracle, search_limit_);
    if (answer.gave_up) {
      gave_up_ = true;
      if (search_limit_ != kShortSearch) throw source_.too_many_tries(rule);
    }
    if (answer.ends) templates_that_end_.insert(answer.calls.begin(), answer.calls.end());
    return answer.ends;
  }

  TermStore& source_;
  TermStore& target_;
  Copy& copy_;
  const Kept* kept_;
  bool spelled_;  // every character of the source is
  std::vector<bool> of_;
  std::vector<bool> complete_;  // templates: all that they go on to has all its alternatives
  std::vector<std::uint8_t> known_;
  std::uint64_t search_limit_ = kShortSearch;
  bool gave_up_ = false;
  std::uint64_t tries_ = 0;         // of all searches
  std::uint64_t cut_short_ = 0;     // how often a question met itself
  std::set<Call> templates_asked_;  // searches under way
  std::set<Call> templates_that_end_;
  std::unordered_map<Rule, std::shared_ptr<const TemplateFacts>> facts_;
};

// Of rules whose body may be empty: those whose body may also be something else.
class NullableRulesWithText {
 public:
  NullableRulesWithText(TermStore& source, TermStore& target, Copy& copy,
                        const std::vector<Rule>& order, const NullableRules& nullable,
                        ProductiveRules& ends, WithoutEmpty& without_empty, const Known& known)
      : source_(source),
        has_text_(source, roots(source, order, nullable), LeastFixpoint::Sequences::AnyPart,
                  [&](Term t) -> std::optional<bool> {
                    if (!ends.ends(t)) return false;
                    if (source.node(t).kind == Kind::Margin) return true;
                    if (!nullable.holds(t)) return true;
                    if (source.has(t, kHasCall) && t >= known.terms) return std::nullopt;
                    return !target.is_empty(without_empty.of(copy.term(t, true)));
                  }) {}
  bool rule(Rule rule) const { return has_text_.holds(source_.rule_info(rule).body); }

 private:
  static std::vector<Term> roots(TermStore& source, const std::vector<Rule>& order,
                                 const NullableRules& nullable) {
    std::vector<Term> bodies;
    for (const Rule rule : order) {
      if (nullable.rule(rule)) bodies.push_back(source.rule_info(rule).body);
    }
    return bodies;
  }

  TermStore& source_;
  LeastFixpoint has_text_;
};

// Copies the definitions of `order`'s rules: templates are defined, bodies of plain rules returned
// by rule of the target, kNone for others. With `ends`, only what can end.
std::vector<Term> copy_rules(TermStore& source, TermStore& target, Copy& copy,
                             const std::vector<Rule>& order, ProductiveRules* ends) {
  std::vector<std::pair<Rule, Term>> bodies;
  const auto copy_rule = [&](Rule rule) {
    const RuleInfo& info = source.rule_info(rule);
    const bool sound = ends != nullptr && ends->sound(rule);
    copy.set_sound(sound);
    if (!info.is_template) {
      if (ends != nullptr && !ends->call_ends(rule, 0)) return;
      Term body = copy.term(info.body, true);
      const RuleAttributes& attributes = info.attributes;
      if (ends != nullptr && (attributes.tokens != kUnbounded || attributes.temperature != kNone)) {
        body = target.metered(body, attributes.tokens, attributes.temperature);
        if (target.shortest(body) > attributes.tokens) {
          throw GrammarFault("the shortest text of rule `" + info.name + "` has " +
                                 std::to_string(target.shortest(body)) +
                                 " bytes, and max_tokens must let each of them be a token; it is " +
                                 std::to_string(attributes.tokens),
                             info.name);
        }
      }
      bodies.emplace_back(copy.rule(rule), body);
      return;
    }
    std::vector<Alternative> alternatives;
    alternatives.reserve(info.alternatives.size());
    for (const Alternative& alternative : info.alternatives) {
      if (ends != nullptr && !sound && !ends->present(alternative)) {
        target.set_cut(copy.rule(rule));
        continue;
      }
      Alternative kept = alternative;
      kept.head = copy.term(alternative.head, true);
      kept.tail = copy.term(alternative.tail, true);
      if (alternative.next != kNone) kept.next = copy.rule(alternative.next);
      alternatives.push_back(std::move(kept));
    }
    target.define_template(copy.rule(rule), std::move(alternatives));
  };
  for (const Rule rule : order) {
    try {
      copy_rule(rule);
    } catch (Fault& fault) {
      if (fault.part.empty()) fault.part = source.rule_info(rule).name;
      throw;
    }
  }
  copy.set_sound(false);
  std::vector<Term> by_rule(target.rule_count(), kNone);
  for (const auto& [rule, body] : bodies) by_rule[rule] = body;
  return by_rule;
}

}  // namespace

NormalForm normalise(TermStore& source, Term start, const Spelling& spelling,
                     const Limits& limits) {
  const Kept* kept = spelling.all ? source.kept() : nullptr;
  const Known known = kept == nullptr ? Known{} : Known{kept->terms.size(), kept->rules.size()};
  const std::vector<Rule> order = reachable_rules(source, start, known);
  if (source.depends_on_parameter(start)) {
    throw GrammarFault("a grammar starts outside of all rules, where no parameter is passed on");
  }
  if (source.remembers()) check_scopes(source, start, order);
  const NullableRules nullable(source, start, order, known);
  NormalForm form;
  form.store = kept == nullptr ? TermStore::with_json_strings(limits) : kept->store->copy(limits);
  TermStore& target = *form.store;
  target.merge_keys();
  if (!spelling.all) target.restrict_characters(spelling.whole, spelling.joined);
  Copy copy(source, target, kept);
  ProductiveRules ends(source, target, copy, start, order, spelling.all, kept);
  if (!ends.ends(start)) {
    throw UnsatisfiableFault(spelling.all
                                 ? "no text satisfies the grammar"
                                 : "no text that this vocabulary can spell satisfies the grammar");
  }
  WithoutEmpty without_empty(target);
  const NullableRulesWithText has_text(source, target, copy, order, nullable, ends, without_empty,
                                       known);
  copy.set_facts({[&](Term t) { return ends.ends(t); },
                  [&](Rule rule) { return nullable.rule(rule); },
                  [&](Rule rule) { return has_text.rule(rule); }});
  form.start = copy.term(start, true);
  std::vector<Term> bodies = copy_rules(source, target, copy, order, &ends);
  for (Term& body : bodies) {
    if (body != kNone) body = without_empty.of(body);
  }
  define_without_left_recursion(target, bodies, form.start, without_empty);
  return form;
}

void keep(TermStore& source) {
  std::vector<Rule> order(source.rule_count());
  std::iota(order.begin(), order.end(), Rule{0});
  auto kept = std::make_shared<Kept>();
  kept->store = TermStore::with_json_strings(source.limits());
  TermStore& target = *kept->store;
  target.merge_keys();
  for (const Rule rule : order) {
    const RuleInfo& info = source.rule_info(rule);
    if (!info.defined || info.is_template || info.inherits)
      throw GrammarFault("rule `" + info.name + "` cannot be kept: it has no body of its own");
    source.call(rule);
  }
  Copy copy(source, target);
  const NullableRules nullable(source, kEmpty, order);
  ProductiveRules ends(source, target, copy, kEmpty, order, true);
  for (const Rule rule : order) {
    if (nullable.rule(rule) || !ends.call_ends(rule, 0)) {
      throw GrammarFault("rule `" + source.rule_info(rule).name +
                         "` cannot be kept: it may be empty, or has no text");
    }
  }
  const std::vector<Term> bodies = copy_rules(source, target, copy, order, &ends);
  WithoutEmpty without_empty(target);
  define_without_left_recursion(target, bodies, kEmpty, without_empty);
  for (Term t = 0; t < source.size(); ++t) copy.term(t, true);
  kept->terms = copy.terms();
  kept->rules = copy.rules();
  source.set_kept(std::move(kept));
}

Term import_term(TermStore& target, TermStore& source, Term term) {
  const std::vector<Rule> order = reachable_rules(source, term);
  Copy copy(source, target);
  const Term result = copy.term(term, true);
  const std::vector<Term> bodies = copy_rules(source, target, copy, order, nullptr);
  for (Rule rule = 0; rule < bodies.size(); ++rule) {
    if (bodies[rule] != kNone) target.define(rule, bodies[rule]);
  }
  return result;
}

bool accepts_empty(TermStore& store, Term term) {
  const std::vector<Rule> order = reachable_rules(store, term);
  return NullableRules(store, term, order).holds(term);
}

bool accepts_nothing(TermStore& store, Term term) {
  const std::vector<Rule> order = reachable_rules(store, term);
  TermStore scratch(store.limits());
  Copy copy(store, scratch);
  return !ProductiveRules(store, scratch, copy, term, order, true).ends(term);
}

}  // namespace grammaton
