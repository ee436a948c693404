// Two types of one name in a namespace are one to the linker, which takes the functions of either: a program may then end an object with
// the destructor of another. The compiler sees that only where a source includes both headers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

namespace starling {
namespace {

TEST(TypeNames, AreInOneHeaderEach) {
  const std::regex space("^(?:inline )?namespace ([a-zA-Z_:]+) \\{"),
      type("^(?:class|struct|enum class|enum) ([A-Za-z0-9_]+)( final)?( :[^;]*)? \\{");
  std::map<std::string, std::string> headers;  // of types, whole names
  for (const auto& entry : std::filesystem::recursive_directory_iterator(STARLING_SOURCE_DIR "/src")) {
    const std::string path = std::filesystem::relative(entry.path(), STARLING_SOURCE_DIR).string();
    if (entry.path().extension() != ".h" || path.find("cuda/") != std::string::npos) continue;  // kernels have structs of their own
    std::ifstream file(entry.path());
    std::string within;
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, match, space))
        within = match[1].str().starts_with("starling") ? match[1].str() : within + "::" + match[1].str();
      else if (line.starts_with("}  // namespace ") && within.find("::") != std::string::npos && line.find("starling") == std::string::npos)
        within.resize(within.rfind("::"));
      else if (std::regex_search(line, match, type))
        if (const auto [at, first] = headers.try_emplace(within + "::" + match[1].str(), path); !first)
          ADD_FAILURE() << at->first << " is in " << at->second << " and in " << path << ": rename one of them";
    }
  }
  EXPECT_GT(headers.size(), 400u);
}

}  // namespace
}  // namespace starling
