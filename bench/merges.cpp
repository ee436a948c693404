// Merges of periodic strategies: displacements and outer steps of a model of 60 million parameters, on one thread and on all, beside what
// the same threads copy. Milliseconds, best of several rounds in which all are measured in turn. Usage: bench_merges [THREADS]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace starling {
namespace {

constexpr int64_t kParameters = 60'000'000;
constexpr int kRounds = 7;

double milliseconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Measured {
  std::string name;
  double passes;  // over the flat buffer, read or written
  std::function<void(FlatOps&)> body;
};

void measure(int threads) {
  const auto one = make_host_flat_ops(1), all = make_host_flat_ops(threads);
  std::vector<Tensor> t;
  for (int i = 0; i < 5; ++i) {
    t.emplace_back(Shape{kParameters}, DType::f32);
    std::fill_n(t.back().data<float>(), kParameters, 1e-3f * static_cast<float>(i + 1));
  }
  const Tensor &value = t[0], &merged = t[1], &step = t[2], &displacement = t[3], &sent = t[4];
  const std::vector<Measured> ops = {
      {"copy", 2, [&](FlatOps& f) { f.scale(value, 1, sent, Write::overwrite); }},
      {"displacement", 3,
       [&](FlatOps& f) { f.displacement({.value = value, .merged = merged, .step = {}, .displacement = displacement, .sent = {}}); }},
      {"displacement, Nesterov", 4,
       [&](FlatOps& f) {
         f.displacement({.value = value, .merged = merged, .step = step, .momentum = 0.9, .displacement = displacement, .sent = {}});
       }},
      {"outer step", 5,
       [&](FlatOps& f) { f.outer_step({.sum = displacement, .value = value, .merged = merged, .step = {}, .sent = {}, .rate = 0.25}); }},
      {"outer step, Nesterov", 7,
       [&](FlatOps& f) {
         f.outer_step({.sum = displacement,
                       .value = value,
                       .merged = merged,
                       .step = step,
                       .sent = {},
                       .rate = 0.25,
                       .momentum = 0.9,
                       .ahead = 0.9});
       }},
      {"outer step, late", 8,
       [&](FlatOps& f) {
         f.outer_step({.sum = displacement,
                       .value = value,
                       .merged = merged,
                       .step = step,
                       .sent = sent,
                       .rate = 0.25,
                       .momentum = 0.9,
                       .ahead = 0.9,
                       .corrected = true});
       }},
  };
  std::vector<std::array<double, 2>> best(ops.size(), {1e30, 1e30});
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < ops.size(); ++i) {
      best[i][0] = std::min(best[i][0], milliseconds([&] { ops[i].body(*one); }));
      best[i][1] = std::min(best[i][1], milliseconds([&] { ops[i].body(*all); }));
    }
  fmt::print("{:<24} {:>10} {:>12} {:>8} {:>12}\n", "", "1 thread", fmt::format("{} threads", threads), "ratio", "GB/s");
  for (size_t i = 0; i < ops.size(); ++i)
    fmt::print("{:<24} {:>7.1f} ms {:>9.1f} ms {:>8.2f} {:>12.1f}\n", ops[i].name, best[i][0], best[i][1], best[i][0] / best[i][1],
               ops[i].passes * 4 * kParameters / best[i][1] / 1e6);
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) { starling::measure(argc > 1 ? std::atoi(argv[1]) : starling::make_backend("cpu:f32")->threads()); }
