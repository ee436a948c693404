// GNMT's units in stages, in pieces of time: wherever the model is cut, losses, counts of clipped values and gradients are those of the
// whole model in one pass. The stages run one after the other here; who waits for whom is tested with ranks (tests/strategies/).
#include <gmock/gmock.h>

#include <deque>
#include <map>

#include "tests/models/common.h"

namespace starling {
namespace {

struct WavefrontVariant {
  const char* name;
  std::function<void(ModelConfig&)> set;
};
void PrintTo(const WavefrontVariant& v, std::ostream* out) { *out << v.name; }

using Gradients = std::map<std::string, std::vector<double>>;

// What one stage has on its tapes.
struct Stage {
  Stage(const ModelConfig& config, Backend& backend, const UnitRange& units)
      : model(make_model(config, {23, 23}, backend, 7, true, units)), arena(backend.memory()), sum(model->parameters()) {
    sum.begin();
  }
  std::unique_ptr<Model> model;
  Arena arena;
  GradientSum sum;
  std::unique_ptr<ChunkedPass> pass;
  std::deque<Tape> tapes;
  std::vector<std::vector<Tensor>> in_gradients;  // by step that took something
  std::vector<std::vector<Var>> outs;             // by step
  std::map<std::string, int> complete;
};

struct Result {
  double smoothed = 0, correct = 0;
  int64_t tokens = 0, clipped = 0, clippable = 0;
  Gradients gradients;
};

// Of the shares of a pass's steps: the rows of so many tokens, each step's padded to a multiple of 64.
void expect_rows(double rows, int64_t tokens, size_t steps) {
  EXPECT_GE(rows, static_cast<double>(round_up(tokens, 64)));
  EXPECT_LT(rows, static_cast<double>(tokens) + 64.0 * static_cast<double>(steps));
}

Result run(const ModelConfig& config, const Batch& batch, const std::vector<size_t>& cuts, int64_t pieces) {
  const auto backend = make_backend("reference");
  std::deque<Stage> stages;
  const size_t units = declare_model(config, {23, 23}, *backend)->units();
  Result result;
  std::vector<std::vector<Var>> given;  // pieces
  for (size_t s = 0; s <= cuts.size(); ++s) {
    Stage& stage = stages.emplace_back(config, *backend, UnitRange{s == 0 ? 0 : cuts[s - 1], s == cuts.size() ? units : cuts[s]});
    stage.pass = stage.model->begin_pass(batch, 0.1, pieces);
    std::optional<Loss> loss;
    double source = 0, target = 0;
    for (size_t i = 0; i < stage.pass->steps(); ++i) {
      if (i == 0)
        stage.tapes.emplace_back(stage.model->parameters(), stage.arena, stage.sum, 11, 5);
      else
        stage.tapes.push_back(stage.tapes[0].another());
      Tape& tape = stage.tapes.back();
      if (i == 0) loss.emplace(tape);
      std::vector<Var> in;
      if (i < given.size()) {
        stage.in_gradients.emplace_back(given[i].size());
        for (size_t k = 0; k < given[i].size(); ++k)
          in.push_back(tape.record(given[i][k].value, [&stage, i, k](const Tensor& dy) { stage.in_gradients[i][k] = dy; }));
      }
      tape.on_gradient_ready = [&stage](const Parameter& p) { ++stage.complete[p.name]; };
      stage.outs.push_back(stage.pass->forward(tape, in, *loss));
      source += stage.pass->share(i).source, target += stage.pass->share(i).target;
    }
    EXPECT_LE(given.size(), stage.pass->steps());
    given.clear();
    for (const auto& out : stage.outs)
      if (!out.empty()) given.push_back(out);
    if (s < cuts.size()) {
      const auto shapes = stage.model->boundary_pieces(cuts[s], batch, pieces);
      EXPECT_EQ(given.size(), shapes.size());
      for (size_t c = 0; c < shapes.size(); ++c) {
        for (size_t k = 0; k < shapes[c].size(); ++k) EXPECT_EQ(given[c][k].value.shape(), shapes[c][k]);
      }
    }
    if (stage.model->parameters().units().begin < static_cast<size_t>(config.encoder_layers)) {
      expect_rows(source, batch.source.count(), stage.pass->steps());
    }
    if (stage.model->has_output()) {
      expect_rows(target, batch.target.count(), stage.pass->steps());
    }
    const LossSums sums = loss->read();
    result.smoothed += sums.smoothed, result.correct += static_cast<double>(sums.correct), result.tokens += sums.tokens;
    result.clipped += sums.clipped, result.clippable += sums.clippable;
  }
  for (size_t s = stages.size(); s-- > 0;) {
    Stage& stage = stages[s];
    const size_t steps = stage.tapes.size(), outs = s + 1 < stages.size() ? stages[s + 1].in_gradients.size() : 0;
    for (size_t i = steps; i-- > 0;) {
      const size_t piece = i + outs - steps;  // of what went out
      for (size_t k = 0; i + outs >= steps && k < stage.outs[i].size(); ++k) {
        Tensor gradient = stages[s + 1].in_gradients[piece][k];
        if (!gradient) gradient = stage.tapes[i].allocate_like(stage.outs[i][k].value), gradient.zero();
        stage.tapes[i].set_gradient(stage.outs[i][k], gradient);
      }
      stage.tapes[i].backward();
    }
    stage.sum.complete();
    for (const Parameter* p : stage.model->parameters().declared()) {
      if (p->hold == Parameter::absent) continue;
      // A table of the output alone is complete in each step's forward pass.
      const bool output = stage.model->has_output() && (p->name == "decoder.output" || p->name == "embedding");
      EXPECT_TRUE(output || stage.complete[p->name] == 1) << p->name << ": " << stage.complete[p->name];
      std::vector<double>& all = result.gradients[p->name];
      const std::vector<double> mine = p->gradient.to_doubles();
      all.resize(mine.size());
      for (size_t i = 0; i < mine.size(); ++i) all[i] += mine[i];
    }
  }
  return result;
}

class WavefrontCuts : public testing::TestWithParam<WavefrontVariant> {};

TEST_P(WavefrontCuts, ComputeWhatTheWholeModelComputes) {
  ModelConfig config = model_preset("gnmt-small");
  config.width = 6, config.encoder_layers = 3, config.decoder_layers = 3, config.dropout = 0.2;
  GetParam().set(config);
  const Batch batch = random_batch(5, 23, 2);
  const Result whole = run(config, batch, {}, 1);
  if (config.clip > 0) {
    EXPECT_GT(whole.clipped, 20);
    EXPECT_LT(whole.clipped, whole.clippable);
  }
  const size_t units = static_cast<size_t>(config.encoder_layers + config.decoder_layers + 1);
  std::vector<std::vector<size_t>> layouts{{}};
  for (size_t a = 1; a < units; ++a) {
    layouts.push_back({a});
    for (size_t b = a + 1; b < units; ++b) layouts.push_back({a, b});
  }
  for (const auto& cuts : layouts)
    for (const int64_t pieces : {1, 2, 4, 100}) {
      SCOPED_TRACE(fmt::format("cut before units {}, {} pieces", fmt::join(cuts, " and "), pieces));
      const Result divided = run(config, batch, cuts, pieces);
      EXPECT_NEAR(divided.smoothed, whole.smoothed, 1e-10 * whole.smoothed);
      EXPECT_EQ(divided.correct, whole.correct);
      EXPECT_EQ(divided.tokens, whole.tokens);
      EXPECT_EQ(divided.clipped, whole.clipped);
      EXPECT_EQ(divided.clippable, whole.clippable);
      ASSERT_EQ(divided.gradients.size(), whole.gradients.size());
      for (const auto& [name, gradient] : whole.gradients)
        for (size_t i = 0; i < gradient.size(); ++i) ASSERT_NEAR(divided.gradients.at(name)[i], gradient[i], 1e-9) << name << " " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Gnmt, WavefrontCuts,
    testing::Values(WavefrontVariant{"plain", [](ModelConfig&) {}},
                    WavefrontVariant{"one_encoder_layer", [](ModelConfig& c) { c.encoder_layers = 1; }},
                    WavefrontVariant{"query_of_the_step_before", [](ModelConfig& c) { c.attention_query = AttentionQuery::previous; }},
                    WavefrontVariant{"readout_of_the_context",
                                     [](ModelConfig& c) { c.readout = Readout::context, c.attention = AttentionScore::normalized; }},
                    WavefrontVariant{"clipped", [](ModelConfig& c) { c.clip = 0.05, c.init_bound = 0.4; }},
                    WavefrontVariant{"one_table", [](ModelConfig& c) { c.tied_embeddings = TiedEmbeddings::all; }},
                    WavefrontVariant{"attention_at_the_top",
                                     [](ModelConfig& c) { c.attention_place = AttentionPlace::top, c.readout = Readout::context; }},
                    WavefrontVariant{"clipped_attention_at_the_top",
                                     [](ModelConfig& c) {
                                       c.attention_place = AttentionPlace::top, c.readout = Readout::context, c.encoder_layers = 1;
                                       c.clip = 0.05, c.init_bound = 0.4;
                                     }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace starling
