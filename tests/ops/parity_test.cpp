// Every backend against the double-precision reference, on every case of the table and for every instruction set of this machine.
#include "tests/ops/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "backend/reference/reference.h"

namespace starling {
namespace {

TEST(Parity, CpuF32MatchesReference) { compare_with_reference("cpu:f32", 2e-5); }

TEST(Parity, OlderInstructionSetsMatchReference) {
  for (const char* isa : {"v2", "v3"}) {
    setenv("STARLING_ISA", isa, 1);
    compare_with_reference("cpu:f32", 2e-5);
  }
  unsetenv("STARLING_ISA");
}

// The table of positions grows as positions come; a row of it is whole or not there.
TEST(Parity, EveryPositionHasItsSinusoid) {
  const auto backend = make_backend("cpu:f32", 1);
  const int64_t D = 16;
  const Tensor table({1, D}, DType::f32, backend->memory()), y({1, D}, DType::f32, backend->memory());
  const std::vector<int32_t> token{0};
  for (int32_t position = 0; position < 700; ++position) {
    backend->embed(token, std::vector<int32_t>{position}, table, 1, {}, y);
    const std::vector<double> row = y.to_doubles();
    for (int64_t c = 0; c < D; ++c) ASSERT_NEAR(row[c], sinusoid(position, c, D), 1e-6) << "position " << position;
  }
}

TEST(Parity, CpuBf16MatchesReferenceToItsPrecision) {
  if (!cpu_has_bf16()) GTEST_SKIP() << "this CPU has no bf16 matrix products";
  compare_with_reference("cpu:bf16", 0.02);
}

TEST(Parity, ThreadCountDoesNotChangeTheResultOfRowWiseOps) {
  const auto one = make_backend("cpu:f32", 1), two = make_backend("cpu:f32", 2);
  for (const OpCase& op : op_cases()) {
    if (op.name.find("attention") == std::string::npos && op.name.find("embed") == std::string::npos &&
        op.name.find("loss") == std::string::npos && op.name.find("lstm") == std::string::npos &&
        op.name.find("clamp") == std::string::npos)
      continue;
    EXPECT_EQ(outputs_of(op, *one), outputs_of(op, *two)) << op.name;
  }
}

TEST(Parity, DropoutKeepsTheAskedForShareAndTheMean) {
  const auto backend = make_backend("cpu:f32", 1);
  CaseContext context(*backend, 1);
  const int64_t N = 512, D = 256;
  Tensor ones({N, D}, DType::f32, backend->memory()), y({N, D}, DType::f32, backend->memory());
  ones.from_doubles(std::vector<double>(N * D, 1.0));
  backend->add_dropout(Tensor(), ones, {0.3, 99, context.keys(N)}, y);
  double kept = 0, sum = 0;
  for (double v : y.to_doubles()) kept += v != 0, sum += v;
  EXPECT_NEAR(kept / (N * D), 0.7, 0.005);
  EXPECT_NEAR(sum / (N * D), 1.0, 0.01);
}

}  // namespace
}  // namespace starling
