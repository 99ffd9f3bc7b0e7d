// TokenIndex, Constraint and Matcher for Python. The GIL is released around every mask and step;
// buffers and ids are checked before.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "grammaton/core/mask_buffer.hpp"
#include "grammaton/core/without_gil.hpp"
#include "index/constraint.hpp"
#include "index/lalr_states.hpp"

namespace grammaton {

namespace {

using Mask = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>;

std::uint32_t token_of(std::int64_t id) {
  if (id < 0 || id > 0xFFFFFFFFLL) {
    throw VocabularyFault("token id " + std::to_string(id) + " is out of range");
  }
  return static_cast<std::uint32_t>(id);
}

std::string_view view(const nb::bytes& data) { return {data.c_str(), data.size()}; }

}  // namespace

void bind_index(nb::module_& m) {
  using nb::arg;
  nb::class_<TokenIndex>(m, "TokenIndex")
      .def(
          "__init__",
          [](TokenIndex* self, const std::vector<nb::bytes>& tokens,
             const std::vector<bool>& ordinary, const std::vector<std::int64_t>& eos,
             std::size_t mask_bits, const nb::object& limits) {
            std::vector<std::string> copies;
            copies.reserve(tokens.size());
            for (const nb::bytes& token : tokens) copies.emplace_back(view(token));
            std::vector<std::uint32_t> ids;
            for (const std::int64_t id : eos) ids.push_back(token_of(id));
            const Limits bounds = limits_of(limits);
            const WithoutGil release;
            new (self) TokenIndex(std::move(copies), ordinary, std::move(ids), mask_bits, bounds);
          },
          arg("tokens"), arg("ordinary"), arg("eos_token_ids"), arg("mask_bits"),
          arg("limits") = nb::none())
      .def_prop_ro("mask_words", &TokenIndex::mask_words)
      .def("stats", [](const TokenIndex& index) {
        const TokenIndex::Stats stats = index.stats();
        nb::dict result;
        result["trie_nodes"] = stats.trie_nodes;
        result["frame_masks"] = stats.frame_masks;
        result["frame_mask_bytes"] = stats.frame_mask_bytes;
        result["frame_masks_made"] = stats.frame_masks_made;
        return result;
      });

  nb::class_<Constraint>(m, "Constraint")
      .def(
          "__init__",
          [](Constraint* self, TermStore& store, std::uint64_t start,
             std::shared_ptr<TokenIndex> index, const nb::object& limits,
             const std::vector<std::pair<std::uint32_t, Ranges>>& tokens, bool rehearse) {
            if (start >= store.size()) throw GrammarFault("the start term is not of this store");
            const Limits bounds = limits_of(limits);
            // Making a constraint may add terms to the store it reads, and other threads may use
            // that meanwhile: a copy costs a few per cent of what is done with it.
            TermStore source = store;
            for (const auto& [set, ids] : tokens) {
              if (set >= source.token_set_count())
                throw GrammarFault("token set " + std::to_string(set) + " is not of this store");
              source.resolve_tokens(set, id_ranges(ids));
            }
            const WithoutGil release;
            new (self)
                Constraint(source, static_cast<Term>(start), std::move(index), bounds, rehearse);
          },
          arg("store"), arg("start"), arg("index"), arg("limits") = nb::none(),
          arg("tokens") = std::vector<std::pair<std::uint32_t, Ranges>>{}, arg("rehearse") = false)
      .def_static(
          "from_lalr",
          [](const LalrTables& tables, std::shared_ptr<TokenIndex> index,
             const nb::object& limits) {
            const Limits bounds = limits_of(limits);
            const nb::gil_scoped_release release;
            auto states = std::make_unique<LalrStates>(tables.source, *index, bounds);
            return std::make_shared<Constraint>(std::move(states), std::move(index), bounds);
          },
          arg("tables"), arg("index"), arg("limits") = nb::none())
      .def("__repr__",
           [](Constraint& self) {
             const WithoutGil release;
             const Constraint::Stats stats = self.stats();
             return "Constraint(" + std::to_string(self.index().mask_bits()) + " token ids, " +
                    std::to_string(stats.terms) + " terms, " + std::to_string(stats.masks) +
                    " masks kept)";
           })
      .def("matcher",
           [](const std::shared_ptr<Constraint>& self) {
             const WithoutGil release;
             return std::make_unique<Matcher>(self);
           })
      .def(
          "node",
          [](Constraint& self, std::uint64_t term) {
            return self.ask_store([&](const TermStore& s) { return node_tuple(s, term); });
          },
          arg("term"))
      .def(
          "rule_name",
          [](Constraint& self, std::uint64_t rule) {
            return self.ask_store([&](const TermStore& s) { return rule_name(s, rule); });
          },
          arg("rule"))
      .def(
          "param_value",
          [](Constraint& self, std::uint64_t param) {
            return self.ask_store([&](const TermStore& s) { return param_tuple(s, param); });
          },
          arg("param"))
      .def_prop_ro("memory_bytes", &Constraint::memory)
      .def_prop_ro("has_captures", &Constraint::has_captures)
      .def("stats", [](Constraint& self) {
        const Constraint::Stats stats = [&self] {
          const WithoutGil release;
          return self.stats();
        }();
        nb::dict result;
        result["walk_nodes"] = stats.walk.walk_nodes;
        result["study_nodes"] = stats.walk.study_nodes;
        result["pair_nodes"] = stats.walk.pair_nodes;
        result["pair_walks"] = stats.walk.pair_walks;
        result["left_out"] = stats.walk.left_out;
        result["counted"] = stats.walk.counted;
        result["frames_made"] = stats.walk.frames_made;
        result["terms"] = stats.terms;
        result["operands_joined"] = stats.operands_joined;
        result["frames"] = stats.frames;
        result["sets"] = stats.sets;
        result["masks"] = stats.masks;
        result["mask_bytes"] = stats.mask_bytes;
        result["mask_hits"] = stats.mask_hits;
        result["mask_misses"] = stats.mask_misses;
        return result;
      });

  nb::class_<Matcher>(m, "Matcher")
      .def(
          "fill_mask",
          [](Matcher& self, const nb::object& out, std::int64_t row) {
            const MaskBuffer buffer(out, self.constraint().index().mask_words());
            if (row < 0 || static_cast<std::uint64_t>(row) >= buffer.rows()) {
              throw VocabularyFault("row " + std::to_string(row) +
                                    " is out of range; the mask buffer has " +
                                    std::to_string(buffer.rows()) + " rows");
            }
            std::uint32_t* words = buffer.row(static_cast<std::size_t>(row));
            if (self.fill_known(words)) return;
            const WithoutGil release;
            self.fill(words);
          },
          arg("out").none(), arg("row") = 0)
      .def("__repr__",
           [](Matcher& self) {
             return "Matcher(" + std::to_string(self.accepted()) + " accepts" +
                    (self.is_finished()   ? ", finished"
                     : self.is_complete() ? ", complete"
                                          : "") +
                    ")";
           })
      .def("mask",
           [](Matcher& self) {
             const std::size_t count = self.constraint().index().mask_words();
             auto* words = new std::uint32_t[count];
             nb::capsule owner(words,
                               [](void* p) noexcept { delete[] static_cast<std::uint32_t*>(p); });
             {
               const WithoutGil release;
               self.fill(words);
             }
             return Mask(words, {count}, owner);
           })
      .def_prop_ro("temperature",
                   [](Matcher& self) {
                     const auto found = [&self] {
                       const WithoutGil release;
                       return self.temperature();
                     }();
                     return found ? nb::object(nb::float_(*found)) : nb::object(nb::none());
                   })
      .def("captures",
           [](Matcher& self) {
             const std::vector<Captured> found = [&self] {
               const WithoutGil release;
               return self.captures();
             }();
             nb::dict result;
             for (const Captured& captured : found) {
               const nb::str name(captured.name.c_str(), captured.name.size());
               if (!result.contains(name)) result[name] = nb::list();
               nb::cast<nb::list>(result[name])
                   .append(nb::bytes(captured.text.data(), captured.text.size()));
             }
             return result;
           })
      .def(
          "accept",
          [](Matcher& self, std::int64_t token_id) {
            const std::uint32_t token = token_of(token_id);
            if (const std::optional<bool> known = self.accept_known(token)) return *known;
            const WithoutGil release;
            return self.accept(token);
          },
          arg("token_id"))
      .def(
          "accept_bytes",
          [](Matcher& self, const nb::bytes& data) {
            const std::string_view text = view(data);
            const WithoutGil release;
            return self.accept_bytes(text);
          },
          arg("data"))
      .def(
          "validate",
          [](Matcher& self, const std::vector<std::int64_t>& tokens) {
            std::vector<std::uint32_t> ids;
            ids.reserve(tokens.size());
            for (const std::int64_t token : tokens) ids.push_back(token_of(token));
            const WithoutGil release;
            return self.validate(ids);
          },
          arg("tokens"))
      .def(
          "rollback",
          [](Matcher& self, std::int64_t n) {
            if (n < 0 || !self.rollback(static_cast<std::size_t>(n))) {
              throw VocabularyFault("cannot roll back " + std::to_string(n) + " accepts; " +
                                    std::to_string(self.accepted()) + " were made");
            }
          },
          arg("n"))
      .def("fork", [](const Matcher& self) { return std::make_unique<Matcher>(self); })
      .def("reset", &Matcher::reset, nb::call_guard<WithoutGil>())
      .def_prop_ro("is_complete",
                   [](Matcher& self) {
                     const WithoutGil release;
                     return self.is_complete();
                   })
      .def_prop_ro("is_finished", &Matcher::is_finished)
      .def_prop_ro("state",
                   [](const Matcher& self) {
                     // Another generation's numbers are above those of all before it.
                     const std::uint32_t generation = self.generation();
                     const nb::object state = nb::int_(self.state());
                     return generation < 2 ? state : state | (nb::int_(generation) << nb::int_(64));
                   })
      .def("forced_bytes",
           [](Matcher& self) {
             std::string forced;
             {
               const WithoutGil release;
               forced = self.forced_bytes();
             }
             return nb::bytes(forced.data(), forced.size());
           })
      .def(
          "stacks",
          [](Matcher& self, std::int64_t limit) {
            if (limit < 1) throw VocabularyFault("stacks() lists at least one: limit is 1 or more");
            std::vector<std::vector<Term>> found;
            {
              const WithoutGil release;
              found = self.stacks(static_cast<std::size_t>(limit));
            }
            nb::list stacks;
            for (const std::vector<Term>& terms : found) {
              nb::list stack;
              for (const Term term : terms) stack.append(term);
              stacks.append(nb::tuple(stack));
            }
            return stacks;
          },
          nb::kw_only(), arg("limit") = 16)
      .def(
          "forced_tokens",
          [](Matcher& self, const std::string& mode) {
            if (mode != "exact") {
              throw VocabularyFault("forced_tokens knows mode=\"exact\", not \"" + mode +
                                    "\": canonical tokens need the tokenizer, see "
                                    "Engine.generate(forced=\"canonical\") and forced_bytes()");
            }
            const WithoutGil release;
            return self.forced_tokens();
          },
          nb::kw_only(), arg("mode") = "exact");
}

}  // namespace grammaton
