// The tests; or one of
//   --seeds FROM COUNT [--first | --logs]  as many runs from a seed on (until the first that fails; with the logs of the runs), with the
//                                          count of each fault, and the command that repeats each seed that failed
//   --kills [PART PARTS [LAYOUT...]]       all kills of all layouts, or one part of them; every one is a run of its own
//   --kill LAYOUT NUMBER                   one of them, with the logs
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/faults/fault_runs.h"

namespace starling {
namespace {

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Returns whether nothing was wrong.
bool tell(const FaultRun& run, const std::string& which, const std::string& again) {
  if (run.wrong.empty()) return true;
  fmt::print("{}:\n", which);
  for (const std::string& what : run.wrong) fmt::print("  {}\n", what);
  fmt::print("  repeat it: {}\n", again);
  std::fflush(stdout);
  return false;
}

int run_seeds(const char* program, uint64_t from, uint64_t count, const std::string& how) {
  const bool until_first = how == "--first";
  FaultRuns runs;
  runs.shows_logs = how == "--logs";
  FaultRun all;
  int64_t failed = 0;
  const auto began = std::chrono::steady_clock::now();
  for (const std::string& what : runs.wrong_undisturbed()) fmt::print("without faults: {}\n", what), ++failed;
  for (uint64_t seed = from; seed < from + count && !(until_first && failed > 0); ++seed) {
    const FaultRun run = runs.run(seed);
    for (const auto& [what, n] : run.happened) all.happened[what] += n;
    all.attempts += run.attempts, all.updates += run.updates;
    failed += !tell(run, fmt::format("seed {} ({})", seed, layouts()[seed % layouts().size()].name),
                    fmt::format("{} --seeds {} 1 --logs", program, seed));
  }
  for (const auto& [what, n] : all.happened) fmt::print("{:>10} {}\n", n, what);
  fmt::print("{} runs of {} layouts in {} starts and {} updates, {:.0f} s: {} failed\n", count, layouts().size(), all.attempts, all.updates,
             seconds_since(began), failed);
  return failed > 0 ? 1 : 0;
}

int no_layout(const std::string& name) {
  fmt::print(stderr, "there is no layout '{}'; there are:", name);
  for (const Layout& layout : layouts()) fmt::print(stderr, " '{}'", layout.name);
  fmt::print(stderr, "\n");
  return 2;
}

// `names`: of the layouts; empty: all.
int run_kills(const char* program, size_t part, size_t parts, const std::vector<std::string>& names) {
  FaultRuns runs;
  int64_t failed = 0;
  for (const std::string& name : names)
    if (std::none_of(layouts().begin(), layouts().end(), [&](const Layout& l) { return l.name == name; })) return no_layout(name);
  for (const Layout& layout : layouts()) {
    if (!names.empty() && std::find(names.begin(), names.end(), layout.name) == names.end()) continue;
    const auto began = std::chrono::steady_clock::now();
    const std::vector<Kill> kills = all_kills(layout, runs.extent(layout));
    int64_t count[3] = {}, wrong = 0;
    for (size_t i = part; i < kills.size(); i += parts) {
      ++count[kills[i].where];
      wrong += !tell(runs.run(layout, {kills[i].attempt}), fmt::format("{}, kill {}", layout.name, i),
                     fmt::format("{} --kill '{}' {}", program, layout.name, i));
    }
    fmt::print("{:<28} {:>6} {:>6} {:>6} {:>6} {:>6.0f} s\n", layout.name, count[Kill::update], count[Kill::program], count[Kill::power],
               wrong, seconds_since(began));
    std::fflush(stdout);
    failed += wrong;
  }
  return failed > 0 ? 1 : 0;
}

int run_kill(const char* program, const std::string& name, size_t number) {
  FaultRuns runs;
  runs.shows_logs = true;
  for (const Layout& layout : layouts())
    if (layout.name == name) {
      const std::vector<Kill> kills = all_kills(layout, runs.extent(layout));
      if (number < kills.size())
        return tell(runs.run(layout, {kills[number].attempt}), fmt::format("{}, kill {}", name, number),
                    fmt::format("{} --kill '{}' {}", program, name, number))
                   ? 0
                   : 1;
      fmt::print("'{}' has {} kills\n", name, kills.size());
      return 2;
    }
  return no_layout(name);
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  const auto is = [&](const char* word, int least) { return argc >= least && std::strcmp(argv[1], word) == 0; };
  const auto number = [&](int i) { return std::stoull(argv[i]); };
  if (is("--seeds", 4)) return starling::run_seeds(argv[0], number(2), number(3), argc > 4 ? argv[4] : "");
  if (is("--kills", 4)) return starling::run_kills(argv[0], number(2), number(3), {argv + 4, argv + argc});
  if (is("--kills", 2)) return starling::run_kills(argv[0], 0, 1, {});
  if (is("--kill", 4)) return starling::run_kill(argv[0], argv[2], number(3));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
