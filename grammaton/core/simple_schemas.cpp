// Which schemas there are, where they lead and what can hold a value; simple_keywords.cpp has what
// they say, simple_terms.cpp the lowering.
#include "grammaton/core/simple_schemas.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>

#include "grammaton/core/raw_schemas.hpp"

namespace grammaton {

namespace {

// A height that no value has; positions.py calls it INFINITE.
constexpr long kInfinite = 1L << 30;

// References to references that are followed.
constexpr std::size_t kMostReferences = 4000;

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
                             SchemaPieces pieces, nb::object key_sorts, const nb::dict& ready,
                             bool any_order, bool closed, std::uint64_t most)
    : store_object_(std::move(store)),
      store_(nb::cast<TermStore*>(store_object_)),
      root_(std::move(root)),
      dialect_(std::move(dialect)),
      pieces_(pieces),
      key_sorts_(std::move(key_sorts)),
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

// The schema at the end of references, parsed. References in a circle, or very many, are opaque.
std::uint32_t SimpleSchemas::followed(std::uint32_t schema) {
  std::vector<std::uint32_t> path;
  for (;;) {
    if (schemas_[schema].state == State::Unread) parse(schema);
    if (schemas_[schema].state != State::Reference) return schema;
    if (path.size() == kMostReferences || std::ranges::find(path, schema) != path.end()) {
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
    for (auto& [sorted, key] : schema.sorts) {
      sorted = followed(sorted);
      met(sorted, hooks, todo);
    }
    if (schema.other != kNone && schema.sorts.empty()) {
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
