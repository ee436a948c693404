// Reads every #include "folder/..." under src/ and fails on an arrow that points up (CMakeLists.txt draws the same arrows for the linker).
// A header-only include would slip past the linker; it does not slip past this.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace starling {
namespace {

namespace fs = std::filesystem;
using Folders = std::set<std::string>;

// The folders that each folder may include directly; what those may include comes along.
const std::map<std::string, Folders>& arrows() {
  static const std::map<std::string, Folders> kArrows = {
      {"base", {}},
      {"config", {"base"}},
      {"storage", {"base"}},
      {"moses", {"base"}},
      {"text", {"moses"}},
      {"metrics", {"text"}},
      {"document", {"text"}},
      {"units", {"document"}},
      {"formats", {"units"}},
      {"data", {"formats"}},
      {"alignment", {"config", "data"}},
      {"likeness", {"alignment"}},
      {"cleaning", {"config", "data", "storage"}},
      {"demo", {"data", "storage"}},
      {"tensor", {"base"}},
      {"backend", {"tensor"}},
      {"autograd", {"backend", "storage"}},
      {"nn", {"autograd"}},
      {"models", {"nn", "config"}},
      {"optim", {"backend", "config"}},
      {"comm", {"backend", "config", "storage"}},
      {"decode", {"models", "metrics", "formats"}},
      {"interop", {"data", "decode"}},
      {"exporting", {"interop"}},
      {"translate", {"interop", "comm"}},
      {"sim", {"comm"}},
      {"strategies", {"comm", "optim", "autograd"}},
      {"parallel", {"data", "decode", "comm"}},
      {"replica", {"parallel", "strategies"}},
      {"migration", {"config"}},
      {"guard", {"replica"}},
      {"saving", {"replica"}},
      {"settings", {"cleaning", "guard", "migration"}},
      {"evaluation", {"settings"}},
      {"progress", {"storage"}},
      {"run", {"evaluation", "progress", "saving"}},
      {"doctor", {"settings", "launch"}},
      {"measure", {"settings", "sim"}},
      {"experiments", {"run", "measure"}},
      {"http", {"base"}},
      {"watch", {"config", "http", "progress"}},
      {"launch", {"config"}},
      {"batching", {"decode"}},
      {"serve", {"batching", "http"}},
      {"library", {"batching", "run", "exporting"}},
      {"manual", {"base"}},
      {"program", {"run"}},
      {"cli", {"demo", "doctor", "exporting", "launch", "likeness", "manual", "program", "serve", "translate", "watch"}},
      {"laboratory", {"experiments", "manual", "program"}},
  };
  return kArrows;
}

// The folder itself and everything below it.
Folders reachable(const std::string& folder) {
  Folders result{folder};
  for (const std::string& below : arrows().at(folder)) result.merge(reachable(below));
  return result;
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> kEndings = {".h", ".cpp", ".inc", ".hpp", ".cu", ".cuh"};
  return kEndings.contains(path.extension().string());
}

// The folder that a line includes from, or "".
std::string included_folder(const std::string& line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return "";
  const size_t open = line.find('"'), slash = line.find('/'), close = open == std::string::npos ? open : line.find('"', open + 1);
  if (close == std::string::npos || slash == std::string::npos || slash < open || slash > close) return "";
  return line.substr(open + 1, slash - open - 1);
}

std::vector<std::string> upward_includes(const fs::path& file, const std::string& folder) {
  const Folders allowed = reachable(folder);
  std::vector<std::string> found;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string target = included_folder(line);
    if (arrows().contains(target) && !allowed.contains(target)) {
      found.push_back(fmt::format("{}:{}: src/{} must not include {}/ ({})", file.string(), number, folder, target, line));
    }
  }
  return found;
}

const fs::path kSource = fs::path(STARLING_SOURCE_DIR) / "src";

TEST(IncludeDirection, PointsOnlyDownward) {
  int files = 0;
  for (const auto& [folder, below] : arrows()) {
    if (!fs::exists(kSource / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kSource / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files;
      for (const std::string& arrow : upward_includes(entry.path(), folder)) ADD_FAILURE() << arrow;
    }
  }
  EXPECT_GT(files, 0) << "no sources under " << kSource;
}

// The laboratory is a program of its own: what is installed on a server, and what libstarling has, must not grow with it.
TEST(IncludeDirection, TheProductDoesNotNeedTheLaboratory) {
  const Folders laboratory{"sim", "measure", "experiments", "laboratory"};
  for (const auto& [folder, below] : arrows()) {
    if (laboratory.contains(folder)) continue;
    for (const std::string& needed : reachable(folder)) EXPECT_FALSE(laboratory.contains(needed)) << folder << " needs " << needed;
  }
}

TEST(IncludeDirection, KnowsEveryFolder) {
  for (const auto& entry : fs::directory_iterator(kSource)) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(arrows().contains(entry.path().filename().string()))
        << entry.path() << " has no arrows: add it to this test and to CMakeLists.txt";
  }
}

// A stranger reads a folder's list in one go; backend/ has the same ops several times, in folders of its own. tools/check_format.sh looks
// at the sizes of files.
TEST(Sizes, FoldersFitInOneHead) {
  for (const auto& folder : fs::directory_iterator(kSource)) {
    if (folder.path().filename() == "backend") continue;
    int files = 0;
    int64_t lines = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!is_source(entry.path())) continue;
      std::ifstream in(entry.path());
      lines += std::count(std::istreambuf_iterator<char>(in), {}, '\n');
      ++files;
    }
    EXPECT_GT(files, 0) << folder;
    EXPECT_LE(files, 60) << folder.path() << " wants to be two folders";
    EXPECT_LE(lines, 4500) << folder.path() << " wants to be two folders";
  }
}

TEST(IncludeDirection, ReadsIncludeLines) {
  EXPECT_EQ(included_folder("#include \"base/error.h\""), "base");
  EXPECT_EQ(included_folder("  #include \"models/config.h\"  // why"), "models");
  EXPECT_EQ(included_folder("#include <fmt/format.h>"), "");
  EXPECT_EQ(included_folder("#include \"local.h\"  // a/b"), "");
  EXPECT_EQ(included_folder("// #include \"cli/x.h\""), "");
  EXPECT_TRUE(reachable("decode").contains("text"));
  EXPECT_FALSE(reachable("models").contains("text"));
  EXPECT_FALSE(reachable("data").contains("tensor"));
}

}  // namespace
}  // namespace starling
