#include "alignment/align_files.h"

#include <cmath>
#include <limits>

#include "alignment/lexicon.h"
#include "base/files.h"
#include "base/ordered_pipeline.h"
#include "config/words.h"
#include "data/even_sample.h"
#include "data/lines_or_pairs.h"

namespace starling {
namespace {

constexpr size_t kMostCells = size_t{1} << 24;  // pairs of words of a sentence pair that is aligned: 4,096 words on each side
constexpr size_t kAlignedBlock = 500;           // pairs that a thread aligns at a time

struct AlignedBlock {
  struct Pair {
    std::string source, target;
    Links links;
    double log_probability = 0;
  };
  std::vector<Pair> pairs;
};

Links exchanged(Links links) {
  for (auto& [s, t] : links) std::swap(s, t);
  return links;
}

int64_t count_pairs(const CorpusFiles& text) {
  LinesOrPairs reader(text, false);
  int64_t count = 0;
  for (std::string_view s, t; reader.next(s, t);) ++count;
  return count;
}

// The aligners of both directions, as far as both are needed.
class Directions {
 public:
  Directions(const AlignJob& job, int64_t pairs, const Say& say) : job_(job) {
    if (!job.load.empty()) {
      lexicon_ = read_lexicon(job.load, job.aligner);
      const Symmetrisation how = job.symmetrisation;
      if ((how != Symmetrisation::reverse && !lexicon_.forward) || (how != Symmetrisation::forward && !lexicon_.reverse))
        throw ConfigError(fmt::format("{}: has one direction alone; choose it with --symmetrise", job.load));
      if (lexicon_.parts != job.parts)
        throw ConfigError(fmt::format("{}: was made with --parts {}; give that", job.load, word(lexicon_.parts)));
      return;
    }
    lexicon_.parts = job.parts;
    lexicon_.model = job.aligner.model;
    std::vector<NumberedPair> text;
    LinesOrPairs reader(job.text, false);
    std::string_view s, t;
    const EvenSample sample{std::min(job.sample, pairs), pairs};
    for (int64_t i = 0; reader.next(s, t); ++i) {
      if (!sample.takes(i)) continue;
      NumberedPair pair{lexicon_.source.add(parts(s, true)), lexicon_.target.add(parts(t, false))};
      if (pair.source.empty() || pair.target.empty() || pair.source.size() * pair.target.size() > kMostCells) continue;
      text.push_back(std::move(pair));
    }
    sampled = std::ssize(text);
    if (text.empty()) throw ConfigError(fmt::format("{}: has no pair with words on both sides; give text to align", job.text.name()));
    const auto told = [&](const char* direction) {
      return [&say, direction, i = 0](const AlignerStatistics& statistics) mutable {
        const bool diagonal = statistics.model == AlignmentModel::diagonal;
        say(fmt::format("{}, iteration {}, {}: {:.4f} bits a word, {:.1f} % without a partner{}", direction, ++i, statistics.model,
                        statistics.bits, 100 * statistics.null_share, diagonal ? fmt::format(", tension {:.3f}", statistics.tension) : ""));
      };
    };
    if (job.symmetrisation != Symmetrisation::reverse) lexicon_.forward.emplace(text, job.aligner, told("forward"));
    for (NumberedPair& pair : text) std::swap(pair.source, pair.target);
    if (job.symmetrisation != Symmetrisation::forward) lexicon_.reverse.emplace(text, job.aligner, told("reverse"));
    if (!job.save.empty()) write_lexicon(lexicon_, *real_file_system(), job.save);
  }

  void align(AlignedBlock::Pair& pair) const {
    const NumberedPair ids{lexicon_.source.known(parts(pair.source, true)), lexicon_.target.known(parts(pair.target, false))},
        swapped{ids.target, ids.source};
    if (ids.source.size() * ids.target.size() > kMostCells) {
      pair.log_probability = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    const bool both = job_.symmetrisation != Symmetrisation::forward && job_.symmetrisation != Symmetrisation::reverse;
    const AlignedPair forward = job_.symmetrisation != Symmetrisation::reverse ? lexicon_.forward->align(ids) : AlignedPair(),
                      reverse = job_.symmetrisation != Symmetrisation::forward ? lexicon_.reverse->align(swapped) : AlignedPair();
    pair.links = symmetrised(forward.links, exchanged(reverse.links), job_.symmetrisation);
    pair.log_probability = (forward.log_probability + reverse.log_probability) / (both ? 2 : 1);
  }

  int64_t sampled = 0;

 private:
  std::vector<std::string> parts(std::string_view line, bool source) const {
    return line_parts(line, job_.parts, source ? job_.source_vocabulary : job_.target_vocabulary);
  }
  const AlignJob& job_;
  Lexicon lexicon_;
};

}  // namespace

AlignedCounts align_files(const AlignJob& job, const TaskScreen& screen, const Say& say,
                          const std::function<void(const Links& links, double log_probability)>& take) {
  AlignedCounts result;
  result.pairs = count_pairs(job.text);
  const Directions directions(job, std::max<int64_t>(result.pairs, 1), say);
  result.sampled = directions.sampled;
  TaskProgress progress("align", screen);
  LinesOrPairs reader(job.text, false);
  int64_t done = 0;
  run_in_order<AlignedBlock>({.make =
                                  [&](AlignedBlock& block) {
                                    block.pairs.clear();
                                    std::string_view s, t;
                                    while (block.pairs.size() < kAlignedBlock && reader.next(s, t))
                                      block.pairs.push_back({std::string(s), std::string(t), {}, 0});
                                    return !block.pairs.empty();
                                  },
                              .work =
                                  [&](AlignedBlock& block) {
                                    for (AlignedBlock::Pair& pair : block.pairs) directions.align(pair);
                                  },
                              .take =
                                  [&](AlignedBlock& block) {
                                    for (const AlignedBlock::Pair& pair : block.pairs) {
                                      result.links += std::ssize(pair.links);
                                      result.too_long += std::isnan(pair.log_probability);
                                      take(pair.links, pair.log_probability);
                                    }
                                    done += std::ssize(block.pairs);
                                    if (progress.due()) progress.count(done, result.pairs, "pairs");
                                  }},
                             job.aligner.threads, static_cast<size_t>(4 * job.aligner.threads + 2));
  return result;
}

}  // namespace starling
