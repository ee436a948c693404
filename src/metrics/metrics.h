// Translation quality on a corpus: BLEU, chrF, TER, equal to sacreBLEU 2.6 in numbers, signatures and printed text, and the
// sentence score GLEU. They are computed here, and not by calling Python, because training scores each validation and because
// a number is only comparable when everybody computes it in the same way; docs/reference/metrics.md says how the equality is checked.
// Every function throws DataError when counts of sentences differ, when there are none, and when text is not valid UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/tokenizers.h"

namespace starling {

/// One score with all that is needed to report it.
struct MetricScore {
  std::string name;         // "BLEU", "chrF2", "chrF2++", "TER", "GLEU"
  double score = 0;         // 0 to 100; TER may exceed 100, and lower is better
  std::string signature;    // "nrefs:1|case:mixed|...|version:starling-0.1.0"
  std::string verbose;      // BLEU's precisions, brevity penalty and lengths; empty for the other metrics
  double length_ratio = 0;  // BLEU's: words of the hypotheses over words of the references; 0 if these have none, and of other metrics

  /// "BLEU|nrefs:1|... = 24.18 77.1/40.5/..." with `width` decimals.
  std::string signed_text(int width = 2) const;
  /// sacreBLEU's keys in its order: name, score (not rounded), signature, verbose_score if any, and each part of the signature.
  nlohmann::ordered_json to_json() const;
};

struct TerOptions {
  bool normalized = false;     // entities decoded, ASCII punctuation set apart
  bool asian_support = false;  // with `normalized`: Chinese characters and CJK punctuation set apart too
};

struct EvaluateOptions {
  BleuTokenizer tokenizer;  // BLEU and GLEU
  bool lowercase = false;   // BLEU, GLEU and chrF; TER always ignores case
  TerOptions ter;
};

/// One string a sentence; several reference translations are several such lists of equal length.
using Sentences = std::span<const std::string>;
using References = std::span<const std::vector<std::string>>;

/// A metric by its name; ConfigError for a name that is not one of these:
/// "bleu" (Papineni et al., 2002), 0 to 100;
/// "chrf" and "chrf++" (Popović, 2015 and 2017), 0 to 100; of several references the one that scores best counts;
/// "ter", translation edit rate (Snover et al., 2006) as Tercom searches it: edits per hundred reference words, shifts count one;
/// "gleu", the mean over sentences of 100 times their GLEU, below; of several references the one that scores best counts.
MetricScore evaluate(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options = {});

/// BLEU and chrF with one reference for each sentence.
MetricScore corpus_bleu(Sentences hypotheses, Sentences references, const EvaluateOptions& options = {});
MetricScore corpus_chrf(Sentences hypotheses, Sentences references, const EvaluateOptions& options = {});

/// The smallest number of edits that the search finds to turn words into the reference, shifts included; words are numbers.
std::int64_t translation_edits(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference);

/// Sentence GLEU (Wu et al., 2016) of token numbers, 0 to 1: the smaller of precision and recall over all 1- to 4-grams; 0 when both are
/// empty.
double sentence_gleu(std::span<const std::int32_t> hypothesis, std::span<const std::int32_t> reference);

/// A metric counted by sentence. A corpus' score is a function of the sums of its sentences' counts, so that corpora that are drawn from
/// these sentences are scored without looking at text again (metrics/significance.h).
struct CountedMetric {
  std::size_t width = 0;                                      // numbers a sentence
  std::vector<double> counts;                                 // [sentences, width]; whole numbers, except for GLEU
  std::function<double(std::span<const double> sums)> score;  // [width] sums over sentences to the score
  MetricScore corpus;                                         // of all sentences together

  std::size_t sentences() const { return counts.size() / width; }
  std::span<const double> row(std::size_t sentence) const { return std::span(counts).subspan(sentence * width, width); }
  /// [width] sums over all sentences.
  std::vector<double> sums() const;
};

/// What `evaluate` scores, with its counts by sentence; the same errors.
CountedMetric count_metric(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options = {});

}  // namespace starling
