// The order of the data: complete, pure, resumable, weighted, and batches of the size that was asked for.
#include "data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using ::testing::HasSubstr;

bool same(const Batch& a, const Batch& b) {
  return a.epoch == b.epoch && a.index == b.index && a.sample_ids == b.sample_ids && a.source.tokens == b.source.tokens &&
         a.source.offsets == b.source.offsets && a.target.tokens == b.target.tokens && a.target.offsets == b.target.offsets;
}

std::vector<Batch> epoch_of(BatchStream& stream, int64_t epoch) {
  stream.seek({epoch, 0});
  std::vector<Batch> batches;
  while (stream.position().epoch == epoch) batches.push_back(stream.next());
  return batches;
}

// Which pair of a numbered_store a sentence is.
int64_t number_of(const Batch& batch, int64_t sentence) {
  const int32_t* tokens = batch.source.tokens.data() + batch.source.offsets[static_cast<size_t>(sentence)];
  return (tokens[0] - 3) * 1000 + tokens[1] - 3;
}

std::map<int64_t, int64_t> count_pairs(const std::vector<Batch>& batches) {
  std::map<int64_t, int64_t> counts;
  for (const Batch& batch : batches)
    for (int64_t i = 0; i < batch.source.sentences(); ++i) ++counts[number_of(batch, i)];
  return counts;
}

BatchOptions small_batches() {
  BatchOptions options;
  options.batch_tokens = 200;
  options.window_batches = 8;  // several windows an epoch
  return options;
}

TEST(BatchStream, ShowsEverySampleOncePerEpoch) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {1500, 500});
  BatchStream stream(store, small_batches());
  EXPECT_EQ(stream.samples_per_epoch(), 2000);
  for (const int64_t epoch : {0, 1, 7}) {
    const std::vector<Batch> batches = epoch_of(stream, epoch);
    EXPECT_EQ(static_cast<int64_t>(batches.size()), stream.survey(epoch).batches);
    EXPECT_EQ(count_pairs(batches).size(), 2000u);
    const auto tokens = [&](int64_t i) {
      const Batch& batch = batches.at(static_cast<size_t>(i));
      return batch.source.count() + batch.target.count();
    };
    const auto longest = [&](int64_t i) {
      const auto& offsets = batches.at(static_cast<size_t>(i)).target.offsets;
      int32_t most = 0;
      for (size_t s = 1; s < offsets.size(); ++s) most = std::max(most, offsets[s] - offsets[s - 1]);
      return most;
    };
    const BatchStream::Survey survey = stream.survey(epoch);
    for (int64_t i = 0; i < survey.batches; ++i) {
      EXPECT_LE(tokens(i), tokens(survey.most_tokens.position.index));
      EXPECT_LE(longest(i), longest(survey.longest.position.index));
    }
    EXPECT_TRUE(same(stream.look(survey.longest), batches[static_cast<size_t>(survey.longest.position.index)]));
    std::set<int64_t> ids;
    int64_t index = 0;
    for (const Batch& batch : batches) {
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.index, index++);
      EXPECT_EQ(batch.source.sentences(), batch.target.sentences());
      EXPECT_EQ(batch.source.sentences(), static_cast<int64_t>(batch.sample_ids.size()));
      ids.insert(batch.sample_ids.begin(), batch.sample_ids.end());
      for (size_t i = 1; i < batch.target.offsets.size(); ++i) {
        EXPECT_EQ(batch.target.tokens[static_cast<size_t>(batch.target.offsets[i]) - 1], 2);
        EXPECT_EQ(batch.source.tokens[static_cast<size_t>(batch.source.offsets[i]) - 1], 2);
      }
    }
    EXPECT_EQ(ids.size(), 2000u);
    EXPECT_EQ(*ids.rbegin(), 1999);
  }
}

TEST(BatchStream, IsAPureFunctionOfSeedAndEpoch) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {2000});
  BatchOptions options = small_batches();
  BatchStream one(store, options), two(store, options);
  options.seed = 2;
  BatchStream other(store, options);
  const auto first = epoch_of(one, 3);
  epoch_of(two, 0);
  const auto again = epoch_of(two, 3), differs = epoch_of(other, 3), next_epoch = epoch_of(one, 4);
  ASSERT_EQ(first.size(), again.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(same(first[i], again[i]));
  const auto order = [](const std::vector<Batch>& batches) {
    std::vector<int64_t> numbers;
    for (const Batch& batch : batches)
      for (int64_t i = 0; i < batch.source.sentences(); ++i) numbers.push_back(number_of(batch, i));
    return numbers;
  };
  EXPECT_NE(order(first), order(differs));
  EXPECT_NE(order(first), order(next_epoch));
}

TEST(BatchStream, SeekingEqualsRunning) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {700, 300});
  BatchOptions options = small_batches();
  options.weights = {1.5, 0.3};
  BatchStream running(store, options);
  std::vector<std::pair<BatchPosition, Batch>> seen;
  while (running.position().epoch < 2) {
    const BatchPosition position = running.position();
    seen.emplace_back(position, running.next());
  }
  BatchStream seeking(store, options);
  for (size_t i = 0; i + 1 < seen.size(); i += 3) {
    seeking.seek(seen[i].first);
    EXPECT_EQ(seeking.position(), seen[i].first);
    EXPECT_TRUE(same(seeking.next(), seen[i].second));
    EXPECT_TRUE(same(seeking.next(), seen[i + 1].second));
  }
  const int64_t batches = seeking.survey(0).batches;
  seeking.seek({0, batches});
  EXPECT_EQ(seeking.position(), (BatchPosition{1, 0}));
  EXPECT_TRUE(same(seeking.next(), seen[static_cast<size_t>(batches)].second));
}

// The same sentences in the same batches, other pieces in each epoch, the same again wherever the stream begins.
TEST(BatchStream, CutsWordsAnewInEveryEpoch) {
  const TemporaryDirectory directory;
  const test::TextStore text(directory, 600);
  BatchOptions options = small_batches();
  BatchStream plain(text.store, options);
  options.sampling = {std::make_shared<SubwordSampler>(text.vocabulary, 0.2), std::make_shared<SubwordSampler>(text.vocabulary, 0.2), 256};
  BatchStream sampled(text.store, options), seeking(text.store, options);
  std::map<std::string, std::set<std::vector<int32_t>>> ways;
  while (sampled.position().epoch < 3) {
    const BatchPosition position = sampled.position();
    const Batch batch = sampled.next(), stored = plain.next();
    EXPECT_EQ(batch.sample_ids, stored.sample_ids);
    for (const auto& [now, before] : {std::pair(&batch.source, &stored.source), std::pair(&batch.target, &stored.target)}) {
      ASSERT_EQ(now->sentences(), before->sentences());
      for (size_t i = 0; i + 1 < now->offsets.size(); ++i) {
        const auto sentence = [&](const PackedTokens& side) {
          return std::vector(side.tokens.begin() + side.offsets[i], side.tokens.begin() + side.offsets[i + 1]);
        };
        EXPECT_EQ(text.vocabulary.decode(sentence(*now)), text.vocabulary.decode(sentence(*before)));
        EXPECT_EQ(sentence(*now).back(), text.vocabulary.eos());
        ways[text.vocabulary.decode(sentence(*now))].insert(sentence(*now));
      }
    }
    if (position.index % 5 == 0) {
      seeking.seek(position);
      EXPECT_TRUE(same(seeking.next(), batch));
    }
  }
  int64_t various = 0;
  for (const auto& [line, cuts] : ways) various += cuts.size() > 1;
  EXPECT_GT(various, static_cast<int64_t>(ways.size()) / 2);
}

TEST(BatchStream, KeepsSentencesThatWouldBeTooLongAsTheyAre) {
  const TemporaryDirectory directory;
  const test::TextStore text(directory, 300);
  BatchOptions options = small_batches();
  int32_t longest = 0;
  for (int64_t i = 0; i < text.store.size(); ++i) longest = std::max({longest, text.store.lengths(i).source, text.store.lengths(i).target});
  options.sampling = {std::make_shared<SubwordSampler>(text.vocabulary, 0.01), std::make_shared<SubwordSampler>(text.vocabulary, 0.01),
                      longest};
  BatchStream stream(text.store, options);
  int64_t at_most = 0;
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next();
    for (size_t i = 0; i + 1 < batch.target.offsets.size(); ++i) {
      EXPECT_LE(batch.target.offsets[i + 1] - batch.target.offsets[i], longest);
      at_most += batch.target.offsets[i + 1] - batch.target.offsets[i] == longest;
    }
  }
  EXPECT_GT(at_most, 0);
}

TEST(BatchStream, RefusesPositionsThatDoNotExist) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {100});
  BatchStream stream(store, small_batches()), untouched(store, small_batches());
  stream.next();
  untouched.next();
  EXPECT_THAT(test::message_of<DataError>([&] { stream.seek({0, 1'000'000}); }), HasSubstr("there is no batch 1000000"));
  EXPECT_THAT(test::message_of<DataError>([&] { stream.seek({-1, 0}); }), HasSubstr("damaged"));
  EXPECT_TRUE(same(stream.next(), untouched.next()));  // a failed seek moves nothing
}

TEST(BatchStream, KeepsToTheLimits) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {5000});
  BatchOptions options;
  options.batch_tokens = 1000;
  options.max_source_factor = 20;  // the made-up lengths are independent; real ones are not, and seldom meet the limit of 2
  BatchStream stream(store, options);
  int64_t tokens = 0;
  const std::vector<Batch> batches = epoch_of(stream, 0);
  for (const Batch& batch : batches) {
    EXPECT_LE(batch.target.count(), 1000);
    EXPECT_GE(batch.target.count(), 900);  // about equal: no small rest
    tokens += batch.target.count();
  }
  EXPECT_LE(static_cast<double>(batches.size()), 1.03 * static_cast<double>(tokens) / 1000 + 2);

  options.max_source_factor = 0.5;
  BatchStream thin(store, options);
  for (const Batch& batch : epoch_of(thin, 0)) EXPECT_LE(batch.source.count(), 500);
}

TEST(BatchStream, PutsLikeLengthsTogether) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {5000});
  BatchOptions options;
  options.batch_tokens = 500;
  BatchStream stream(store, options);
  double spread = 0;
  const auto batches = epoch_of(stream, 0);
  for (const Batch& batch : batches) {
    const auto length = [&](size_t i) { return batch.target.offsets[i + 1] - batch.target.offsets[i]; };
    spread += length(static_cast<size_t>(batch.target.sentences()) - 1) - length(0);
  }
  EXPECT_LT(spread / static_cast<double>(batches.size()), 2.5);  // of 40
}

TEST(BatchStream, GivesALongSentenceABatchOfItsOwn) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {200}, 60);
  BatchOptions options;
  options.batch_tokens = 20;
  BatchStream stream(store, options);
  const auto batches = epoch_of(stream, 0);
  EXPECT_EQ(count_pairs(batches).size(), 200u);
  for (const Batch& batch : batches) EXPECT_TRUE(batch.target.count() <= 20 || batch.target.sentences() == 1);
  options.batch_tokens = 1;
  BatchStream single(store, options);
  EXPECT_EQ(epoch_of(single, 0).size(), 200u);
}

TEST(BatchStream, WeighsCorpora) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {1000, 400, 300, 50});
  BatchOptions options = small_batches();
  options.weights = {0.25, 2.5, 1, 0};
  BatchStream stream(store, options);
  EXPECT_EQ(stream.samples_per_epoch(), 250 + 1000 + 300);
  std::vector<std::map<int64_t, int64_t>> epochs;
  for (const int64_t epoch : {0, 1}) epochs.push_back(count_pairs(epoch_of(stream, epoch)));
  for (const auto& counts : epochs) {
    std::map<int64_t, int64_t> by_corpus, twice_or_more;
    for (const auto& [number, times] : counts) {
      const int64_t corpus = number < 1000 ? 0 : number < 1400 ? 1 : number < 1700 ? 2 : 3;
      by_corpus[corpus] += times;
      if (corpus == 0 || corpus == 2) {
        EXPECT_EQ(times, 1);
      }
      if (corpus == 1) {
        EXPECT_TRUE(times == 2 || times == 3);
      }
    }
    EXPECT_EQ(by_corpus, (std::map<int64_t, int64_t>{{0, 250}, {1, 1000}, {2, 300}}));
  }
  EXPECT_NE(epochs[0], epochs[1]);  // another quarter of corpus 0
}

// Two corpora of 1500 and 500 pairs: the first alone for 1.5 epochs of its tokens, both with weights 0.2 and 2 for 0.5, then the second.
TEST(BatchStream, ChangesWeightsByStages) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {1500, 500});
  const auto tokens = [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += store.lengths(i).target;
    return sum;
  };
  const double first = tokens(0, 1500), second = tokens(1500, 2000);
  BatchOptions options = small_batches();
  options.stages = {{{1, 0}, 1.5 * first}, {{0.2, 2}, 0.5 * (0.2 * first + 2 * second)}, {{0, 1}}};
  BatchStream stream(store, options);
  // Epochs: 1500 samples of the first corpus, 750 of it, 650 of 300 and 1000 samples of both, 500 of the second from then on.
  const auto samples = [&](int64_t epoch, bool of_first) {
    int64_t count = 0;
    for (const auto& [pair, times] : count_pairs(epoch_of(stream, epoch))) count += (pair < 1500) == of_first ? times : 0;
    return count;
  };
  EXPECT_EQ(samples(0, true), 1500);
  EXPECT_EQ(samples(0, false), 0);
  EXPECT_EQ(samples(1, true), 750);
  EXPECT_EQ(samples(1, false), 0);
  EXPECT_EQ(samples(2, true) + samples(2, false), 650);
  EXPECT_NEAR(static_cast<double>(samples(2, false)), 500, 40) << "a half of a shuffled epoch has about half of each";
  for (const int64_t epoch : {3, 4, 9}) {
    EXPECT_EQ(samples(epoch, true), 0);
    EXPECT_EQ(count_pairs(epoch_of(stream, epoch)).size(), 500u);
  }
  // Running from the beginning passes the same positions and batches as seeking.
  stream.seek({0, 0});
  BatchStream seeking(store, options);
  while (stream.position().epoch < 5) {
    const BatchPosition position = stream.position();
    const Batch batch = stream.next();
    if (position.index % 7 != 0) continue;
    seeking.seek(position);
    EXPECT_TRUE(same(seeking.next(), batch)) << position.epoch << " " << position.index;
  }
}

TEST(BatchStream, RefusesImpossibleOptions) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {10});
  const auto refusal = [&](const BatchOptions& options) {
    return test::message_of<ConfigError>([&] { BatchStream stream(store, options); });
  };
  EXPECT_THAT(refusal({.batch_tokens = 0}), HasSubstr("0 target tokens"));
  EXPECT_THAT(refusal({.batch_tokens = -4}), HasSubstr("-4 target tokens"));
  EXPECT_THAT(refusal({.max_source_factor = -1}), HasSubstr("source factor"));
  EXPECT_THAT(refusal({.window_batches = 0}), HasSubstr("window of 0"));
  EXPECT_THAT(refusal({.weights = {1, 1}}), HasSubstr("2 weights for 1 corpora"));
  EXPECT_THAT(refusal({.weights = {-1}}), HasSubstr("weight is -1"));
  EXPECT_THAT(test::message_of<DataError>([&] { BatchStream stream(store, {.weights = {0}}); }), HasSubstr("no training sentence is left"));
}

TEST(Split, CutsIntoWholeSentences) {
  const TemporaryDirectory directory;
  const TokenStore store = test::numbered_store(directory, {1000});
  BatchStream stream(store, {.batch_tokens = 2000});
  Batch batch = stream.next();
  for (const int64_t id : batch.sample_ids) batch.weights.push_back(static_cast<float>(id) / 7);
  for (const int64_t limit : {5000, 2000, 900, 100, 3, 1}) {
    Batch joined;
    for (const Batch& part : split(batch, limit)) {
      EXPECT_TRUE(part.target.count() <= limit || part.target.sentences() == 1);
      EXPECT_TRUE(part.source.count() <= 2 * limit || part.target.sentences() == 1);
      EXPECT_EQ(part.index, batch.index);
      EXPECT_EQ(part.epoch, batch.epoch);
      for (const auto& [from, to] : {std::pair(&part.source, &joined.source), std::pair(&part.target, &joined.target)})
        for (size_t i = 0; i + 1 < from->offsets.size(); ++i)
          to->append(from->tokens.data() + from->offsets[i], from->tokens.data() + from->offsets[i + 1]);
      joined.sample_ids.insert(joined.sample_ids.end(), part.sample_ids.begin(), part.sample_ids.end());
      joined.weights.insert(joined.weights.end(), part.weights.begin(), part.weights.end());
    }
    joined.index = batch.index;
    EXPECT_EQ(joined.weights, batch.weights) << limit;
    EXPECT_TRUE(same(joined, batch)) << limit;
  }
  EXPECT_EQ(split(batch, 5000).size(), 1u);
}

TEST(Append, PutsBackTogetherWhatWasSplit) {
  const Batch batch = make_batches(std::vector<EncodedPair>{{{5, 2}, {6, 7, 2}}, {{8, 9, 2}, {3, 2}}, {{4, 2}, {5, 6, 7, 2}}}, 100).front();
  std::vector<Batch> parts = split(batch, 4);
  ASSERT_GT(parts.size(), 1u);
  Batch whole = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) append(whole, parts[i]);
  EXPECT_EQ(whole.source.tokens, batch.source.tokens);
  EXPECT_EQ(whole.source.offsets, batch.source.offsets);
  EXPECT_EQ(whole.target.tokens, batch.target.tokens);
  EXPECT_EQ(whole.target.offsets, batch.target.offsets);
  EXPECT_EQ(whole.sample_ids, batch.sample_ids);
}

TEST(MakeBatches, KeepsEveryPairAndItsNumber) {
  Random random(1, 1);
  std::vector<EncodedPair> pairs(500);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].source.assign(1 + random.below(30), static_cast<int32_t>(i));
    pairs[i].target.assign(1 + random.below(30), static_cast<int32_t>(i));
  }
  std::set<int64_t> ids;
  int64_t index = 0;
  for (const Batch& batch : make_batches(pairs, 300)) {
    EXPECT_EQ(batch.index, index++);
    EXPECT_LE(batch.target.count(), 300);
    for (size_t i = 0; i < batch.sample_ids.size(); ++i) {
      EXPECT_EQ(batch.target.tokens[static_cast<size_t>(batch.target.offsets[i])], batch.sample_ids[i]);
      ids.insert(batch.sample_ids[i]);
    }
  }
  EXPECT_EQ(ids.size(), 500u);
  EXPECT_TRUE(make_batches({}, 300).empty());
  EXPECT_THAT(test::message_of<ConfigError>([&] { make_batches(pairs, 0); }), HasSubstr("0 target tokens"));
}

}  // namespace
}  // namespace starling
