// The demo corpus is what it has always been, byte for byte, and a fair demonstration: no test sentence is in train.
#include "demo/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

std::vector<SentencePair> all_pairs() {
  const DemoCorpus& corpus = demo_corpus();
  std::vector<SentencePair> all = corpus.train;
  for (const auto* more : {&corpus.valid, &corpus.test}) all.insert(all.end(), more->begin(), more->end());
  return all;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A directory that does not exist yet.
class DemoCorpusFiles : public testing::Test {
 protected:
  const OwnDirectory own_;
  const fs::path directory_ = own_.file("corpus");
};

TEST(DemoCorpus, HasNoSourceSentenceTwice) {
  const DemoCorpus& corpus = demo_corpus();
  EXPECT_EQ(static_cast<int64_t>(corpus.train.size()), kDemoTrain);
  EXPECT_EQ(static_cast<int64_t>(corpus.valid.size()), kDemoValid);
  EXPECT_EQ(static_cast<int64_t>(corpus.test.size()), kDemoTest);
  std::unordered_set<std::string> seen;
  for (const SentencePair& pair : all_pairs()) EXPECT_TRUE(seen.insert(pair.source).second) << "again: " << pair.source;
}

TEST(DemoCorpus, SentencesAreWellFormed) {
  for (const SentencePair& pair : all_pairs()) {
    const auto words = 1 + std::count(pair.source.begin(), pair.source.end(), ' ');
    ASSERT_TRUE(words >= 3 && words <= 25) << pair.source;
    for (const std::string& text : {pair.source, pair.target}) {
      ASSERT_TRUE(text.ends_with(".") || text.ends_with("?")) << text;
      for (const char* defect : {"  ", " ,", ",,", ",.", " .", "\n", "\t"}) ASSERT_EQ(text.find(defect), std::string::npos) << text;
      ASSERT_FALSE(text[0] >= 'a' && text[0] <= 'z') << text;
    }
  }
}

// Figures of the documentation and of other tests are those of these files.
TEST_F(DemoCorpusFiles, AreTheSameForEver) {
  write_demo_corpus(directory_, kDemoTrain, kDemoValid, kDemoTest);
  const std::pair<const char*, const char*> known[] = {
      {"train.en", "db74691d2105c6f0277bd0ad19d90c9c8734b23db95aa8f959701e344188e6b6"},
      {"train.de", "b467fbe35e764f9343794bce42648799b27cfcfe45e4a3630abf07d19806d8b4"},
      {"valid.en", "66d496615009106d8a8bbc0127157f796cee9c1d67e1117c86d6f20e8fc85401"},
      {"valid.de", "83573a1fe69c111354323e8f9fa2d88dfeb2b83f668bec864e9a82febf58fb3a"},
      {"test.en", "c7b98f79e342af6813a5fcba6c4805806a9c0215af82ee6fac1412892c4f565d"},
      {"test.de", "e547f0ab262afb398c76fbb692f3924050a8c446bb2bb73a1e0e78c25f97e17c"},
  };
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) names.insert(entry.path().filename().string());
  EXPECT_EQ(names.size(), std::size(known));  // and nothing that was written aside
  for (const auto& [name, hash] : known) EXPECT_EQ(sha256_hex(content(directory_ / name)), hash) << name;
}

TEST_F(DemoCorpusFiles, HaveTheFirstPairs) {
  write_demo_corpus(directory_, 3, 2, 0);
  const DemoCorpus& corpus = demo_corpus();
  EXPECT_EQ(content(directory_ / "train.de"),
            corpus.train[0].target + "\n" + corpus.train[1].target + "\n" + corpus.train[2].target + "\n");
  EXPECT_EQ(content(directory_ / "valid.en"), corpus.valid[0].source + "\n" + corpus.valid[1].source + "\n");
  EXPECT_TRUE(fs::exists(directory_ / "test.en"));
  EXPECT_EQ(content(directory_ / "test.en"), "");
}

TEST_F(DemoCorpusFiles, AreNotMadeOfMorePairsThanThereAre) {
  EXPECT_THROW(write_demo_corpus(directory_, kDemoTrain + 1, 1, 1), InternalError);
  EXPECT_THROW(write_demo_corpus(directory_, 1, kDemoValid + 1, 1), InternalError);
  EXPECT_THROW(write_demo_corpus(directory_, 1, 1, -1), InternalError);
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(DemoCorpusFiles, NameTheDirectoryThatCannotBeMade) {
  std::ofstream(directory_) << "not a directory";
  try {
    write_demo_corpus(directory_ / "below", 1, 1, 1);
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find(directory_.filename().string()), std::string::npos);
  }
}

}  // namespace
}  // namespace starling
