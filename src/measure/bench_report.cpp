#include "measure/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

namespace starling {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson to_json(const BenchTrainResult& r) {
  OrderedJson profile = OrderedJson::object();
  for (const auto& [name, time] : r.profile)
    profile[name] = {{"ms_per_step", 1e3 * time.seconds / static_cast<double>(r.profiled_steps)},
                     {"calls_per_step", static_cast<double>(time.calls) / static_cast<double>(r.profiled_steps)}};
  return {{"machine", r.machine},
          {"f32_gflops", r.f32_flops / 1e9},
          {"bf16_gflops", r.bf16_flops / 1e9},
          {"memory_gbytes_per_second", r.memory_rate / 1e9},
          {"parameters", r.parameters},
          {"steps", r.steps},
          {"target_tokens_per_second", r.target_tokens_per_second},
          {"source_tokens_per_second", r.source_tokens_per_second},
          {"step_ms", 1e3 * r.step_seconds},
          {"optimizer_ms", 1e3 * r.optimizer_seconds},
          {"products_ms", 1e3 * r.product_seconds},
          {"attention_products_ms", 1e3 * r.attention_product_seconds},
          {"product_gflop_per_step", r.product_flops / 1e9},
          {"efficiency", r.efficiency},
          {"peak_memory_mib", r.peak_bytes >> 20},
          {"profile", profile}};
}

std::string limits_text(double f32_flops, double bf16_flops, double memory_rate) {
  const auto rate = [](double flops) { return flops > 0 ? fmt::format("{:.0f} GFLOP/s", flops / 1e9) : "not here"; };
  return fmt::format("matrix products    f32 {}, bf16 {}\nmemory             {:.1f} GB/s read and written\n", rate(f32_flops),
                     rate(bf16_flops), memory_rate / 1e9);
}

}  // namespace

void print(std::ostream& out, const BenchTrainResult& r, const std::string& format) {
  if (format == "json") {
    out << to_json(r).dump(1) << "\n";
    return;
  }
  out << fmt::format("machine            {}\n", r.machine);
  out << limits_text(r.f32_flops, r.bf16_flops, r.memory_rate);
  out << fmt::format("model              {:.2f} M parameters\n", static_cast<double>(r.parameters) / 1e6);
  out << fmt::format("throughput         {:.0f} target tokens/s, {:.0f} source tokens/s ({} steps)\n", r.target_tokens_per_second,
                     r.source_tokens_per_second, r.steps);
  out << fmt::format("step               {:.1f} ms, {:.1f} GFLOP of matrix products\n", 1e3 * r.step_seconds, r.product_flops / 1e9);
  if (r.optimizer_seconds > 0)
    out << fmt::format("optimizer          {:.1f} ms, {:.1f} % of the step\n", 1e3 * r.optimizer_seconds,
                       100 * r.optimizer_seconds / r.step_seconds);
  out << fmt::format("products alone     {:.1f} ms (of which attention {:.1f} ms, at the peak rate)\n", 1e3 * r.product_seconds,
                     1e3 * r.attention_product_seconds);
  out << fmt::format("efficiency         {:.3f}\n", r.efficiency);
  out << fmt::format("peak memory        {} MiB\n\n", r.peak_bytes >> 20);
  std::vector<std::pair<double, std::string>> rows;
  double sum = 0;
  for (const auto& [name, time] : r.profile) {
    const double ms = 1e3 * time.seconds / static_cast<double>(r.profiled_steps);
    rows.emplace_back(ms, fmt::format("{:<24}{:>5} calls", name, time.calls / r.profiled_steps));
    sum += ms;
  }
  std::sort(rows.rbegin(), rows.rend());
  const double step = 1e3 * r.profiled_seconds / static_cast<double>(r.profiled_steps);
  out << fmt::format("profile of a step  {:.1f} ms\n", step);
  for (const auto& [ms, name] : rows) out << fmt::format("  {:8.2f} ms {:5.1f} %  {}\n", ms, 100 * ms / step, name);
  out << fmt::format("  {:8.2f} ms {:5.1f} %  everything else\n", step - sum, 100 * (step - sum) / step);
}

void print(std::ostream& out, const BenchTranslateResult& r, int64_t batch_sentences, const std::string& format) {
  if (format == "json") {
    OrderedJson rows = OrderedJson::array();
    for (const auto& row : r.rows)
      rows.push_back({{"precision", row.precision},
                      {"beam", row.beam},
                      {"tokens_per_second", row.tokens_per_second},
                      {"sentences_per_second", row.sentences_per_second},
                      {"single_tokens_per_second", row.single_tokens_per_second},
                      {"product_share", row.product_share},
                      {"single_product_share", row.single_product_share},
                      {"latency_p50_ms", row.latency_p50_ms},
                      {"latency_p95_ms", row.latency_p95_ms},
                      {"speedup", row.speedup},
                      {"single_speedup", row.single_speedup}});
    out << OrderedJson{{"machine", r.machine},
                       {"model", r.model},
                       {"sentences", r.sentences},
                       {"peak_memory_mib", r.peak_bytes >> 20},
                       {"rows", rows}}
               .dump(1)
        << "\n";
    return;
  }
  out << fmt::format("machine      {}\nmodel        {}\nsentences    {}; batches of {}\npeak memory  {} MiB\n\n", r.machine, r.model,
                     r.sentences, batch_sentences, r.peak_bytes >> 20);
  out << "products: the time of the same matrix products alone, over the processor time of translating\n\n"
         "                 batched                                    single, 1 thread\n"
         "beam  precision  tokens/s  sentences/s  speed-up  products  tokens/s  speed-up  products   p50 ms   p95 ms\n";
  for (const auto& row : r.rows)
    out << fmt::format("{:4}  {:<9} {:9.0f} {:12.1f} {:9.2f} {:9.2f} {:9.0f} {:9.2f} {:9.2f} {:8.1f} {:8.1f}\n", row.beam, row.precision,
                       row.tokens_per_second, row.sentences_per_second, row.speedup, row.product_share, row.single_tokens_per_second,
                       row.single_speedup, row.single_product_share, row.latency_p50_ms, row.latency_p95_ms);
}

void print(std::ostream& out, const BenchLimits& l, const std::string& format) {
  if (format == "json")
    out << OrderedJson{{"machine", l.machine},
                       {"f32_gflops", l.f32_flops / 1e9},
                       {"bf16_gflops", l.bf16_flops / 1e9},
                       {"memory_gbytes_per_second", l.memory_rate / 1e9}}
               .dump(1)
        << "\n";
  else
    out << fmt::format("machine            {}\n", l.machine) << limits_text(l.f32_flops, l.bf16_flops, l.memory_rate);
}

}  // namespace starling
