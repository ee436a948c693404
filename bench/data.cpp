// Measures how fast text becomes training data, and in how much memory, compared with SentencePiece alone, on parallel text of made-up
// words that it writes. Writing is part of what is measured, so the files stay. `bench_data --help` lists its options.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/affinity.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/task_progress.h"
#include "bench/made_up_text.h"
#include "data/corpus.h"
#include "data/token_store.h"
#include "data/tokenize.h"
#include "program/arguments.h"
#include "program/help.h"
#include "program/program.h"
#include "storage/outputs.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

struct BenchDataOptions {
  std::string output;  // directory: train.source, train.target, vocab.spm, data
  int64_t pairs = 1'000'000;
  int64_t vocabulary = 32000;
  int threads = 0;  // 0: all cores that this process may use
  uint64_t seed = 1;
};

struct BenchDataResult {
  int64_t pairs = 0, bytes = 0;    // of the text, both sides
  double make_seconds = 0;         // 0: the text existed already
  double read_lines = 0;           // lines/s of one thread that only reads and checks
  double read_lines_together = 0;  // the same of all threads, over both files
  double vocabulary_seconds = 0;   // 0: the vocabulary existed already
  double encode_lines = 0;         // lines/s of SentencePiece alone on one thread, from memory
  int64_t kept_pairs = 0;          // pairs reused from an interrupted preparation
  double prepare_seconds = 0;      // checking, tokenising and storing, on all threads
  int threads = 1;
  double verify_seconds = 0;  // opening the finished store
  int64_t store_bytes = 0;
  int64_t peak_bytes = 0, peak_child_bytes = 0;  // resident memory of this process and of the vocabulary's training
};

constexpr size_t kAlone = 100'000;   // lines that SentencePiece encodes alone
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

// Creates what is missing in `output` and measures. A finished store is built again; an unfinished one is continued.
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

void say(const std::string& line) { std::cout << line << std::endl; }

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void print(const BenchDataResult& r) {
  const double lines = 2 * static_cast<double>(r.pairs - r.kept_pairs), prepared = lines / r.prepare_seconds;
  const auto took = [](double seconds) { return seconds > 0 ? fmt::format("{:.1f} s", seconds) : std::string("was there"); };
  std::cout << fmt::format("threads             {}\n", r.threads)
            << fmt::format("text                {} pairs of made-up sentences, {:.0f} MB, made in: {}\n", r.pairs,
                           static_cast<double>(r.bytes) / 1e6, took(r.make_seconds))
            << fmt::format("reading alone       {:.0f} lines/s on one core, {:.0f} on all (unpacked, checked)\n", r.read_lines,
                           r.read_lines_together)
            << fmt::format("vocabulary          {}\n", took(r.vocabulary_seconds))
            << fmt::format("SentencePiece alone {:.0f} lines/s on one core, from memory\n", r.encode_lines)
            << fmt::format("preparation         {:.0f} lines/s: {:.0f} pairs in {:.1f} s{}\n", prepared, lines / 2, r.prepare_seconds,
                           r.kept_pairs > 0 ? fmt::format(", {} more were there", r.kept_pairs) : "")
            << fmt::format("  by core           {:.0f} lines/s, {:.0f} % of SentencePiece alone\n", prepared / r.threads,
                           share(prepared / r.threads, r.encode_lines))
            << fmt::format("store               {:.0f} MB, verified and opened in {:.2f} s\n", static_cast<double>(r.store_bytes) / 1e6,
                           r.verify_seconds)
            << fmt::format("peak memory         {} MiB, vocabulary training {} MiB\n", r.peak_bytes >> 20, r.peak_child_bytes >> 20);
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  using namespace starling;
  CLI::App app("Prepares training data beside SentencePiece alone, on parallel text of made-up words that it writes and keeps.");
  add_help(app);
  BenchDataOptions o;
  app.add_option("--output", o.output, "directory for text (270 bytes per pair), vocabulary and tokens (120); what is there is used")
      ->type_name("DIR")
      ->required();
  app.add_option("--pairs", o.pairs, "sentence pairs")->check(CLI::Range(1000, 1'000'000'000))->capture_default_str();
  app.add_option("--vocabulary", o.vocabulary, "joint pieces")->check(CLI::Range(1000, 1'000'000))->capture_default_str();
  app.add_option("--seed", o.seed, "which text")->capture_default_str();
  add_threads_option(app, o.threads);
  CLI11_PARSE(app, argc, argv);
  return status_of([&] {
    print(bench_data(o, say));
    return 0;
  });
}
