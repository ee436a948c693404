// Every case of the op case table on every CPU backend. Times include making the case's inputs, so compare backends, not ops;
// `starling bench train` profiles the ops at the sizes of a real step.
#include <benchmark/benchmark.h>

#include "tests/ops/cases.h"

int main(int argc, char** argv) {
  using namespace starling;
  for (const std::string spec : {"reference", "cpu:f32", "cpu:bf16"}) {
    if (spec == "cpu:bf16" && !cpu_has_bf16()) continue;
    for (const OpCase& op : op_cases())
      benchmark::RegisterBenchmark((spec + "/" + op.name).c_str(), [spec, op](benchmark::State& state) {
        const auto backend = make_backend(spec);
        for (auto _ : state) {
          CaseContext context(*backend, 1);
          op.run(context);
        }
      });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
