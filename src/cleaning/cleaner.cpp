#include "cleaning/cleaner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "base/hash64.h"
#include "base/lock.h"
#include "base/quotes.h"
#include "cleaning/choosing.h"
#include "cleaning/copy_search.h"
#include "cleaning/judging.h"
#include "cleaning/live_report.h"
#include "cleaning/near_search.h"
#include "config/config.h"
#include "storage/publication.h"

namespace starling {
namespace {

constexpr int64_t kLeastMemory = int64_t{200} << 20;  // bytes
constexpr int64_t kLeastTable = int64_t{16} << 20;
constexpr int64_t kOtherMemory = int64_t{120} << 20;    // of the program, its libraries and files
constexpr int64_t kMemoryOfThread = int64_t{12} << 20;  // of blocks that are judged
constexpr size_t kFrequentLines = 30;                   // of each side
constexpr double kLeastNear = 0.5;                      // below, unrelated text would be compared pair by pair

void check_job(const CleanJob& job) {
  if (!job.monolingual) check_options(job.data, true);
  for (const CorpusFiles& corpus : job.data.train) {
    corpus_options(job, corpus);
    if (!corpus.alignment.empty())
      throw ConfigError(
          fmt::format("the corpus {} has an alignment, whose positions cleaning would change; align the cleaned text", corpus.name()));
  }
  if (const double near = job.options.near_copies; near > 0 && near < kLeastNear)
    throw ConfigError(fmt::format(
        "clean.near-copies {}: pairs with less than half of their word bigrams in common are not copies; give 0.5 to 1, or 0 to keep "
        "near-copies",
        near));
  if (job.memory < kLeastMemory)
    throw ConfigError(fmt::format("cleaning needs at least {} MiB of memory; ask for that", kLeastMemory >> 20));
}

// The directory beside the output in which it is made, with what an earlier start of the same job has left, if any.
class Workplace {
 public:
  Workplace(FileSystem& files, const std::string& output, const std::string& facts)
      : files_(files), directory_(aside_path(output)), judged_(join_path(directory_, kJudged)) {
    const std::string lock = directory_ + ".lock", record = join_path(judged_, "job");
    lock_ = FileLock::try_acquire(lock);
    if (!lock_) throw ConfigError(fmt::format("{}: another 'starling clean' is writing this; wait for it", printable(output)));
    try {
      if (files.exists(output)) {
        if (files.exists(join_path(output, "clean.json"))) files.remove_all(join_path(output, kJudged));  // of a start that was ended then
        throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", output));
      }
      if (files.exists(directory_) && !files.exists(judged_) && !files.exists(join_path(directory_, "clean.json")))
        throw ConfigError(
            fmt::format("{}: is in the way, and no earlier 'starling clean' has left it; move it elsewhere", printable(directory_)));
      if (!files.exists(record) || files.read_file(record) != facts) forget();
      files.make_directories(judged_);
      files.replace_file(record, facts);
    } catch (...) {
      unlock();
      throw;
    }
  }
  ~Workplace() { unlock(); }
  Workplace(const Workplace&) = delete;
  const std::string& directory() const { return directory_; }
  const std::string& judged() const { return judged_; }
  void publish(const std::string& output) {
    files_.sync_directory(directory_);
    files_.rename(directory_, output);
    files_.sync_directory(parent_path(output));
    files_.remove_all(join_path(output, kJudged));  // last: what is in its place is whole
  }
  void remove() {
    try {
      forget();
    } catch (const Error&) {  // the first failure is the one to report
    }
  }

 private:
  static constexpr const char* kJudged = "judged";
  // By what is judged the directory is known as one of these, so that goes last.
  void forget() {
    if (!files_.exists(directory_)) return;
    for (const std::string& name : files_.list(directory_))
      if (name != kJudged) files_.remove_all(join_path(directory_, name));
    files_.remove_all(directory_);
  }
  void unlock() {
    try {
      files_.remove(directory_ + ".lock");
    } catch (const Error&) {  // it holds nobody up, once this process has ended
    }
  }
  FileSystem& files_;
  const std::string directory_, judged_;
  std::unique_ptr<FileLock> lock_;
};

uint64_t table_bytes(const CleanJob& job) {
  return static_cast<uint64_t>(std::max<int64_t>(job.memory - kOtherMemory - job.threads * kMemoryOfThread, 0));
}

// Compares each pair with all others.
void mark_pairs(const CleanJob& job, const Segments& segments, CleanReport& report, TaskProgress& progress) {
  CopySearch copies(segments, table_bytes(job));
  const CleanOptions& o = job.options;
  for (const auto& [key, lines] : {std::pair(&CopyKeys::source, &report.frequent_sources), {&CopyKeys::target, &report.frequent_targets}})
    if (!job.monolingual || key == &CopyKeys::source)
      for (const auto& [number, pairs] : copies.most_frequent(key, kFrequentLines)) lines->push_back({number, pairs, ""});
  if (o.copies != CopyRule::off) copies.mark_duplicates(key_of_copies(job));
  if (o.near_copies > 0) {
    const auto told = [&](uint64_t pairs) {
      if (progress.due())
        progress.tell(0.9 + 0.05 * static_cast<double>(pairs) / static_cast<double>(segments.all_pairs()),
                      fmt::format("{} pairs compared with those before them", pairs));
    };
    mark_near_copies(segments, {o.near_copies, table_bytes(job), job.threads, told});
  }
  if (o.max_same_source > 0) copies.mark_frequent(&CopyKeys::source, o.max_same_source);
  if (o.max_same_target > 0 && !job.monolingual) copies.mark_frequent(&CopyKeys::target, o.max_same_target);
  if (o.best_share < 1)
    if (const auto limit = copies.score_of_best(o.best_share)) copies.mark_scores_below(*limit);
  if (o.best_words > 0)
    if (const auto limit = copies.score_of_best_words(o.best_words)) copies.mark_scores_below(*limit);
}

// Stores text from pipes, which can be read only once, beside what is judged of it.
void store_pipes(CleanJob& job, FileSystem& files, const std::string& directory, TaskProgress& progress) {
  for (size_t i = 0; i < job.data.train.size(); ++i) job.names.push_back(job.data.train[i].name());
  for (size_t i = 0; i < job.data.train.size(); ++i) {
    std::string& path = job.monolingual ? job.data.train[i].source : job.data.train[i].tsv;
    if (!is_pipe(path)) continue;
    job.names[i] = path == "-" ? "standard input" : path;
    LineReader reader(path);
    reader.mark_invalid_bytes();
    path = join_path(directory, fmt::format("piped-{}.zst", i));
    ZstdWriter stored(files, path, 1);
    for (std::string_view line; reader.next(line);) {
      stored.write(line);
      stored.write("\n");
      if (progress.due()) progress.tell(-1, fmt::format("{} lines stored", reader.line_number()));
    }
    stored.close();
  }
}

CleanReport clean_into(Workplace& place, CleanJob job, FileSystem& files, const TaskScreen& screen) {
  TaskProgress progress("clean", screen);
  store_pipes(job, files, place.judged(), progress);
  CleanReport report;
  Segments segments(files, place.judged());
  segments.forget_marks();
  report.pairs_judged_before = segments.all_pairs();
  const std::vector<PairKind> kinds = pair_kinds(job);
  report.facts = facts_hash(job);
  report.monolingual = job.monolingual;
  for (size_t i = 0; i < kinds.size(); ++i) {
    CorpusCleaning& corpus = report.corpora.emplace_back();
    corpus.name = job.name(i);
    corpus.usual_ratio = kinds[i].usual_ratio;
  }
  const std::string page = join_path(place.directory(), "report.html");
  std::optional<LiveReport> live(std::in_place, job, report, files, page);
  const std::vector<uint32_t> starts = judge_pairs(job, kinds, files, segments, progress, [&](const JudgedPair& pair) { live->see(pair); });
  live.reset();
  for (size_t i = 0; i < starts.size(); ++i) report.corpora[i].first = starts[i];
  report.judging = progress.seconds();
  mark_pairs(job, segments, report, progress);
  report.comparing = progress.seconds() - report.judging;
  write_chosen(job, files, segments, place.directory(), report, progress);
  report.writing = progress.seconds() - report.judging - report.comparing;
  files.write_file(join_path(place.directory(), "clean.json"), clean_json(report));
  files.replace_file(page, clean_page(report, job));
  if (job.configuration) files.write_file(join_path(place.directory(), "train.yml"), job.configuration(report));
  return report;
}

// What comes from a pipe is never what came from one before.
std::string facts_of_pipe() { return fmt::format("pipe {} {}\n", ::getpid(), std::chrono::system_clock::now().time_since_epoch().count()); }

}  // namespace

std::string facts_of(const CleanJob& job) {
  constexpr int kVersion = 3;  // of the segments and of what is measured
  std::string facts =
      fmt::format("{} {}\n{} {}\n", kVersion, job.monolingual ? "lines" : "pairs", job.languages.source, job.languages.target);
  CleanOptions options = job.options;
  options.before_training = false;
  facts += write_config(config_sections("clean", "", options));
  const auto add = [&](const CorpusFiles& corpus) {
    facts += fmt::format("{} {}\n", corpus.source_language, corpus.target_language);
    for (const std::string& own : corpus.clean) facts += own + "\n";
    for (const std::string& path : {corpus.source, corpus.target, corpus.tsv, corpus.sentence_weights, corpus.scores})
      facts += path.empty() ? "-\n" : is_pipe(path) ? facts_of_pipe() : facts_of_file(path);
  };
  for (const CorpusFiles& corpus : job.data.train) add(corpus);
  for (const CorpusFiles& corpus : job.held_out) add(corpus);
  return facts;
}

std::string facts_hash(const CleanJob& job) {
  const std::string facts = facts_of(job);
  return fmt::format("{:016x}", hash64(std::as_bytes(std::span(facts))));
}

CleanReport clean(const CleanJob& asked, FileSystem& files, const TaskScreen& screen) {
  check_job(asked);
  CleanJob job = asked;
  job.threads = static_cast<int>(std::clamp<int64_t>((job.memory - kOtherMemory - kLeastTable) / kMemoryOfThread, 1, job.threads));
  const std::string output = directory_to_make(files, job.output);
  Workplace place(files, output, facts_of(job));
  try {
    CleanReport report = clean_into(place, job, files, screen);
    place.publish(output);
    return report;
  } catch (const IoError&) {  // such as a full disk: the next start goes on with what was judged
    throw;
  } catch (...) {
    place.remove();
    throw;
  }
}

}  // namespace starling
