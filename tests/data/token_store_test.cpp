// The token store: what comes out is what the vocabulary made of the text, whatever the threads; it is reused and rebuilt when it must be.
#include "data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "data/tokenize.h"
#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using ::testing::HasSubstr;

class TokenStoreTest : public ::testing::Test {
 protected:
  TokenStore build(int threads = 1, const std::string& where = "run/data") {
    return TokenStore::open_or_build(*files_, directory_.path(where), options_, vocabulary_, vocabulary_, threads);
  }
  void write_corpus(const std::string& source, const std::string& target) {
    options_.train = {{directory_.write("s", source), directory_.write("t", target), ""}};
  }

  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Vocabulary vocabulary_ = test::small_vocabulary(directory_);
  DataOptions options_;
};

TEST_F(TokenStoreTest, HoldsTheTokensOfEveryPairInOrder) {
  write_corpus(test::sentences(1, 500), test::sentences(2, 500));
  options_.train.push_back({"", "", directory_.write("x.tsv", "ka lo\tmi tür\n"), 2});
  const TokenStore store = build();
  EXPECT_FALSE(store.reused());
  ASSERT_EQ(store.size(), 501);
  EXPECT_EQ(store.corpora(), 2);
  EXPECT_EQ(store.corpus_begin(1), 500);
  EXPECT_EQ(store.corpus_size(1), 1);
  int64_t i = 0, tokens = 0;
  for (const CorpusFiles& files : options_.train) {
    for (const EncodedPair& pair : encode_corpus(files, vocabulary_, vocabulary_)) {
      PackedTokens source, target;
      store.append(i, source, target);
      EXPECT_EQ(source.tokens, pair.source);
      EXPECT_EQ(target.tokens, pair.target);
      EXPECT_EQ(store.lengths(i).source, static_cast<int32_t>(pair.source.size()));
      EXPECT_EQ(store.lengths(i).target, static_cast<int32_t>(pair.target.size()));
      tokens += source.count() + target.count();
      ++i;
    }
  }
  EXPECT_EQ(store.tokens(), tokens);
}

TEST_F(TokenStoreTest, DoesNotDependOnThreads) {
  write_corpus(test::sentences(3, 40000), test::sentences(4, 40000));  // more than two blocks
  build(1, "one");
  build(5, "five");
  for (const char* name : {"/train.tokens", "/train.index"})
    EXPECT_EQ(test::read_all(directory_.path("one") + name), test::read_all(directory_.path("five") + name));
}

TEST_F(TokenStoreTest, CountsWhatEachFilterDrops) {
  const std::string ten = "ka ka ka ka ka ka ka ka ka ka", three = "ka ka ka", one = "ka";
  const auto pieces = static_cast<int64_t>(vocabulary_.encode(ten).size());
  options_.max_length = pieces;  // with end of sentence, `ten` is one too long
  options_.max_ratio = 2;
  write_corpus("\n" + one + "\n  \n" + ten + "\n" + one + "\n" + three + "\n" + one + "\n",  //
               one + "\n\n\n" + one + "\n" + ten + "\n" + one + "\n" + one + "\n");
  const FilterCounts counts = build().counts();
  EXPECT_EQ(counts, (FilterCounts{.total = 7, .kept = 1, .empty = 3, .too_long = 2, .ratio = 1}));

  options_.max_length = pieces + 1;
  options_.max_ratio = 0;
  EXPECT_EQ(build().counts(), (FilterCounts{.total = 7, .kept = 4, .empty = 3}));
}

TEST_F(TokenStoreTest, IsReusedUntilSomethingChanges) {
  write_corpus("ka lo\n", "mi\n");
  build();
  EXPECT_TRUE(build().reused());
  options_.train[0].weight = 3;  // matters to the batches only
  EXPECT_TRUE(build().reused());
  options_.max_length = 100;
  EXPECT_FALSE(build().reused());
  options_.max_ratio = 9;
  EXPECT_FALSE(build().reused());
  directory_.write("t", "mi mi\n");
  EXPECT_FALSE(build().reused());
  EXPECT_TRUE(build().reused());
  const auto time = std::filesystem::last_write_time(directory_.path("s"));
  std::filesystem::last_write_time(directory_.path("s"), time + std::chrono::seconds(1));
  EXPECT_FALSE(build().reused());
  vocabulary_ = test::small_vocabulary(directory_, 50);
  EXPECT_FALSE(build().reused());
  EXPECT_TRUE(build().reused());
}

TEST_F(TokenStoreTest, LooksWithoutBuilding) {
  write_corpus("ka lo\n", "mi\n");
  const auto look = [&] { return TokenStore::look(*files_, directory_.path("run/data"), options_, vocabulary_, vocabulary_); };
  EXPECT_EQ(look(), StoreState::missing);
  EXPECT_FALSE(std::filesystem::exists(directory_.path("run")));
  build();
  EXPECT_EQ(look(), StoreState::current);
  options_.max_length = 100;
  EXPECT_EQ(look(), StoreState::other);
  options_.max_length = 256;
  EXPECT_EQ(look(), StoreState::current);
  directory_.write("run/data/train.index", "x");
  EXPECT_EQ(look(), StoreState::missing);
  options_.train[0].source = directory_.path("gone");
  EXPECT_THAT(test::message_of<IoError>(look), HasSubstr("gone: cannot be opened"));
}

TEST_F(TokenStoreTest, IsRebuiltWhenDamaged) {
  write_corpus(test::sentences(5, 50), test::sentences(6, 50));
  build();
  for (const char* name : {"run/data/train.index", "run/data/train.tokens"}) {
    const std::string good = test::read_all(directory_.path(name));
    for (const std::string& bad :
         {std::string(), good.substr(0, 10), good.substr(0, good.size() - 1), good + "x", "y" + good.substr(1, good.size() - 9)}) {
      directory_.write(name, bad);
      EXPECT_FALSE(build().reused()) << name << " with " << bad.size() << " bytes";
      EXPECT_EQ(test::read_all(directory_.path(name)), good);
    }
  }
}

TEST_F(TokenStoreTest, TellsDefectsOfTheTextAndLeavesTheOldStore) {
  write_corpus("ka\n", "lo\n");
  build();
  write_corpus("ka\nka\n", "lo\n\xff\n");
  EXPECT_THAT(test::message_of<DataError>([&] { build(); }), HasSubstr("t:2: invalid UTF-8"));
  EXPECT_EQ(TokenStore::open(*files_, directory_.path("run/data")).size(), 1);
  options_.train[0].target = directory_.path("gone");
  EXPECT_THAT(test::message_of<IoError>([&] { build(); }), HasSubstr("gone: cannot be opened"));
}

TEST_F(TokenStoreTest, KeepsLargeIds) {
  const int32_t largest = 69999;
  {
    TokenStoreWriter writer(*files_, directory_.path("wide"), 1, 70000, 10);
    writer.append(std::vector{largest, 2}, std::vector{9, 2});
    writer.end_corpus({1, 1, 0, 0, 0});
    writer.finish();
  }
  const TokenStore store = TokenStore::open(*files_, directory_.path("wide"));
  PackedTokens source, target;
  store.append(0, source, target);
  EXPECT_EQ(source.tokens, (std::vector{largest, 2}));
}

TEST_F(TokenStoreTest, RefusesIdsOutsideTheVocabulary) {
  {
    TokenStoreWriter writer(*files_, directory_.path("wild"), 1, 10, 10);
    writer.append(std::vector{3, 2}, std::vector{10, 2});
    writer.end_corpus({1, 1, 0, 0, 0});
    writer.finish();
  }
  const TokenStore store = TokenStore::open(*files_, directory_.path("wild"));
  PackedTokens source, target;
  EXPECT_THAT(test::message_of<DataError>([&] { store.append(0, source, target); }), HasSubstr("has the id 10 of a vocabulary of 10"));
}

// Whatever operation of the file system fails, and whatever a crash leaves, the next build gives a good store.
TEST_F(TokenStoreTest, SurvivesEveryFailureOfTheDisk) {
  write_corpus(test::sentences(7, 5), test::sentences(8, 5));
  for (const Fault fault : {Fault::io_error, Fault::short_write, Fault::crash}) {
    for (int64_t at = 1;; ++at) {
      MemoryFileSystem disk;
      disk.set_faults({.at = at, .fault = fault, .surviving = Surviving::random, .seed = static_cast<uint64_t>(at)});
      bool failed = false;
      try {
        TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, 1);
      } catch (const IoError&) {
        failed = true;
      } catch (const SimulatedCrash&) {
        failed = true;
      }
      const bool beyond_the_end = disk.operations() < at;
      disk.reboot();
      EXPECT_EQ(TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, 1).size(), 5) << "operation " << at;
      if (beyond_the_end) {
        EXPECT_FALSE(failed);
        break;
      }
      ASSERT_LT(at, 1000);
    }
  }
}

}  // namespace
}  // namespace starling
