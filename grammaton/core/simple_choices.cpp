// Choices: which schemas a value may be one of, and whether it can be two of them.
#include <algorithm>
#include <unordered_set>

#include "grammaton/core/raw_schemas.hpp"
#include "grammaton/core/simple_schemas.hpp"

namespace grammaton {

namespace {

// Choices within choices that are followed.
constexpr unsigned kMostDepth = 50;

// Choices of one value; from more on Python may keep them (KEPT_FROM in normal.py).
constexpr unsigned kMostChoices = 32;

// How deep the values of tags are compared, and how many required properties are tried as tags.
constexpr unsigned kMostTagDepth = 3;
constexpr unsigned kMostTags = 16;

}  // namespace

// Of schemas that all hold, the one that says anything: there is no other, and the schema is that.
bool SimpleSchemas::parse_all_of(std::uint32_t number, nb::handle value) {
  if (!PyList_Check(value.ptr())) return false;
  std::uint32_t& target = schemas_[number].target;
  const Py_ssize_t size = PyList_Size(value.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    const nb::handle raw = PyList_GetItem(value.ptr(), i);
    if (raw.ptr() == Py_True || (is_dict(raw) && PyDict_Size(raw.ptr()) == 0)) continue;
    const std::size_t known = schemas_.size();
    const auto part = child(number, "allOf", raw);
    if (!part || target != kNone) return false;
    if (*part == known) schemas_[*part].index = static_cast<std::uint32_t>(i);
    target = *part;
  }
  return target != kNone;
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
// Arrays and objects may be of the same kind where they need not exclude each other, and objects
// where it is seen that they do; scalars of the same kind are merged by Python.
bool SimpleSchemas::set_choices(Schema& schema) {
  unsigned kinds = 0;
  unsigned count = 0;
  unsigned depth = 0;
  for (std::uint32_t& choice : schema.choices) {
    if ((schemas_[choice].kinds & ~schema.kinds) != 0) choice = restricted(choice, schema.kinds);
    if (choice == kNone) return false;
    const unsigned more = schemas_[choice].kinds;
    const unsigned allowed = schema.excludes ? unsigned{kObject} : unsigned{kArray} | kObject;
    if ((more & kinds & ~allowed) != 0) return false;
    kinds |= more;
    count += schemas_[choice].choice_count;
    depth = std::max(depth, schemas_[choice].choice_depth);
  }
  if (schema.excludes && !all_apart(schema.choices)) return false;
  schema.kinds = static_cast<std::uint8_t>(kinds);
  schema.choice_count = count;
  schema.choice_depth = depth + 1;
  return count <= kMostChoices && depth < kMostDepth;
}

// What a schema says of values of some kinds, as a schema; kNone where that is not seen.
std::uint32_t SimpleSchemas::restricted(std::uint32_t number, std::uint8_t kinds) {
  const Schema& whole = schemas_[number];
  const unsigned numbers = whole.kinds & kinds & kNumber;
  if (!whole.choices.empty()) return kNone;
  if (whole.numbers.is_valid() && numbers != 0 && numbers != (whole.kinds & kNumber)) return kNone;
  const std::uint32_t made = add(whole.raw);
  Schema& part = schemas_[made];
  part = whole;
  part.kinds &= kinds;
  part.reached = part.alive = part.only_kinds = false;
  part.sound = true;
  part.string_term = part.number_term = kNothing;
  part.array_term = part.object_term = part.term = kNone;
  return made;
}

bool SimpleSchemas::all_apart(const std::vector<std::uint32_t>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (std::size_t j = i + 1; j < choices.size(); ++j) {
      if (!are_apart(choices[i], choices[j], kMostTagDepth)) return false;
    }
  }
  return true;
}

// Whether it is seen that no value is of two schemas. What is being read may be anything.
bool SimpleSchemas::are_apart(std::uint32_t one, std::uint32_t other, unsigned depth) {
  const Schema& a = schemas_[one];
  const Schema& b = schemas_[other];
  if (a.state != State::Simple || b.state != State::Simple) return false;
  const unsigned common = a.kinds & b.kinds;
  if (common == 0) return true;
  if (depth == 0 || (common & ~unsigned{kString | kObject}) != 0) return false;
  for (const auto& [choosing, against] : {std::pair(one, other), std::pair(other, one)}) {
    const std::vector<std::uint32_t>& choices = schemas_[choosing].choices;
    if (choices.empty()) continue;
    return std::ranges::all_of(choices, [&, beside = against](std::uint32_t choice) {
      return are_apart(choice, beside, depth - 1);
    });
  }
  if ((common & kString) && !values_apart(a, b)) return false;
  return !(common & kObject) || a.lacks_required || b.lacks_required || is_told(a, b, depth) ||
         is_told(b, a, depth);
}

bool SimpleSchemas::values_apart(const Schema& a, const Schema& b) {
  if (!a.values.is_valid() || !b.values.is_valid()) return false;
  std::unordered_set<std::string_view> texts;
  for (const nb::handle value : a.values) texts.insert(*text_of(value));
  for (const nb::handle value : b.values) {
    if (texts.contains(*text_of(value))) return false;
  }
  return true;
}

// Whether an object of `a` has a property that no object of `b` can have.
bool SimpleSchemas::is_told(const Schema& a, const Schema& b, unsigned depth) {
  unsigned tags = 0;
  for (const Member& member : a.members) {
    if (!member.required) continue;
    if (++tags > kMostTags) break;
    const auto same = std::ranges::find(b.members, member.text, &Member::text);
    std::uint32_t against = b.other;
    if (same != b.members.end()) {
      against = same->schema;
    } else if (!b.patterns.empty()) {
      continue;
    } else if (b.is_closed) {
      return true;
    }
    if (against == kNone || depth_ == kMostDepth) continue;
    ++depth_;
    const bool apart = are_apart(followed(member.schema), followed(against), depth - 1);
    --depth_;
    if (apart) return true;
  }
  return false;
}

}  // namespace grammaton
