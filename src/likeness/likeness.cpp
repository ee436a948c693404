#include "likeness/likeness.h"

#include <optional>

#include "base/ordered_pipeline.h"
#include "data/lines_or_pairs.h"
#include "likeness/ngram_model.h"

namespace starling {
namespace {

constexpr size_t kScoredBlock = 500;  // lines that a thread scores at a time

struct ScoredBlock {
  std::vector<std::pair<std::string, std::string>> lines;
  std::vector<double> scores;
};

int64_t count_lines(const CorpusFiles& text, bool one_language) {
  LinesOrPairs reader(text, one_language);
  int64_t count = 0;
  for (std::string_view s, t; reader.next(s, t);) ++count;
  return count;
}

// The models of one side.
class SideLikeness {
 public:
  SideLikeness(AlignedParts parts, const Vocabulary* vocabulary) : parts_(parts), vocabulary_(vocabulary) {}
  void add(bool like, std::string_view line) {
    (like ? like_text_ : other_text_).push_back(numbers_.add(line_parts(line, parts_, vocabulary_)));
  }
  void train(const std::string& name) {
    const uint32_t words = numbers_.size() + 1;
    if (words > NgramModel::kMostWords)
      throw ConfigError(
          fmt::format("{}: {} different words are too many; score pieces (--vocab), or take a smaller --sample", name, words));
    like_.emplace(like_text_, words);
    other_.emplace(other_text_, words);
    like_text_ = {};
    other_text_ = {};
  }
  double score(std::string_view line) const {
    const WordIds words = numbers_.known(line_parts(line, parts_, vocabulary_));
    return (like_->log_probability(words) - other_->log_probability(words)) / static_cast<double>(words.size() + 1);
  }

 private:
  const AlignedParts parts_;
  const Vocabulary* const vocabulary_;
  PartNumbers numbers_;
  std::vector<WordIds> like_text_, other_text_;
  std::optional<NgramModel> like_, other_;
};

class PairLikeness {
 public:
  explicit PairLikeness(const LikenessJob& job)
      : job_(job), source_(job.parts, job.source_vocabulary), target_(job.parts, job.target_vocabulary) {
    lines = count_lines(job.text, job.one_language);
    const int64_t like = count_lines(job.like, job.one_language);
    sampled = std::min({job.sample, lines, like});
    if (sampled == 0) throw ConfigError(fmt::format("{} has no lines; give text", (lines == 0 ? job.text : job.like).name()));
    read(job.text, lines, false);
    read(job.like, like, true);
    source_.train(job.text.name());
    if (!job.one_language) target_.train(job.text.name());
  }
  double score(std::string_view s, std::string_view t) const { return source_.score(s) + (job_.one_language ? 0 : target_.score(t)); }
  int64_t lines = 0, sampled = 0;

 private:
  void read(const CorpusFiles& text, int64_t all, bool like) {
    LinesOrPairs reader(text, job_.one_language);
    std::string_view s, t;
    for (int64_t i = 0; reader.next(s, t); ++i) {
      if ((i + 1) * sampled / all == i * sampled / all) continue;
      source_.add(like, s);
      if (!job_.one_language) target_.add(like, t);
    }
  }
  const LikenessJob& job_;
  SideLikeness source_, target_;
};

}  // namespace

LikenessCounts score_likeness(const LikenessJob& job, const TaskScreen& screen, const std::function<void(double)>& take) {
  const PairLikeness models(job);
  TaskProgress progress("domain", screen);
  LinesOrPairs reader(job.text, job.one_language);
  int64_t done = 0;
  run_in_order<ScoredBlock>({.make =
                                 [&](ScoredBlock& block) {
                                   block.lines.clear();
                                   std::string_view s, t;
                                   while (block.lines.size() < kScoredBlock && reader.next(s, t)) block.lines.emplace_back(s, t);
                                   return !block.lines.empty();
                                 },
                             .work =
                                 [&](ScoredBlock& block) {
                                   block.scores.clear();
                                   for (const auto& [s, t] : block.lines) block.scores.push_back(models.score(s, t));
                                 },
                             .take =
                                 [&](ScoredBlock& block) {
                                   for (const double score : block.scores) take(score);
                                   done += std::ssize(block.scores);
                                   if (progress.due()) progress.count(done, models.lines, "lines");
                                 }},
                            job.threads, static_cast<size_t>(4 * job.threads + 2));
  return {models.lines, models.sampled};
}

}  // namespace starling
