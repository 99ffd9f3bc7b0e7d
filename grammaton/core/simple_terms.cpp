// The terms of simple schemas: what arrays.py, objects.py and rules.py do for positions.
#include <algorithm>

#include "grammar/object_rules.hpp"
#include "grammaton/core/simple_schemas.hpp"

namespace grammaton {

Term SimpleSchemas::frame(const char* name, Term body, bool sound) {
  const Rule rule = store_->rule(name);
  store_->define(rule, body);
  if (sound) store_->set_sound(rule);
  return store_->call(rule);
}

// Finds of which schemas all is known: those that reach no others than simple ones. What Python
// lowers may have alternatives that lead to no end.
void SimpleSchemas::find_sound() {
  if (judged_ == reached_.size()) return;
  judged_ = reached_.size();
  const auto sound = [this](std::uint32_t member) {
    return !holds(member) || (schemas_[member].state != State::Opaque && schemas_[member].sound);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = reached_.size(); i-- > 0;) {
      Schema& schema = schemas_[reached_[i]];
      if (!schema.sound) continue;
      schema.sound =
          std::ranges::all_of(schema.choices, sound) &&
          (schema.items == kNone || sound(schema.items)) &&
          (schema.other == kNone || sound(schema.other)) &&
          std::ranges::all_of(schema.sorts, sound, [](const auto& s) { return s.first; }) &&
          std::ranges::all_of(schema.members, sound, &Member::schema);
      changed = changed || !schema.sound;
    }
  }
}

Term SimpleSchemas::term(std::uint32_t number, const nb::object& lower) {
  Schema& schema = schemas_[number];
  if (schema.term != kNone) return schema.term;
  if (!schema.reached) throw GrammarFault("this schema was not reached");
  find_sound();
  if (schema.state == State::Opaque) return schema.term = from_python(lower(schema.position));
  std::vector<Term> parts;
  std::vector<Term> containers;
  add_parts(number, parts, containers);
  parts.insert(parts.end(), containers.begin(), containers.end());
  if (parts.empty()) throw GrammarFault("no value satisfies this schema");
  Term made = parts[0];
  if (parts.size() > 1) {
    made = store_->join(std::move(parts));
    if (!containers.empty()) made = frame("VALUE", made, schema.sound);
  }
  return schema.term = made;
}

// The terms of the scalars, and of the arrays and objects, of a schema that was reached.
void SimpleSchemas::add_parts(std::uint32_t number, std::vector<Term>& scalars,
                              std::vector<Term>& containers) {
  const Schema& schema = schemas_[number];
  if (!schema.choices.empty()) {
    for (const std::uint32_t choice : schema.choices) add_parts(choice, scalars, containers);
    return;
  }
  for (const std::uint8_t kinds : {kNull, kBoolean}) {
    if (schema.kinds & kinds) scalars.push_back(ready_[kinds]);
  }
  if (schema.string_term != kNothing) scalars.push_back(schema.string_term);
  if (schema.number_term != kNothing) scalars.push_back(schema.number_term);
  if (array_can_hold(schema))
    containers.push_back(schema.has_arrays ? array_term(number) : ready_[kArray]);
  if (object_can_hold(schema))
    containers.push_back(schema.has_objects ? object_term(number) : ready_[kObject]);
}

Term SimpleSchemas::array_term(std::uint32_t number) {
  Schema& schema = schemas_[number];
  if (schema.array_term != kNone) return schema.array_term;
  const Rule rule = store_->rule("ARRAY");
  bodies_.push_back({number, false, rule});
  return schema.array_term = store_->concat(pieces_.open_bracket, store_->call(rule));
}

Term SimpleSchemas::object_term(std::uint32_t number) {
  Schema& schema = schemas_[number];
  if (schema.object_term != kNone) return schema.object_term;
  bool declared = false;
  bool required = false;
  for (const Member& member : schema.members) {
    declared = declared || holds(member.schema);
    required = required || member.required;
  }
  const bool open =
      schema.patterns.empty()
          ? !schema.is_closed && (schema.other == kNone || holds(schema.other))
          : std::ranges::any_of(schema.sorts, [this](const auto& s) { return holds(s.first); });
  if (!declared && !open)
    return schema.object_term = store_->concat(pieces_.open_brace, pieces_.close_brace);
  const Rule rule = store_->rule(declared ? "MEMBER" : "MEMBERS");
  bodies_.push_back({number, true, rule});
  Term inside = store_->call(rule);
  if (!required) inside = store_->join({pieces_.close_brace, inside});
  return schema.object_term = store_->concat(pieces_.open_brace, inside);
}

bool SimpleSchemas::define(const nb::object& lower) {
  if (bodies_.empty()) return false;
  while (!bodies_.empty()) {
    const Body body = bodies_.front();
    bodies_.pop_front();
    const Schema& schema = schemas_[body.schema];
    if (body.is_object)
      define_object(schema, body.rule, lower);
    else
      define_array(schema, body.rule, lower);
  }
  return true;
}

void SimpleSchemas::define_array(const Schema& schema, Rule rule, const nb::object& lower) {
  TermStore& s = *store_;
  const std::uint32_t items = schema.items == kNone ? anything_ : schema.items;
  const std::uint32_t most = holds(items) ? schema.most_items : 0;
  if (most == 0) {
    s.define(rule, pieces_.close_bracket);
    return;
  }
  const Term item = s.concat(term(items, lower), pieces_.space);
  Term tail = pieces_.close_bracket;
  if (most > 1) {
    const std::uint32_t left = most == kUnbounded ? kUnbounded : most - 1;
    const std::uint32_t least = schema.least_items == 0 ? 0 : schema.least_items - 1;
    tail = s.concat(s.repeat(s.concat(pieces_.comma, item), least, left), tail);
  }
  Term body = s.concat(item, tail);
  if (schema.least_items == 0) body = s.join({pieces_.close_bracket, body});
  s.define(rule, body);
  if (schema.sound) s.set_sound(rule);
}

// A declared member and the space after it.
Term SimpleSchemas::member_term(const Member& member, const nb::object& lower) {
  TermStore& s = *store_;
  const Term value = term(member.schema, lower);
  Term& rest = member_rests_.try_emplace(value, kNothing).first->second;
  if (rest == kNothing) rest = s.concat(pieces_.quote_colon, s.concat(value, pieces_.space));
  Term& key = keys_.try_emplace(member.text, kNothing).first->second;
  if (key == kNothing) key = s.json(s.literal(member.text));
  return s.concat(pieces_.quote, s.concat(key, rest));
}

void SimpleSchemas::define_object(const Schema& schema, Rule rule, const nb::object& lower) {
  TermStore& s = *store_;
  std::vector<ObjectMember> members;
  members.reserve(schema.members.size());
  for (const Member& member : schema.members) {
    if (!holds(member.schema)) continue;
    members.push_back({member_term(member, lower), member.required});
  }
  std::vector<Term> others;
  const auto add = [&](std::uint32_t value, Term key) {
    if (!holds(value)) return;
    const Term rest = s.concat(pieces_.colon, s.concat(term(value, lower), pieces_.space));
    others.push_back(s.concat(pieces_.quote, s.concat(key, rest)));
  };
  for (const auto& [sorted, key] : schema.sorts) add(sorted, key);
  if (schema.patterns.empty() && !schema.is_closed &&
      (schema.other == kNone || holds(schema.other))) {
    add(schema.other == kNone ? anything_ : schema.other, key_rest(schema));
  }
  if (members.empty()) {
    const Term other = s.join(std::move(others));
    const Term more = s.repeat(s.concat(pieces_.comma, other), 0, kUnbounded);
    s.define(rule, s.concat(other, s.concat(more, pieces_.close_brace)));
    if (schema.sound) s.set_sound(rule);
    return;
  }
  const Rule rest =
      define_object_rules(s, rule, members, others, any_order_, pieces_.close_brace, pieces_.comma);
  if (schema.sound) {
    s.set_sound(rule);
    s.set_sound(rest);
  }
}

// A frame of the keys that are not declared, after the opening quote.
Term SimpleSchemas::key_rest(const Schema& schema) {
  if (schema.members.empty()) return pieces_.any_string_rest;
  TermStore& s = *store_;
  std::string all;
  for (const Member& member : schema.members) {
    all += member.text;
    all += '\xFF';  // in no text
  }
  const auto [in_order, is_new_order] = key_rests_in_order_.try_emplace(std::move(all), kNothing);
  if (!is_new_order) return in_order->second;
  std::vector<std::string> texts;
  texts.reserve(schema.members.size());
  for (const Member& member : schema.members) texts.emplace_back(member.text);
  const Term declared = s.literals(std::move(texts));
  const auto [known, is_new] = key_rests_.try_emplace(declared, kNothing);
  if (is_new) {
    const Term others = s.json(s.complement(declared));
    known->second = frame("KEY", s.concat(others, pieces_.quote), true);
  }
  return in_order->second = known->second;
}

}  // namespace grammaton
