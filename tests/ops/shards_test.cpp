// The ops of models whose layers and vocabulary are in shards, one by one: masks, embeddings, what is sent, and what decoding takes from
// logits in shards.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "base/random.h"
#include "tests/ops/backends.h"
#include "tests/ops/shard_threads.h"

namespace starling {
namespace {

constexpr int64_t kShardWidth = 32, kShardTokens = 37;  // kShardTokens is a multiple of no number of workers

// Calls f(tape, table) on a worker's rows of a table [tokens, kShardWidth].
template <class F>
void with_table(const std::string& spec, int64_t tokens, const ShardGroup* group, bool training, F f) {
  const auto backend = make_backend(spec, 1);
  const ShardPart mine = part_of(tokens, group ? group->rank() : 0, group ? group->size() : 1);
  ParameterStore store(*backend);
  Parameter& table = store.add("table", {mine.size(), kShardWidth}, {});
  store.allocate(std::nullopt, true);
  Random random(3, 3);
  Values values(static_cast<size_t>(tokens * kShardWidth));
  for (double& v : values) v = static_cast<float>(random.normal());
  table.value.from_doubles({values.data() + mine.begin * kShardWidth, static_cast<size_t>(mine.size() * kShardWidth)});
  Arena arena(backend->memory());
  GradientSum sum(store);
  sum.begin();
  Tape tape = training ? Tape(store, arena, sum, 5, 6) : Tape(store, arena);
  f(tape, table, VocabularyShard{nullptr, mine.begin, tokens});
}

TEST(Shards, TheLossSendsAsManyBytesWhateverTheVocabulary) {
  constexpr int64_t kRows = 600;
  for (bool training : {false, true})
    for (int64_t tokens : {40, 65539}) {
      ShardThreads threads(2);
      threads.run([&](ShardGroup& group) {
        with_table("cpu:f32", tokens, &group, training, [&](Tape& tape, Parameter& table, VocabularyShard shard) {
          shard.group = &group;
          const Tensor h = tape.allocate({kRows, kShardWidth}, DType::f32);
          h.zero();
          Loss loss(tape);
          projection_loss(tape.record(h, [](const Tensor&) {}), table, nullptr, {tape.upload(std::vector<int32_t>(kRows, 7)), 0.1}, loss,
                          shard);
          EXPECT_NEAR(loss.read().nll, kRows * std::log(static_cast<double>(tokens)), 0.01);
        });
      });
      const int64_t chunks = tokens == 40 ? 1 : 3;  // of the logits of half of the tokens, 256 rows are 32 MiB
      EXPECT_EQ(threads.traffic().bytes, 4 * (training ? kRows * 4 + kRows * kShardWidth : kRows * 4)) << tokens << " tokens";
      EXPECT_EQ(threads.traffic().messages, training ? 2 * chunks + 1 : 2) << tokens << " tokens";
    }
}

// A signal may come to one worker only, and all have to stop at the same place.
TEST(Shards, WhatOneSaysAllKnow) {
  EXPECT_FALSE(any_shard(nullptr, false));
  EXPECT_TRUE(any_shard(nullptr, true));
  for (const int who : {-1, 0, 2})
    ShardThreads(3).run([&](ShardGroup& group) { EXPECT_EQ(any_shard(&group, group.rank() == who), who >= 0) << group.rank(); });
}

TEST(Shards, EmbeddingsHaveTheBitsOfTheWhole) {
  std::vector<std::string> specs{"reference", "cpu:f32"};
  if (cpu_has_bf16()) specs.emplace_back("cpu:bf16");
  const auto rows = [](const std::string& spec, ShardGroup* group) {
    Values y;
    with_table(spec, kShardTokens, group, true, [&](Tape& tape, Parameter& table, VocabularyShard shard) {
      shard.group = group;
      std::vector<int32_t> tokens, positions;
      std::vector<uint32_t> sentence;
      for (int32_t n = 0; n < 64; ++n)
        tokens.push_back(n < 60 ? n * 7 % kShardTokens : -1), positions.push_back(n % 9), sentence.push_back(n / 9);
      const RowKeys keys{tape.upload(sentence), tape.upload(sentence)};
      y = embedding(tape, tape.upload(tokens), tape.upload(positions), table, 1.7, tape.dropout(0.3, DropoutSite("here"), keys), shard)
              .value.to_doubles();
    });
    return y;
  };
  for (const std::string& spec : specs)
    for (int workers : {2, 4}) {
      const Values whole = rows(spec, nullptr);
      ShardThreads(workers).run([&](ShardGroup& group) { EXPECT_EQ(rows(spec, &group), whole) << spec; });
    }
}

TEST(Shards, NothingIsRecordedOrSentByAWorkerAlone) {
  with_table("reference", kShardTokens, nullptr, true, [](Tape& tape, Parameter&, const VocabularyShard&) {
    ShardThreads threads(1);
    const Var x = tape.record(tape.allocate({3, kShardWidth}, DType::f64), [](const Tensor&) {});
    threads.run([&](ShardGroup& one) {
      for (ShardGroup* group : {&one, static_cast<ShardGroup*>(nullptr)}) {
        EXPECT_EQ(copy_to_shards(x, group).node, x.node);
        EXPECT_EQ(sum_over_shards(x, group).node, x.node);
      }
    });
    EXPECT_EQ(threads.traffic().messages, 0);
  });
}

RowKeys keys_of(Backend& backend, int64_t rows) {
  std::vector<uint32_t> sentence, position;
  for (uint32_t n = 0; n < rows; ++n) sentence.push_back(n / 5), position.push_back(n % 5);
  return {{sentence, backend.memory()}, {position, backend.memory()}};
}

// The columns [begin, end) of a matrix of so many columns.
Values columns_of(const Values& x, int64_t columns, ShardPart part) {
  Values some;
  for (size_t i = 0; i < x.size(); ++i)
    if (const auto c = static_cast<int64_t>(i) % columns; part.begin <= c && c < part.end) some.push_back(x[i]);
  return some;
}

// Every op that draws masks of columns, on ones: so that what comes out are the masks.
Values column_masks(Backend& backend, ShardPart part) {
  constexpr int64_t kRows = 15;
  const int64_t width = part.size();
  const Dropout d{0.3, 0x1234567, keys_of(backend, kRows), part.begin};
  const auto tensor = [&](int64_t rows, double x) {
    const Tensor t({rows, width}, backend.parameter(), backend.memory());
    t.from_doubles(Values(static_cast<size_t>(rows * width), x));
    return t;
  };
  const Tensor ones = tensor(kRows, 1), y = tensor(kRows, 0), dx = tensor(kRows, 5), looked_up = tensor(kRows, 0),
               dtable = tensor(kRows, 0);
  std::vector<int32_t> every(kRows);
  std::iota(every.begin(), every.end(), 0);
  const Ints tokens(every, backend.memory());
  backend.add_dropout({}, ones, d, y);
  backend.dropout_backward(ones, d, dx, Write::accumulate);
  backend.embed(tokens, {}, ones, 2, d, looked_up);
  backend.embed_backward(tokens, 3, d, ones, dtable);
  Values all;
  for (const Tensor& t : {y, dx, looked_up, dtable}) {
    const Values values = t.to_doubles();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Shards, MasksSideBySideAreTheMaskOfTheWhole) {
  constexpr int64_t kColumns = 400;
  for (const BackendCase& b : kBackends) {
    const auto backend = make(b);
    const Values whole = column_masks(*backend, {0, kColumns});
    for (const ShardPart part : {ShardPart{0, 16}, {16, 200}, {200, 256}, {256, 400}, {5, 138}, {127, 129}, {391, 400}})
      EXPECT_EQ(column_masks(*backend, part), columns_of(whole, kColumns, part)) << b.spec << b.isa << " from " << part.begin;
  }
}

// Heads with equal queries, keys and values differ by their masks alone; those of a worker are those that the whole has there.
TEST(Shards, MasksOfHeadsAreThoseOfTheWhole) {
  constexpr int64_t kHeads = 5, kWidth = 8, kRows = 20;
  const auto attention = [&](Backend& backend, ShardPart heads) {
    const int64_t width = heads.size() * kWidth;
    const Tensor qkv({kRows, 3 * width}, backend.activation(), backend.memory()), y({kRows, width}, backend.activation(), backend.memory());
    const Tensor lse({kRows, heads.size()}, backend.parameter(), backend.memory()), dqkv = qkv.clone();
    Values values;
    for (int64_t i = 0; i < qkv.count(); ++i) values.push_back(std::sin(static_cast<double>(i / (3 * width) * kWidth + i % kWidth)));
    qkv.from_doubles(values);
    const Backend::AttentionInput input{qkv, qkv, 0, width, 2 * width};
    const Ints starts({0, 7, 20}, backend.memory());
    const AttentionLayout layout{starts, starts, heads.size(), false, heads.begin};
    const Dropout d{0.3, 0x1234567, keys_of(backend, kRows)};
    backend.attention(input, layout, d, y, lse);
    backend.attention_backward(input, layout, d, lse, y, dqkv, dqkv);
    return std::pair(y.to_doubles(), dqkv.to_doubles());
  };
  for (const BackendCase& b : kBackends) {
    const auto backend = make(b);
    const auto [whole, gradient] = attention(*backend, {0, kHeads});
    EXPECT_NE(columns_of(whole, kHeads * kWidth, {0, kWidth}), columns_of(whole, kHeads * kWidth, {kWidth, 2 * kWidth}));
    for (const ShardPart heads : {ShardPart{0, 2}, {2, 3}, {3, 5}}) {
      const ShardPart columns{heads.begin * kWidth, heads.end * kWidth};
      const auto [y, dqkv] = attention(*backend, heads);
      EXPECT_EQ(y, columns_of(whole, kHeads * kWidth, columns)) << b.spec << b.isa << " from head " << heads.begin;
      for (int64_t matrix = 0; matrix < 3; ++matrix) {
        const int64_t first = matrix * kHeads * kWidth, own = matrix * heads.size() * kWidth;
        EXPECT_EQ(columns_of(dqkv, 3 * heads.size() * kWidth, {own, own + columns.size()}),
                  columns_of(gradient, 3 * kHeads * kWidth, {first + columns.begin, first + columns.end}))
            << b.spec << b.isa << " from head " << heads.begin;
      }
    }
  }
}

// Logits [R, kShardTokens], and a worker's columns of them.
Tensor logits_of(Backend& backend, const Values& all, ShardPart part) {
  const Tensor t({static_cast<int64_t>(all.size()) / kShardTokens, part.size()}, backend.parameter(), backend.memory());
  t.from_doubles(columns_of(all, kShardTokens, part));
  return t;
}

// Logits as a product, with the unit matrix.
struct GivenLogits {
  GivenLogits(Backend& backend, const Tensor& logits) {
    const int64_t n = logits.columns();
    const Tensor unit({n, n}, backend.parameter(), backend.memory());
    Values ones(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i) ones[i * n + i] = 1;
    unit.from_doubles(ones);
    packed = backend.pack(unit, false, nullptr);
    output = {logits, logits.rows(), packed.get()};
  }
  std::shared_ptr<Packed> packed;
  OutputProduct output;
};

TEST(Shards, TheBestTokensAreThoseOfTheWhole) {
  constexpr int64_t kRows = 40;
  Random random(8, 8);
  Values all(kRows * kShardTokens);
  for (double& z : all) z = std::round(random.normal() * 4) / 2;  // with many equals
  for (const char* spec : {"reference", "cpu:f32"})
    for (int workers : {2, 4})
      for (int64_t k : {1, 5, 20}) {  // 20: more than a worker of four has
        const auto best = [&](ShardGroup* group) {
          const auto backend = make_backend(spec, 1);
          const ShardPart part = part_of(kShardTokens, group ? group->rank() : 0, group ? group->size() : 1);
          std::vector<float> values;
          std::vector<int32_t> tokens;
          const GivenLogits given(*backend, logits_of(*backend, all, part));
          log_softmax_top_k(*backend, given.output, {group, part.begin, kShardTokens}, k, values, tokens);
          return std::pair(Values(values.begin(), values.end()), tokens);
        };
        const auto [values, tokens] = best(nullptr);
        ShardThreads threads(workers);
        threads.run([&, &values = values, &tokens = tokens](ShardGroup& group) {
          const auto [own_values, own_tokens] = best(&group);
          EXPECT_EQ(own_tokens, tokens) << spec << ", " << workers << " workers, k " << k;
          EXPECT_LT(worst_error(values, own_values), 1e-6) << spec << ", " << workers << " workers, k " << k;
        });
        EXPECT_EQ(threads.traffic().bytes, kRows * workers * (2 * k + 2) * 8);
      }
}

// A translator tells that a model's numbers are of no use by NaN in the best log-probability.
TEST(Shards, ANotANumberOfOneWorkerReachesAll) {
  Values all(2 * kShardTokens, 1.0);
  all[kShardTokens + 30] = NAN;
  ShardThreads(2).run([&](ShardGroup& group) {
    const auto backend = make_backend("cpu:f32", 1);
    const ShardPart part = part_of(kShardTokens, group.rank(), group.size());
    std::vector<float> values;
    std::vector<int32_t> tokens;
    const GivenLogits given(*backend, logits_of(*backend, all, part));
    log_softmax_top_k(*backend, given.output, {&group, part.begin, kShardTokens}, 3, values, tokens);
    EXPECT_NEAR(values.at(0), -std::log(kShardTokens), 1e-6);
    EXPECT_TRUE(std::isnan(values.at(3)));
  });
}

TEST(Shards, SamplesAreThoseOfTheWhole) {
  constexpr int64_t kRows = 500;
  Random random(9, 9);
  Values all(kRows * kShardTokens), uniform(kRows);
  for (double& z : all) z = static_cast<float>(2 * random.normal());
  for (double& u : uniform) u = random.uniform();
  uniform[0] = 0, uniform[1] = std::nextafter(1.0, 0.0);
  for (const char* spec : {"reference", "cpu:f32"})
    for (int workers : {2, 4}) {
      const auto drawn = [&](ShardGroup* group) {
        const auto backend = make_backend(spec, 1);
        const ShardPart part = part_of(kShardTokens, group ? group->rank() : 0, group ? group->size() : 1);
        const Tensor tokens({kRows}, DType::i32, backend->memory());
        sample(*backend, logits_of(*backend, all, part), {group, part.begin, kShardTokens}, {uniform, backend->memory()}, tokens);
        return tokens.to_doubles();
      };
      const Values whole = drawn(nullptr);
      ShardThreads(workers).run([&](ShardGroup& group) { EXPECT_EQ(drawn(&group), whole) << spec << ", " << workers << " workers"; });
    }
}

}  // namespace
}  // namespace starling
