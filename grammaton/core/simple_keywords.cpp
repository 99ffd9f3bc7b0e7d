// What the keywords of a schema say, and whether that is all simple.
#include <algorithm>
#include <array>
#include <cmath>

#include "grammaton/core/raw_schemas.hpp"
#include "grammaton/core/simple_schemas.hpp"

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
  kPatternProperties,
  kItems,
  kMinItems,
  kMaxItems,
  kMinLength,
  kMaxLength,
  kFormat,
  kPattern,
  kEnum,
  kConst,
  kAllOf,
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
    {"patternProperties", kPatternProperties},
    {"items", kItems},
    {"minItems", kMinItems},
    {"maxItems", kMaxItems},
    {"minLength", kMinLength},
    {"maxLength", kMaxLength},
    {"format", kFormat},
    {"pattern", kPattern},
    {"enum", kEnum},
    {"const", kConst},
    {"allOf", kAllOf},
    {"anyOf", kAnyOf},
    {"oneOf", kOneOf},
    {"minimum", kMinimum},
    {"maximum", kMaximum},
    {"exclusiveMinimum", kExclusiveMinimum},
    {"exclusiveMaximum", kExclusiveMaximum},
    {"multipleOf", kMultipleOf},
    {"$ref", kReference},
};

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

}  // namespace

nb::dict SimpleSchemas::keywords() {
  nb::dict result;
  for (const auto& [name, keyword] : kKeywords) result[name] = static_cast<long>(keyword);
  return result;
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
  if (schema.target != kNone) {  // of an allOf
    schema.state = State::Reference;
    return said == 1;
  }
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
  return add_required(number, required) && (schema.patterns.empty() || sort_keys(schema));
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
    case kPatternProperties:
      return parse_patterns(number, value);
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
    case kAllOf:
      return parse_all_of(number, value);
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

bool SimpleSchemas::parse_patterns(std::uint32_t number, nb::handle value) {
  if (!is_dict(value)) return false;
  Schema& schema = schemas_[number];
  schema.has_objects = true;
  Py_ssize_t place = 0;
  PyObject *key = nullptr, *raw = nullptr;
  while (PyDict_Next(value.ptr(), &place, &key, &raw) != 0) {
    const auto text = text_of(key);
    if (!text) return false;
    const auto member = child(number, "patternProperties", raw, key);
    if (!member) return false;
    schema.patterns.push_back({key, *text, *member, false});
  }
  return true;
}

// The sorts of keys that are not declared, by the pattern found in them. Python decides what the
// patterns are; where two of them are found in one key, or one in a declared key, two schemas hold
// of one property.
bool SimpleSchemas::sort_keys(Schema& schema) {
  if (schema.lacks_required) return false;
  nb::list patterns;
  nb::list keys;
  for (const Member& pattern : schema.patterns) patterns.append(pattern.key);
  for (const Member& member : schema.members) keys.append(member.key);
  const nb::object sorts = key_sorts_(patterns, keys, !schema.is_closed);
  if (sorts.is_none()) return false;
  for (const nb::handle sort : sorts) {
    const auto pattern = nb::cast<std::int64_t>(sort[0]);
    const std::uint32_t other = schema.other == kNone ? anything_ : schema.other;
    schema.sorts.push_back(
        {pattern < 0 ? other : schema.patterns.at(static_cast<std::size_t>(pattern)).schema,
         from_python(sort[1])});
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

}  // namespace grammaton
