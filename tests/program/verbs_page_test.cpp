// docs/reference/verbs.md says of each verb what the program prints about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "base/text_files.h"
#include "tests/program/called.h"

namespace starling {
namespace {

class VerbsPage : public CalledTest {
 protected:
  std::string help_of(const std::string& verb) const { return call(verb + " --help").text; }
  // The verbs that a help lists, with what stands before them on the command line.
  std::vector<std::string> verbs_of(const std::string& verb) const {
    const std::string help = help_of(verb);
    const size_t begin = help.find("\nVerbs:\n");
    std::vector<std::string> verbs;
    if (begin == std::string::npos) return verbs;
    const std::string list = help.substr(begin, help.find("\n\n", begin) - begin);
    const std::regex name("\n  ([a-z][a-z-]*) ");
    for (std::sregex_iterator it(list.begin(), list.end(), name), end; it != end; ++it)
      verbs.push_back((verb.empty() ? "" : verb + " ") + (*it)[1].str());
    return verbs;
  }
};

TEST_F(VerbsPage, HasTheHelpOfEveryVerb) {
  std::vector<std::string> verbs;
  for (const std::string& verb : verbs_of("")) {
    verbs.push_back(verb);
    for (const std::string& part : verbs_of(verb)) verbs.push_back(part);
  }
  EXPECT_GT(verbs.size(), 15u);
  std::string sections;
  for (const std::string& verb : verbs) {
    std::string help = help_of(verb);
    help.resize(std::min(help.find("\nEvery key of the configuration"), help.size()));
    help.resize(help.find_last_not_of('\n') + 1);
    sections += "\n## " + verb + "\n\n```\n" + help + "\n```\n";
  }
  const std::string page = read_text_file(STARLING_SOURCE_DIR "/docs/reference/verbs.md");
  EXPECT_EQ(page.substr(std::min(page.find("\n## "), page.size())), sections)
      << "make the page anew: tools/reference_pages.sh BUILD_DIRECTORY";
}

}  // namespace
}  // namespace starling
