#include "automata/lalr_recognizer.hpp"

namespace grammaton {

LalrRecognizer::LalrRecognizer(std::shared_ptr<const LalrSource> source, const Limits& limits)
    : machine_(std::move(source), Spelling{}, limits), future_(machine_) {
  if (!future_.viable(machine_.core(machine_.start()), 0))
    throw UnsatisfiableFault("Lark parses no text at all with this grammar");
}

bool LalrRecognizer::accepts(std::string_view text) {
  CoreId core = machine_.core(machine_.start());
  ContextId context = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    context = machine_.lexer().after(context, byte);
    core = machine_.step(core, byte, context);
    if (core == LalrMachine::kDeadCore) return false;
  }
  return machine_.ends(core);
}

// What begins a text does so with all its beginnings, so the end is found by halving; being alive
// costs less to know than having a future.
std::size_t LalrRecognizer::longest_prefix(std::string_view text) {
  std::vector<std::pair<CoreId, ContextId>> path{{machine_.core(machine_.start()), 0}};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto [core, context] = path.back();
    const ContextId after = machine_.lexer().after(context, byte);
    const CoreId next = machine_.step(core, byte, after);
    if (next == LalrMachine::kDeadCore) break;
    path.emplace_back(next, after);
  }
  std::size_t low = 0;
  std::size_t high = path.size() - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (future_.viable(path[middle].first, path[middle].second)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace grammaton
