// The pages in docs/: each is in the index, and the messages that troubleshooting.md quotes are still those of the program.
// tools/check_format.sh follows their links.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace starling {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = STARLING_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> pages{kRoot / "README.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  return pages;
}

// All sources as one text, with string literals that stand next to each other joined as the compiler joins them.
std::string sources() {
  std::string all;
  for (const char* folder : {"src", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file()) all += text_of(entry.path());
  std::string joined;
  for (size_t at = 0; at < all.size();) {
    if (const size_t next = all.find_first_not_of(" \n", at + 1); all[at] == '"' && next != std::string::npos && all[next] == '"')
      at = next + 1;
    else
      joined += all[at++];
  }
  return joined;
}

TEST(Docs, EveryPageIsInTheIndex) {
  const std::string index = text_of(kRoot / "docs" / "README.md");
  for (const fs::path& page : pages()) {
    if (page.filename() == "README.md") continue;
    const std::string link = "(" + fs::relative(page, kRoot / "docs").string() + ")";
    EXPECT_NE(index.find(link), std::string::npos) << "docs/README.md does not link to " << link;
  }
}

TEST(Docs, TroubleshootingQuotesTheProgram) {
  const std::string program = sources();
  int quoted = 0;
  std::ifstream page(kRoot / "docs" / "start" / "troubleshooting.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    for (const std::string& message : matches(line.substr(0, line.find(" | ", 2)), "`([^`]*)`")) {
      EXPECT_NE(program.find(message), std::string::npos) << "no message of the program has: " << message;
      ++quoted;
    }
  }
  EXPECT_GT(quoted, 20);
}

}  // namespace
}  // namespace starling
