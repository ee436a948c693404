#include "likeness/likeness.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/hash64.h"
#include "base/ordered_pipeline.h"
#include "data/even_sample.h"
#include "data/lines_or_pairs.h"
#include "likeness/ngram_model.h"

namespace starling {
namespace {

constexpr size_t kScoredBlock = 500;  // lines that a thread scores at a time

struct ScoredBlock {
  int64_t first = 0;  // number of its first line
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
  // model: of the text that lines are to be like, else 1 or 2, of the text itself.
  void add(size_t model, std::string_view line) { texts_[model].push_back(numbers_.add(line_parts(line, parts_, vocabulary_))); }
  void train(const std::string& name) {
    const uint32_t words = numbers_.size() + 1;
    if (words > NgramModel::kMostWords)
      throw ConfigError(
          fmt::format("{}: {} different words are too many; score pieces (--vocab), or take a smaller --sample", name, words));
    for (size_t i = 0; i < texts_.size(); ++i) {
      models_[i].emplace(texts_[i], words);
      texts_[i] = {};
    }
  }
  double score(std::string_view line, size_t other) const {
    const WordIds words = numbers_.known(line_parts(line, parts_, vocabulary_));
    return (models_[0]->log_probability(words) - models_[other]->log_probability(words)) / static_cast<double>(words.size() + 1);
  }

 private:
  const AlignedParts parts_;
  const Vocabulary* const vocabulary_;
  PartNumbers numbers_;
  std::array<std::vector<WordIds>, 3> texts_;
  std::array<std::optional<NgramModel>, 3> models_;
};

// Which of the two models of the text learns from a line. Neighbours do not take turns: a text may have questions and answers.
size_t model_of(int64_t number) { return 1 + hash64_of(number) % 2; }

class PairLikeness {
 public:
  explicit PairLikeness(const LikenessJob& job)
      : job_(job), source_(job.parts, job.source_vocabulary), target_(job.parts, job.target_vocabulary) {
    lines = count_lines(job.text, job.one_language);
    const int64_t like = count_lines(job.like, job.one_language);
    sampled = std::min({job.sample, std::max<int64_t>(lines / 2, 1), like});
    if (lines == 0 || like == 0) throw ConfigError(fmt::format("{} has no lines; give text", (lines == 0 ? job.text : job.like).name()));
    text_ = {std::min(2 * sampled, lines), lines};
    read(job.text, text_, model_of);
    read(job.like, {sampled, like}, [](int64_t) { return size_t{0}; });
    source_.train(job.text.name());
    if (!job.one_language) target_.train(job.text.name());
  }
  double score(int64_t line, std::string_view s, std::string_view t) const {
    const size_t other = text_.taken > 1 && text_.takes(line) ? 3 - model_of(text_.number(line)) : 1;
    return source_.score(s, other) + (job_.one_language ? 0 : target_.score(t, other));
  }
  int64_t lines = 0, sampled = 0;

 private:
  template <class Model>
  void read(const CorpusFiles& text, const EvenSample& sample, Model model) {
    LinesOrPairs reader(text, job_.one_language);
    std::string_view s, t;
    for (int64_t i = 0; reader.next(s, t); ++i) {
      if (!sample.takes(i)) continue;
      source_.add(model(sample.number(i)), s);
      if (!job_.one_language) target_.add(model(sample.number(i)), t);
    }
  }
  const LikenessJob& job_;
  SideLikeness source_, target_;
  EvenSample text_;
};

}  // namespace

LikenessCounts score_likeness(const LikenessJob& job, const TaskScreen& screen, const std::function<void(double)>& take) {
  const PairLikeness models(job);
  TaskProgress progress("domain", screen);
  LinesOrPairs reader(job.text, job.one_language);
  int64_t read = 0, done = 0;
  run_in_order<ScoredBlock>({.make =
                                 [&](ScoredBlock& block) {
                                   block.lines.clear();
                                   block.first = read;
                                   std::string_view s, t;
                                   while (block.lines.size() < kScoredBlock && reader.next(s, t)) block.lines.emplace_back(s, t);
                                   read += std::ssize(block.lines);
                                   return !block.lines.empty();
                                 },
                             .work =
                                 [&](ScoredBlock& block) {
                                   block.scores.clear();
                                   for (int64_t line = block.first; const auto& [s, t] : block.lines)
                                     block.scores.push_back(models.score(line++, s, t));
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
