// The verb `starling bench`: compares training and decoding with the machine's own limits. Prints text for people or JSON for scripts.
#include "measure/bench.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/search_arguments.h"
#include "cli/verbs.h"
#include "data/line_reader.h"
#include "measure/bench_translate.h"
#include "measure/predict_step.h"

namespace starling {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const BenchTrainResult& r) {
  Json profile = Json::object();
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

void print(const BenchTrainResult& r) {
  std::cout << fmt::format("machine            {}\n", r.machine);
  std::cout << limits_text(r.f32_flops, r.bf16_flops, r.memory_rate);
  std::cout << fmt::format("model              {:.2f} M parameters\n", static_cast<double>(r.parameters) / 1e6);
  std::cout << fmt::format("throughput         {:.0f} target tokens/s, {:.0f} source tokens/s ({} steps)\n", r.target_tokens_per_second,
                           r.source_tokens_per_second, r.steps);
  std::cout << fmt::format("step               {:.1f} ms, {:.1f} GFLOP of matrix products\n", 1e3 * r.step_seconds, r.product_flops / 1e9);
  if (r.optimizer_seconds > 0)
    std::cout << fmt::format("optimizer          {:.1f} ms, {:.1f} % of the step\n", 1e3 * r.optimizer_seconds,
                             100 * r.optimizer_seconds / r.step_seconds);
  std::cout << fmt::format("products alone     {:.1f} ms (of which attention {:.1f} ms, at the peak rate)\n", 1e3 * r.product_seconds,
                           1e3 * r.attention_product_seconds);
  std::cout << fmt::format("efficiency         {:.3f}\n", r.efficiency);
  std::cout << fmt::format("peak memory        {} MiB\n\n", r.peak_bytes >> 20);
  std::vector<std::pair<double, std::string>> rows;
  double sum = 0;
  for (const auto& [name, time] : r.profile) {
    const double ms = 1e3 * time.seconds / static_cast<double>(r.profiled_steps);
    rows.emplace_back(ms, fmt::format("{:<24}{:>5} calls", name, time.calls / r.profiled_steps));
    sum += ms;
  }
  std::sort(rows.rbegin(), rows.rend());
  const double step = 1e3 * r.profiled_seconds / static_cast<double>(r.profiled_steps);
  std::cout << fmt::format("profile of a step  {:.1f} ms\n", step);
  for (const auto& [ms, name] : rows) std::cout << fmt::format("  {:8.2f} ms {:5.1f} %  {}\n", ms, 100 * ms / step, name);
  std::cout << fmt::format("  {:8.2f} ms {:5.1f} %  everything else\n", step - sum, 100 * (step - sum) / step);
}

void print(const PredictedStep& s, const std::string& format) {
  if (format == "json") {
    Json ops = Json::array();
    for (const PredictedOp& op : s.ops)
      ops.push_back({{"name", op.name},
                     {"calls", op.calls},
                     {"gflop", op.flops / 1e9},
                     {"mbytes", op.bytes / 1e6},
                     {"floor_ms", 1e3 * op.floor_seconds},
                     {"ms", 1e3 * op.seconds}});
    std::cout << Json{{"predicted_for", s.card},
                      {"step_ms", 1e3 * s.seconds},
                      {"floor_ms", 1e3 * s.floor_seconds},
                      {"target_tokens_per_second", s.target_tokens_per_second},
                      {"share_of_product_rate", s.flops / s.product_rate / s.seconds},
                      {"ops", ops}}
                     .dump(1)
              << "\n";
    return;
  }
  std::cout << fmt::format("predicted for      {}\n", s.card);
  std::cout << fmt::format("step               {:.1f} ms expected, {:.1f} ms at the card's rates (the floor)\n", 1e3 * s.seconds,
                           1e3 * s.floor_seconds);
  std::cout << fmt::format("throughput         {:.0f} target tokens/s, {:.2f} of the product rate\n\n", s.target_tokens_per_second,
                           s.flops / s.product_rate / s.seconds);
  std::cout << "  expected     floor      GFLOP        MB  calls\n";
  for (const PredictedOp& op : s.ops)
    std::cout << fmt::format("  {:5.2f} ms  {:5.2f} ms  {:9.1f}  {:8.1f}  {:5.0f}  {}\n", 1e3 * op.seconds, 1e3 * op.floor_seconds,
                             op.flops / 1e9, op.bytes / 1e6, op.calls, op.name);
}

struct BenchArguments {
  std::string preset = "transformer-base", precision = "auto", device = "auto", format = "text", model, input, optimizer = "adam", predict;
  int64_t vocabulary = 0, batch_tokens = 4000, train_sentences = 0, mean_length = 28, batch_sentences = 64, output_length = 0;
  std::vector<int64_t> beams{1, 4};
  std::vector<std::string> precisions{"auto"};
  double seconds = 10, clip = 0;
  SearchArguments search;
  int threads = 0;
};

int64_t vocabulary_of(const BenchArguments& a) {
  if (a.vocabulary > 0) return a.vocabulary;
  return model_preset(a.preset).width >= 512 ? 32000 : 8000;
}

void run_train_bench(const BenchArguments& a) {
  BenchTrainOptions o;
  o.model = model_preset(a.preset);
  o.optimizer = from_word<OptimizerKind>(a.optimizer);
  o.vocabulary = vocabulary_of(a);
  o.batch_tokens = a.batch_tokens;
  o.precision = a.precision;
  o.threads = a.threads;
  o.device = a.device;
  o.mean_length = a.mean_length;
  o.seconds = a.seconds;
  o.batch_sentences = a.train_sentences;
  if (!a.predict.empty()) return print(predict_step(o, a.predict), a.format);
  const BenchTrainResult result = bench_train(o);
  if (a.format == "json")
    std::cout << to_json(result).dump(1) << "\n";
  else
    print(result);
}

void run_translate_bench(const BenchArguments& a) {
  BenchTranslateOptions o;
  o.model = a.model;
  o.config = model_preset(a.preset);
  o.vocabulary = vocabulary_of(a);
  if (a.clip > 0) {
    o.config.clip = a.clip;
    o.config.tanh_output = false;
  }
  o.beams = a.beams, o.batch_sentences = a.batch_sentences, o.output_length = a.output_length, o.precisions = a.precisions,
  o.threads = a.threads, o.device = a.device, o.search = [&](const SearchOptions& s) { return a.search.apply(s); };
  LineReader reader(a.input);
  for (std::string_view line; reader.next(line);) o.sources.emplace_back(line);
  if (o.sources.empty()) throw DataError(fmt::format("{}: no sentences; name a file of source text with --input", a.input));
  const BenchTranslateResult r = bench_translate(o);
  if (a.format == "json") {
    Json rows = Json::array();
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
    std::cout << Json{{"machine", r.machine},
                      {"model", r.model},
                      {"sentences", r.sentences},
                      {"peak_memory_mib", r.peak_bytes >> 20},
                      {"rows", rows}}
                     .dump(1)
              << "\n";
    return;
  }
  std::cout << fmt::format("machine      {}\nmodel        {}\nsentences    {}; batches of {}\npeak memory  {} MiB\n\n", r.machine, r.model,
                           r.sentences, a.batch_sentences, r.peak_bytes >> 20);
  std::cout << "products: the time of the same matrix products alone, over the processor time of translating\n\n"
               "                 batched                                    single, 1 thread\n"
               "beam  precision  tokens/s  sentences/s  speed-up  products  tokens/s  speed-up  products   p50 ms   p95 ms\n";
  for (const auto& row : r.rows)
    std::cout << fmt::format("{:4}  {:<9} {:9.0f} {:12.1f} {:9.2f} {:9.2f} {:9.0f} {:9.2f} {:9.2f} {:8.1f} {:8.1f}\n", row.beam,
                             row.precision, row.tokens_per_second, row.sentences_per_second, row.speedup, row.product_share,
                             row.single_tokens_per_second, row.single_speedup, row.single_product_share, row.latency_p50_ms,
                             row.latency_p95_ms);
}

void run_limits_bench(const BenchArguments& a) {
  const BenchLimits l = bench_limits(a.device, a.precision, a.threads);
  if (a.format == "json")
    std::cout << Json{{"machine", l.machine},
                      {"f32_gflops", l.f32_flops / 1e9},
                      {"bf16_gflops", l.bf16_flops / 1e9},
                      {"memory_gbytes_per_second", l.memory_rate / 1e9}}
                     .dump(1)
              << "\n";
  else
    std::cout << fmt::format("machine            {}\n", l.machine) << limits_text(l.f32_flops, l.bf16_flops, l.memory_rate);
}

void add_machine(CLI::App* sub, BenchArguments& a) {
  add_device_option(*sub, a.device);
  add_threads_option(*sub, a.threads);
  sub->add_option("--format", a.format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
}
void add_precision(CLI::App* sub, BenchArguments& a) {
  sub->add_option("--precision", a.precision, "auto, bf16 or f32")->check(CLI::IsMember({"auto", "bf16", "f32"}))->capture_default_str();
}

void add_common(CLI::App* sub, BenchArguments& a) {
  sub->add_option("--preset", a.preset, "model preset")->capture_default_str();
  sub->add_option("--vocabulary", a.vocabulary, "joint pieces; 0 = 32000 for models of width 512 and more, else 8000")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  add_machine(sub, a);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "measure training, translating or preparing data against the machine's own limits");
  bench->require_subcommand(1);
  auto a = std::make_shared<BenchArguments>();
  auto* train = bench->add_subcommand("train", "throughput and efficiency of training on synthetic sentences, with a profile by operation");
  add_common(train, *a);
  add_precision(train, *a);
  train->add_option("--batch-tokens", a->batch_tokens, "target tokens a batch")->check(CLI::Range(16, 1000000))->capture_default_str();
  train->add_option("--batch-sentences", a->train_sentences, "sentences a batch, in place of --batch-tokens; 0 = off")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  train->add_option("--optimizer", a->optimizer, "adam or muon")->check(CLI::IsMember({"adam", "muon"}))->capture_default_str();
  train->add_option("--mean-length", a->mean_length, "mean sentence length, tokens")->check(CLI::Range(2, 100))->capture_default_str();
  train->add_option("--seconds", a->seconds, "of measured steps")->transform(duration_range(0.1, 3600))->capture_default_str();
  train
      ->add_option("--predict", a->predict,
                   "predicts how long an update takes on a card that this machine does not have; measures nothing (docs/guides/gpu.md)")
      ->check(CLI::IsMember({"h200", "h100", "a100"}));
  train->callback([a] { run_train_bench(*a); });
  auto* translate = bench->add_subcommand("translate", "speed of decoding: batches on all threads, single sentences on one");
  add_common(translate, *a);
  translate->add_option("--precision", a->precisions, fmt::format("side by side, separated by commas: {}", kPrecisionHelp))
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "bf16", "f32", "int8"}))
      ->capture_default_str();
  translate->add_option("-m,--model", a->model,
                        "trained model; default: untrained weights of the preset, translations as long as their sources");
  translate->add_option("-i,--input", a->input, "source text, one sentence a line")->required();
  translate->add_option("--beam", a->beams, "beam widths")->delimiter(',')->check(CLI::Range(1, 1024))->capture_default_str();
  translate->add_option("--clip", a->clip, "untrained gnmt: as trained for 8-bit inference, states within +-this and outputs o * c; 0 = no")
      ->check(real_range(0, 1000));
  a->search.add_to(*translate, {"beam"});
  translate->add_option("--batch-size", a->batch_sentences, "sentences a batch")->check(CLI::Range(1, 4096))->capture_default_str();
  translate->add_option("--output-length", a->output_length, "tokens that every translation has; 0 = as the model decides")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  translate->callback([a] { run_translate_bench(*a); });
  add_bench_distributed(*bench);
  add_bench_data(*bench);
  add_bench_serve(*bench);
  auto* limits = bench->add_subcommand("limits", "matrix products and memory alone: what the others are measured against");
  add_machine(limits, *a);
  add_precision(limits, *a);
  limits->callback([a] { run_limits_bench(*a); });
}

}  // namespace starling
