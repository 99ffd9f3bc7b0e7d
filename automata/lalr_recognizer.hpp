// Follows a text through the LALR machine: the position of one sequence without a vocabulary.
#pragma once

#include "automata/lalr_future.hpp"

namespace grammaton {

class LalrRecognizer {
 public:
  // Throws UnsatisfiableFault when Lark parses no text at all.
  LalrRecognizer(std::shared_ptr<const LalrSource> source, const Limits& limits);

  bool accepts(std::string_view text);
  // How many bytes of `text` begin some text of the language.
  std::size_t longest_prefix(std::string_view text);

 private:
  LalrMachine machine_;
  LalrFuture future_;
};

}  // namespace grammaton
