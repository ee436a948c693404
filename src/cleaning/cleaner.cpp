#include "cleaning/cleaner.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/hash64.h"
#include "base/ordered_pipeline.h"
#include "cleaning/seen_keys.h"
#include "data/zstd_writer.h"
#include "storage/outputs.h"
#include "storage/publication.h"

namespace starling {
namespace {

constexpr size_t kBlock = 500;      // pairs that a thread judges at a time
constexpr int64_t kSample = 20000;  // pairs by which the usual ratio of lengths is found
constexpr size_t kExamples = 5;     // of each rule
constexpr double kLongEnough = 25;  // characters, mean of both sides, above which one side is enough to be held out
constexpr uint64_t kSourceSeed = 1, kTargetSeed = 2, kPairSeed = 3;

uint64_t hash_of(std::string_view text, uint64_t seed) { return hash64(std::as_bytes(std::span(text)), seed); }

// The hashes by which copies are found.
struct Keys {
  Keys() = default;
  Keys(const JudgedSide& s, const JudgedSide& t) {
    source = hash_of(s.copy_key, kSourceSeed);
    target = hash_of(t.copy_key, kTargetSeed);
    pair = hash_of(s.copy_key + "\n" + t.copy_key, kPairSeed);
  }
  uint64_t source = 0, target = 0, pair = 0;
};

struct JudgedPair {
  std::string source, target;
  float weight = 1;
  BrokenRules broken;
  Keys keys;
};

struct JudgedBlock {
  size_t corpus = 0;
  int64_t first = 0;  // line
  std::vector<JudgedPair> pairs;
  RepairCounts repaired{};
  double read = 0;  // share of all corpora
};

// Pairs that are kept for validation and tests.
class HeldOut {
 public:
  explicit HeldOut(const std::vector<CorpusFiles>& corpora) {
    for (const CorpusFiles& corpus : corpora) {
      PairReader reader(corpus);
      for (std::string_view s, t; reader.next(s, t);) {
        RepairCounts ignored{};
        const std::string source = repaired(s, ignored), target = repaired(t, ignored);
        const Keys keys{JudgedSide(source), JudgedSide(target)};
        for (const uint64_t key : {keys.source, keys.target, keys.pair}) keys_.add(key, 0);
      }
    }
  }
  bool has(const JudgedSide& s, const JudgedSide& t, const Keys& keys) const {
    return keys_.has(keys.pair) || ((s.length() + t.length()) / 2 > kLongEnough && (keys_.has(keys.source) || keys_.has(keys.target)));
  }

 private:
  SeenKeys keys_;
};

// The median of the characters of targets over those of sources, of pairs that are long enough to tell; nothing if they are few.
std::optional<double> usual_ratio(const CorpusFiles& corpus) {
  constexpr double kFewestCharacters = 20;
  constexpr size_t kFewestPairs = 100;
  std::vector<double> ratios;
  PairReader reader(corpus);
  std::string_view s, t;
  for (int64_t i = 0; i < kSample && reader.next(s, t); ++i) {
    const auto source = static_cast<double>(decode_utf8(s).size()), target = static_cast<double>(decode_utf8(t).size());
    if (std::max(source, target) >= kFewestCharacters && std::min(source, target) > 0) ratios.push_back(target / source);
  }
  if (ratios.size() < kFewestPairs) return std::nullopt;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

std::string field(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

// Reads the corpora in blocks.
class Blocks {
 public:
  Blocks(const DataOptions& data) : data_(data), bytes_(std::max<uint64_t>(corpus_bytes(data), 1)) {}
  bool next(JudgedBlock& block) {
    block.pairs.clear();
    block.repaired = {};
    while (corpus_ < data_.train.size()) {
      if (!reader_) reader_.emplace(data_.train[corpus_]);
      block.corpus = corpus_;
      block.first = lines_ + 1;
      std::string_view s, t;
      while (block.pairs.size() < kBlock && reader_->next(s, t))
        block.pairs.push_back({std::string(s), std::string(t), reader_->weight(), {}, {}});
      lines_ += std::ssize(block.pairs);
      block.read = static_cast<double>(earlier_ + reader_->bytes_read()) / static_cast<double>(bytes_);
      if (!block.pairs.empty()) return true;
      earlier_ += reader_->bytes_read();
      reader_.reset();
      ++corpus_;
      lines_ = 0;
    }
    return false;
  }

 private:
  const DataOptions& data_;
  const uint64_t bytes_;
  size_t corpus_ = 0;
  uint64_t earlier_ = 0;
  int64_t lines_ = 0;
  std::optional<PairReader> reader_;
};

// What is written of one corpus.
struct KeptFiles {
  ZstdWriter pairs;
  std::optional<ZstdWriter> weights;
};

class Cleaner {
 public:
  Cleaner(const CleanJob& job, FileSystem& files, const std::string& directory)
      : job_(job),
        held_out_(job.options.held_out ? job.held_out : std::vector<CorpusFiles>{}),
        dropped_(files, join_path(directory, "dropped.tsv.zst")) {
    const size_t count = job.data.train.size();
    for (size_t i = 0; i < count; ++i) {
      const CorpusFiles& corpus = job.data.train[i];
      const auto language = [](const std::string& own, const std::string& all) { return own.empty() ? all : own; };
      kinds_.emplace_back(language(corpus.source_language, job.languages.source), language(corpus.target_language, job.languages.target));
      if (const auto usual = usual_ratio(corpus)) kinds_.back().usual_ratio = *usual;
      const std::string name = count == 1 ? "kept" : fmt::format("kept-{}", i + 1);
      report.corpora.push_back({.name = corpus.name(), .kept_file = name + ".tsv.zst", .usual_ratio = kinds_.back().usual_ratio});
      kept_.push_back({ZstdWriter(files, join_path(directory, name + ".tsv.zst")), std::nullopt});
      if (corpus.sentence_weights.empty()) continue;
      report.corpora.back().weights_file = name + ".weights.zst";
      kept_.back().weights.emplace(files, join_path(directory, report.corpora.back().weights_file));
    }
  }

  // Called by several threads.
  void judge(JudgedBlock& block) {
    for (JudgedPair& pair : block.pairs) {
      if (job_.options.repair) {
        pair.source = repaired(pair.source, block.repaired);
        pair.target = repaired(pair.target, block.repaired);
      }
      const JudgedSide s(pair.source), t(pair.target);
      pair.broken = broken_rules(s, t, kinds_[block.corpus], job_.options);
      if (pair.broken.any()) continue;
      pair.keys = Keys(s, t);
      pair.broken.set(Rule::held_out, held_out_.has(s, t, pair.keys));
    }
  }

  // Called in the order of the pairs.
  void take(JudgedBlock& block) {
    while (starts_.size() <= block.corpus) starts_.push_back(number_);
    CorpusCleaning& corpus = report.corpora[block.corpus];
    for (size_t i = 0; i < kRepairs; ++i) corpus.repaired[i] += block.repaired[i];
    std::string kept, dropped, weights;
    for (size_t i = 0; i < block.pairs.size(); ++i) {
      JudgedPair& pair = block.pairs[i];
      const int64_t line = block.first + static_cast<int64_t>(i);
      std::string before;
      if (!pair.broken.any() && job_.options.copies != CopyRule::off)
        if (const auto first = seen_.add(job_.options.copies == CopyRule::pairs ? pair.keys.pair : pair.keys.target, number_)) {
          pair.broken.set(Rule::duplicate);
          before = place_of(*first);
        }
      ++number_;
      ++corpus.pairs;
      if (!pair.broken.any()) {
        ++corpus.kept;
        kept += field(pair.source) + "\t" + field(pair.target) + "\n";
        if (kept_[block.corpus].weights) weights += fmt::format("{}\n", pair.weight);
        continue;
      }
      count(corpus, pair, line);
      dropped += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", block.corpus + 1, line, pair.broken.text(), before, field(pair.source),
                             field(pair.target));
    }
    kept_[block.corpus].pairs.write(kept);
    if (kept_[block.corpus].weights) kept_[block.corpus].weights->write(weights);
    dropped_.write(dropped);
  }

  void close() {
    for (KeptFiles& files : kept_) {
      files.pairs.close();
      if (files.weights) files.weights->close();
    }
    dropped_.close();
  }

  CleanReport report;

 private:
  void count(CorpusCleaning& corpus, const JudgedPair& pair, int64_t line) {
    for (size_t r = 0; r < kRules; ++r) {
      const auto rule = static_cast<Rule>(r);
      if (!pair.broken.has(rule)) continue;
      const bool alone = pair.broken.only(rule);
      ++corpus.dropped[r];
      corpus.alone[r] += alone;
      std::vector<CleanExample>& examples = corpus.examples[r];
      CleanExample example{line, pair.source, pair.target, alone};
      if (examples.size() < kExamples) {
        examples.push_back(std::move(example));
      } else if (alone) {  // says more than one that would be dropped anyway
        const auto other = std::find_if(examples.begin(), examples.end(), [](const CleanExample& e) { return !e.alone; });
        if (other != examples.end()) *other = std::move(example);
      }
    }
  }
  // "corpus:line" of a pair's number.
  std::string place_of(uint32_t number) const {
    size_t corpus = starts_.size() - 1;
    while (corpus > 0 && starts_[corpus] > number) --corpus;
    return fmt::format("{}:{}", corpus + 1, number - starts_[corpus] + 1);
  }

  const CleanJob& job_;
  const HeldOut held_out_;
  std::vector<PairKind> kinds_;
  std::vector<KeptFiles> kept_;
  ZstdWriter dropped_;
  SeenKeys seen_;
  uint32_t number_ = 0;           // of the next pair, of all corpora
  std::vector<uint32_t> starts_;  // numbers of the corpora's first pairs
};

void check_job(const CleanJob& job, FileSystem& files) {
  check_options(job.data);
  for (const CorpusFiles& corpus : job.data.train)
    if (!corpus.alignment.empty())
      throw ConfigError(
          fmt::format("the corpus {} has an alignment, whose positions cleaning would change; align the cleaned text", corpus.name()));
  if (job.output.empty()) throw ConfigError("there is no output; name a new directory with --output");
  if (files.exists(job.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", job.output));
  refuse_run_files({"--output", job.output});
}

}  // namespace

CleanReport clean(const CleanJob& job, FileSystem& files, const TaskScreen& screen) {
  check_job(job, files);
  TaskProgress progress("clean", screen);
  std::string output = job.output;
  while (output.size() > 1 && output.ends_with('/')) output.pop_back();
  const std::string aside = aside_path(output);
  files.remove_all(aside);  // of a start that was ended
  files.make_directories(aside);
  try {
    Cleaner cleaner(job, files, aside);
    Blocks blocks(job.data);
    run_in_order<JudgedBlock>({.make = [&](JudgedBlock& block) { return blocks.next(block); },
                               .work = [&](JudgedBlock& block) { cleaner.judge(block); },
                               .take =
                                   [&](JudgedBlock& block) {
                                     cleaner.take(block);
                                     if (progress.due())
                                       progress.tell(block.read, fmt::format("corpus {} of {}", block.corpus + 1, job.data.train.size()));
                                   }},
                              job.threads, static_cast<size_t>(4 * job.threads + 2));
    cleaner.close();
    cleaner.report.seconds = progress.seconds();
    files.write_file(join_path(aside, "clean.json"), clean_json(cleaner.report));
    if (job.configuration) files.write_file(join_path(aside, "train.yml"), job.configuration(cleaner.report));
    files.sync_directory(aside);
    files.rename(aside, output);
    return std::move(cleaner.report);
  } catch (...) {
    try {
      files.remove_all(aside);
    } catch (const Error&) {  // the first failure is the one to report
    }
    throw;
  }
}

}  // namespace starling
