// LalrTables and LalrRecognizer for Python. The tables come from the caller, so every number in
// them is checked here, once.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "automata/lalr_recognizer.hpp"
#include "grammaton/core/bindings.hpp"

namespace grammaton {

namespace {

// Entries of tables that are written out whole.
constexpr std::size_t kSmallTable = 4'000'000;

using Number = std::uint64_t;
using Numbers = std::vector<Number>;
using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
using InstructionTuple = std::tuple<Number, Number, Number, Number, Numbers>;
using TerminalTuple = std::tuple<std::string, Number, bool>;
using ScannerTuple = std::pair<Numbers, std::vector<std::pair<Number, Numbers>>>;
using Action = std::pair<Number, std::int64_t>;
using StateTuple = std::tuple<Number, std::vector<Action>, std::vector<std::pair<Number, Number>>>;

constexpr std::uint64_t kMost = std::uint64_t{1} << 24;

std::uint32_t below(std::uint64_t value, std::size_t end, const char* what) {
  if (value >= end || value >= kMost) {
    throw GrammarFault(std::string(what) + " " + std::to_string(value) +
                       " of the LALR tables is out of range");
  }
  return static_cast<std::uint32_t>(value);
}

void read_program(LalrSource& source, const std::vector<InstructionTuple>& program,
                  std::size_t terminals, std::size_t behinds) {
  using Op = Instruction::Op;
  const std::size_t size = program.size();
  for (const auto& [operation, a, b, next, ways] : program) {
    Instruction made;
    made.op =
        static_cast<Op>(below(operation, static_cast<std::size_t>(Op::Match) + 1, "operation"));
    made.next = below(next, size, "instruction");
    switch (made.op) {
      case Op::Char:
        made.a = below(a, source.classes.size(), "class");
        break;
      case Op::Match:
        made.a = a == kNone ? kNone : below(a, terminals, "terminal");
        break;
      case Op::Behind:
        made.a = below(a, behinds, "look-behind");
        made.b = b != 0;
        break;
      case Op::Ahead:
        made.a = below(a, size, "instruction");
        made.b = b != 0;
        break;
      case Op::Again:
        made.a = below(a, kMost, "loop");
        made.b = below(b, size, "instruction");
        break;
      default:
        made.a = below(a, kMost, "loop");
    }
    for (const Number way : ways) made.ways.push_back(below(way, size, "instruction"));
    source.program.push_back(std::move(made));
  }
}

std::shared_ptr<const LalrSource> read_tables(
    const std::vector<InstructionTuple>& program, const std::vector<Ranges>& classes,
    const Numbers& behinds, bool behinds_stay_inside, const std::vector<TerminalTuple>& terminals,
    const std::vector<ScannerTuple>& scanners, const std::vector<std::pair<Number, Number>>& rules,
    std::uint64_t nonterminals, const std::vector<StateTuple>& states, std::uint64_t start,
    std::uint64_t end, bool consistent) {
  auto source = std::make_shared<LalrSource>();
  if (behinds.size() > 64) throw GrammarFault("LALR tables have at most 64 look-behinds");
  for (const Ranges& ranges : classes) {
    CodeRanges made;
    for (const auto& [low, high] : ranges) {
      if (low > high || high > 0x10FFFF) throw GrammarFault("a class has a bad range");
      made.push_back({low, high});
    }
    source->classes.push_back(std::move(made));
  }
  read_program(*source, program, terminals.size(), behinds.size());
  for (const Number at : behinds)
    source->behinds.push_back(below(at, program.size(), "instruction"));
  source->behinds_stay_inside = behinds_stay_inside;
  for (const auto& [name, pattern, ignored] : terminals) {
    source->names.push_back(name);
    source->patterns.push_back(pattern == kNone ? kNone
                                                : below(pattern, program.size(), "instruction"));
    source->ignored.push_back(ignored);
  }
  const auto terminal_of = [&](Number value) { return below(value, terminals.size(), "terminal"); };
  const auto pattern_of = [&](Number value) {
    const Terminal terminal = terminal_of(value);
    if (source->patterns[terminal] == kNone) throw GrammarFault("a keyword has no pattern");
    return terminal;
  };
  for (const auto& [order, keywords] : scanners) {
    Scanner made;
    for (const Number terminal : order) made.order.push_back(terminal_of(terminal));
    for (const auto& [terminal, strings] : keywords) {
      made.keywords.emplace_back(terminal_of(terminal), std::vector<Terminal>{});
      for (const Number string : strings) made.keywords.back().second.push_back(pattern_of(string));
    }
    source->scanners.push_back(std::move(made));
  }
  if (nonterminals >= kMost) throw GrammarFault("too many nonterminals");
  for (const auto& [left, length] : rules)
    source->rules.push_back(
        {below(left, nonterminals, "nonterminal"), below(length, kMost, "length")});
  const bool small = states.size() * (terminals.size() + 1 + nonterminals) <= kSmallTable;
  for (const auto& [scanner, actions, gotos] : states) {
    LalrSource::State made;
    made.scanner = below(scanner, scanners.size(), "scanner");
    std::vector<std::pair<std::uint32_t, std::int32_t>> made_actions;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> made_gotos;
    for (const auto& [terminal, action] : actions) {
      const std::uint32_t at = below(terminal, terminals.size() + 1, "terminal");
      if (action > 0) {
        below(static_cast<std::uint64_t>(action) - 1, states.size(), "state");
        if (at == terminals.size()) throw GrammarFault("the end of the text cannot be shifted");
      } else if (action < 0) {
        below(static_cast<std::uint64_t>(-(action + 1)), rules.size(), "rule");
      }
      made_actions.emplace_back(at, static_cast<std::int32_t>(action));
    }
    for (const auto& [left, state] : gotos)
      made_gotos.emplace_back(below(left, nonterminals, "nonterminal"),
                              below(state, states.size(), "state"));
    made.actions = {std::move(made_actions), terminals.size() + 1, small};
    made.gotos = {std::move(made_gotos), nonterminals, small};
    source->states.push_back(std::move(made));
  }
  source->start = below(start, states.size(), "state");
  source->end = below(end, states.size(), "state");
  source->consistent = consistent;
  return source;
}

std::string_view view(const nb::bytes& data) { return {data.c_str(), data.size()}; }

}  // namespace

void bind_lalr(nb::module_& m) {
  using nb::arg;
  nb::class_<LalrTables>(m, "LalrTables")
      .def(
          "__init__",
          [](LalrTables* self, const std::vector<InstructionTuple>& program,
             const std::vector<Ranges>& classes, const Numbers& behinds, bool behinds_stay_inside,
             const std::vector<TerminalTuple>& terminals, const std::vector<ScannerTuple>& scanners,
             const std::vector<std::pair<Number, Number>>& rules, std::uint64_t nonterminals,
             const std::vector<StateTuple>& states, std::uint64_t start, std::uint64_t end,
             bool consistent) {
            new (self) LalrTables{read_tables(program, classes, behinds, behinds_stay_inside,
                                              terminals, scanners, rules, nonterminals, states,
                                              start, end, consistent)};
          },
          nb::kw_only(), arg("program"), arg("classes"), arg("behinds"), arg("behinds_stay_inside"),
          arg("terminals"), arg("scanners"), arg("rules"), arg("nonterminals"), arg("states"),
          arg("start"), arg("end"), arg("consistent"))
      .def("__repr__", [](const LalrTables& self) {
        return "LalrTables(" + std::to_string(self.source->states.size()) + " states, " +
               std::to_string(self.source->names.size()) + " terminals, " +
               std::to_string(self.source->scanners.size()) + " scanners)";
      });

  nb::class_<LalrRecognizer>(m, "LalrRecognizer")
      .def(
          "__init__",
          [](LalrRecognizer* self, const LalrTables& tables, const nb::object& limits) {
            new (self) LalrRecognizer(tables.source, limits_of(limits));
          },
          arg("tables"), arg("limits") = nb::none())
      .def(
          "accepts",
          [](LalrRecognizer& self, const nb::bytes& text) { return self.accepts(view(text)); },
          arg("text"))
      .def(
          "accepts_prefix",
          [](LalrRecognizer& self, const nb::bytes& text) {
            return self.longest_prefix(view(text)) == text.size();
          },
          arg("text"))
      .def(
          "longest_prefix",
          [](LalrRecognizer& self, const nb::bytes& text) {
            return self.longest_prefix(view(text));
          },
          arg("text"));
}

}  // namespace grammaton
