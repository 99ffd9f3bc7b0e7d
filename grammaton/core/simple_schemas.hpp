// Simple schemas: JSON Schemas that say which kinds of values there are, what their members are,
// and little else, read and lowered here (grammar/json_schema/simple.py says what that leaves).
//
// A *schema* is one raw schema of a document: a dict, or a boolean. It is *simple* when all that it
// asserts are keywords of `kKeywords` with the values that they mostly have; the others are
// *opaque*: Python reads them, and gives a position for each. Members of both may be of both sorts.
//
// What a malformed schema says is never judged here: it is opaque, and Python raises the error.
//
// Costs: some 0.3 us to read a schema, 0.5 us and its terms to lower a member.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammaton/core/bindings.hpp"

namespace grammaton {

// Mirrors of grammar/json_schema/nodes.py.
enum ValueKind : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kString = 4,
  kInteger = 8,
  kNumber = 24,
  kArray = 32,
  kObject = 64,
  kAnyKind = 127,
};

// What Python knows of a document before it is read; see SimpleSchemas in _core.pyi.
struct SchemaDialect {
  nb::dict keywords;
  nb::dict types;
  nb::dict formats;
  nb::str identity;  // the keyword that gives a schema a URI
  bool lone_references;
};

// The terms that JSON texts are put together from.
struct SchemaPieces {
  Term quote, colon, quote_colon, comma, space;
  Term open_brace, close_brace, open_bracket, close_bracket;
  Term any_string_rest;
};

// What is asked of Python while schemas are reached.
struct SchemaHooks {
  nb::object meet;    // the position of an opaque schema, from what it is and its pointer
  nb::object string;  // the term of strings, from least and most characters, format and pattern
  nb::object number;  // the term of numbers, from their kinds and what is said of them
  nb::object values;  // the term of some strings
};

class SimpleSchemas {
 public:
  SimpleSchemas(nb::object store, nb::object root, SchemaDialect dialect, SchemaPieces pieces,
                nb::object key_sorts, const nb::dict& ready, bool any_order, bool closed,
                std::uint64_t most);

  // The keywords that are read here, by the number that stands for each in a dialect.
  static nb::dict keywords();
  // A number that comes from Python, checked.
  std::uint32_t checked(std::uint64_t schema) const;

  // The number of a raw schema, references followed; nothing when it is opaque, or when it says
  // only of which kinds values are. `node` is what has its pointer.
  std::optional<std::uint32_t> read(const nb::object& raw, const nb::object& node);
  // Reads all simple schemas that can be reached from one through simple ones.
  void reach(std::uint32_t schema, const SchemaHooks& hooks);
  // Finds which of the reached can hold values, given the heights that positions have so far.
  // Returns how many.
  std::uint64_t settle();
  bool alive(std::uint32_t schema) const { return schemas_[schema].alive; }
  // The term of a schema that is alive. `lower` gives that of a position.
  Term term(std::uint32_t schema, const nb::object& lower);
  // Defines the rules that terms made so far call; whether there were any.
  bool define(const nb::object& lower);

 private:
  enum class State : std::uint8_t { Unread, Reading, Simple, Opaque, Reference };
  struct Member {
    nb::handle key;
    std::string_view text;
    std::uint32_t schema;
    bool required;
  };
  struct Schema {
    nb::handle raw;
    // Where it stands: in a keyword of another, under a key; or at a pointer, or where a node is.
    std::uint32_t above = kNone;
    const char* keyword = "";
    nb::handle key;
    std::uint32_t index = kNone;  // in the list that a keyword has
    std::string pointer;
    nb::object node;

    State state = State::Unread;
    std::uint8_t kinds = kAnyKind;
    bool reached = false;
    bool alive = false;
    bool sound = true;  // its rules are (RuleInfo in grammar/term.hpp)
    bool only_kinds = false;
    bool has_arrays = false;
    bool has_objects = false;
    bool is_declared = false;
    bool lacks_required = false;  // a required property can't be there
    bool is_closed = false;
    std::uint32_t target = kNone;  // of a reference, or an allOf of one
    std::vector<Member> members;
    std::uint32_t other = kNone;   // schema of other properties; kNone: any value
    std::vector<Member> patterns;  // of keys, and what their properties are
    // With patterns: the sorts of keys of other properties, by schema, and the frames of the keys.
    std::vector<std::pair<std::uint32_t, Term>> sorts;
    std::uint32_t items = kNone;
    std::uint32_t least_items = 0, most_items = kUnbounded;
    bool has_strings = false;
    std::uint32_t least_length = 0, most_length = kUnbounded;
    nb::handle format;
    nb::handle pattern;
    nb::object values;   // a list of strings
    nb::object numbers;  // what is said of them: a tuple that begins with their kinds
    Term string_term = kNothing;
    Term number_term = kNothing;
    Term array_term = kNone;
    Term object_term = kNone;
    std::vector<std::uint32_t> choices;  // schemas, any of which holds; without other facts
    std::uint32_t choice_count = 1;      // those within choices counted
    std::uint32_t choice_depth = 0;
    bool excludes = false;  // just one of them holds
    nb::object position;    // of an opaque one, once it is met
    Term term = kNone;
  };
  struct Body {
    std::uint32_t schema;
    bool is_object;
    Rule rule;
  };

  Term from_python(nb::handle term) const;
  std::uint32_t add(nb::handle raw);
  std::optional<std::uint32_t> child(std::uint32_t above, const char* keyword, nb::handle raw,
                                     nb::handle key = {});
  void parse(std::uint32_t schema);
  bool parse_keywords(std::uint32_t schema);
  bool parse_reference(Schema& schema, nb::handle reference);
  bool parse_keyword(std::uint32_t schema, long keyword, nb::handle value);
  bool parse_type(Schema& schema, nb::handle value);
  bool parse_properties(std::uint32_t schema, nb::handle value);
  bool parse_patterns(std::uint32_t schema, nb::handle value);
  bool sort_keys(Schema& schema);
  bool parse_required(Schema& schema, nb::handle value, std::vector<nb::handle>& required);
  bool add_required(std::uint32_t schema, const std::vector<nb::handle>& required);
  bool parse_values(Schema& schema, nb::handle value);
  bool parse_all_of(std::uint32_t schema, nb::handle value);
  bool parse_choices(std::uint32_t schema, const char* keyword, nb::handle value);
  bool set_choices(Schema& schema);
  std::uint32_t restricted(std::uint32_t schema, std::uint8_t kinds);
  bool all_apart(const std::vector<std::uint32_t>& choices);
  bool are_apart(std::uint32_t one, std::uint32_t other, unsigned depth);
  static bool values_apart(const Schema& a, const Schema& b);
  bool is_told(const Schema& a, const Schema& b, unsigned depth);
  bool starts_resource(nb::handle raw) const;
  std::uint32_t refer(nb::handle reference);
  std::uint32_t followed(std::uint32_t schema);
  nb::object pointer(std::uint32_t schema);

  void met(std::uint32_t schema, const SchemaHooks& hooks, std::vector<std::uint32_t>& todo);
  void make_strings(std::uint32_t schema, const SchemaHooks& hooks);
  void make_numbers(Schema& schema, const SchemaHooks& hooks);
  bool holds(std::uint32_t schema) const;
  bool can_hold(const Schema& schema) const;
  bool array_can_hold(const Schema& schema) const;
  bool object_can_hold(const Schema& schema) const;

  // simple_terms.cpp
  Term frame(const char* name, Term body, bool sound);
  void find_sound();
  Term member_term(const Member& member, const nb::object& lower);
  void add_parts(std::uint32_t schema, std::vector<Term>& scalars, std::vector<Term>& containers);
  Term array_term(std::uint32_t schema);
  Term object_term(std::uint32_t schema);
  Term key_rest(const Schema& schema);
  void define_array(const Schema& schema, Rule rule, const nb::object& lower);
  void define_object(const Schema& schema, Rule rule, const nb::object& lower);

  nb::object store_object_;
  TermStore* store_;
  nb::object root_;
  SchemaDialect dialect_;
  SchemaPieces pieces_;
  nb::object key_sorts_;
  std::map<std::uint8_t, Term> ready_;
  nb::str reference_name_;
  bool any_order_;
  bool closed_;
  std::uint64_t most_;
  std::uint32_t anything_;
  std::uint32_t never_;
  std::deque<Schema> schemas_;
  std::unordered_map<PyObject*, std::uint32_t> by_raw_;
  std::unordered_map<std::string, std::uint32_t> referred_;
  std::vector<std::uint32_t> reached_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, PyObject*>, Term> strings_;
  nb::dict numbers_;        // terms by what is said of them
  unsigned depth_ = 0;      // of choices being read
  std::size_t judged_ = 0;  // how many of the reached, by find_sound()
  std::unordered_map<std::string_view, Term> keys_;
  std::unordered_map<Term, Term> member_rests_;  // of a value and what stands around it
  std::unordered_map<Term, Term> key_rests_;
  std::unordered_map<std::string, Term> key_rests_in_order_;  // by the declared keys
  std::deque<Body> bodies_;
};

}  // namespace grammaton
