#include "train/bench_translate.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "decode/translator.h"

namespace starling {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Vocabulary vocabulary_of(const BenchTranslateOptions& o) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("starling-bench-{}.spm", ::getpid())).string();
  VocabularyOptions options;
  options.size = o.vocabulary;
  size_t at = 0;
  train_vocabulary([&](std::string_view& line) { return at < o.sources.size() && (line = o.sources[at++], true); }, options, path);
  Vocabulary v = Vocabulary::load(path);
  std::filesystem::remove(path);
  return v;
}

LoadedModel subject(const BenchTranslateOptions& o, Backend& backend) {
  const auto files = real_file_system();
  if (!o.model.empty()) return load_model(*files, o.model, backend);
  ModelDescription description{
      "untrained " + o.config.preset, o.config, search_defaults(o.config.preset), {vocabulary_of(o), std::nullopt}};
  auto model = make_model(o.config, description.vocabularies.sizes(), backend, 1, false);
  return {std::move(description), std::move(model)};
}

SearchOptions search_of(const BenchTranslateOptions& o, const ModelDescription& d, int64_t beam) {
  SearchOptions search = d.search;
  search.beam = beam;
  if (o.coverage_penalty >= 0) search.coverage_penalty = o.coverage_penalty;
  if (o.prune_threshold >= 0) search.prune_threshold = o.prune_threshold;
  if (o.output_length > 0) search.fixed_length = true, search.max_length_factor = 0, search.max_length_offset = o.output_length;
  if (o.output_length == 0 && o.model.empty()) search.fixed_length = true, search.max_length_factor = 1, search.max_length_offset = 0;
  return search;
}

}  // namespace

BenchTranslateResult bench_translate(const BenchTranslateOptions& o) {
  BenchTranslateResult result;
  result.sentences = static_cast<int64_t>(o.sources.size());
  for (int64_t beam : o.beams) result.rows.push_back({.beam = beam});
  {
    const auto backend = backend_for_precision(o.precision, o.threads);
    const LoadedModel s = subject(o, *backend);
    result.machine = backend->describe();
    result.model = s.description.directory;
    for (BenchTranslateRow& row : result.rows) {
      const SearchOptions search = search_of(o, s.description, row.beam);
      for (int round = 0; round < 2; ++round) {  // the first makes every shape of matrix product
        Translator translator(*s.model, s.description.vocabularies, search, o.batch_sentences);
        const double start = now();
        translator.translate(o.sources);
        const double seconds = now() - start;
        row.tokens_per_second = static_cast<double>(translator.output_tokens()) / seconds;
        row.sentences_per_second = static_cast<double>(o.sources.size()) / seconds;
      }
    }
  }
  const auto backend = backend_for_precision(o.precision, 1);
  const LoadedModel s = subject(o, *backend);
  const size_t count = std::min<size_t>(o.sources.size(), static_cast<size_t>(o.latency_sentences));
  for (BenchTranslateRow& row : result.rows) {
    std::vector<double> times;
    int64_t tokens = 0;
    for (int round = 0; round < 2; ++round) {
      Translator translator(*s.model, s.description.vocabularies, search_of(o, s.description, row.beam), 1);
      times.clear();
      for (size_t i = 0; i < count; ++i) {
        const double start = now();
        translator.translate({&o.sources[i * o.sources.size() / count], 1});
        times.push_back(now() - start);
      }
      tokens = translator.output_tokens();
    }
    double total = 0;
    for (double t : times) total += t;
    std::sort(times.begin(), times.end());
    row.single_tokens_per_second = static_cast<double>(tokens) / total;
    row.latency_p50_ms = 1e3 * times[count / 2];
    row.latency_p95_ms = 1e3 * times[std::min(count - 1, count * 95 / 100)];
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  return result;
}

}  // namespace starling
