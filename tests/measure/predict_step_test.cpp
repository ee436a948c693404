// Operations and bytes of an update that is only counted, beside what the shapes of its model say.
#include "bench/predict_step.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace starling {
namespace {

PredictedOp op_of(const PredictedStep& step, const std::string& name) {
  for (const PredictedOp& op : step.ops)
    if (op.name == name) return op;
  ADD_FAILURE() << "no " << name;
  return {};
}

// What is predicted is the update that is measured: the same ops, as often, with the same products.
TEST(PredictStep, IsTheUpdateThatBenchTrainMeasures) {
  BenchTrainOptions o;
  o.model = model_preset("transformer-tiny");
  o.vocabulary = 400;
  o.batch_tokens = 200;
  o.precision = "f32", o.device = "cpu", o.threads = 1, o.seconds = 0.1;
  const PredictedStep predicted = predict_step(o, "h100");
  const BenchTrainResult measured = bench_train(o);
  const auto steps = static_cast<double>(measured.profiled_steps);
  std::set<std::string> names;
  for (const PredictedOp& op : predicted.ops) {
    if (op.name == "pack" || op.name == "loss_sums") continue;  // a processor packs both ways
    names.insert(op.name);
    ASSERT_TRUE(measured.profile.contains(op.name)) << op.name;
    const OpTime& there = measured.profile.at(op.name);
    EXPECT_DOUBLE_EQ(op.calls, static_cast<double>(there.calls) / steps) << op.name;
    EXPECT_NEAR(op.flops, there.flops / steps, 1e-9 * op.flops) << op.name;
  }
  for (const auto& [name, time] : measured.profile)
    EXPECT_TRUE(names.contains(name) || name == "pack" || name == "loss_sums") << name << " is not predicted";
}

TEST(PredictStep, CountsWhatTheShapesSay) {
  BenchTrainOptions o;
  o.model = model_preset("transformer-tiny");
  o.vocabulary = 800;
  o.batch_sentences = 16;
  o.even = true;
  o.mean_length = 20;
  const PredictedStep step = predict_step(o, "h200");
  const double width = static_cast<double>(o.model.width), hidden = static_cast<double>(o.model.feed_forward);
  const double parameters = [&] {
    const double attention = 4 * width * (width + 1), forward = width * hidden * 2 + width + hidden, norm = 2 * width;
    const double encoder = attention + forward + 2 * norm, decoder = 2 * attention + forward + 3 * norm;
    return static_cast<double>(o.model.encoder_layers) * encoder + static_cast<double>(o.model.decoder_layers) * decoder + 2 * norm +
           static_cast<double>(o.vocabulary) * width;
  }();
  // Values and both moments are read and written, the gradient is read: seven floats a parameter.
  EXPECT_NEAR(op_of(step, "adam").bytes, 7 * 4 * parameters, 0.01 * 7 * 4 * parameters);
  EXPECT_NEAR(op_of(step, "sum_of_squares").bytes, 4 * parameters, 0.01 * 4 * parameters);
  EXPECT_EQ(op_of(step, "adam").calls, 1);
  // Each weight takes part in three products; the output's, too. Rows are padded, by less than a fifth here.
  const double rows = 16 * 20;
  const auto per_row = [&](double source, double target) {
    const double attention = 4 * width * width, forward = 2 * width * hidden;
    return 2 * 3 *
           (source * static_cast<double>(o.model.encoder_layers) * (attention + forward) +
            static_cast<double>(o.model.decoder_layers) *
                (target * (attention + forward + 2 * width * width) + source * 2 * width * width) +
            target * static_cast<double>(o.vocabulary) * width);
  };
  const double products = op_of(step, "linear").flops + op_of(step, "weight_gradient").flops;
  EXPECT_GE(products, per_row(rows, rows));
  EXPECT_LE(products, 1.25 * per_row(rows, rows));
  // Slower cards have the same work.
  const PredictedStep slower = predict_step(o, "a100");
  EXPECT_EQ(slower.flops, step.flops);
  EXPECT_GT(slower.floor_seconds, step.floor_seconds);
  EXPECT_GE(step.seconds, step.floor_seconds);
  EXPECT_THROW(predict_step(o, "h300"), ConfigError);
}

}  // namespace
}  // namespace starling
