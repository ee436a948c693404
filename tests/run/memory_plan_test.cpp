// The memory plan: activations are counted as passes take them, whole or divided, and micro-batches follow from what is left.
#include "run/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "base/text_files.h"
#include "comm/world.h"
#include "parallel/stages.h"
#include "replica/replica.h"
#include "settings/micro_batch.h"
#include "sim/simulate.h"
#include "tests/models/common.h"
#include "tests/run/word_run.h"

namespace starling {
namespace {

constexpr double kMebi = 1 << 20;
constexpr int64_t kWords = 300;
constexpr ModelVocabulary kPlanVocabulary{kWords, kWords};

Config planned_config(const std::string& preset) {
  Config c;
  c.model = model_preset(preset);
  c.model.feed_forward = 128 * c.model.feed_forward / c.model.width;
  c.model.width = 128, c.model.encoder_layers = c.model.decoder_layers = 2;
  return c;
}

// Bytes of the activations of each rank of one replica, which really computes.
std::vector<double> taken(const Config& config, const std::string& spec, const Batch& batch, int64_t micro_tokens) {
  Scenario scenario;
  scenario.ranks = config.parallel.ranks();
  std::vector<double> bytes(static_cast<size_t>(scenario.ranks));
  simulate(scenario, [&](World& world) {
    const auto backend = make_backend(spec, 1);
    const Mesh mesh(*world.comm, config.parallel);
    const auto model = make_model(config.model, kPlanVocabulary, *backend, 3, true, part_of(mesh, config.model, kPlanVocabulary, *backend));
    StepOptions options;
    options.r_drop = config.train.r_drop;
    Replica replica(*model, options, world, mesh);
    replica.step(micro_batches(batch, micro_tokens, config.parallel, replica.cost()));
    bytes[static_cast<size_t>(world.comm->rank())] = static_cast<double>(replica.activation_bytes());
  });
  return bytes;
}

void expect_counted(const Config& config, const std::string& spec, const Batch& batch, int64_t micro_tokens) {
  const std::vector<double> bytes = taken(config, spec, batch, micro_tokens);
  const auto backend = make_backend(spec, 1);
  for (size_t r = 0; r < bytes.size(); ++r) {
    const double counted = activation_bytes(config, kPlanVocabulary, *backend, static_cast<int>(r), batch, micro_tokens);
    EXPECT_GT(bytes[r], 0.2 * kMebi);
    EXPECT_NEAR(counted / bytes[r], 1, 0.02) << config.model.preset << " " << spec << " rank " << r;
  }
}

TEST(MemoryPlan, CountsTheActivationsThatPassesTake) {
  const Batch batch = random_batch(60, kWords, 5, 30);
  for (const char* preset : {"transformer-tiny", "gnmt-small"})
    for (const char* spec : {"cpu:f32", "cpu:bf16"}) {
      expect_counted(planned_config(preset), spec, batch, 4096);
      expect_counted(planned_config(preset), spec, batch, 300);
    }
  Config twice = planned_config("transformer-tiny");
  twice.train.r_drop = 1;
  expect_counted(twice, "cpu:bf16", batch, 300);
  EXPECT_EQ(activation_bytes(twice, kPlanVocabulary, *make_backend("cpu:f32", 1), 0, Batch(), 300), 0);
}

TEST(MemoryPlan, CountsThoseOfDividedModels) {
  const Batch batch = random_batch(60, kWords, 5, 30);
  for (const char* preset : {"transformer-tiny", "gnmt-small"}) {
    Config stages = planned_config(preset), shards = stages;
    stages.parallel.pipeline = 2;
    expect_counted(stages, "cpu:bf16", batch, 200);
    shards.parallel.tensor = 2;
    expect_counted(shards, "cpu:f32", batch, 400);
    stages.parallel.tensor = 2;
    expect_counted(stages, "cpu:bf16", batch, 400);
  }
  // With these, other ranks' sentences and pieces arrive while a rank computes; one that counts alone has them at once.
  Config pieces = planned_config("gnmt-small");
  pieces.parallel.pipeline = 2;
  pieces.parallel.time_pieces = 3;
  expect_counted(pieces, "cpu:f32", batch, 400);
  pieces.parallel.time_pieces = 0;
  pieces.parallel.hybrid = true;
  pieces.model.attention_place = AttentionPlace::top, pieces.model.readout = Readout::context;
  expect_counted(pieces, "cpu:f32", batch, 400);
}

TEST(MemoryPlan, ATenthOfWhatIsUsableIsLeft) {
  MemoryPlan plan;
  plan.kinds = {{"parameters", 100 * kMebi, 100 * kMebi}, {"gradients", 100 * kMebi, 40 * kMebi}, {"activations", 300 * kMebi}};
  plan.resident = 160 * kMebi;
  plan.usable = {static_cast<int64_t>(401 * kMebi), "the cgroup's limit of 561 MiB"};
  EXPECT_EQ(plan.to_come(), 360 * kMebi);
  EXPECT_EQ(plan.peak(), 520 * kMebi);
  EXPECT_TRUE(plan.fits());
  plan.sharing = 2;
  EXPECT_FALSE(plan.fits());
  plan.usable.bytes *= 2;
  EXPECT_TRUE(plan.fits());
  plan.usable.bytes -= static_cast<int64_t>(3 * kMebi);
  EXPECT_FALSE(plan.fits());
  // Against a limit on addresses counts what is not reserved yet, and what threads reserve; it is each process's own.
  plan.kinds[0].exists = plan.kinds[1].exists = true;
  plan.usable = {static_cast<int64_t>(441 * kMebi), "", true};
  EXPECT_TRUE(plan.fits());
  plan.usable.bytes -= static_cast<int64_t>(2 * kMebi);
  EXPECT_FALSE(plan.fits());
  plan.usable = {static_cast<int64_t>(799 * kMebi), "the cgroup's limit of 561 MiB"};
  EXPECT_EQ(plan.text(),
            "program and text 20, parameters 100, gradients 100, activations 300 MiB; together 520 MiB, of which 360 MiB are still to be "
            "taken by each of 2 ranks here; usable is 799 MiB, which is what the cgroup's limit of 561 MiB leaves");
}

// Searches have shapes of their own, for which oneDNN generates code.
class PlannedRun : public WordRunTest {};
TEST_F(PlannedRun, CountsTheCodeOfValidationsThatSearch) {
  const auto code = [&](const std::string& run, const std::string& metrics) {
    EXPECT_EQ(run_training(config(run, {{"valid.metrics", metrics}, {"train.max-steps", "1"}})), 0);
    const std::string events = read_text_file(path(run + "/events.jsonl"));
    return nlohmann::json::parse(events.substr(0, events.find('\n')))["memory_mib"]["generated code"].get<double>();
  };
  EXPECT_EQ(code("probabilities", "cross-entropy"), 16);
  EXPECT_EQ(code("translations", "cross-entropy,bleu"), 28);
}

// A real run passes its largest batch before the first update, a simulated one does not: what comes out is the same.
class PassedFirst : public WordRunTest {};
TEST_F(PassedFirst, TheLargestBatchChangesNothing) {
  for (const std::string r_drop : {"0", "1"}) {
    const std::string run = "with-" + r_drop;
    EXPECT_EQ(run_training(config(run, {{"train.r-drop", r_drop}})), 0);
    train_simulated(config(run + "-simulated", {{"train.r-drop", r_drop}}), 1);
    for (const char* file : {"model.safetensors", "rank-0.safetensors"}) {
      const std::string name = "/checkpoints/step-00000004/" + std::string(file);
      EXPECT_EQ(sha256_file(*real_file_system(), path(run + name)), sha256_file(*real_file_system(), path(run + "-simulated" + name)))
          << "R-Drop " << r_drop << ", " << file;
    }
  }
}

}  // namespace
}  // namespace starling
