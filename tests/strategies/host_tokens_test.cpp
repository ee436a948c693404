// Tokens on several hosts with disks of their own: each makes its own, and one whose text is another keeps what it had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "run/run_tokens.h"
#include "run/run_vocabulary.h"
#include "sim/simulate.h"
#include "tests/cli/directory_hash.h"
#include "tests/run/word_pairs.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostTokens : public testing::Test {
 protected:
  HostTokens() : directory_(fs::temp_directory_path() / ("starling-host-tokens-" + std::to_string(::getpid()))) {
    fs::create_directories(directory_);
    write_word_pairs(path("a"), path("b"), 60, 8, 2, 3), write_word_pairs(path("c"), path("d"), 60, 4, 2, 3);
    Config c = of("a", "b");
    c.train.output = path("host0");
    c.vocab.training.size = 40;
    vocabularies_.emplace(open_vocabularies(c, *files_, [](const std::string&) {}));
  }
  ~HostTokens() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  Config of(const std::string& source, const std::string& target) const {
    Config c = parse_config("", "test");
    c.data.train = {{path(source), path(target), "", 1}};
    return c;
  }
  // Two hosts with a rank each, rank 1 on other text if `other`; the error, "" if there is none.
  std::string open(bool other) {
    Scenario scenario;
    scenario.ranks = 2;
    try {
      simulate(scenario, [&](World& world) {
        const int rank = world.comm->rank();
        const std::string run = path(rank == 0 ? "host0" : "host1");
        const DataOptions data = rank == 1 && other ? of("c", "d").data : of("a", "b").data;
        const auto first = [&] { return open_run_tokens(*files_, run, data, *vocabularies_, {}, false, [](const TokenStore&) {}); };
        std::string digest;
        const TokenStore store = open_tokens_together(*files_, run, data, *vocabularies_, {}, world, first, digest);
        EXPECT_EQ(digest, data_digest(store));
      });
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }

  fs::path directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  std::optional<Vocabularies> vocabularies_;
};

TEST_F(HostTokens, AnotherTextOnOneHostLeavesItsTokensAsTheyWere) {
  const std::string different = "reads different training data from rank 0 on ";
  EXPECT_THAT(open(true), HasSubstr(different));
  EXPECT_FALSE(fs::exists(path("host1")));  // nothing is left of a host that was refused at the first start
  EXPECT_EQ(open(false), "");
  const std::string before = directory_hash(path("host1"));
  EXPECT_NE(before, "missing");
  EXPECT_THAT(open(true), HasSubstr(different));
  EXPECT_EQ(directory_hash(path("host1")), before);
  EXPECT_EQ(open(false), "");
  EXPECT_EQ(directory_hash(path("host1")), before);
}

}  // namespace
}  // namespace starling
