// What benchmarks print: each figure once, as text and as JSON.
#include "measure/bench_report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "measure/bench.h"

namespace starling {
namespace {

std::string printed(const Findings& found, const std::string& format) {
  std::ostringstream out;
  found.print(out, format);
  return out.str();
}

TEST(Findings, ALineThatIsNotShownIsInTheJson) {
  Findings found(6);
  found.line("one", "1 ms", {{"one_ms", 1.5}});
  found.line("two", "2 ms", {{"two_ms", 2}, {"of", "three"}}, false);
  found.only_text("end\n");
  found.only_json({{"rest", std::vector<double>{1, 2}}});
  EXPECT_EQ(printed(found, "text"), "one   1 ms\nend\n");
  const auto json = nlohmann::json::parse(printed(found, "json"));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"one_ms": 1.5, "two_ms": 2, "of": "three", "rest": [1, 2]})"));
}

TEST(Findings, OfTrainingAreTheSameInBothForms) {
  BenchTrainResult r;
  r.machine = "cpu, 2 threads";
  r.f32_flops = 50e9, r.memory_rate = 2.5e9, r.activation_flops = 50e9;
  r.parameters = 1'950'000, r.steps = 7, r.target_tokens_per_second = 1234, r.source_tokens_per_second = 1200;
  r.step_seconds = 0.02, r.optimizer_seconds = 0.005, r.product_seconds = 0.01, r.product_flops = 3e9, r.efficiency = 0.5;
  r.peak_bytes = int64_t{100} << 20;
  r.profiled_steps = 2, r.profiled_seconds = 0.05;
  r.profile["linear"] = {.seconds = 0.03, .calls = 20, .bytes = 1e7, .flops = 1e9};  // 20 ms, and 4 ms for the bytes
  r.profile["adam"] = {.seconds = 0.01, .calls = 2, .bytes = 2e7};
  r.profile["loss_sums"] = {.seconds = 0.002, .calls = 2};
  EXPECT_EQ(printed(findings(r), "text"),
            "machine            cpu, 2 threads\n"
            "matrix products    f32 50 GFLOP/s, bf16 not here\n"
            "memory             2.5 GB/s read and written\n"
            "model              1.95 M parameters\n"
            "throughput         1234 target tokens/s, 1200 source tokens/s (7 steps)\n"
            "step               20.0 ms, 3.0 GFLOP of matrix products\n"
            "optimizer          5.0 ms, 25.0 % of the step\n"
            "products alone     10.0 ms (of which attention 0.0 ms, at the peak rate)\n"
            "efficiency         0.500\n"
            "peak memory        100 MiB\n\n"
            "profile of a step  25.0 ms; floor: its products or its bytes at the rates above, whichever takes longer\n"
            "         took               floor\n"
            "     15.00 ms  60.0 %     10.00 ms  linear                      10 calls\n"
            "      5.00 ms  20.0 %      4.00 ms  adam                         1 calls\n"
            "      1.00 ms   4.0 %  not counted  loss_sums                    1 calls\n"
            "      4.00 ms  16.0 %               everything else\n");
  const auto json = nlohmann::json::parse(printed(findings(r), "json"));
  EXPECT_EQ(json["bf16_gflops"], 0);
  EXPECT_EQ(json["step_ms"], 20);
  EXPECT_EQ(json["profile"]["linear"]["calls_per_step"], 10);
  EXPECT_EQ(json["profile"]["adam"]["ms_per_step"], 5);
  EXPECT_NEAR(json["profile"]["linear"]["floor_ms"], 10, 1e-9);
  EXPECT_FALSE(json["profile"]["loss_sums"].contains("floor_ms"));
  EXPECT_EQ(json.size(), 16u);
}

}  // namespace
}  // namespace starling
