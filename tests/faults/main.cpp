// The tests; or, with --seeds FROM COUNT [--first | --logs], as many runs from a seed on (until the first that fails; with the logs
// of the runs), with the count of each fault, and the command that repeats each seed that failed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "tests/faults/fault_runs.h"

namespace starling {
namespace {

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
    if (run.wrong.empty()) continue;
    ++failed;
    fmt::print("seed {} ({}):\n", seed, layouts()[seed % layouts().size()].name);
    for (const std::string& what : run.wrong) fmt::print("  {}\n", what);
    fmt::print("  repeat it: {} --seeds {} 1 --logs\n", program, seed);
    std::fflush(stdout);
  }
  for (const auto& [what, n] : all.happened) fmt::print("{:>10} {}\n", n, what);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  fmt::print("{} runs of {} layouts in {} starts and {} updates, {:.0f} s: {} failed\n", count, layouts().size(), all.attempts, all.updates,
             seconds, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  if (argc >= 4 && std::strcmp(argv[1], "--seeds") == 0)
    return starling::run_seeds(argv[0], std::stoull(argv[2]), std::stoull(argv[3]), argc > 4 ? argv[4] : "");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
