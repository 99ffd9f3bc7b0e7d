#include "grammar/saved_terms.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "grammar/rule_facts.hpp"
#include "grammar/whole_characters.hpp"

namespace grammaton {

namespace {

constexpr std::uint64_t kMostBits = 1 << 20;  // of a parameter, and of its counters
// Tags of terms: a Kind, or one of these.
constexpr std::uint64_t kByteTag = 64;  // a Bytes of one byte: most of any grammar
constexpr std::uint64_t kSomeTag = 65;  // a Margin that is not empty
constexpr std::uint64_t kTextTag = 66;  // a Distinct that is written as text
// What is said of a rule beside its name.
constexpr std::uint64_t kScoped = 1;
constexpr std::uint64_t kUnordered = 2;

class Writer {
 public:
  Writer(TermStore& store, Term start) : store_(store) {
    rules_ = reachable_rules(store, start);
    rule_number_.resize(store.rule_count(), kNone);
    for (std::uint32_t i = 0; i < rules_.size(); ++i) rule_number_[rules_[i]] = i;
    mark(start);
  }

  std::string write(Term start) {
    number(param_ids_.size());
    for (const Param param : param_ids_) write_param(store_.param_value(param));
    number(rules_.size());
    for (const Rule rule : rules_) {
      const RuleInfo& info = store_.rule_info(rule);
      text(info.name);
      number((info.scoped ? kScoped : 0) | (info.unordered ? kUnordered : 0));
    }
    std::size_t count = 0;
    for (Term t = kEmpty + 1; t < marked_.size(); ++t) count += marked_[t] ? 1 : 0;
    number(count);
    made_.assign(marked_.size(), kNone);
    made_[kNothing] = kNothing;
    made_[kEmpty] = kEmpty;
    next_ = kEmpty + 1;
    for (Term t = kEmpty + 1; t < marked_.size(); ++t) {
      if (!marked_[t]) continue;
      write_term(t);
      made_[t] = next_++;
    }
    for (const Rule rule : rules_) write_rule(store_.rule_info(rule));
    part(start);
    return std::move(out_);
  }

 private:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(0x80 | (value & 0x7F));
    out_ += static_cast<char>(value);
  }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  void part(Term t) { number(next_ - made_[t]); }
  void rule(Rule r) { number(r == kNone ? 0 : std::uint64_t{rule_number_[r]} + 1); }

  // All that the start and the bodies reach. Parts have smaller ids, so one pass downwards does.
  void mark(Term start) {
    marked_.assign(store_.size(), false);
    marked_[start] = true;
    for (const Rule r : rules_) {
      const RuleInfo& info = store_.rule_info(r);
      marked_[info.body] = marked_[info.attributes.suffix] = true;
      for (const Alternative& alternative : info.alternatives)
        marked_[alternative.head] = marked_[alternative.tail] = true;
    }
    param_number_.resize(store_.param_count(), kNone);
    for (Term t = static_cast<Term>(marked_.size()); t-- > kEmpty + 1;) {
      if (!marked_[t]) continue;
      const Node& n = store_.node(t);
      switch (n.kind) {
        case Kind::Concat:
          marked_[n.a] = marked_[n.b] = true;
          break;
        case Kind::Union:
        case Kind::Intersect:
          for (const Term u : store_.operands(t)) marked_[u] = true;
          break;
        case Kind::Complement:
        case Kind::Repeat:
        case Kind::Json:
        case Kind::Distinct:
          marked_[n.a] = true;
          break;
        case Kind::Call:
          if (n.b != kInherited && param_number_[n.b] == kNone) {
            param_number_[n.b] = static_cast<std::uint32_t>(param_ids_.size());
            param_ids_.push_back(n.b);
          }
          break;
        default:
          break;
      }
    }
  }

  void write_param(const ParamValue& value) {
    number(value.bits.size());
    for (const std::uint64_t word : value.bits) number(word);
    number(value.counters.size());
    for (const std::uint32_t counter : value.counters) number(counter);
  }

  void write_term(Term t) {
    const Node& n = store_.node(t);
    switch (n.kind) {
      case Kind::Bytes: {
        const ByteSet& set = store_.byte_set(t);
        if (set.size() == 1) {
          number(kByteTag);
          set.each([&](unsigned byte) { out_ += static_cast<char>(byte); });
          return;
        }
        tag(n.kind);
        for (const std::uint64_t word : set.words) number(word);
        return;
      }
      case Kind::Chars: {
        if (n.b != 0) break;
        tag(n.kind);
        number(store_.code_ranges(t).size());
        for (const CodeRange& range : store_.code_ranges(t)) {
          number(range.low);
          number(range.high);
        }
        return;
      }
      case Kind::Concat:
        tag(n.kind);
        part(n.a);
        part(n.b);
        return;
      case Kind::Union:
      case Kind::Intersect:
        tag(n.kind);
        number(store_.operands(t).size());
        for (const Term u : store_.operands(t)) part(u);
        return;
      case Kind::Complement:
        tag(n.kind);
        part(n.a);
        return;
      case Kind::Repeat:
        tag(n.kind);
        part(n.a);
        number(n.b);
        number(n.c == kUnbounded ? 0 : std::uint64_t{n.c} + 1);
        return;
      case Kind::Call:
        tag(n.kind);
        number(rule_number_[n.a]);
        number(n.b == kInherited ? 0 : std::uint64_t{param_number_[n.b]} + 1);
        return;
      case Kind::Json:
        if (n.b != 0 || n.c != 0) break;
        tag(n.kind);
        part(n.a);
        return;
      case Kind::Residue:
        if (n.b != 0 || (n.c & 0xFFFF) != 0) break;
        tag(n.kind);
        number(n.a);
        number(n.c >> 16);
        return;
      case Kind::Token: {
        tag(n.kind);
        const TokenSet& set = store_.token_set(n.a);
        number(set.names.size());
        for (const std::string& name : set.names) text(name);
        number(set.ids.size());
        for (const IdRange& range : set.ids) {
          number(range.low);
          number(range.high);
        }
        number(set.negated ? 1 : 0);
        return;
      }
      case Kind::Margin:
        number(n.c != 0 ? kSomeTag : static_cast<std::uint64_t>(n.kind));
        number(n.a);
        number(n.b);
        return;
      case Kind::Distinct:
        if (n.c != 0) break;
        number(Written{n.b} == Written::Text ? kTextTag : static_cast<std::uint64_t>(n.kind));
        part(n.a);
        return;
      default:
        break;
    }
    throw GrammarFault("a residual is not a grammar: it cannot be saved");
  }
  void tag(Kind kind) { number(static_cast<std::uint64_t>(kind)); }

  void write_rule(const RuleInfo& info) {
    text(info.attributes.capture);
    text(info.attributes.stop_capture);
    part(info.attributes.suffix);
    number(info.attributes.tokens == kUnbounded ? 0 : info.attributes.tokens);
    number(info.attributes.temperature == kNone ? 0
                                                : std::uint64_t{info.attributes.temperature} + 1);
    number(info.is_template ? info.alternatives.size() + 1 : 0);
    if (!info.is_template) {
      part(info.body);
      return;
    }
    for (const Alternative& alternative : info.alternatives) {
      part(alternative.head);
      rule(alternative.next);
      part(alternative.tail);
      number(alternative.conditions.size());
      for (const Condition& condition : alternative.conditions) write_condition(condition);
      number(alternative.updates.size());
      for (const Update& update : alternative.updates) {
        number(static_cast<std::uint64_t>(update.op));
        number(update.index);
        number(update.value);
        number(update.cap);
      }
    }
  }

  void write_condition(const Condition& condition) {
    number(static_cast<std::uint64_t>(condition.op));
    number(condition.index);
    number(condition.low);
    number(condition.high);
    number(condition.bits.size());
    for (const std::uint32_t bit : condition.bits) number(bit);
  }

  TermStore& store_;
  std::vector<Rule> rules_;
  std::vector<std::uint32_t> rule_number_;
  std::vector<Param> param_ids_;
  std::vector<std::uint32_t> param_number_;
  std::vector<bool> marked_;
  std::vector<std::uint32_t> made_;  // by term: its number in what is written
  std::uint32_t next_ = 0;
  std::string out_;
};

class Reader {
 public:
  Reader(std::string_view bytes, const Limits& limits)
      : bytes_(bytes), store_(std::make_unique<TermStore>(limits)) {}

  ReadTerms read(const Limits& limits) {
    for (std::uint64_t i = count(); i > 0; --i) params_.push_back(store_->param(read_param()));
    for (std::uint64_t i = count(); i > 0; --i) {
      rules_.push_back(store_->rule(name()));
      const std::uint64_t flags = number(kScoped | kUnordered);
      if ((flags & kScoped) != 0) store_->set_scoped(rules_.back());
      if ((flags & kUnordered) != 0) store_->set_unordered(rules_.back());
    }
    for (std::uint64_t i = count(); i > 0; --i) {
      terms_.push_back(read_term());
      check_operands(limits);
    }
    for (const Rule rule : rules_) read_rule(rule);
    const Term start = root();
    if (at_ != bytes_.size()) damaged();
    const WholeCharacters whole(*store_);
    for (const Term t : roots_) {
      if (!whole.holds(t)) damaged();
    }
    return {std::move(store_), start};
  }

 private:
  [[noreturn]] static void damaged() {
    throw GrammarFault("the saved grammar is damaged, or was not written by grammaton");
  }

  // A union of unions is as long as all of them, and takes a few bytes to ask for.
  void check_operands(const Limits& limits) {
    if (store_->node(terms_.back()).kind == Kind::Intersect)
      intersected_ += store_->operands(terms_.back()).size();
    if (store_->operands_joined() + intersected_ > 4 * limits.max_terms) {
      throw LimitFault("the saved grammar joins more than 4 * max_terms = " +
                       std::to_string(limits.max_terms) + " operands");
    }
  }

  std::uint8_t byte() {
    if (at_ == bytes_.size()) damaged();
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t number(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint64_t more = byte();
      if (shift == 63 && more > 1) damaged();
      value |= (more & 0x7F) << shift;
      if (more < 0x80) break;
    }
    if (value > most) damaged();
    return value;
  }
  std::uint32_t small(std::uint64_t most = kUnbounded) {
    return static_cast<std::uint32_t>(number(most));
  }
  bool flag() { return number(1) == 1; }
  // Of things that take a byte each at least: never more than there can be.
  std::uint64_t count() { return number(bytes_.size() - at_); }

  std::string name() {
    const std::uint64_t size = count();
    if (size > bytes_.size() - at_) damaged();
    std::string value(bytes_.substr(at_, size));
    at_ += size;
    if (!WholeCharacters::is_text(value)) damaged();
    return value;
  }
  // A term by how far back it is; nothing and the empty text are the first two.
  Term part() {
    const std::uint64_t next = terms_.size();
    const std::uint64_t back = number(next);
    if (back == 0) damaged();
    return terms_[next - back];
  }
  Term root() {
    roots_.push_back(part());
    return roots_.back();
  }

  ParamValue read_param() {
    ParamValue value;
    const std::uint64_t words = count();
    if (words > kMostBits / 64) damaged();
    for (std::uint64_t i = 0; i < words; ++i) value.bits.push_back(number());
    const std::uint64_t counters = count();
    if (counters > kMostBits) damaged();
    for (std::uint64_t i = 0; i < counters; ++i) value.counters.push_back(small());
    return value;
  }

  std::vector<Term> operands() {
    std::vector<Term> items;
    for (std::uint64_t i = count(); i > 0; --i) items.push_back(part());
    return items;
  }

  Term read_term() {
    const std::uint64_t tag = number(kTextTag);
    switch (tag) {
      case kByteTag:
        return store_->byte(byte());
      case kSomeTag:
        return read_margin(true);
      case kTextTag:
        return store_->distinct(part(), Written::Text);
      default:
        return read_kind(static_cast<Kind>(tag));
    }
  }

  Term read_margin(bool some) {
    const std::uint32_t counter = small(kMostBits - 1);
    return store_->margin(counter, small(kMostBits - 1), some);
  }

  Term read_kind(Kind kind) {
    switch (kind) {
      case Kind::Bytes: {
        ByteSet set;
        for (std::uint64_t& word : set.words) word = number();
        return store_->bytes(set);
      }
      case Kind::Chars: {
        CodeRanges ranges;
        for (std::uint64_t i = count(); i > 0; --i) {
          const std::uint32_t low = small(0x10FFFF);
          ranges.push_back({low, small(0x10FFFF)});
          if (ranges.back().high < low) damaged();
        }
        return store_->chars(std::move(ranges));
      }
      case Kind::Concat: {
        const Term head = part();
        return store_->concat(head, part());
      }
      case Kind::Union:
        return store_->join(operands());
      case Kind::Intersect:
        return store_->intersect(operands());
      case Kind::Complement:
        return store_->raw_complement(part());
      case Kind::Repeat: {
        const Term body = part();
        const std::uint32_t min = small(kUnbounded - 1);
        const std::uint32_t max = small();
        return store_->repeat(body, min, max == 0 ? kUnbounded : max - 1);
      }
      case Kind::Call: {
        if (rules_.empty()) damaged();
        const Rule rule = rules_[number(rules_.size() - 1)];
        const std::uint64_t param = number(params_.size());
        return store_->call(rule, param == 0 ? kInherited : params_[param - 1]);
      }
      case Kind::Json: {
        const Term body = part();
        if (store_->has(body, kHasCall)) damaged();
        return store_->json(body);
      }
      case Kind::Residue: {
        const std::uint32_t divisor = small();
        if (divisor == 0) damaged();
        return store_->multiples(divisor, small(kMostPlaces));
      }
      case Kind::Token: {
        TokenSet set;
        for (std::uint64_t i = count(); i > 0; --i) set.names.push_back(name());
        for (std::uint64_t i = count(); i > 0; --i) {
          const std::uint32_t low = small();
          set.ids.push_back({low, small()});
          if (set.ids.back().high < low) damaged();
        }
        set.negated = flag();
        return store_->token(std::move(set));
      }
      case Kind::Margin:
        return read_margin(false);
      case Kind::Distinct:
        return store_->distinct(part(), Written::Scalar);
      default:
        damaged();
    }
  }

  void read_rule(Rule rule) {
    RuleAttributes attributes;
    attributes.capture = name();
    attributes.stop_capture = name();
    attributes.suffix = root();
    if (store_->has(attributes.suffix, kHasCall)) damaged();
    const std::uint32_t tokens = small(kUnbounded - 1);
    attributes.tokens = tokens == 0 ? kUnbounded : tokens;
    const std::uint32_t temperature = small();
    if (temperature != 0) {
      attributes.temperature = temperature - 1;
      const auto value = std::bit_cast<float>(attributes.temperature);
      if (!std::isfinite(value) || value < 0) damaged();
    }
    store_->set_attributes(rule, std::move(attributes));
    const std::uint64_t alternatives = count();
    if (alternatives == 0) {
      store_->define(rule, root());
      return;
    }
    std::vector<Alternative> made;
    for (std::uint64_t i = 1; i < alternatives; ++i) made.push_back(read_alternative());
    store_->define_template(rule, std::move(made));
  }

  Alternative read_alternative() {
    Alternative made;
    made.head = root();
    const std::uint64_t next = number(rules_.size());
    if (next != 0) made.next = rules_[next - 1];
    made.tail = root();
    for (std::uint64_t i = count(); i > 0; --i) made.conditions.push_back(read_condition());
    for (std::uint64_t i = count(); i > 0; --i) {
      Update update{};
      update.op = static_cast<Update::Op>(number(static_cast<std::uint64_t>(Update::Op::Copy)));
      update.index = small(kMostBits - 1);
      update.value = small(update.op == Update::Op::Copy ? kMostBits - 1 : kUnbounded);
      update.cap = small();
      made.updates.push_back(update);
    }
    return made;
  }

  Condition read_condition() {
    Condition condition{};
    condition.op =
        static_cast<Condition::Op>(number(static_cast<std::uint64_t>(Condition::Op::Below)));
    condition.index = small(kMostBits - 1);
    condition.low = small(condition.op == Condition::Op::Below ? kMostBits - 1 : kUnbounded);
    condition.high = small();
    for (std::uint64_t i = count(); i > 0; --i) condition.bits.push_back(small(kMostBits - 1));
    return condition;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::unique_ptr<TermStore> store_;
  std::vector<Param> params_;
  std::vector<Rule> rules_;
  std::vector<Term> terms_{kNothing, kEmpty};
  std::uint64_t intersected_ = 0;
  std::vector<Term> roots_;  // what must be whole characters
};

}  // namespace

std::string write_terms(TermStore& store, Term start) { return Writer(store, start).write(start); }

ReadTerms read_terms(std::string_view bytes, const Limits& limits) {
  return Reader(bytes, limits).read(limits);
}

}  // namespace grammaton
