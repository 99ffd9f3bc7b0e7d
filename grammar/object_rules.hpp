// The rules of a JSON object whose members are counted by nothing but which of them were written:
// grammar/json_schema/objects.py says what they are and has those of all other objects.
#pragma once

#include <span>

#include "grammar/terms.hpp"

namespace grammaton {

struct ObjectMember {
  Term term;  // key, colon, value and the space after it
  bool required;
};

// Defines `rule`, what follows the opening brace or a comma, and the rule of what follows a member,
// which is returned. `others` are the members that are not declared, by their sorts; there is
// some member.
Rule define_object_rules(TermStore& store, Rule rule, std::span<const ObjectMember> members,
                         std::span<const Term> others, bool any_order, Term close, Term comma);

}  // namespace grammaton
