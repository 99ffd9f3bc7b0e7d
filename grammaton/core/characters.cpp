// CharacterMachine for Python. State ids come from the caller and are checked here.
#include "automata/characters.hpp"

#include "grammaton/core/bindings.hpp"

namespace grammaton {

namespace {

State state_of(const CharacterMachine& machine, std::uint64_t state) {
  if (!machine.has(state)) {
    throw GrammarFault("state " + std::to_string(state) + " is not of this machine");
  }
  return state;
}

}  // namespace

void bind_characters(nb::module_& m) {
  using nb::arg;
  nb::class_<CharacterMachine>(m, "CharacterMachine")
      .def(
          "__init__",
          [](CharacterMachine* self, TermStore& store, std::uint64_t start,
             const nb::object& limits) {
            if (start >= store.size()) throw GrammarFault("the start term is not of this store");
            new (self) CharacterMachine(store, static_cast<Term>(start), limits_of(limits));
          },
          arg("store"), arg("start"), arg("limits") = nb::none())
      .def_prop_ro("start", &CharacterMachine::start)
      .def(
          "is_final",
          [](CharacterMachine& self, std::uint64_t state) {
            return self.is_final(state_of(self, state));
          },
          arg("state"))
      .def(
          "arcs",
          [](CharacterMachine& self, std::uint64_t state) {
            nb::list arcs;
            for (const CharacterMachine::Arc& arc : self.arcs(state_of(self, state))) {
              nb::list ranges;
              for (const CodeRange& range : arc.characters)
                ranges.append(nb::make_tuple(range.low, range.high));
              arcs.append(nb::make_tuple(nb::tuple(ranges), arc.target));
            }
            return arcs;
          },
          arg("state"))
      .def(
          "step",
          [](CharacterMachine& self, std::uint64_t state, std::uint32_t code_point) -> nb::object {
            if (code_point > 0x10FFFF) throw GrammarFault("no such character");
            const State next = self.step(state_of(self, state), code_point);
            return next == Machine::kEmptySet ? nb::object(nb::none()) : nb::object(nb::int_(next));
          },
          arg("state"), arg("code_point"))
      .def_prop_ro("remembers", &CharacterMachine::remembers)
      .def(
          "shortest",
          [](CharacterMachine& self, std::uint64_t state) {
            return self.shortest(state_of(self, state));
          },
          arg("state"));
}

}  // namespace grammaton
