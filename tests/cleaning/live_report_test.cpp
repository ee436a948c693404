// The page of a cleaning while it judges pairs.
#include "cleaning/live_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/own_directory.h"

namespace starling {
namespace {

TEST(LiveReport, HasThePairsSoFar) {
  const OwnDirectory own;
  CleanJob one;
  one.data.train.emplace_back().tsv = own.file("a.tsv");
  const auto files = real_file_system();
  CleanReport begun;
  begun.corpora.emplace_back();
  begun.pairs_judged_before = 1000;
  LiveReport live(one, begun, *files, own.file("page"), 0);
  JudgedPair pair;
  pair.source = "Good morning";
  pair.target = "Guten Morgen";
  for (int i = 0; i < 256; ++i) {
    EXPECT_FALSE(files->exists(own.file("page")));
    pair.line = static_cast<uint32_t>(i + 1);
    pair.broken = RuleSet();
    pair.broken.set(Rule::digits, i % 4 == 0);
    live.see(pair);
  }
  const std::string page = files->read_file(own.file("page"));
  const size_t begin = page.find("{\"rules\"");
  const auto data = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["underWay"], true);
  EXPECT_EQ(data["judgedBefore"], 1000);
  EXPECT_EQ(data["corpora"][0]["pairs"], 256);
  EXPECT_EQ(data["corpora"][0]["kept"], 192);
  EXPECT_EQ(data["sample"].size(), 256u);
}

}  // namespace
}  // namespace starling
