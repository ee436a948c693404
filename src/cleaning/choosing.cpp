#include "cleaning/choosing.h"

#include <algorithm>
#include <map>
#include <optional>

#include "cleaning/tally.h"

namespace starling {
namespace {

std::string field(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

// What is written of one corpus.
struct KeptFiles {
  ZstdWriter pairs;
  std::optional<ZstdWriter> weights;
};

std::string numbered(const char* what, size_t corpus, size_t count) { return count == 1 ? what : fmt::format("{}-{}", what, corpus + 1); }

class Chooser {
 public:
  Chooser(const CleanJob& job, FileSystem& files, const std::string& directory, CleanReport& report)
      : job_(job),
        files_(files),
        directory_(directory),
        report_(report),
        monolingual_(job.monolingual),
        dropped_(files, join_path(directory, "dropped.tsv.zst")),
        scores_(files, join_path(directory, "scores.tsv.zst")),
        tally_(report) {
    for (FrequentLine& line : report_.frequent_sources) wanted_.emplace(line.number, std::pair(&line.text, &JudgedPair::source));
    for (FrequentLine& line : report_.frequent_targets) wanted_.emplace(line.number, std::pair(&line.text, &JudgedPair::target));
    std::string names = "corpus\tline\tbroken\tscore";
    for (size_t i = 0; i < kMeasures; ++i) names += "\t" + std::string(word(static_cast<Measure>(i)));
    scores_.write(names + "\n");
  }

  // Takes the pair of the next number; `first`: the number of the pair that a duplicate or a near-copy is one of.
  void take(JudgedPair& pair, uint32_t first) {
    open_until(pair.corpus);
    for (const auto& [at, to] : std::ranges::subrange(wanted_.lower_bound(number_), wanted_.upper_bound(number_)))
      *to.first = pair.*to.second;
    const std::string of = pair.broken.has(Rule::duplicate) || pair.broken.has(Rule::near_copy) ? place_of(first) : "";
    ++number_;
    tally_.take(pair, of);
    for (std::string* side : {&pair.source, &pair.target}) *side = field(std::move(*side));
    write_score(pair);
    if (!pair.broken.any()) {
      report_.corpora[pair.corpus].kept_words += pair.words();
      kept_->pairs.write(both_sides(pair) + "\n");
      if (kept_->weights) kept_->weights->write(fmt::format("{}\n", pair.weight));
      return;
    }
    dropped_.write(fmt::format("{}\t{}\t{}\t{}\t{}\n", pair.corpus + 1, pair.line, pair.broken.text(), of, both_sides(pair)));
  }

  void close() {
    open_until(report_.corpora.size() - 1);
    close_kept();
    dropped_.close();
    scores_.close();
    tally_.add_samples();
  }

 private:
  void close_kept() {
    if (!kept_) return;
    kept_->pairs.close();
    if (kept_->weights) kept_->weights->close();
    kept_.reset();
  }
  // Opens the files of a corpus, and of those before it that have no pairs: of many corpora not all can be open at a time.
  void open_until(size_t last) {
    for (const size_t count = report_.corpora.size(); opened_ <= last; ++opened_) {
      close_kept();
      CorpusCleaning& corpus = report_.corpora[opened_];
      corpus.kept_file = kept_file(opened_, count, monolingual_);
      kept_.emplace(KeptFiles{ZstdWriter(files_, join_path(directory_, corpus.kept_file)), std::nullopt});
      if (job_.data.train[opened_].sentence_weights.empty()) continue;
      corpus.weights_file = weights_file(opened_, count);
      kept_->weights.emplace(files_, join_path(directory_, corpus.weights_file));
    }
  }
  std::string both_sides(const JudgedPair& pair) const { return monolingual_ ? pair.source : pair.source + "\t" + pair.target; }
  void write_score(const JudgedPair& pair) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{}\t{}\t{}\t", pair.corpus + 1, pair.line, pair.broken.text());
    if (!std::isinf(pair.score)) fmt::format_to(std::back_inserter(line_), "{}", pair.score);
    for (const int32_t value : pair.measures.values) fmt::format_to(std::back_inserter(line_), "\t{}", value);
    line_ += '\n';
    scores_.write(line_);
  }
  // "corpus:line" of a pair's number.
  std::string place_of(uint32_t number) const {
    size_t corpus = report_.corpora.size() - 1;
    while (corpus > 0 && report_.corpora[corpus].first > number) --corpus;
    return fmt::format("{}:{}", corpus + 1, number - report_.corpora[corpus].first + 1);
  }

  const CleanJob& job_;
  FileSystem& files_;
  const std::string directory_;
  CleanReport& report_;
  const bool monolingual_;
  std::optional<KeptFiles> kept_;  // of the corpus whose pairs come
  size_t opened_ = 0;              // corpora whose files are made
  ZstdWriter dropped_, scores_;
  Tally tally_;
  std::multimap<uint32_t, std::pair<std::string*, std::string JudgedPair::*>> wanted_;  // texts by number
  uint32_t number_ = 0;                                                                 // of the next pair
  std::string line_;
};

}  // namespace

std::string kept_file(size_t corpus, size_t count, bool monolingual) {
  return numbered("kept", corpus, count) + (monolingual ? ".txt.zst" : ".tsv.zst");
}

std::string weights_file(size_t corpus, size_t count) { return numbered("kept", corpus, count) + ".weights.zst"; }

void write_chosen(const CleanJob& job, FileSystem& files, const Segments& segments, const std::string& directory, CleanReport& report,
                  TaskProgress& progress) {
  Chooser chooser(job, files, directory, report);
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentMarks marks = segments.marks(i);
    JudgedReader reader(segments, i);
    JudgedPair pair;
    for (uint32_t k = 0; reader.next(pair); ++k) {
      if (marks.marked(k)) pair.broken.set(static_cast<Rule>(marks.rules[k]));
      chooser.take(pair, marks.first[k]);
    }
    if (progress.due()) progress.tell(0.95 + 0.05 * static_cast<double>(i + 1) / static_cast<double>(segments.size()), "writing");
  }
  chooser.close();
}

}  // namespace starling
