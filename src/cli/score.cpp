// The verb `starling score`: log-probabilities of given translations.
#include <cmath>
#include <iostream>

#include "cli/verbs.h"
#include "data/batches.h"
#include "decode/model_directory.h"

namespace starling {
namespace {

struct ScoreArguments {
  std::string model, source, target, tsv, precision = "f32";
  int64_t batch_tokens = 4000, max_length = 2000;
  int threads = 0;
  bool per_token = false;
};

// Weights that are finite can still be too large to compute with.
void require_numbers(const std::vector<double>& log_probability, const std::string& path, int64_t first_line) {
  for (size_t i = 0; i < log_probability.size(); ++i)
    if (!std::isfinite(log_probability[i]))
      throw DataError(fmt::format(
          "{}:{}: the model gives this pair the log-probability {}: its weights are too large to compute with; use another checkpoint",
          path, first_line + static_cast<int64_t>(i), log_probability[i]));
}

void run_score(const ScoreArguments& a) {
  const auto files = real_file_system();
  const LoadedModel loaded = load_model(*files, a.model, a.precision, a.threads);
  const Vocabularies& vocabularies = loaded.description.vocabularies;
  const CorpusFiles corpus{a.source, a.target, a.tsv, 1};
  if (a.tsv.empty() ? a.source.empty() || a.target.empty() : !a.source.empty() || !a.target.empty())
    throw ConfigError("name either --source and --target, or --tsv");
  PairReader reader(corpus);
  std::string_view source, target;
  Arena arena;
  bool more = true;
  while (more) {
    const int64_t first_line = reader.line_number() + 1;
    std::vector<EncodedPair> pairs;  // a window at a time, so that any size of file works
    while (pairs.size() < 4096 && (more = reader.next(source, target))) {
      pairs.push_back(encode_pair(vocabularies.source(), vocabularies.target(), source, target));
      const size_t length = std::max(pairs.back().source.size(), pairs.back().target.size());
      if (length > static_cast<size_t>(a.max_length))
        throw DataError(fmt::format("{}:{}: a sentence of {} tokens; split it, or raise --max-length (now {})",
                                    a.tsv.empty() ? a.source : a.tsv, reader.line_number(), length, a.max_length));
    }
    std::vector<double> log_probability(pairs.size(), 0.0);
    for (const Batch& batch : pairs.empty() ? std::vector<Batch>() : make_batches(pairs, a.batch_tokens)) {
      arena.release({});
      Tape tape(loaded.model->parameters(), arena, false);
      std::vector<float> nll;
      loaded.model->loss(tape, batch, 0.0, &nll);
      for (int64_t b = 0; b < batch.target.sentences(); ++b)
        for (int32_t i = batch.target.offsets[b]; i < batch.target.offsets[b + 1]; ++i) log_probability[batch.sample_ids[b]] -= nll[i];
    }
    require_numbers(log_probability, a.tsv.empty() ? a.source : a.tsv, first_line);
    for (size_t i = 0; i < pairs.size(); ++i)
      std::cout << fmt::format("{:.6f}\n",
                               a.per_token ? log_probability[i] / static_cast<double>(pairs[i].target.size()) : log_probability[i]);
  }
  std::cout.flush();
}

}  // namespace

void add_score(CLI::App& app) {
  auto* sub = app.add_subcommand("score", "log-probabilities (nats) of given translations, one a line");
  auto a = std::make_shared<ScoreArguments>();
  sub->add_option("-m,--model", a->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("--source", a->source, "source text, one sentence a line (plain, .gz, .zst)");
  sub->add_option("--target", a->target, "its translation");
  sub->add_option("--tsv", a->tsv, "in place of both: one file, source and target separated by a tab");
  sub->add_flag("--per-token", a->per_token, "divide by the number of target tokens, end of sentence included");
  sub->add_option("--max-length", a->max_length, "longer sentences are an error, tokens a side")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  sub->add_option("--batch-tokens", a->batch_tokens, "target tokens computed at once")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_precision_option(*sub, a->precision);
  add_threads_option(*sub, a->threads);
  sub->callback([a] { run_score(*a); });
}

}  // namespace starling
