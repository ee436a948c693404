#include "measure/bench_translate.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "backend/limits.h"
#include "base/memory.h"
#include "base/task_progress.h"
#include "decode/quantization.h"
#include "decode/translator.h"

namespace starling {
namespace {

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

LoadedModel subject(const BenchTranslateOptions& o, const std::string& precision) {
  const auto files = real_file_system();
  if (!o.model.empty()) return load_model(*files, o.model, {precision, o.threads, o.device});
  ModelDescription description{
      "untrained " + o.config.preset, o.config, search_defaults(o.config.preset), {vocabulary_of(o), std::nullopt}};
  auto backend = make_backend(DeviceChoice{precision, o.threads, o.device});
  auto model = make_model(o.config, description.vocabularies.sizes(), *backend, 1, false);
  if (precision == "int8") quantize_all(*model);
  return {std::move(description), std::move(backend), std::move(model), precision};
}

SearchOptions search_of(const BenchTranslateOptions& o, const ModelDescription& d, int64_t beam) {
  SearchOptions search = o.search(d.search);
  search.beam = beam;
  if (o.output_length > 0) {
    search.fixed_length = true;
    search.max_length_factor = 0;
    search.max_length_offset = o.output_length;
  }
  if (o.output_length == 0 && o.model.empty()) {
    search.fixed_length = true;
    search.max_length_factor = 1;
    search.max_length_offset = 0;
  }
  return search;
}

// Processor time of this process, which no other program affects; on a card, elapsed time.
double computing_seconds(const Backend& backend) {
  return backend.memory().host() ? static_cast<double>(std::clock()) / CLOCKS_PER_SEC : steady_seconds();
}

// A worker's backend that records the shapes of its products.
class NotedBackend : public ProfiledBackend {
 public:
  explicit NotedBackend(std::unique_ptr<Backend> backend) : ProfiledBackend(*backend), own_(std::move(backend)) {}

 private:
  std::unique_ptr<Backend> own_;
};

// Returns the seconds that a translator's products take by themselves on one thread; `run` translates with the given backends.
template <class F>
double products_alone(Backend& backend, F run) {
  WorkerBackends noted;
  for (int i = 0; i < backend.threads(); ++i) noted.push_back(std::make_unique<NotedBackend>(backend.sibling()));
  run(noted);
  std::map<ProductShape, int64_t> calls;
  for (const auto& b : noted)
    for (const auto& [shape, count] : static_cast<const NotedBackend&>(*b).products) calls[shape] += count;
  double seconds = 0;
  for (const auto& [shape, count] : with_few_rows(calls)) seconds += product_seconds(backend, shape, 1) * static_cast<double>(count);
  return seconds;
}

// Runs two rounds with the same workers; the first one generates the code for every shape of matrix product.
void measure_batches(const BenchTranslateOptions& o, const LoadedModel& s, BenchTranslateRow& row) {
  const SearchOptions search = search_of(o, s.description, row.beam);
  Translator translator(*s.model, s.description.vocabularies, search, o.batch_sentences);
  translator.translate(o.sources);
  const int64_t before = translator.output_tokens();
  const double start = steady_seconds(), computed = computing_seconds(*s.backend);
  translator.translate(o.sources);
  const double seconds = steady_seconds() - start, computing = computing_seconds(*s.backend) - computed;
  row.tokens_per_second = static_cast<double>(translator.output_tokens() - before) / seconds;
  row.sentences_per_second = static_cast<double>(o.sources.size()) / seconds;
  const double alone = products_alone(*s.backend, [&](const WorkerBackends& noted) {
    Translator(*s.model, s.description.vocabularies, search, o.batch_sentences, 1000, &noted).translate(o.sources);
  });
  row.product_share = alone / computing;
}

void measure_single(const BenchTranslateOptions& o, const LoadedModel& s, Model& model, BenchTranslateRow& row) {
  const SearchOptions search = search_of(o, s.description, row.beam);
  Translator translator(model, s.description.vocabularies, search, 1);
  const size_t count = std::min<size_t>(o.sources.size(), static_cast<size_t>(o.latency_sentences));
  const auto sentence = [&](size_t i) -> const std::string& { return o.sources[i * o.sources.size() / count]; };
  Backend& backend = model.parameters().backend();
  std::vector<double> times;
  int64_t before = 0;
  double computing = 0;
  for (int round = 0; round < 2; ++round) {
    computing = -computing_seconds(backend);
    before = translator.output_tokens();
    times.clear();
    for (size_t i = 0; i < count; ++i) {
      const double start = steady_seconds();
      translator.translate({&sentence(i), 1});
      times.push_back(steady_seconds() - start);
    }
    computing += computing_seconds(backend);
  }
  double total = 0;
  for (double t : times) total += t;
  row.single_product_share = products_alone(backend,
                                            [&](const WorkerBackends& noted) {
                                              Translator one(model, s.description.vocabularies, search, 1, 1000, &noted);
                                              for (size_t i = 0; i < count; ++i) one.translate({&sentence(i), 1});
                                            }) /
                             computing;
  std::sort(times.begin(), times.end());
  row.single_tokens_per_second = static_cast<double>(translator.output_tokens() - before) / total;
  row.latency_p50_ms = 1e3 * times[count / 2];
  row.latency_p95_ms = 1e3 * times[std::min(count - 1, count * 95 / 100)];
}

}  // namespace

BenchTranslateResult bench_translate(const BenchTranslateOptions& o) {
  BenchTranslateResult result;
  result.sentences = static_cast<int64_t>(o.sources.size());
  const bool quantized = !o.model.empty() && describe_model(*real_file_system(), o.model).quantized;
  std::vector<std::vector<BenchTranslateRow>> rows(o.beams.size());
  for (const std::string& word : o.precisions) {
    const std::string precision = resolve({word, 1, o.device}, quantized).precision;
    const LoadedModel s = subject(o, precision);
    if (result.machine.empty()) result.machine = machine_text(*s.backend, precision == "int8");
    result.model = s.description.directory;
    const auto one_thread = s.backend->memory().host() ? make_backend(DeviceChoice{precision, 1, "cpu"}) : s.backend->sibling();
    const auto view = share_model(*s.model, *one_thread);
    for (size_t b = 0; b < o.beams.size(); ++b) {
      BenchTranslateRow row{.precision = precision, .beam = o.beams[b]};
      measure_batches(o, s, row);
      measure_single(o, s, *view, row);
      const BenchTranslateRow& first = rows[b].empty() ? row : rows[b].front();
      row.speedup = row.tokens_per_second / first.tokens_per_second;
      row.single_speedup = row.single_tokens_per_second / first.single_tokens_per_second;
      rows[b].push_back(row);
    }
  }
  for (const auto& of_beam : rows) result.rows.insert(result.rows.end(), of_beam.begin(), of_beam.end());
  result.peak_bytes = peak_memory().own;
  return result;
}

}  // namespace starling
