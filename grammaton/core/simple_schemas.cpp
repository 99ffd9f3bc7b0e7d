// Reading and deciding; simple_terms.cpp has the lowering.
#include "grammaton/core/simple_schemas.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace grammaton {

namespace {

// Keywords that are read here; a dialect maps those that it has to these numbers, all others that
// assert something to kOpaqueKeyword, and has no entry for the rest.
enum Keyword : long {
  kOpaqueKeyword,
  kType,
  kProperties,
  kRequired,
  kAdditional,
  kItems,
  kMinItems,
  kMaxItems,
  kMinLength,
  kMaxLength,
  kFormat,
  kPattern,
  kEnum,
  kConst,
  kAnyOf,
  kOneOf,
  kMinimum,
  kMaximum,
  kExclusiveMinimum,
  kExclusiveMaximum,
  kMultipleOf,
  kReference,
};

constexpr std::pair<const char*, Keyword> kKeywords[] = {
    {"type", kType},
    {"properties", kProperties},
    {"required", kRequired},
    {"additionalProperties", kAdditional},
    {"items", kItems},
    {"minItems", kMinItems},
    {"maxItems", kMaxItems},
    {"minLength", kMinLength},
    {"maxLength", kMaxLength},
    {"format", kFormat},
    {"pattern", kPattern},
    {"enum", kEnum},
    {"const", kConst},
    {"anyOf", kAnyOf},
    {"oneOf", kOneOf},
    {"minimum", kMinimum},
    {"maximum", kMaximum},
    {"exclusiveMinimum", kExclusiveMinimum},
    {"exclusiveMaximum", kExclusiveMaximum},
    {"multipleOf", kMultipleOf},
    {"$ref", kReference},
};

// A height that no value has; positions.py calls it INFINITE.
constexpr long kInfinite = 1L << 30;

// Choices within choices that are followed.
constexpr unsigned kMostDepth = 50;

// Choices of one value; from more on Python may keep them (KEPT_FROM in normal.py).
constexpr unsigned kMostChoices = 32;

// The UTF-8 of a str without lone surrogates.
std::optional<std::string_view> text_of(nb::handle item) {
  if (!PyUnicode_Check(item.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
  if (data == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(data, static_cast<std::size_t>(size));
}

// A count as a plain int that a repetition can have.
bool count_of(nb::handle value, std::uint32_t& count) {
  if (!PyLong_CheckExact(value.ptr())) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0 || number < 0 || number >= static_cast<long long>(kUnbounded)) return false;
  count = static_cast<std::uint32_t>(number);
  return true;
}

// A number that a bound may be.
bool is_number(nb::handle value) {
  if (PyLong_CheckExact(value.ptr())) return true;
  return PyFloat_CheckExact(value.ptr()) && std::isfinite(PyFloat_AsDouble(value.ptr()));
}

bool is_positive(nb::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (PyErr_Occurred() == nullptr) return value > 0;
  PyErr_Clear();
  return false;
}

bool is_dict(nb::handle item) { return PyDict_Check(item.ptr()); }

nb::handle found(const nb::dict& dict, nb::handle key) {
  PyObject* value = PyDict_GetItemWithError(dict.ptr(), key.ptr());
  if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

// A piece of a JSON Pointer (RFC 6901, section 3).
std::string escaped(std::string_view token) {
  std::string result;
  for (const char c : token) {
    if (c == '~')
      result += "~0";
    else if (c == '/')
      result += "~1";
    else
      result += c;
  }
  return result;
}

}  // namespace

SimpleSchemas::SimpleSchemas(nb::object store, nb::object root, SchemaDialect dialect,
                             SchemaPieces pieces, const nb::dict& ready, bool any_order,
                             bool closed, std::uint64_t most)
    : store_object_(std::move(store)),
      store_(nb::cast<TermStore*>(store_object_)),
      root_(std::move(root)),
      dialect_(std::move(dialect)),
      pieces_(pieces),
      reference_name_("$ref"),
      any_order_(any_order),
      closed_(closed),
      most_(most) {
  for (const auto& [kinds, term] : ready) ready_[nb::cast<std::uint8_t>(kinds)] = from_python(term);
  for (const std::uint8_t kinds :
       {kNull, kBoolean, kString, kInteger, kNumber, kArray, kObject, kAnyKind}) {
    if (!ready_.contains(kinds)) throw GrammarFault("a sort of values is not ready");
  }
  anything_ = add({});
  never_ = add({});
  for (const std::uint32_t schema : {anything_, never_}) {
    schemas_[schema].state = State::Simple;
    schemas_[schema].reached = schemas_[schema].only_kinds = true;
  }
  schemas_[anything_].alive = true;
  schemas_[anything_].term = ready_[kAnyKind];
  schemas_[anything_].string_term = ready_[kString];
  schemas_[anything_].number_term = ready_[kNumber];
  schemas_[never_].kinds = 0;
}

nb::dict SimpleSchemas::keywords() {
  nb::dict result;
  for (const auto& [name, keyword] : kKeywords) result[name] = static_cast<long>(keyword);
  return result;
}

Term SimpleSchemas::from_python(nb::handle item) const {
  const auto term = nb::cast<std::uint64_t>(item);
  if (term >= store_->size())
    throw GrammarFault("term " + std::to_string(term) + " is not of this store");
  return static_cast<Term>(term);
}

std::uint32_t SimpleSchemas::checked(std::uint64_t schema) const {
  if (schema >= schemas_.size())
    throw GrammarFault("schema " + std::to_string(schema) + " was not read here");
  return static_cast<std::uint32_t>(schema);
}

std::uint32_t SimpleSchemas::add(nb::handle raw) {
  if (schemas_.size() >= most_) {
    throw LimitFault("the schema has over " + std::to_string(most_) + " different positions");
  }
  schemas_.emplace_back().raw = raw;
  return static_cast<std::uint32_t>(schemas_.size() - 1);
}

// The schema in a keyword of another; nothing when it is none.
std::optional<std::uint32_t> SimpleSchemas::child(std::uint32_t above, const char* keyword,
                                                  nb::handle raw, nb::handle key) {
  if (raw.ptr() == Py_True) return anything_;
  if (raw.ptr() == Py_False) return never_;
  if (!is_dict(raw)) return std::nullopt;
  const auto [known, is_new] = by_raw_.try_emplace(raw.ptr(), 0);
  if (is_new) {
    const std::uint32_t made = known->second = add(raw);
    schemas_[made].above = above;
    schemas_[made].keyword = keyword;
    schemas_[made].key = key;
  }
  return known->second;
}

void SimpleSchemas::parse(std::uint32_t schema) {
  if (parse_keywords(schema)) return;
  Schema& opaque = schemas_[schema];
  opaque.state = State::Opaque;
  opaque.members.clear();
  opaque.choices.clear();
}

bool SimpleSchemas::parse_keywords(std::uint32_t number) {
  Schema& schema = schemas_[number];
  const nb::handle raw = schema.raw;
  schema.state = State::Reading;
  nb::handle reference;
  std::array<nb::handle, 5> bounds;
  bool bounded = false;
  std::vector<nb::handle> required;
  Py_ssize_t place = 0;
  PyObject *key = nullptr, *value = nullptr;
  unsigned said = 0;
  bool typed = false;
  if (starts_resource(raw)) return false;
  if (dialect_.lone_references) {
    reference = found(nb::borrow<nb::dict>(raw), reference_name_);
    if (reference.is_valid()) return parse_reference(schema, reference);
  }
  while (PyDict_Next(raw.ptr(), &place, &key, &value) != 0) {
    const nb::handle known = found(dialect_.keywords, key);
    if (!known.is_valid()) {
      if (!PyUnicode_Check(key)) return false;
      continue;
    }
    const long keyword = PyLong_AsLong(known.ptr());
    if (keyword == kReference) {
      reference = value;
    } else if (keyword == kRequired) {
      if (!parse_required(schema, value, required)) return false;
    } else if (keyword == kFormat) {
      if (!PyUnicode_Check(value)) return false;
      const nb::handle format = found(dialect_.formats, value);
      if (!format.is_valid()) continue;  // it asserts nothing
      if (format.is_none()) return false;
      schema.has_strings = true;
      schema.format = format;
    } else if (keyword >= kMinimum && keyword <= kMultipleOf) {
      if (!is_number(value)) return false;
      if (keyword == kMultipleOf && !is_positive(value)) return false;
      bounds[static_cast<std::size_t>(keyword - kMinimum)] = value;
      bounded = true;
    } else if (!parse_keyword(number, keyword, value)) {
      return false;
    }
    ++said;
    typed = typed || keyword == kType;
  }
  if (reference.is_valid()) return said == 1 && parse_reference(schema, reference);
  const bool alone = said == (typed ? 2U : 1U);  // beside a type
  if (schema.values.is_valid()) {
    // Listed values are filtered by everything else that is said of them.
    if (!alone || !(schema.kinds & kString)) return false;
    schema.kinds = kString;
    schema.has_strings = true;
  }
  if (!schema.choices.empty() && (!alone || !set_choices(schema))) return false;
  if (bounded && (schema.kinds & kNumber)) {
    nb::list items;
    items.append(static_cast<long>(schema.kinds & kNumber));
    for (const nb::handle bound : bounds)
      items.append(bound.is_valid() ? nb::borrow(bound) : nb::object(nb::none()));
    schema.numbers = nb::tuple(items);
  }
  schema.state = State::Simple;
  schema.only_kinds = said == 0 || (typed && said == 1);
  if (schema.only_kinds) {
    if (schema.kinds == 0) return false;
    if (const auto known = ready_.find(schema.kinds); known != ready_.end())
      schema.term = known->second;
  }
  return add_required(number, required);
}

bool SimpleSchemas::parse_reference(Schema& schema, nb::handle reference) {
  schema.target = refer(reference);
  schema.state = State::Reference;
  return schema.target != kNone;
}

bool SimpleSchemas::parse_keyword(std::uint32_t number, long keyword, nb::handle value) {
  Schema& schema = schemas_[number];
  switch (keyword) {
    case kType:
      return parse_type(schema, value);
    case kProperties:
      return parse_properties(number, value);
    case kAdditional: {
      const auto other = child(number, "additionalProperties", value);
      schema.has_objects = true;
      schema.other = other.value_or(kNone);
      return other.has_value();
    }
    case kItems: {
      const auto items = child(number, "items", value);
      schema.has_arrays = true;
      schema.items = items.value_or(kNone);
      return items.has_value();
    }
    case kMinItems:
      schema.has_arrays = true;
      return count_of(value, schema.least_items);
    case kMaxItems:
      schema.has_arrays = true;
      return count_of(value, schema.most_items);
    case kMinLength:
      schema.has_strings = true;
      return count_of(value, schema.least_length);
    case kMaxLength:
      schema.has_strings = true;
      return count_of(value, schema.most_length);
    case kPattern:
      schema.has_strings = true;
      schema.pattern = value;
      return PyUnicode_Check(value.ptr());
    case kEnum:
      return parse_values(schema, value);
    case kConst: {
      nb::list values;
      values.append(value);
      return parse_values(schema, values);
    }
    case kAnyOf:
      return parse_choices(number, "anyOf", value);
    case kOneOf:
      schema.excludes = true;
      return parse_choices(number, "oneOf", value);
    default:
      return false;
  }
}

bool SimpleSchemas::parse_type(Schema& schema, nb::handle value) {
  const auto of = [&](nb::handle name) -> std::uint8_t {
    if (!PyUnicode_Check(name.ptr())) return 0;
    const nb::handle kinds = found(dialect_.types, name);
    return kinds.is_valid() ? static_cast<std::uint8_t>(PyLong_AsLong(kinds.ptr())) : 0;
  };
  if (!PyList_Check(value.ptr())) {
    schema.kinds = of(value);
    return schema.kinds != 0;
  }
  schema.kinds = 0;
  for (Py_ssize_t i = 0; i < PyList_Size(value.ptr()); ++i) {
    const std::uint8_t kinds = of(PyList_GetItem(value.ptr(), i));
    if (kinds == 0) return false;
    schema.kinds = static_cast<std::uint8_t>(schema.kinds | kinds);
  }
  return schema.kinds != 0;
}

bool SimpleSchemas::parse_properties(std::uint32_t number, nb::handle value) {
  if (!is_dict(value)) return false;
  Schema& schema = schemas_[number];
  schema.has_objects = schema.is_declared = true;
  schema.members.reserve(static_cast<std::size_t>(PyDict_Size(value.ptr())));
  Py_ssize_t place = 0;
  PyObject *key = nullptr, *raw = nullptr;
  while (PyDict_Next(value.ptr(), &place, &key, &raw) != 0) {
    const auto text = text_of(key);
    if (!text) return false;
    const auto member = child(number, "properties", raw, key);
    if (!member) return false;
    schema.members.push_back({key, *text, *member, false});
  }
  return true;
}

bool SimpleSchemas::parse_required(Schema& schema, nb::handle value,
                                   std::vector<nb::handle>& required) {
  if (!PyList_Check(value.ptr())) return false;
  const Py_ssize_t size = PyList_Size(value.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    const nb::handle key = PyList_GetItem(value.ptr(), i);
    if (!text_of(key)) return false;
    required.push_back(key);
  }
  schema.has_objects = schema.has_objects || size > 0;
  return true;
}

// Marks what is required, and adds what is not declared; what must be there and can't is noted.
bool SimpleSchemas::add_required(std::uint32_t number, const std::vector<nb::handle>& required) {
  Schema& schema = schemas_[number];
  schema.is_closed =
      schema.other == never_ || (closed_ && schema.is_declared && schema.other == kNone);
  if (required.empty()) return true;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < schema.members.size(); ++i) places[schema.members[i].text] = i;
  for (const nb::handle key : required) {
    const std::string_view text = *text_of(key);
    const auto [known, is_new] = places.try_emplace(text, schema.members.size());
    if (!is_new) {
      schema.members[known->second].required = true;
    } else if (schema.is_closed) {
      schema.lacks_required = true;
    } else {
      const std::uint32_t other = schema.other == kNone ? anything_ : schema.other;
      schema.members.push_back({key, text, other, true});
    }
  }
  return true;
}

bool SimpleSchemas::parse_values(Schema& schema, nb::handle value) {
  if (!PyList_Check(value.ptr()) || schema.values.is_valid()) return false;
  const Py_ssize_t size = PyList_Size(value.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!text_of(PyList_GetItem(value.ptr(), i))) return false;
  }
  schema.values = nb::borrow(value);
  return size > 0;
}

// Schemas of which one holds; they have to be simple, and to be looked at now.
bool SimpleSchemas::parse_choices(std::uint32_t number, const char* keyword, nb::handle value) {
  if (!PyList_Check(value.ptr()) || !schemas_[number].choices.empty()) return false;
  const Py_ssize_t size = PyList_Size(value.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    const std::size_t known = schemas_.size();
    const auto choice = child(number, keyword, PyList_GetItem(value.ptr(), i));
    if (!choice || depth_ == kMostDepth) return false;
    if (*choice == known) schemas_[*choice].index = static_cast<std::uint32_t>(i);
    ++depth_;
    const std::uint32_t found = followed(*choice);
    --depth_;
    if (schemas_[found].state != State::Simple) return false;
    schemas_[number].choices.push_back(found);
  }
  return size > 0;
}

// Choices of different kinds exclude each other, so that it does not matter which keyword it is.
// Where they need not exclude each other they may be of the same kind, except for scalars, which
// Python merges.
bool SimpleSchemas::set_choices(Schema& schema) {
  unsigned kinds = 0;
  unsigned count = 0;
  unsigned depth = 0;
  for (const std::uint32_t choice : schema.choices) {
    const unsigned more = schemas_[choice].kinds;
    const unsigned allowed = schema.excludes ? 0U : unsigned{kArray} | kObject;
    if ((more & ~schema.kinds) != 0 || (more & kinds & ~allowed) != 0) return false;
    kinds |= more;
    count += schemas_[choice].choice_count;
    depth = std::max(depth, schemas_[choice].choice_depth);
  }
  schema.kinds = static_cast<std::uint8_t>(kinds);
  schema.choice_count = count;
  schema.choice_depth = depth + 1;
  return count <= kMostChoices && depth < kMostDepth;
}

// Whether a schema may be a resource of its own within the document, whose references Python
// follows.
bool SimpleSchemas::starts_resource(nb::handle raw) const {
  return !raw.is(root_) && found(nb::borrow<nb::dict>(raw), dialect_.identity).is_valid();
}

// Where a `#` or `#/...` leads within the document's own resource; kNone when Python must look.
std::uint32_t SimpleSchemas::refer(nb::handle reference) {
  const auto text = text_of(reference);
  if (!text || text->empty() || (*text)[0] != '#') return kNone;
  if (text->find_first_of("%~") != std::string_view::npos) return kNone;
  std::string path(text->substr(1));
  if (const auto known = referred_.find(path); known != referred_.end()) return known->second;
  std::uint32_t& target = referred_[path] = kNone;
  if (!path.empty() && path[0] != '/') return kNone;
  nb::handle raw = root_;
  for (std::size_t at = path.empty() ? std::string::npos : 0; at != std::string::npos;) {
    const std::size_t end = path.find('/', at + 1);
    const std::string token = path.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (!is_dict(raw) || starts_resource(raw)) return kNone;
    const nb::str name(token.data(), token.size());
    raw = found(nb::borrow<nb::dict>(raw), name);
    if (!raw.is_valid()) return kNone;
    at = end;
  }
  if (!is_dict(raw) || starts_resource(raw)) return kNone;
  const auto [known, is_new] = by_raw_.try_emplace(raw.ptr(), 0);
  if (is_new) {
    known->second = add(raw);
    schemas_[known->second].pointer = path;
  }
  return target = known->second;
}

// The schema at the end of references, parsed. References in a circle are opaque.
std::uint32_t SimpleSchemas::followed(std::uint32_t schema) {
  std::vector<std::uint32_t> path;
  for (;;) {
    if (schemas_[schema].state == State::Unread) parse(schema);
    if (schemas_[schema].state != State::Reference) return schema;
    if (std::ranges::find(path, schema) != path.end()) {
      schemas_[schema].state = State::Opaque;
      return schema;
    }
    path.push_back(schema);
    schema = schemas_[schema].target;
  }
}

std::optional<std::uint32_t> SimpleSchemas::read(const nb::object& raw, const nb::object& node) {
  if (!is_dict(raw)) return std::nullopt;
  const auto [known, is_new] = by_raw_.try_emplace(raw.ptr(), 0);
  if (is_new) {
    known->second = add(raw);
    schemas_[known->second].node = node;
  }
  const std::uint32_t schema = followed(known->second);
  if (schemas_[schema].state == State::Opaque || schemas_[schema].only_kinds) return std::nullopt;
  return schema;
}

nb::object SimpleSchemas::pointer(std::uint32_t number) {
  std::vector<std::string> pieces;
  for (std::uint32_t at = number;;) {
    const Schema& schema = schemas_[at];
    if (schema.node.is_valid()) {
      pieces.push_back(nb::cast<nb::str>(schema.node.attr("pointer")).c_str());
      break;
    }
    if (schema.above == kNone) {
      pieces.push_back(schema.pointer);
      break;
    }
    std::string piece(1, '/');
    piece += schema.keyword;
    if (schema.key.is_valid()) {
      piece += '/';
      piece += escaped(*text_of(schema.key));
    } else if (schema.index != kNone) {
      piece += '/';
      piece += std::to_string(schema.index);
    }
    pieces.push_back(std::move(piece));
    at = schema.above;
  }
  std::string whole;
  for (std::size_t i = pieces.size(); i-- > 0;) whole += pieces[i];
  return nb::str(whole.data(), whole.size());
}

void SimpleSchemas::reach(std::uint32_t start, const SchemaHooks& hooks) {
  std::vector<std::uint32_t> todo;
  met(followed(start), hooks, todo);
  while (!todo.empty()) {
    const std::uint32_t at = todo.back();
    todo.pop_back();
    Schema& schema = schemas_[at];
    for (const std::uint32_t choice : schema.choices) met(choice, hooks, todo);
    if ((schema.kinds & kArray) && schema.items != kNone) {
      schema.items = followed(schema.items);
      met(schema.items, hooks, todo);
    }
    if (!(schema.kinds & kObject)) continue;
    for (Member& member : schema.members) {
      member.schema = followed(member.schema);
      met(member.schema, hooks, todo);
    }
    if (schema.other != kNone) {
      schema.other = followed(schema.other);
      met(schema.other, hooks, todo);
    }
  }
}

// A schema is met: its scalars are made, or its position is asked for.
void SimpleSchemas::met(std::uint32_t number, const SchemaHooks& hooks,
                        std::vector<std::uint32_t>& todo) {
  Schema& schema = schemas_[number];
  if (schema.reached) return;
  schema.reached = true;
  if (schema.state == State::Opaque) {
    schema.position = hooks.meet(schema.raw, pointer(number));
    return;
  }
  reached_.push_back(number);
  if (!schema.choices.empty()) {
    todo.push_back(number);
    return;
  }
  if (schema.kinds & kString) make_strings(number, hooks);
  if (schema.kinds & kNumber) make_numbers(schema, hooks);
  if (schema.has_arrays || schema.has_objects) todo.push_back(number);
}

void SimpleSchemas::make_strings(std::uint32_t number, const SchemaHooks& hooks) {
  Schema& schema = schemas_[number];
  if (!schema.has_strings) {
    schema.string_term = ready_[kString];
    return;
  }
  if (schema.values.is_valid()) {
    schema.string_term = from_python(hooks.values(schema.values));
    return;
  }
  const auto optional = [](nb::handle item) {
    return item.is_valid() ? nb::borrow(item) : nb::object(nb::none());
  };
  const auto made = [&] {
    const nb::object most = schema.most_length == kUnbounded
                                ? nb::object(nb::none())
                                : nb::object(nb::int_(schema.most_length));
    const nb::object place = schema.pattern.is_valid() ? pointer(number) : nb::object(nb::str(""));
    return from_python(hooks.string(schema.least_length, most, optional(schema.format),
                                    optional(schema.pattern), place));
  };
  if (schema.pattern.is_valid()) {
    schema.string_term = made();
    return;
  }
  const std::tuple key(schema.least_length, schema.most_length, schema.format.ptr());
  const auto known = strings_.find(key);
  schema.string_term = known != strings_.end() ? known->second : strings_[key] = made();
}

void SimpleSchemas::make_numbers(Schema& schema, const SchemaHooks& hooks) {
  if (!schema.numbers.is_valid()) {
    schema.number_term = ready_[static_cast<std::uint8_t>(schema.kinds & kNumber)];
    return;
  }
  const nb::handle known = found(numbers_, schema.numbers);
  if (known.is_valid()) {
    schema.number_term = from_python(known);
    return;
  }
  const nb::object term = hooks.number(*nb::borrow<nb::tuple>(schema.numbers));
  schema.number_term = from_python(term);
  numbers_[schema.numbers] = term;
}

std::uint64_t SimpleSchemas::settle() {
  std::uint64_t count = 0;
  for (bool changed = true; changed;) {
    changed = false;
    count = 0;
    for (std::size_t i = reached_.size(); i-- > 0;) {
      Schema& schema = schemas_[reached_[i]];
      if (!schema.alive && can_hold(schema)) changed = schema.alive = true;
      count += schema.alive ? 1U : 0U;
    }
  }
  return count;
}

// Whether a member is known to hold a value by now.
bool SimpleSchemas::holds(std::uint32_t number) const {
  const Schema& schema = schemas_[number];
  if (schema.state != State::Opaque) return schema.alive;
  return schema.position.is_valid() && nb::cast<long>(schema.position.attr("height")) < kInfinite;
}

bool SimpleSchemas::can_hold(const Schema& schema) const {
  if (!schema.choices.empty()) {
    return std::ranges::any_of(schema.choices,
                               [this](std::uint32_t choice) { return holds(choice); });
  }
  if (schema.kinds & (kNull | kBoolean)) return true;
  if (schema.string_term != kNothing || schema.number_term != kNothing) return true;
  return array_can_hold(schema) || object_can_hold(schema);
}

bool SimpleSchemas::array_can_hold(const Schema& schema) const {
  if (!(schema.kinds & kArray)) return false;
  if (schema.least_items == 0) return true;
  if (schema.most_items < schema.least_items) return false;
  return schema.items == kNone || holds(schema.items);
}

bool SimpleSchemas::object_can_hold(const Schema& schema) const {
  if (!(schema.kinds & kObject) || schema.lacks_required) return false;
  return std::ranges::all_of(schema.members, [&](const Member& member) {
    return !member.required || holds(member.schema);
  });
}

}  // namespace grammaton
