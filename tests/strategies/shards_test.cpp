// Models whose layers and vocabularies are in shards, against the same models whole.
#include <gtest/gtest.h>

#include "tests/strategies/divided.h"

namespace starling {
namespace {

struct Layout {
  int tensor, pipeline, replicas;
  int ranks() const { return tensor * pipeline * replicas; }
};
void PrintTo(const Layout& l, std::ostream* out) { *out << l.tensor << " shards, " << l.pipeline << " stages, " << l.replicas << " replicas"; }

class InShards : public testing::TestWithParam<std::string> {
 protected:
  static TrainingRun run() {
    TrainingRun run;
    run.model = GetParam().starts_with("gnmt") ? "gnmt-small" : "transformer-tiny";
    run.tied = GetParam().substr(GetParam().rfind('_') + 1);
    run.layers = 2, run.steps = 5, run.heads = 4;
    return run;
  }
};

TEST_P(InShards, LosesNothingAgainstOneWorker) {
  const TrainingTrace one = alone(run());
  for (const Layout& layout : {Layout{2, 1, 1}, {4, 1, 1}, {2, 1, 2}, {2, 2, 1}, {4, 2, 1}, {2, 3, 2}}) {
    TrainingRun divided = run();
    divided.parallel.tensor = layout.tensor, divided.parallel.pipeline = layout.pipeline;
    const auto traces = simulated(divided, layout.ranks());
    for (const TrainingTrace& trace : traces) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-8) << testing::PrintToString(layout);
      EXPECT_EQ(trace.tokens, one.tokens);
    }
    expect_whole(traces, layout.tensor * layout.pipeline, one);
  }
}

TEST_P(InShards, InSinglePrecisionStaysNear) {
  TrainingRun single = run();
  single.backend = "cpu:f32", single.steps = 20, single.rate = 1e-3;
  const TrainingTrace one = alone(single);
  for (const Layout& layout : {Layout{2, 1, 1}, {2, 2, 2}, {4, 1, 2}}) {
    single.parallel.tensor = layout.tensor, single.parallel.pipeline = layout.pipeline;
    for (const TrainingTrace& trace : simulated(single, layout.ranks())) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-5) << testing::PrintToString(layout);
      EXPECT_LT(worst(trace.norms, one.norms), 1e-4) << testing::PrintToString(layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, InShards, testing::Values("transformer_all", "transformer_decoder", "transformer_none"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace starling
