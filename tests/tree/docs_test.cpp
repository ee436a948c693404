// The pages: those in docs/ are in its index, their links and what sources say about pages lead somewhere, and the messages that
// troubleshooting.md quotes are still those of the program.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
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

// With those that stand beside sources, recipes and benches.
std::vector<fs::path> all_pages() {
  std::vector<fs::path> all = pages();
  for (const char* file : {"CHANGELOG.md", "SECURITY.md"}) all.push_back(kRoot / file);
  for (const char* folder : {"bench", "python", "recipes", "src", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
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

// The lines of a page that are not between ```.
std::vector<std::string> prose(const fs::path& page) {
  std::vector<std::string> lines;
  std::ifstream file(page);
  bool fenced = false;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.compare(begin, 3, "```") == 0)
      fenced = !fenced;
    else if (!fenced)
      lines.push_back(line);
  }
  return lines;
}

// The anchors of a page's headings, as GitHub makes them.
std::set<std::string> anchors(const fs::path& page) {
  std::set<std::string> all;
  std::map<std::string, int> seen;
  for (const std::string& line : prose(page)) {
    if (!line.starts_with("#")) continue;
    std::string name;
    for (const char c : line.substr(std::min(line.find_first_not_of("# "), line.size()))) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 || std::isalnum(byte) || c == '_' || c == '-' || c == ' ')
        name += c == ' ' ? '-' : static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    }
    const int before = seen[name]++;
    all.insert(before > 0 ? name + "-" + std::to_string(before) : name);
  }
  return all;
}

TEST(Docs, LinksLeadSomewhere) {
  const std::regex link(R"re((?:\]\(|src=")([^)#\s"]*)#?([^)\s"]*)[)"])re");
  int links = 0;
  for (const fs::path& page : all_pages())
    for (const std::string& line : prose(page))
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        const std::string target = (*it)[1], anchor = (*it)[2];
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        const fs::path file = target.empty() ? page : page.parent_path() / target;
        EXPECT_TRUE(fs::exists(file)) << page << " links to " << target;
        const bool there = anchor.empty() || !fs::exists(file) || anchors(file).contains(anchor);
        EXPECT_TRUE(there) << page << ": " << target << " has no #" << anchor;
        ++links;
      }
  EXPECT_GT(links, 300);
}

TEST(Docs, PagesThatAreNamedExist) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '/'; };
  int named = 0;
  const auto check = [&](const fs::path& path) {
    const std::string text = text_of(path);
    for (size_t at = text.find("docs/"); at != std::string::npos; at = text.find("docs/", at + 1)) {
      size_t end = at;
      while (end < text.size() && in_name(text[end])) ++end;
      if ((at > 0 && in_name(text[at - 1])) || text.compare(end, 3, ".md") != 0) continue;
      EXPECT_TRUE(fs::exists(kRoot / text.substr(at, end + 3 - at))) << path << " names " << text.substr(at, end + 3 - at);
      ++named;
    }
  };
  for (const char* folder : {"src", "tests", "tools", "bench", "recipes", "cmake", "docs", ".ci"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file() && entry.path().extension() != ".zst") check(entry.path());
  for (const char* file : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CMakeLists.txt", "Makefile"})
    check(kRoot / file);
  EXPECT_GT(named, 150);
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
