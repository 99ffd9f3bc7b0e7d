// Threads on one constraint, to be run under ThreadSanitizer: `.ci/run` builds and runs it.
//
// A *script* is what one sequence does, drawn from a seed: masks, accepts, rollbacks, forks and
// questions. Its *digest* covers everything it saw. Digests are taken on one thread first, on a
// constraint of the script's own with room for everything; then eight threads run the same scripts
// on shared constraints whose caches hold next to nothing, so that masks and frame masks are
// evicted all the time, while other threads fill batches over them and make new constraints. All
// must see what the script saw alone.
//
//     threads_driver [ROUNDS]     exits with 1 and says so when something differs
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "index/batch.hpp"
#include "index/workers.hpp"

namespace grammaton {

namespace {

constexpr std::size_t kThreads = 8;
constexpr std::size_t kScripts = 12;  // of each grammar

std::atomic<std::size_t> failures{0};

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s\n", what.c_str());
}

// Every byte, every pair of the characters of JSON and a few letters, some longer runs: large
// enough for frame masks, remainder tries, counts and pair walks.
std::shared_ptr<TokenIndex> vocabulary(const Limits& limits) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::string common = "abcdeklmuy019.-,:\"\\{}[] \n";
  for (const char first : common) {
    for (const char second : common) {
      tokens.push_back({first, second});
      tokens.push_back({first, second, 'a', '"', ','});
    }
  }
  for (std::size_t n = 3; n < 24; ++n) tokens.emplace_back(n, 'a');
  std::vector<bool> ordinary(tokens.size(), true);
  const auto eos = static_cast<std::uint32_t>(tokens.size());
  tokens.emplace_back();
  ordinary.push_back(false);
  return std::make_shared<TokenIndex>(std::move(tokens), std::move(ordinary),
                                      std::vector<std::uint32_t>{eos}, eos + 7, limits);
}

Term json_string(TermStore& s, Term text) {
  return s.concat(s.byte('"'), s.concat(s.json(text), s.byte('"')));
}

// JSON values, whose objects have one declared key and any others.
Term json_value(TermStore& s) {
  const Rule value = s.rule("value");
  const Term call = s.call(value);
  const Term space = s.repeat(s.byte(' '), 0, 3);
  const Term digits = s.repeat(s.bytes(ByteSet::range('0', '9')), 1, kUnbounded);
  const Term comma = s.concat(s.concat(space, s.byte(',')), space);
  const Term known = s.concat(json_string(s, s.literal("key")), s.concat(s.byte(':'), digits));
  const Term others = s.intersect({s.any_text(), s.complement(s.literals({"key", "key2", "a"}))});
  const Term other = s.concat(json_string(s, others), s.concat(s.byte(':'), call));
  const Term member = s.join({known, other});
  const auto list = [&](Term item) {
    return s.join({kEmpty, s.concat(item, s.repeat(s.concat(comma, item), 0, kUnbounded))});
  };
  s.define(value, s.join({json_string(s, s.any_text()), digits,
                          s.concat(s.byte('['), s.concat(list(call), s.byte(']'))),
                          s.concat(s.byte('{'), s.concat(list(member), s.byte('}')))}));
  return call;
}

// Counts, and derivatives that never come back to an earlier one.
Term counted(TermStore& s) {
  const Term character = s.any_char();
  const Term late = s.concat(s.concat(s.repeat(character, 0, kUnbounded), s.byte('a')),
                             s.repeat(character, 6, 6));
  return s.join({late, s.concat(s.repeat(character, 3, 17), s.byte('"')),
                 s.repeat(s.concat(s.repeat(s.byte('b'), 1, 4), s.byte(',')), 1, 40)});
}

using Build = Term (*)(TermStore&);
constexpr Build kGrammars[] = {json_value, counted};

std::shared_ptr<Constraint> constrain(Build build, const std::shared_ptr<TokenIndex>& index,
                                      const Limits& limits) {
  TermStore store{Limits{}};
  const Term start = build(store);
  return std::make_shared<Constraint>(store, start, index, limits);
}

std::vector<std::uint32_t> allowed(const std::vector<std::uint32_t>& mask) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < mask.size() * 32; ++i) {
    if ((mask[i / 32] >> (i % 32)) & 1) ids.push_back(i);
  }
  return ids;
}

class Digest {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9E3779B97F4A7C15ull + (state_ >> 29);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 1;
};

// As Python's calls do it: what is known is asked for first, which waits for nobody.
void fill(Matcher& matcher, std::vector<std::uint32_t>& mask) {
  if (!matcher.fill_known(mask.data())) matcher.fill(mask.data());
}

bool accept(Matcher& matcher, std::uint32_t token) {
  const std::optional<bool> known = matcher.accept_known(token);
  return known ? *known : matcher.accept(token);
}

std::uint64_t run_script(const std::shared_ptr<Constraint>& constraint, std::uint64_t seed,
                         std::size_t steps) {
  std::mt19937_64 random(seed);
  std::vector<Matcher> others;
  Matcher matcher(constraint);
  Digest seen;
  std::vector<std::uint32_t> mask(constraint->index().mask_words());
  for (std::size_t step = 0; step < steps; ++step) {
    fill(matcher, mask);
    for (const std::uint32_t word : mask) seen.add(word);
    const std::vector<std::uint32_t> ids = allowed(mask);
    if (ids.empty()) {
      seen.add(matcher.is_finished() ? 1 : 0);
      matcher.reset();
      continue;
    }
    switch (random() % 12) {
      case 0:
        seen.add(matcher.rollback(random() % 4) ? 1 : 0);
        break;
      case 1:
        others.push_back(matcher);
        break;
      case 2:
        if (!others.empty()) std::swap(matcher, others[random() % others.size()]);
        break;
      case 3:
        seen.add(matcher.is_complete() ? 1 : 0);
        seen.add(matcher.forced_bytes().size());
        break;
      case 4:
        seen.add(matcher.validate(std::vector<std::uint32_t>(3, ids[random() % ids.size()])));
        seen.add(matcher.forced_tokens().size());
        break;
      case 5:
        seen.add(accept(matcher, static_cast<std::uint32_t>(random() % mask.size() * 32)) ? 1 : 0);
        break;
      default:
        seen.add(accept(matcher, ids[random() % ids.size()]) ? 1 : 0);
    }
  }
  return seen.value();
}

// Masks of a batch, on workers, against those of its matchers one by one.
void run_batch(const std::vector<std::shared_ptr<Constraint>>& constraints, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::size_t words = constraints.front()->index().mask_words();
  std::vector<Matcher> matchers;
  for (std::size_t i = 0; i < 24; ++i) {
    matchers.emplace_back(constraints[random() % constraints.size()]);
    std::vector<std::uint32_t> mask(words);
    for (std::size_t step = random() % 6; step > 0; --step) {
      matchers.back().fill(mask.data());
      const std::vector<std::uint32_t> ids = allowed(mask);
      if (ids.empty()) break;
      matchers.back().accept(ids[random() % ids.size()]);
    }
  }
  std::vector<std::uint32_t> out(words * matchers.size(), 0xABABABAB);
  for (const bool compare : {false, true}) {
    std::vector<BatchRow> rows;
    for (std::size_t i = 0; i < matchers.size(); ++i) {
      rows.push_back(
          {matchers[i].share_constraint(), matchers[i].state(), &out[i * words], false, {}});
    }
    fill_batch(rows, 4, compare);
    for (std::size_t i = 0; i < matchers.size(); ++i) {
      std::vector<std::uint32_t> mask(words);
      matchers[i].fill(mask.data());
      expect(rows[i].error == nullptr, "a row of a batch failed");
      expect(std::equal(mask.begin(), mask.end(), &out[i * words]), "a row of a batch differs");
      expect(rows[i].changed != compare, "the second time, no row changes");
    }
  }
}

void in_parallel(std::size_t threads, const std::function<void(std::size_t)>& run) {
  std::vector<std::thread> started;
  for (std::size_t i = 0; i < threads; ++i) started.emplace_back(run, i);
  for (std::thread& thread : started) thread.join();
}

int run(std::size_t rounds) {
  constexpr std::size_t kSteps = 40;
  const Limits roomy;
  std::vector<std::vector<std::uint64_t>> expected;
  for (const Build build : kGrammars) {
    expected.emplace_back();
    for (std::size_t script = 0; script < kScripts; ++script) {
      const auto alone = constrain(build, vocabulary(roomy), roomy);
      expected.back().push_back(run_script(alone, script, kSteps));
    }
  }

  for (std::size_t round = 0; round < rounds; ++round) {
    Limits tight = roomy;
    const auto probe = vocabulary(roomy);
    // Two finished masks, then ten; frame masks likewise.
    tight.mask_cache_bytes = (round % 2 == 0 ? 2 : 10) * probe->words() * sizeof(Word);
    tight.frame_cache_bytes = (round % 2 == 0 ? 4 : 40) << 10;
    const auto index = vocabulary(tight);
    std::vector<std::shared_ptr<Constraint>> shared;
    for (const Build build : kGrammars) shared.push_back(constrain(build, index, tight));

    in_parallel(kThreads, [&](std::size_t thread) {
      for (std::size_t i = 0; i < kScripts; ++i) {
        const std::size_t script = (i + thread * 5) % kScripts;
        for (std::size_t g = 0; g < shared.size(); ++g) {
          expect(run_script(shared[g], script, kSteps) == expected[g][script],
                 "script " + std::to_string(script) + " of grammar " + std::to_string(g) +
                     " saw something else beside other threads");
        }
        if (thread == 0) {
          const auto fresh = constrain(kGrammars[i % shared.size()], index, tight);
          expect(run_script(fresh, script, kSteps) == expected[i % shared.size()][script],
                 "a constraint made beside other threads differs");
        } else if (thread <= 3) {
          run_batch(shared, round * 1000 + thread * 100 + i);
        } else {
          for (const auto& constraint : shared) constraint->stats();
          index->stats();
        }
      }
    });
    for (const auto& constraint : shared) {
      expect(constraint->stats().mask_bytes <= tight.mask_cache_bytes, "too many masks are kept");
    }
  }
  stop_workers();
  run_batch({constrain(json_value, vocabulary(roomy), roomy)}, 1);  // on its caller alone

  if (failures == 0) std::printf("%zu rounds of %zu threads: all as alone\n", rounds, kThreads);
  return failures == 0 ? 0 : 1;
}

}  // namespace

}  // namespace grammaton

int main(int argc, char** argv) {
  return grammaton::run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2);
}
