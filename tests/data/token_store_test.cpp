// The token store: what comes out is what the vocabulary made of the text, whatever the threads; it is reused and rebuilt when it must be.
#include "data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/batches.h"
#include "data/tokenize.h"
#include "tests/data/fixtures.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TokenStoreTest : public ::testing::Test {
 protected:
  TokenStore build(int threads = 1, const std::string& where = "run/data") {
    return TokenStore::open_or_build(*files_, directory_.path(where), options_, vocabulary_, vocabulary_, {.threads = threads});
  }
  // Every file below `where`: name and content.
  std::map<std::string, std::string> contents(const std::string& where = "run/data") const {
    std::map<std::string, std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path(where)))
      result[entry.path().filename()] = test::read_all(entry.path());
    return result;
  }
  // The store in shards of `lines` lines, and what was said meanwhile.
  std::vector<std::string> build_shards(int64_t lines, int threads = 1, const std::string& where = "run/data") {
    std::vector<std::string> said;
    StoreBuild how{.threads = threads, .say = [&](const std::string& line) { said.push_back(line); }, .shard_pairs = lines};
    TokenStore::open_or_build(*files_, directory_.path(where), options_, vocabulary_, vocabulary_, how);
    return said;
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

// In front of each source of the corpus, before the filters, and part of what a store is made from.
TEST_F(TokenStoreTest, ATagStandsInFrontOfEachSource) {
  write_corpus("ka lo\n\nmi\n", "ka\nlo\nmi\n");
  build();
  const std::string tag = vocabulary_.piece(vocabulary_.encode("lo").front());
  options_.train.push_back(options_.train.front());
  options_.train.back().tag = tag;
  const TokenStore store = build();
  EXPECT_FALSE(store.reused());
  ASSERT_EQ(store.size(), 4) << "a blank line stays empty";
  for (int64_t i = 0; i < 2; ++i) {
    PackedTokens plain, tagged, target, same;
    store.append(i, plain, target);
    store.append(2 + i, tagged, same);
    plain.tokens.insert(plain.tokens.begin(), vocabulary_.id_of(tag));
    EXPECT_EQ(tagged.tokens, plain.tokens);
    EXPECT_EQ(same.tokens, target.tokens);
  }
  EXPECT_TRUE(build().reused());
  options_.train.back().tag = "▁missing";
  EXPECT_THROW(build(), ConfigError);
}

// The weights of the pairs that the filters kept, in both corpora and all shards; batches have them.
TEST_F(TokenStoreTest, WeightsFollowTheirSentences) {
  write_corpus("ka lo\n\nmi\nlo\nka\n", "ka\nlo\nmi\nlo\nmi\n");
  options_.train.push_back(options_.train.front());
  options_.train.back().sentence_weights = directory_.write("w", "0.5\n9\n0\n1e-3\n3\n");
  build_shards(2);
  const TokenStore store = build();
  EXPECT_TRUE(store.reused());
  EXPECT_TRUE(store.weighted());
  std::vector<float> weights;
  for (int64_t i = 0; i < store.size(); ++i) weights.push_back(store.weight(i));
  EXPECT_THAT(weights, ElementsAre(1, 1, 1, 1, 0.5f, 0, 1e-3f, 3));
  BatchStream stream(store, {.batch_tokens = 6});
  std::map<int64_t, float> of_pair;
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next();
    ASSERT_EQ(batch.weights.size(), batch.sample_ids.size());
    for (size_t b = 0; b < batch.weights.size(); ++b) of_pair[batch.sample_ids[b]] = batch.weights[b];
  }
  std::vector<float> all;
  for (const auto& [place, weight] : of_pair) all.push_back(weight);
  std::sort(all.begin(), all.end());
  std::sort(weights.begin(), weights.end());
  EXPECT_EQ(all, weights);
  options_.train.back().sentence_weights.clear();
  EXPECT_FALSE(build().reused());
  EXPECT_FALSE(build().weighted());
}

TEST_F(TokenStoreTest, WrongWeightsAreNamed) {
  write_corpus("ka\nlo\nmi\n", "ka\nlo\nmi\n");
  const auto message = [&](const std::string& weights) {
    options_.train.back().sentence_weights = directory_.write("w", weights);
    try {
      build();
    } catch (const DataError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("1\nx\n1\n"), HasSubstr("w:2: 'x' is not a weight"));
  EXPECT_THAT(message("1\n-1\n1\n"), HasSubstr("w:2: '-1' is not a weight"));
  for (const char* other : {"+-1", "+", "+inf", "nan", "0,5", "1 2", ""})
    EXPECT_THAT(message(fmt::format("1\n{}\n1\n", other)), HasSubstr(fmt::format("w:2: '{}' is not a weight", other)));
  EXPECT_EQ(message("+1\n0.5 \n\t.25\r\n"), "");
  EXPECT_EQ(message("0\n0\n0.1\n"), "");
  EXPECT_THAT(message("0\n0.0\n+0\n"), HasSubstr("w: all 3 weights are 0, so nothing would be learnt from these pairs"));
  EXPECT_THAT(message("1\n1\n"), AllOf(HasSubstr("w:2: has 2 lines"), HasSubstr("has 3")));
  EXPECT_THAT(message("1\n1\n1\n1\n"), AllOf(HasSubstr(":3: has 3 lines"), HasSubstr("has 4")));
}

TEST_F(TokenStoreTest, DoesNotDependOnThreads) {
  write_corpus(test::sentences(3, 40000), test::sentences(4, 40000));  // more than two blocks
  for (const int threads : {1, 2, 5}) build_shards(7000, threads, std::to_string(threads));
  const auto one = contents("1");
  EXPECT_EQ(one.size(), 7u);  // six shards and the index
  EXPECT_EQ(contents("2"), one);
  EXPECT_EQ(contents("5"), one);
}

// Shards end where a corpus ends; a shard may hold nothing, and a corpus may end with a shard.
TEST_F(TokenStoreTest, ShardsHoldTheSamePairs) {
  write_corpus(test::sentences(1, 300), test::sentences(2, 300));
  options_.train.push_back({directory_.write("blank", std::string(50, '\n')), directory_.write("blank2", std::string(50, '\n')), ""});
  options_.train.push_back({directory_.write("none", ""), directory_.write("none2", ""), ""});
  options_.train.push_back({"", "", directory_.write("x.tsv", "ka lo\tmi tür\nka\tmi\n"), 2});
  const TokenStore whole = build();
  for (const int64_t lines : {7, 50, 299, 300}) {
    const std::string where = "shards" + std::to_string(lines);
    build_shards(lines, 2, where);
    const TokenStore store = TokenStore::open(*files_, directory_.path(where));
    ASSERT_EQ(store.size(), 302);
    ASSERT_EQ(store.tokens(), whole.tokens());
    for (int64_t corpus = 0; corpus < 4; ++corpus) {
      EXPECT_EQ(store.counts(corpus), whole.counts(corpus));
      EXPECT_EQ(store.corpus_begin(corpus), whole.corpus_begin(corpus));
    }
    for (int64_t i = 0; i < store.size(); ++i) {
      PackedTokens source, target, whole_source, whole_target;
      store.append(i, source, target);
      whole.append(i, whole_source, whole_target);
      EXPECT_EQ(source.tokens, whole_source.tokens);
      EXPECT_EQ(target.tokens, whole_target.tokens);
    }
  }
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

// The finding: one flipped bit gives another valid id, and trains in silence.
TEST_F(TokenStoreTest, OneFlippedBitIsFoundAndMended) {
  write_corpus(test::sentences(5, 50), test::sentences(6, 50));
  build_shards(20);
  const auto good = contents();
  ASSERT_EQ(good.size(), 4u);
  Random random(1, 1);
  for (const auto& [name, bytes] : good) {
    for (int round = 0; round < 6; ++round) {
      const size_t at = round == 0 ? 0 : random.below(bytes.size());
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.below(8)));
      directory_.write("run/data/" + name, flipped);
      EXPECT_THAT(test::message_of<DataError>([&] { TokenStore::open(*files_, directory_.path("run/data")); }),
                  AllOf(HasSubstr(name), HasSubstr("delete the file, it will be rebuilt from the text")));
      const std::vector<std::string> said = build_shards(20);
      ASSERT_EQ(said.size(), 2u);
      EXPECT_THAT(said[0], AllOf(HasSubstr(name), HasSubstr("rebuilding the damaged parts from the text")));
      EXPECT_THAT(said[1], HasSubstr("data: reusing the intact tokens of " + std::string(name == "train.index" ? "50" : "")));
      EXPECT_EQ(contents(), good);
      EXPECT_THAT(build_shards(20), IsEmpty());
    }
  }
}

TEST_F(TokenStoreTest, IsRebuiltWhenDamaged) {
  write_corpus(test::sentences(5, 50), test::sentences(6, 50));
  build_shards(20);
  const auto good = contents();
  for (const auto& [name, bytes] : good) {
    for (const std::string& bad : {std::string(), bytes.substr(0, 10), bytes.substr(0, bytes.size() - 1), bytes + "x",
                                   bytes.substr(0, bytes.size() / 2), good.rbegin()->second, good.begin()->second}) {
      if (bad == bytes) continue;
      directory_.write("run/data/" + name, bad);
      build_shards(20);
      EXPECT_EQ(contents(), good) << name << " with " << bad.size() << " bytes";
    }
    std::filesystem::remove(directory_.path("run/data/" + name));
    build_shards(20);
    EXPECT_EQ(contents(), good) << name;
  }
}

// Files of version 1 lay beside the index under other names.
TEST_F(TokenStoreTest, ReplacesAStoreOfAnOlderVersion) {
  write_corpus("ka lo\n", "mi\n");
  build();
  const auto good = contents();
  directory_.write("run/data/train.tokens", "STARLTOK\1");
  std::string old = good.at("train.index");
  old[48] = 1;
  directory_.write("run/data/train.index", old);
  EXPECT_THAT(build_shards(131072), ElementsAre(HasSubstr("train.index: has version 1 instead of 6; rebuilding the damaged parts"), _));
  EXPECT_EQ(contents(), good);
}

// Killed at any operation on the disk, a build continues behind the last whole shard, and ends with the same bytes.
TEST_F(TokenStoreTest, ContinuesAnInterruptedBuild) {
  write_corpus(test::sentences(7, 100), test::sentences(8, 100));
  build_shards(10);
  const auto good = contents();
  int continued = 0;
  for (int64_t at = 1;; ++at) {
    MemoryFileSystem disk;
    std::vector<std::string> said;
    const StoreBuild how{.threads = 2, .say = [&](const std::string& line) { said.push_back(line); }, .shard_pairs = 10};
    disk.set_faults({.at = at, .fault = Fault::crash, .surviving = Surviving::everything});
    try {
      TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, how);
    } catch (const SimulatedCrash&) {
    }
    const bool ended = !disk.crashed();
    disk.restart_program();
    const std::vector<std::string> names = disk.exists("/run/data") ? disk.list("/run/data") : std::vector<std::string>();
    const auto whole = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return name != "train.index" && good.contains(name) && disk.read_file("/run/data/" + name) == good.at(name);
    });
    said.clear();
    const TokenStore store = TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, how);
    if (!store.reused() && whole > 0) {
      ++continued;
      EXPECT_THAT(said, ElementsAre(fmt::format("data: reusing the intact tokens of {} pairs; tokenising the rest", 10 * whole)));
    }
    std::map<std::string, std::string> now;
    for (const std::string& name : disk.list("/run/data")) now[name] = disk.read_file("/run/data/" + name);
    EXPECT_EQ(now, good) << "operation " << at;
    if (ended) break;
    ASSERT_LT(at, 1000);
  }
  EXPECT_GT(continued, 30);
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
        TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, {});
      } catch (const IoError&) {
        failed = true;
      } catch (const SimulatedCrash&) {
        failed = true;
      }
      const bool beyond_the_end = disk.operations() < at;
      disk.reboot();
      EXPECT_EQ(TokenStore::open_or_build(disk, "/run/data", options_, vocabulary_, vocabulary_, {}).size(), 5) << "operation " << at;
      if (beyond_the_end) {
        EXPECT_FALSE(failed);
        break;
      }
      ASSERT_LT(at, 1000);
    }
  }
}

// A directory that is named data may hold other things than tokens.
TEST_F(TokenStoreTest, SparesWhatIsNotItsOwn) {
  write_corpus(test::sentences(1, 50), test::sentences(2, 50));
  build();
  for (const char* name : {"train.en", "train.0123456789abcdef.txt", "notes"}) directory_.write("run/data/" + std::string(name), "mine");
  EXPECT_TRUE(build().reused());
  write_corpus(test::sentences(3, 50), test::sentences(4, 50));
  try {
    build();
    ADD_FAILURE() << "made anew beside other files";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("run/data: contains notes, but this is where the tokens of the training text are kept"));
  }
  EXPECT_EQ(contents().size(), 5);
  directory_.write("run/nfs/.nfs000000000a1b2c3d00000001", "a removed shard that another process still reads");
  EXPECT_NO_THROW(TokenStore::require_own(*files_, directory_.path("run/nfs")));
  TokenStore::remove(*files_, directory_.path("run/data"));
  EXPECT_THAT(contents(), ElementsAre(std::pair<const std::string, std::string>("notes", "mine"),
                                      std::pair<const std::string, std::string>("train.0123456789abcdef.txt", "mine"),
                                      std::pair<const std::string, std::string>("train.en", "mine")));
}

}  // namespace
}  // namespace starling
