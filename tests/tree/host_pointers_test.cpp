// Elements of tensors are reached by address (raw(), data<T>()) only where tensors are of the host's: what is above the backend must not
// know where they lie. Everything else goes through ops, copies, upload, download and read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace starling {
namespace {

namespace fs = std::filesystem;

// comm and sim are given tensors of the host's memory only (comm/communicator.cpp).
const std::set<std::string> kMayLook = {"tensor", "backend", "comm", "sim"};

std::vector<std::string> host_pointers(const fs::path& file) {
  static const std::regex kPointer(R"((\.|->)(raw\(\)|data<))");
  std::vector<std::string> found;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number)
    if (std::regex_search(line, kPointer)) found.push_back(fmt::format("{}:{}: {}", file.string(), number, line));
  return found;
}

TEST(HostPointers, AreTakenByTensorBackendAndCommunicationAlone) {
  int seen = 0;
  for (const auto& folder : fs::directory_iterator(fs::path(STARLING_SOURCE_DIR) / "src")) {
    const bool may = kMayLook.contains(folder.path().filename().string());
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::vector<std::string> found = host_pointers(entry.path());
      if (may) seen += static_cast<int>(found.size());
      for (const std::string& line : found) EXPECT_TRUE(may) << line << "\n  use ops, copy_from, read, on_host or doubles_of";
    }
  }
  EXPECT_GT(seen, 20) << "nothing is found any more: mend the test";
}

}  // namespace
}  // namespace starling
