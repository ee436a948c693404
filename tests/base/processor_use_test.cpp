// The processor time of all programs, from texts as proc_stat(5) describes them.
#include "base/processor_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace starling {
namespace {

TEST(ProcessorUse, ReadsIdleAndStolenTime) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("starling-use-" + std::to_string(::getpid()));
  fs::create_directories(root / "proc");
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  // user nice system idle iowait irq softirq steal guest guest_nice
  std::ofstream(root / "proc/stat") << "cpu  100 10 20 5000 300 1 2 7 50 0\ncpu0 50 5 10 2500 150 1 1 3 25 0\n"
                                    << "cpu1 50 5 10 2500 150 0 1 4 25 0\nintr 5 4 3\ncpufreq 1\n";
  const ProcessorUse use = processor_use(root.string() + "/");
  EXPECT_EQ(use.processors, 2);
  EXPECT_NEAR(use.idle_s, (5000 + 300) / ticks, 1e-9);
  EXPECT_NEAR(use.stolen_s, 7 / ticks, 1e-9);
  EXPECT_GT(use.own_s, 0);
  EXPECT_EQ(processor_use((root / "nowhere/").string()).processors, 0);
  fs::remove_all(root);
}

}  // namespace
}  // namespace starling
