#include "measure/bench_report.h"

#include <algorithm>
#include <ostream>

#include "measure/bench.h"

namespace starling {
namespace {

using ReportJson = nlohmann::ordered_json;

template <class Result>
void add_limits(Findings& found, const Result& r) {
  const auto rate = [](double flops) { return flops > 0 ? fmt::format("{:.0f} GFLOP/s", flops / 1e9) : "not here"; };
  found.line("machine", r.machine, {{"machine", r.machine}});
  found.line("matrix products", fmt::format("f32 {}, bf16 {}", rate(r.f32_flops), rate(r.bf16_flops)),
             {{"f32_gflops", r.f32_flops / 1e9}, {"bf16_gflops", r.bf16_flops / 1e9}});
  found.line("memory", fmt::format("{:.1f} GB/s read and written", r.memory_rate / 1e9),
             {{"memory_gbytes_per_second", r.memory_rate / 1e9}});
}

// The ops of a step, those that take longest first, each beside the least that its products and bytes take here.
void add_profile(Findings& found, const BenchTrainResult& r) {
  const auto steps = static_cast<double>(r.profiled_steps);
  const double step = 1e3 * r.profiled_seconds / steps;
  ReportJson profile = ReportJson::object();
  std::vector<std::pair<double, std::string>> rows;
  double rest = step;
  for (const auto& [name, time] : r.profile) {
    const double ms = 1e3 * time.seconds / steps, least = 1e3 * floor_seconds(time, r) / steps;
    profile[name] = {{"ms_per_step", ms}, {"calls_per_step", static_cast<double>(time.calls) / steps}};
    if (least > 0) profile[name]["floor_ms"] = least;
    const std::string floor = least > 0 ? fmt::format("{:8.2f} ms", least) : fmt::format("{:>11}", "not counted");
    rows.emplace_back(ms, fmt::format("{}  {:<26}{:>4} calls", floor, name, time.calls / r.profiled_steps));
    rest -= ms;
  }
  std::sort(rows.rbegin(), rows.rend());
  rows.emplace_back(rest, fmt::format("{:>11}  everything else", ""));
  found.only_text("\n");
  found.line("profile of a step",
             fmt::format("{:.1f} ms; floor: its products or its bytes at the rates above, whichever takes longer", step),
             {{"profile", profile}});
  found.only_text("         took               floor\n");
  for (const auto& [ms, row] : rows) found.only_text(fmt::format("  {:8.2f} ms {:5.1f} %  {}\n", ms, 100 * ms / step, row));
}

}  // namespace

void Findings::print(std::ostream& out, const std::string& format) const { out << (format == "json" ? json_.dump(1) + "\n" : text_); }

Findings findings(const BenchTrainResult& r) {
  Findings found;
  add_limits(found, r);
  found.line("model", fmt::format("{:.2f} M parameters", static_cast<double>(r.parameters) / 1e6), {{"parameters", r.parameters}});
  found.line("throughput",
             fmt::format("{:.0f} target tokens/s, {:.0f} source tokens/s ({} steps)", r.target_tokens_per_second,
                         r.source_tokens_per_second, r.steps),
             {{"steps", r.steps},
              {"target_tokens_per_second", r.target_tokens_per_second},
              {"source_tokens_per_second", r.source_tokens_per_second}});
  found.line("step", fmt::format("{:.1f} ms, {:.1f} GFLOP of matrix products", 1e3 * r.step_seconds, r.product_flops / 1e9),
             {{"step_ms", 1e3 * r.step_seconds}});
  found.line("optimizer",
             fmt::format("{:.1f} ms, {:.1f} % of the step", 1e3 * r.optimizer_seconds, 100 * r.optimizer_seconds / r.step_seconds),
             {{"optimizer_ms", 1e3 * r.optimizer_seconds}}, r.optimizer_seconds > 0);
  found.line(
      "products alone",
      fmt::format("{:.1f} ms (of which attention {:.1f} ms, at the peak rate)", 1e3 * r.product_seconds, 1e3 * r.attention_product_seconds),
      {{"products_ms", 1e3 * r.product_seconds},
       {"attention_products_ms", 1e3 * r.attention_product_seconds},
       {"product_gflop_per_step", r.product_flops / 1e9}});
  found.line("efficiency", fmt::format("{:.3f}", r.efficiency), {{"efficiency", r.efficiency}});
  found.line("peak memory", fmt::format("{} MiB", r.peak_bytes >> 20), {{"peak_memory_mib", r.peak_bytes >> 20}});
  add_profile(found, r);
  return found;
}

Findings findings(const BenchTranslateResult& r, int64_t batch_sentences) {
  // The columns of the table behind beam and precision, as text and as JSON have them.
  struct Column {
    const char* key;
    int width, decimals;
    double BenchTranslateRow::*value;
  };
  using Row = BenchTranslateRow;
  static constexpr Column kColumns[] = {
      {"tokens_per_second", 9, 0, &Row::tokens_per_second},
      {"sentences_per_second", 12, 1, &Row::sentences_per_second},
      {"speedup", 9, 2, &Row::speedup},
      {"product_share", 9, 2, &Row::product_share},
      {"single_tokens_per_second", 9, 0, &Row::single_tokens_per_second},
      {"single_speedup", 9, 2, &Row::single_speedup},
      {"single_product_share", 9, 2, &Row::single_product_share},
      {"latency_p50_ms", 8, 1, &Row::latency_p50_ms},
      {"latency_p95_ms", 8, 1, &Row::latency_p95_ms},
  };
  Findings found(13);
  found.line("machine", r.machine, {{"machine", r.machine}});
  found.line("model", r.model, {{"model", r.model}});
  found.line("sentences", fmt::format("{}; batches of {}", r.sentences, batch_sentences), {{"sentences", r.sentences}});
  found.line("peak memory", fmt::format("{} MiB", r.peak_bytes >> 20), {{"peak_memory_mib", r.peak_bytes >> 20}});
  found.only_text(
      "\nproducts: the time of the same matrix products alone, over the processor time of translating\n\n"
      "                 batched                                    single, 1 thread\n"
      "beam  precision  tokens/s  sentences/s  speed-up  products  tokens/s  speed-up  products   p50 ms   p95 ms\n");
  ReportJson rows = ReportJson::array();
  for (const Row& row : r.rows) {
    ReportJson json{{"precision", row.precision}, {"beam", row.beam}};
    std::string text = fmt::format("{:4}  {:<9}", row.beam, row.precision);
    for (const Column& c : kColumns) {
      json[c.key] = row.*c.value;
      text += fmt::format(" {:{}.{}f}", row.*c.value, c.width, c.decimals);
    }
    rows.push_back(json);
    found.only_text(text + "\n");
  }
  found.only_json({{"rows", rows}});
  return found;
}

Findings findings(const BenchLimits& limits) {
  Findings found;
  add_limits(found, limits);
  return found;
}

}  // namespace starling
