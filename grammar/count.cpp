#include "grammar/count.hpp"

#include <algorithm>
#include <set>

namespace grammaton {

// By length: how many beginnings of so many bytes lead to each residual. Every residual has a text,
// so there are at least as many texts as beginnings of any one length, and a beginning longer than
// there are residuals has passed one of them twice: then there are infinitely many.
std::uint64_t count_texts(TermStore& store, Term term, std::uint64_t most) {
  if (store.is_empty(term)) return 0;
  std::map<Term, std::uint64_t> ends{{term, 1}};
  std::set<Term> residuals;
  std::uint64_t found = 0;
  for (std::size_t length = 0; !ends.empty(); ++length) {
    std::map<Term, std::uint64_t> next;
    std::uint64_t beginnings = 0;
    for (const auto& [residual, count] : ends) {
      residuals.insert(residual);
      beginnings = std::min(beginnings + count, most);
      if (store.nullable(residual)) found = std::min(found + count, most);
      const Row row = store.row(residual);
      const ClassMap map = store.class_map(row);
      map.live.each([&](unsigned byte) {
        std::uint64_t& sum = next[store.target(row, map.of[byte])];
        sum = std::min(sum + count, most);
      });
    }
    if (beginnings >= most || found >= most || length > residuals.size()) return most;
    ends = std::move(next);
  }
  return found;
}

}  // namespace grammaton
