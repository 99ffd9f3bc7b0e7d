// SimpleSchemas for Python.
#include <nanobind/stl/optional.h>

#include "grammaton/core/simple_schemas.hpp"

namespace grammaton {

void bind_simple_schemas(nb::module_& m) {
  using nb::arg;
  nb::class_<SimpleSchemas>(m, "SimpleSchemas")
      .def(
          "__init__",
          [](SimpleSchemas* self, const nb::object& store, const nb::object& root,
             const nb::dict& keywords, const nb::dict& types, const nb::dict& formats,
             const nb::str& identity, bool lone_references, const nb::tuple& pieces,
             const nb::object& key_sorts, const nb::dict& ready, bool any_order, bool closed,
             std::uint64_t most) {
            if (pieces.size() != 10) throw GrammarFault("there are ten pieces of texts");
            TermStore& made_in = *nb::cast<TermStore*>(store);
            std::size_t next = 0;
            const auto piece = [&] {
              const auto term = nb::cast<Term>(pieces[next++]);
              if (term >= made_in.size()) throw GrammarFault("a piece is not of this store");
              return term;
            };
            SchemaPieces made{};
            for (Term* each : {&made.quote, &made.colon, &made.quote_colon, &made.comma,
                               &made.space, &made.open_brace, &made.close_brace, &made.open_bracket,
                               &made.close_bracket, &made.any_string_rest}) {
              *each = piece();
            }
            new (self)
                SimpleSchemas(store, root, {keywords, types, formats, identity, lone_references},
                              made, key_sorts, ready, any_order, closed, most);
          },
          arg("store"), arg("root"), nb::kw_only(), arg("keywords"), arg("types"), arg("formats"),
          arg("identity"), arg("lone_references"), arg("pieces"), arg("key_sorts"), arg("ready"),
          arg("any_order"), arg("closed"), arg("most"))
      .def_static("keywords", &SimpleSchemas::keywords)
      .def("read", &SimpleSchemas::read, arg("raw"), arg("node"))
      .def(
          "reach",
          [](SimpleSchemas& s, std::uint64_t schema, const nb::object& meet,
             const nb::object& string, const nb::object& number, const nb::object& values) {
            s.reach(s.checked(schema), {meet, string, number, values});
          },
          arg("schema"), nb::kw_only(), arg("meet"), arg("string"), arg("number"), arg("values"))
      .def("settle", &SimpleSchemas::settle)
      .def(
          "alive",
          [](const SimpleSchemas& s, std::uint64_t schema) { return s.alive(s.checked(schema)); },
          arg("schema"))
      .def(
          "term",
          [](SimpleSchemas& s, std::uint64_t schema, const nb::object& lower) {
            return s.term(s.checked(schema), lower);
          },
          arg("schema"), arg("lower"))
      .def("define", &SimpleSchemas::define, arg("lower"));
}

}  // namespace grammaton
