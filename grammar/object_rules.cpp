#include "grammar/object_rules.hpp"

namespace grammaton {

namespace {

using Conditions = std::vector<Condition>;
using Updates = std::vector<Update>;

Condition between(std::uint32_t counter, std::uint32_t low, std::uint32_t high) {
  return {Condition::Op::Between, counter, low, high, {}};
}

// What decides which member may come next, in one of the two orders.
struct Order {
  std::vector<Conditions> conditions;  // of each member
  std::vector<Updates> updates;
  Conditions other_conditions;
  Updates other_updates;
  Conditions ended;              // the object may end
  std::vector<Conditions> more;  // ways for it to go on
};

// Counter 0 is the index of the next member.
Order in_order(std::span<const ObjectMember> members, bool open) {
  Order order;
  const auto size = static_cast<std::uint32_t>(members.size());
  std::uint32_t least = 0;
  std::uint32_t last_optional = kNone;
  for (std::uint32_t i = 0; i < size; ++i) {
    order.conditions.push_back({between(0, least, i)});
    order.updates.push_back({{Update::Op::Set, 0, i + 1, 0}});
    if (members[i].required)
      least = i + 1;
    else
      last_optional = i;
  }
  order.other_conditions = order.ended = {between(0, least, size)};
  order.other_updates = {{Update::Op::Set, 0, size, 0}};
  if (open) {
    order.more.push_back({});
    return order;
  }
  if (last_optional != kNone) order.more.push_back({between(0, 0, last_optional)});
  if (least > 0) order.more.push_back({between(0, 0, least - 1)});
  return order;
}

// Bit i says that member i was written. Where there are no other members, counter 0 is how many
// required ones were, and counter 1 how many of the rest.
Order in_any_order(std::span<const ObjectMember> members, bool open) {
  Order order;
  const auto size = static_cast<std::uint32_t>(members.size());
  std::vector<std::uint32_t> required;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (members[i].required) required.push_back(i);
  }
  const auto needed = static_cast<std::uint32_t>(required.size());
  const std::uint32_t optional = size - needed;
  for (std::uint32_t i = 0; i < size; ++i) {
    order.conditions.push_back({{Condition::Op::Unseen, i, 0, 0, {}}});
    Updates updates{{Update::Op::See, i, 0, 0}};
    if (!open) {
      updates.push_back(members[i].required ? Update{Update::Op::Add, 0, 1, needed}
                                            : Update{Update::Op::Add, 1, 1, optional});
    }
    order.updates.push_back(std::move(updates));
  }
  if (needed > 0) order.ended = {{Condition::Op::AllSeen, 0, 0, 0, std::move(required)}};
  if (open) {
    order.more.push_back({});
    return order;
  }
  if (optional > 0) order.more.push_back({between(1, 0, optional - 1)});
  if (needed > 0) order.more.push_back({between(0, 0, needed - 1)});
  return order;
}

}  // namespace

Rule define_object_rules(TermStore& store, Rule rule, std::span<const ObjectMember> members,
                         std::span<const Term> others, bool any_order, Term close, Term comma) {
  const bool open = !others.empty();
  Order order = any_order ? in_any_order(members, open) : in_order(members, open);
  const Rule rest = store.rule("MEMBERS");
  std::vector<Alternative> after;
  after.reserve(1 + order.more.size());
  after.push_back({close, kNone, kEmpty, std::move(order.ended), {}});
  for (Conditions& conditions : order.more)
    after.push_back({comma, rule, kEmpty, std::move(conditions), {}});
  store.define_template(rest, std::move(after));
  std::vector<Alternative> first;
  first.reserve(members.size() + others.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    first.push_back({members[i].term, rest, kEmpty, std::move(order.conditions[i]),
                     std::move(order.updates[i])});
  }
  for (const Term other : others)
    first.push_back({other, rest, kEmpty, order.other_conditions, order.other_updates});
  store.define_template(rule, std::move(first));
  if (any_order) store.set_unordered(rule);
  return rest;
}

}  // namespace grammaton
