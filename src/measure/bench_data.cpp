#include "measure/bench_data.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/affinity.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/corpus.h"
#include "data/token_store.h"
#include "data/tokenize.h"
#include "storage/outputs.h"
#include "text/made_up_text.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr size_t kAlone = 100'000;   // lines that SentencePiece encodes alone
constexpr int64_t kProbe = 20'000;   // lines of each file on which tokens are counted
constexpr size_t kBuffer = 1 << 20;  // bytes written at once

class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

 private:
  double start_ = steady_seconds();
};

void make_text(const BenchDataOptions& o, const DataOptions& data, const Say& say) {
  const CorpusFiles& files = data.train.front();
  TaskProgress progress("text", say);
  const MadeUpText text(o.seed);
  std::ofstream source(files.source + ".new", std::ios::binary), target(files.target + ".new", std::ios::binary);
  std::string source_line, target_line, source_buffer, target_buffer;
  const auto write = [](std::ofstream& file, std::string& buffer, const std::string& path) {
    file.write(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (!file) throw IoError(fmt::format("{}: cannot be written; is the disk full?", path));
    buffer.clear();
  };
  for (int64_t i = 0; i < o.pairs; ++i) {
    text.pair(static_cast<uint64_t>(i), source_line, target_line);
    source_buffer.append(source_line).append("\n");
    target_buffer.append(target_line).append("\n");
    if (source_buffer.size() < kBuffer && i + 1 < o.pairs) continue;
    write(source, source_buffer, files.source);
    write(target, target_buffer, files.target);
    if (progress.due()) progress.tell(static_cast<double>(i) / static_cast<double>(o.pairs), fmt::format("{} pairs written", i));
  }
  source.close();
  target.close();
  if (!source || !target) throw IoError(fmt::format("{}: cannot be written; is the disk full?", files.source));
  std::filesystem::rename(files.target + ".new", files.target);
  std::filesystem::rename(files.source + ".new", files.source);
}

std::vector<std::string> first_lines(const DataOptions& data, size_t count) {
  std::vector<std::string> lines;
  CorpusLines next(data, Side::both);
  for (std::string_view line; lines.size() < count && next(line);) lines.emplace_back(line);
  return lines;
}

double encode_alone(const Vocabulary& vocabulary, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size() / 10; ++i) vocabulary.encode(lines[i]);  // warms the caches
  const Stopwatch watch;
  for (const std::string& line : lines) vocabulary.encode(line);
  return static_cast<double>(lines.size()) / watch.seconds();
}

// Existing files are reused, so the options must match them.
void require_size(FileSystem& files, const BenchDataOptions& o, const std::string& path) {
  const auto made = files.exists(path) ? vocabulary_format::settings(Vocabulary::load(path).bytes()) : std::nullopt;
  if (made && made->asked_size > 0 && made->asked_size != o.vocabulary)
    throw ConfigError(fmt::format("{} has a vocabulary of {} pieces; ask for --vocabulary {}, or name another directory", o.output,
                                  made->asked_size, made->asked_size));
}

}  // namespace

BenchDataResult bench_data(const BenchDataOptions& options, const Say& say) {
  BenchDataOptions o = options;
  if (o.threads == 0) o.threads = usable_cores();
  const auto files = real_file_system();
  refuse_run_files({"--output", o.output});
  if (is_run_directory(o.output) || is_race_directory(o.output))
    throw ConfigError(
        fmt::format("--output {}: belongs to a run or a race, whose tokens would be removed; name another directory", o.output));
  files->make_directories(o.output);
  const std::string path = join_path(o.output, "vocab.spm"), store_path = join_path(o.output, "data");
  require_size(*files, o, path);
  DataOptions data;
  data.train = {{join_path(o.output, "train.source"), join_path(o.output, "train.target"), "", 1}};
  BenchDataResult r;
  r.threads = o.threads;
  if (!files->exists(data.train.front().source)) {
    const Stopwatch watch;
    make_text(o, data, say);
    r.make_seconds = watch.seconds();
  }
  r.bytes = static_cast<int64_t>(corpus_bytes(data));
  {
    const Stopwatch watch;
    r.pairs = check_corpora(data, 1, say).front();
    r.read_lines = 2 * static_cast<double>(r.pairs) / watch.seconds();
  }
  if (r.pairs != o.pairs)
    throw ConfigError(fmt::format("{} has text of {} pairs; ask for --pairs {}, or name another directory", o.output, r.pairs, r.pairs));
  {
    const Stopwatch watch;
    check_corpora(data, o.threads, say);
    r.read_lines_together = 2 * static_cast<double>(r.pairs) / watch.seconds();
  }
  if (!files->exists(path)) {
    const Stopwatch watch;
    VocabularyOptions options;
    options.size = o.vocabulary;
    const CorpusLines lines(data, Side::both);
    VocabularyWatch vocabulary_watch;
    vocabulary_watch.say = say;
    vocabulary_watch.fraction = [&] { return lines.fraction(); };
    train_vocabulary(lines, options, path, vocabulary_watch);
    r.vocabulary_seconds = watch.seconds();
  }
  const Vocabulary vocabulary = Vocabulary::load(path);
  r.encode_lines = encode_alone(vocabulary, first_lines(data, kAlone));
  if (TokenStore::look(*files, store_path, data, vocabulary, vocabulary) == StoreState::current) TokenStore::remove(*files, store_path);
  for (const auto& shard : verified_shards(*files, store_path, token_fingerprint(data, vocabulary, vocabulary), o.threads))
    r.kept_pairs += shard ? shard->counts.total : 0;
  {
    const Stopwatch watch;
    TokenStore::open_or_build(*files, store_path, data, vocabulary, vocabulary, {.threads = o.threads, .say = say});
    r.prepare_seconds = watch.seconds();
  }
  const Stopwatch watch;
  const TokenStore store = TokenStore::open(*files, store_path, o.threads);
  r.verify_seconds = watch.seconds();
  for (const std::string& name : files->list(store_path))
    r.store_bytes += static_cast<int64_t>(files->info(join_path(store_path, name)).size);
  const PeakMemory peak = peak_memory();
  r.peak_bytes = peak.own;
  r.peak_child_bytes = peak.children;
  return r;
}

std::vector<SampleRow> bench_vocabulary(const BenchVocabularyOptions& o, const Say& say) {
  DataOptions data;
  data.train = {{o.source, o.target, "", 1}};
  std::string directory = (std::filesystem::temp_directory_path() / "starling-vocabulary-XXXXXX").string();
  if (!mkdtemp(directory.data())) throw IoError(fmt::format("{}: cannot be made", directory));
  const auto files = real_file_system();
  std::vector<SampleRow> rows;
  std::vector<Vocabulary> vocabularies;
  try {
    for (const int64_t lines : o.lines) {
      VocabularyOptions options;
      options.size = o.vocabulary;
      options.type = o.type;
      options.seed = o.seed;
      options.sample_lines = lines;
      const std::string path = join_path(directory, "vocab.spm");
      VocabularyWatch watch;
      watch.say = say;
      const Stopwatch stopwatch;
      const VocabularyReport report = train_vocabulary(CorpusLines(data, Side::both), options, path, watch);
      vocabularies.push_back(Vocabulary::load(path));
      rows.push_back({.sampled = report.sampled,
                      .sampled_bytes = report.sampled_bytes,
                      .seconds = stopwatch.seconds(),
                      .peak_child_bytes = peak_memory().children,
                      .pieces = report.size});
    }
  } catch (...) {
    files->remove_all(directory);
    throw;
  }
  files->remove_all(directory);

  const std::vector<std::string> probe = first_lines(data, 2 * kProbe);
  std::set<std::string> last;
  for (int32_t id = 0; id < vocabularies.back().size(); ++id) last.insert(vocabularies.back().piece(id));
  for (size_t i = 0; i < rows.size(); ++i) {
    const Vocabulary& vocabulary = vocabularies[i];
    std::vector<bool> in_last(static_cast<size_t>(vocabulary.size()));
    int64_t shared = 0, tokens = 0, shared_tokens = 0;
    for (int32_t id = 0; id < vocabulary.size(); ++id) shared += in_last[static_cast<size_t>(id)] = last.contains(vocabulary.piece(id));
    for (const std::string& line : probe)
      for (const int32_t id : vocabulary.encode(line)) ++tokens, shared_tokens += in_last[static_cast<size_t>(id)];
    rows[i].shared = static_cast<double>(shared) / static_cast<double>(vocabulary.size());
    rows[i].shared_use = static_cast<double>(shared_tokens) / static_cast<double>(std::max<int64_t>(tokens, 1));
    rows[i].tokens_per_line = static_cast<double>(tokens) / static_cast<double>(std::max<size_t>(probe.size(), 1));
  }
  return rows;
}

}  // namespace starling
