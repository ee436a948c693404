// A pass of a model whose layers and vocabulary are spread over 1, 2 and 4 workers against the same pass of one worker: losses, every
// gradient, and what is sent.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "autograd/ops.h"
#include "base/random.h"
#include "tests/ops/shard_threads.h"

namespace starling {
namespace {

constexpr int64_t D = 32, H = 4, F = 50, V = 37, N = 320, kPassTokens = 303;  // F and V are multiples of no number of workers

// How a parameter is cut: not at all, or by its columns (of which `parts` matrices lie side by side) or rows, in units.
struct Cut {
  const char* name;
  Shape shape;
  enum { whole, columns, rows } by = whole;
  int64_t parts = 1, unit = 1;
};
const Cut kCuts[] = {
    {"table", {V, D}, Cut::rows},
    {"self.norm.scale", {D}},
    {"self.norm.bias", {D}},
    {"self.qkv", {D, 3 * D}, Cut::columns, 3, D / H},
    {"self.qkv.bias", {1, 3 * D}, Cut::columns, 3, D / H},
    {"self.key.positions", {7, D / H}},
    {"self.value.positions", {7, D / H}},
    {"self.out", {D, D}, Cut::rows, 1, D / H},
    {"self.out.bias", {D}},
    {"cross.query", {D, D}, Cut::columns, 1, D / H},
    {"cross.kv", {D, 2 * D}, Cut::columns, 2, D / H},
    {"cross.out", {D, D}, Cut::rows, 1, D / H},
    {"inner", {D, F}, Cut::columns},
    {"inner.bias", {1, F}, Cut::columns},
    {"outer", {F, D}, Cut::rows},
    {"outer.bias", {D}},
};

// The elements of the whole that a worker has, and their shape.
struct Piece {
  Shape shape;
  std::vector<int64_t> elements;
};
Piece piece_of(const Cut& cut, int64_t rank, int64_t size) {
  const int64_t rows = cut.shape.rank() == 2 ? cut.shape[0] : 1, columns = cut.shape.count() / rows;
  const int64_t spread = (cut.by == Cut::rows ? rows : columns / cut.parts) / cut.unit, width = columns / cut.parts;
  const ShardPart units = part_of(spread, rank, size), mine{units.begin * cut.unit, units.end * cut.unit};
  Piece piece{cut.by == Cut::whole  ? cut.shape
              : cut.by == Cut::rows ? Shape{mine.size(), columns}
              : cut.shape[0] == 1   ? Shape{cut.parts * mine.size()}
                                    : Shape{rows, cut.parts * mine.size()},
              {}};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t place = cut.by == Cut::rows ? r : c % width;
      if (cut.by == Cut::whole || (mine.begin <= place && place < mine.end)) piece.elements.push_back(r * columns + c);
    }
  return piece;
}

Values pick(const Values& all, const std::vector<int64_t>& elements) {
  Values some;
  for (int64_t i : elements) some.push_back(all[static_cast<size_t>(i)]);
  return some;
}

std::map<std::string, Values> initial_values() {
  std::map<std::string, Values> values;
  Random random(17, 3);
  for (const Cut& cut : kCuts) {
    Values& v = values[cut.name];
    for (int64_t i = 0; i < cut.shape.count(); ++i) v.push_back(static_cast<float>(random.normal() / std::sqrt(D)));
    if (std::string(cut.name) == "self.norm.scale")
      for (double& x : v) x += 1;
  }
  return values;
}

struct LossForm {
  double smoothing = 0.1, bound = 0;
  bool weighted = false;
};

struct Outcome {
  LossSums sums;
  Values rows;
  std::map<std::string, Values> gradients;
};

// One worker's pass; `group` null: of the whole. Without training the loss alone.
Outcome pass(const std::string& spec, ShardGroup* group, const LossForm& form, bool training = true) {
  const int64_t rank = group ? group->rank() : 0, size = group ? group->size() : 1;
  const auto backend = make_backend(spec, 1);
  ParameterStore store(*backend);
  for (const Cut& cut : kCuts) store.add(cut.name, piece_of(cut, rank, size).shape, {});
  store.allocate(std::nullopt, true);
  const std::map<std::string, Values> values = initial_values();
  for (const Cut& cut : kCuts) store.find(cut.name)->value.from_doubles(pick(values.at(cut.name), piece_of(cut, rank, size).elements));
  store.changed();
  const auto p = [&](const char* name) -> Parameter& { return *store.find(name); };

  Arena arena(backend->memory());
  GradientSum sum(store);
  sum.begin();
  Tape tape = training ? Tape(store, arena, sum, 5, 6) : Tape(store, arena);
  Random random(1, 2);
  std::vector<int32_t> target_tokens, source_tokens, positions, wanted, offsets{0};
  std::vector<uint32_t> sentence, position;
  std::vector<float> weights;
  for (int32_t n = 0; n < N; ++n) {
    const bool idle = n >= kPassTokens;
    for (auto* tokens : {&target_tokens, &source_tokens, &wanted}) tokens->push_back(idle ? -1 : static_cast<int32_t>(random.below(V)));
    positions.push_back(n % 7), sentence.push_back(idle ? 0xffffffff : 40 + n / 7), position.push_back(n % 7);
    weights.push_back(static_cast<float>(random.normal()));
    if (n % 7 == 6 && n < kPassTokens) offsets.push_back(n + 1);
  }
  if (offsets.back() != kPassTokens) offsets.push_back(kPassTokens);
  const RowKeys keys{tape.upload(sentence), tape.upload(position)};
  const Ints starts = tape.upload(offsets), places = tape.upload(positions);
  const ShardPart heads = part_of(H, rank, size), hidden = part_of(F, rank, size), tokens = part_of(V, rank, size);
  const AttentionLayout causal{starts, starts, heads.size(), true, heads.begin}, across{starts, starts, heads.size(), false, heads.begin};
  const VocabularyShard shard{group, tokens.begin, V};
  const auto drop = [&](double rate, const char* site, int64_t first = 0) { return tape.dropout(rate, DropoutSite(site), keys, first); };

  Var x = embedding(tape, tape.upload(target_tokens), places, p("table"), std::sqrt(D), drop(0.1, "embedding"), shard);
  const Var memory =
      copy_to_shards(embedding(tape, tape.upload(source_tokens), places, p("table"), std::sqrt(D), drop(0.1, "source"), shard), group);
  Var y = copy_to_shards(layer_norm(x, p("self.norm.scale"), p("self.norm.bias"), 1e-5), group);
  y = self_attention(linear(y, p("self.qkv"), &p("self.qkv.bias")), causal, drop(0.2, "self"),
                     {&p("self.key.positions"), &p("self.value.positions"), group});
  x = residual(x, row_parallel_linear(y, p("self.out"), &p("self.out.bias"), group), drop(0.1, "self.residual"));
  y = copy_to_shards(x, group);
  y = cross_attention(linear(y, p("cross.query"), nullptr), linear(memory, p("cross.kv"), nullptr), across, drop(0.2, "cross"));
  x = residual(x, row_parallel_linear(y, p("cross.out"), nullptr, group), drop(0.1, "cross.residual"));
  y = linear(copy_to_shards(x, group), p("inner"), &p("inner.bias"), Activation::relu, drop(0.2, "inner", hidden.begin));
  x = residual(x, row_parallel_linear(y, p("outer"), &p("outer.bias"), group), drop(0.1, "outer.residual"));
  Loss loss(tape);
  const LossRows rows{tape.upload(wanted), form.smoothing, form.bound, form.weighted ? tape.upload(weights) : HostDeviceArray<float>()};
  projection_loss(x, p("table"), nullptr, rows, loss, shard);
  if (training) tape.backward();
  sum.complete();

  Outcome outcome{loss.read(), loss.rows.to_doubles(), {}};
  if (training)
    for (const Parameter& parameter : store.all()) outcome.gradients[parameter.name] = parameter.gradient.to_doubles();
  return outcome;
}

void expect_equal_losses(const Outcome& whole, const Outcome& shard, double tolerance) {
  EXPECT_NEAR(shard.sums.smoothed, whole.sums.smoothed, tolerance * std::abs(whole.sums.smoothed));
  EXPECT_NEAR(shard.sums.nll, whole.sums.nll, tolerance * std::abs(whole.sums.nll));
  EXPECT_EQ(shard.sums.tokens, kPassTokens);
  EXPECT_EQ(shard.sums.correct, whole.sums.correct);
  EXPECT_LT(worst_error(whole.rows, shard.rows), tolerance);
}

struct PassCase {
  const char *name, *spec;
  int workers;
  LossForm form;
  double tolerance;
};
void PrintTo(const PassCase& c, std::ostream* out) { *out << c.name; }

class ShardedPass : public testing::TestWithParam<PassCase> {};

TEST_P(ShardedPass, HasTheLossesAndGradientsOfTheWhole) {
  const PassCase& c = GetParam();
  const Outcome whole = pass(c.spec, nullptr, c.form);
  EXPECT_GT(whole.sums.correct, 3);
  EXPECT_LT(whole.sums.correct, kPassTokens - 3);
  std::vector<Outcome> outcomes(static_cast<size_t>(c.workers));
  ShardThreads(c.workers).run([&](ShardGroup& group) {
    const Outcome& shard = outcomes[static_cast<size_t>(group.rank())] = pass(c.spec, &group, c.form);
    expect_equal_losses(whole, shard, c.tolerance);
    for (const Cut& cut : kCuts) {
      const Values expected = pick(whole.gradients.at(cut.name), piece_of(cut, group.rank(), group.size()).elements);
      EXPECT_LT(worst_error(expected, shard.gradients.at(cut.name)), c.tolerance) << cut.name << " of worker " << group.rank();
    }
  });
  // What all of them have must stay the same for ever.
  for (const Outcome& other : outcomes) {
    EXPECT_EQ(other.sums.smoothed, outcomes[0].sums.smoothed);
    EXPECT_EQ(other.rows, outcomes[0].rows);
    for (const Cut& cut : kCuts) {
      if (cut.by != Cut::whole) continue;
      EXPECT_EQ(other.gradients.at(cut.name), outcomes[0].gradients.at(cut.name)) << cut.name;
    }
  }
}

TEST_P(ShardedPass, HasTheLossesOfTheWholeWithoutTraining) {
  const PassCase& c = GetParam();
  const Outcome whole = pass(c.spec, nullptr, c.form, false);
  ShardThreads(c.workers).run([&](ShardGroup& group) { expect_equal_losses(whole, pass(c.spec, &group, c.form, false), c.tolerance); });
}

const LossForm kPlain{}, kBounded{0.1, 3, true}, kUnsmoothed{0, 0, false};
INSTANTIATE_TEST_SUITE_P(
    Ops, ShardedPass,
    testing::Values(PassCase{"reference_1", "reference", 1, kPlain, 1e-12}, PassCase{"reference_2", "reference", 2, kPlain, 1e-12},
                    PassCase{"reference_4", "reference", 4, kPlain, 1e-12},
                    PassCase{"reference_2_unsmoothed", "reference", 2, kUnsmoothed, 1e-12},
                    PassCase{"reference_4_bounded", "reference", 4, kBounded, 1e-12}, PassCase{"cpu_1", "cpu:f32", 1, kPlain, 1e-5},
                    PassCase{"cpu_2", "cpu:f32", 2, kPlain, 1e-5}, PassCase{"cpu_4", "cpu:f32", 4, kPlain, 1e-5},
                    PassCase{"cpu_2_bounded", "cpu:f32", 2, kBounded, 1e-5}, PassCase{"cpu_4_bounded", "cpu:f32", 4, kBounded, 1e-5}),
    [](const auto& info) { return info.param.name; });

// Elements exchanged by a pass of two workers or more: of every layer one sum of [N, D] in each direction, of the memory one for both, of
// relative positions the gradients of both tables, and of the loss four numbers a row and dh.
TEST(Shards, APassSendsTwoSumsALayerAndFourNumbersARow) {
  for (int workers : {1, 2, 4}) {
    ShardThreads threads(workers);
    threads.run([&](ShardGroup& group) { pass("cpu:f32", &group, {}); });
    const int64_t embeddings = 2, forward = 3, backward = 4, loss = 3, tables = 2;
    EXPECT_EQ(threads.traffic().messages, workers == 1 ? 0 : embeddings + forward + backward + loss + tables);
    EXPECT_EQ(threads.traffic().bytes,
              workers == 1 ? 0 : 4 * (N * D * (embeddings + forward + backward) + N * 4 + N * D + tables * 7 * D / H));
  }
}

}  // namespace
}  // namespace starling
