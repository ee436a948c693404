// Links in the token store: they follow their pairs through filters, batches, parts of batches and ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "data/batches.h"
#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using testing::HasSubstr;
using PairLinks = std::map<std::pair<std::vector<int32_t>, std::vector<int32_t>>, std::vector<TokenLink>>;  // by the tokens of both sides

class StoredLinks : public testing::Test {
 protected:
  TokenStore build(int threads = 1) {
    return TokenStore::open_or_build(*files_, directory_.path("run/data"), options_, vocabulary_, vocabulary_,
                                     {.threads = threads, .shard_pairs = 20});
  }
  // Two corpora of the same text, of which the first has links: word w of a target comes from word w * 7 % n of the source.
  void SetUp() override {
    const std::string source = test::sentences(1, 100) + "\n", target = test::sentences(2, 100) + "ka\n";  // the last one is dropped
    options_.train = {{directory_.write("s", source), directory_.write("t", target), ""}, {directory_.path("s"), directory_.path("t"), ""}};
    std::string lines;
    LineReader from(directory_.path("s")), to(directory_.path("t"));
    for (std::string_view a, b; from.next(a) && to.next(b); lines += "\n") {
      const auto words = [](std::string_view line) { return word_of_bytes(line).empty() ? 0 : word_of_bytes(line).back() + 1; };
      for (int64_t w = 0; w < words(b) && words(a) > 0; ++w) lines += fmt::format("{}-{} ", w * 7 % words(a), w);
    }
    options_.train[0].alignment = directory_.write("links", lines);
  }
  // What token_links makes of each pair.
  PairLinks expected() const {
    PairLinks all;
    PairReader reader(options_.train[0]);
    for (std::string_view source, target; reader.next(source, target);) {
      EncodedLine a = vocabulary_.encode_as_it_stands_with_bytes(source), b = vocabulary_.encode_as_it_stands_with_bytes(target);
      std::vector<TokenLink> links = token_links(parse_links(reader.links()), AlignmentUnit::words, {source, a}, {target, b}, 0);
      a.ids.push_back(vocabulary_.eos()), b.ids.push_back(vocabulary_.eos());
      all[{a.ids, b.ids}] = std::move(links);
    }
    return all;
  }
  // Adds the sentences of a batch to those seen.
  static void take(const Batch& batch, std::vector<std::pair<PairLinks::key_type, std::vector<TokenLink>>>& seen) {
    ASSERT_EQ(batch.link_offsets.size(), batch.sample_ids.size() + 1);
    for (size_t b = 0; b < batch.sample_ids.size(); ++b) {
      const auto tokens = [&](const PackedTokens& side) {
        return std::vector<int32_t>(side.tokens.begin() + side.offsets[b], side.tokens.begin() + side.offsets[b + 1]);
      };
      seen.push_back({{tokens(batch.source), tokens(batch.target)},
                      {batch.links.begin() + batch.link_offsets[b], batch.links.begin() + batch.link_offsets[b + 1]}});
    }
  }

  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Vocabulary vocabulary_ = test::small_vocabulary(directory_);
  DataOptions options_;
};

TEST_F(StoredLinks, FollowTheirPairs) {
  const TokenStore store = build(2);
  EXPECT_TRUE(store.linked());
  EXPECT_FALSE(store.weighted());
  const PairLinks links = expected();
  BatchStream stream(store, {.batch_tokens = 150, .guide = 0.5});
  std::vector<std::pair<PairLinks::key_type, std::vector<TokenLink>>> whole, parts;
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next();
    EXPECT_EQ(batch.guide, 0.5);
    take(batch, whole);
    Batch joined;
    for (int rank = 0; rank < 3; ++rank)
      for (const Batch& part : split(slice_for_rank(batch, rank, 3, 1, 1), 40)) {
        EXPECT_EQ(part.guide, 0.5);
        take(part, parts);
        append(joined, part);
      }
    EXPECT_EQ(joined.links, batch.links);
    EXPECT_EQ(joined.link_offsets, batch.link_offsets);
  }
  ASSERT_EQ(whole.size(), 200u);
  EXPECT_EQ(whole, parts);
  int linked = 0;
  for (const auto& [pair, own] : whole) {
    if (own.empty()) continue;
    EXPECT_EQ(own, links.at(pair));
    ++linked;
  }
  EXPECT_EQ(linked, 100);  // those of the first corpus
  BatchStream unguided(store, {.batch_tokens = 150});
  EXPECT_TRUE(unguided.next().link_offsets.empty());
}

// Where words are cut anew, a piece is linked to the pieces of the word that its own word comes from.
TEST_F(StoredLinks, FollowPiecesThatAreCutAnew) {
  const TokenStore store = build();
  const auto sampler = std::make_shared<SubwordSampler>(vocabulary_, 0.1);
  BatchStream stream(store, {.batch_tokens = 150, .sampling = {sampler, sampler}, .guide = 0.5}), plain(store, {.batch_tokens = 150});
  const auto words = [&](const std::vector<int32_t>& ids) {  // of each token; -1 for the end
    std::vector<int64_t> all;
    for (const int32_t id : ids)
      all.push_back(id == vocabulary_.eos() ? -1 : (all.empty() ? -1 : all.back()) + vocabulary_.piece(id).starts_with("\u2581"));
    return all;
  };
  std::vector<std::pair<PairLinks::key_type, std::vector<TokenLink>>> seen;
  int64_t tokens = 0, stored = 0, links = 0;
  while (stream.position().epoch == 0) {
    take(stream.next(), seen);
    stored += std::ssize(plain.next().target.tokens);
  }
  for (const auto& [pair, own] : seen) {
    tokens += std::ssize(pair.second);
    if (own.empty()) continue;
    const std::vector<int64_t> source = words(pair.first), target = words(pair.second);
    const int64_t count = *std::max_element(source.begin(), source.end()) + 1;
    std::vector<int> of_target(target.size());
    for (const TokenLink& link : own) {
      ++of_target[link.target], ++links;
      const int64_t from = source[link.source], to = target[link.target];
      EXPECT_EQ(from, to < 0 ? -1 : to * 7 % count);
    }
    for (size_t t = 0; t < target.size(); ++t)
      EXPECT_EQ(of_target[t], target[t] < 0 ? 1 : std::count(source.begin(), source.end(), target[t] * 7 % count));
  }
  EXPECT_GT(tokens, stored + stored / 10);  // words were cut anew
  EXPECT_GT(links, tokens / 2);
}

// A batch without links beside one with them.
TEST_F(StoredLinks, CanBeMissingInAPartOfABatch) {
  const TokenStore store = build();
  BatchStream stream(store, {.batch_tokens = 60, .guide = 1}), plain(store, {.batch_tokens = 60});
  Batch batch = plain.next();
  const size_t before = batch.sample_ids.size();
  append(batch, stream.next());
  ASSERT_EQ(batch.link_offsets.size(), batch.sample_ids.size() + 1);
  EXPECT_EQ(batch.link_offsets[before], 0);
  append(batch, plain.next());
  EXPECT_EQ(batch.link_offsets.size(), batch.sample_ids.size() + 1);
  EXPECT_EQ(batch.link_offsets.back(), static_cast<int32_t>(batch.links.size()));
}

TEST_F(StoredLinks, ArePartOfWhatAStoreIsMadeFrom) {
  build();
  EXPECT_TRUE(build().reused());
  options_.alignment_unit = AlignmentUnit::pieces;
  EXPECT_FALSE(build().reused());
  options_.train[0].alignment.clear();
  EXPECT_FALSE(build().linked());
}

TEST_F(StoredLinks, ThatPointBeyondTheTextAreNamed) {
  std::string lines = "\n\n0-99 0-0\n";
  for (int i = 3; i < 101; ++i) lines += "\n";
  options_.train[0].alignment = directory_.write("beyond", lines);
  EXPECT_THAT(test::message_of<DataError>([&] { build(); }),
              testing::AllOf(HasSubstr("beyond:3: the link 0-99 is beyond the target"), HasSubstr("data.alignment-unit is words")));
}

// A shard whose checksum is right, as of a program with a mistake.
TEST_F(StoredLinks, BeyondTheirPairAreDamage) {
  {
    TokenStoreWriter writer(*files_, directory_.path("bad"), 7, 100, 100, kTokenStoreVersion + kWithLinks);
    const std::vector<int32_t> side{5, 6, 2};
    const TokenLink good[] = {{2, 0}, {0, 2}}, beyond[] = {{0, 0}, {3, 1}};
    writer.append(side, side, 1, good);
    writer.append(side, side, 1, beyond);
    writer.append(side, side);
    writer.end_corpus({.total = 3, .kept = 3});
    writer.finish();
  }
  const TokenStore store = TokenStore::open(*files_, directory_.path("bad"));
  std::vector<TokenLink> links;
  store.append_links(0, links);
  EXPECT_EQ(links, (std::vector<TokenLink>{{2, 0}, {0, 2}}));
  EXPECT_THAT(test::message_of<DataError>([&] { store.append_links(1, links); }), HasSubstr("a link of pair 1 is damaged"));
  links.clear();
  store.append_links(2, links);
  EXPECT_TRUE(links.empty());
}

}  // namespace
}  // namespace starling
