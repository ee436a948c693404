// The verb `starling bench`: compares training and decoding with the machine's own limits. Prints text for people or JSON for scripts.
#include "measure/bench.h"

#include <iostream>

#include "data/line_reader.h"
#include "laboratory/verbs.h"
#include "measure/bench_report.h"
#include "program/search_arguments.h"

namespace starling {
namespace {

struct BenchArguments {
  std::string preset = "transformer-base", precision = "auto", device = "auto", format = "text", model, input, optimizer = "adam";
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
  findings(bench_train(o)).print(std::cout, a.format);
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
  findings(bench_translate(o), a.batch_sentences).print(std::cout, a.format);
}

void run_limits_bench(const BenchArguments& a) { findings(bench_limits(a.device, a.precision, a.threads)).print(std::cout, a.format); }

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
  auto* bench = add_verb(app, kBench);
  bench->require_subcommand(1);
  auto a = std::make_shared<BenchArguments>();
  auto* train = bench->add_subcommand("train", "throughput and efficiency of training on synthetic sentences, with a profile by operation");
  add_common(train, *a);
  add_precision(train, *a);
  train->add_option("--batch-tokens", a->batch_tokens, "target tokens per batch")->check(CLI::Range(16, 1000000))->capture_default_str();
  train->add_option("--batch-sentences", a->train_sentences, "sentences per batch, in place of --batch-tokens; 0 = off")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  train->add_option("--optimizer", a->optimizer, "adam or muon")->check(CLI::IsMember({"adam", "muon"}))->capture_default_str();
  train->add_option("--mean-length", a->mean_length, "mean sentence length, tokens")->check(CLI::Range(2, 100))->capture_default_str();
  train->add_option("--seconds", a->seconds, "of measured steps")->transform(duration_range(0.1, 3600))->capture_default_str();
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
  translate->add_option("--batch-size", a->batch_sentences, "sentences per batch")->check(CLI::Range(1, 4096))->capture_default_str();
  translate->add_option("--output-length", a->output_length, "tokens that every translation has; 0 = as the model decides")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  translate->callback([a] { run_translate_bench(*a); });
  add_bench_distributed(*bench);
  add_bench_exchange(*bench);
  add_bench_vocabulary(*bench);
  auto* limits = bench->add_subcommand("limits", "matrix products and memory alone: what the others are measured against");
  add_machine(limits, *a);
  add_precision(limits, *a);
  limits->callback([a] { run_limits_bench(*a); });
}

}  // namespace starling
