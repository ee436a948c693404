// Translation quality on a corpus: BLEU, chrF and TER, equal to sacreBLEU 2.6 in numbers, signatures and printed text, the sentence
// score GLEU, and the error rate of word alignments. They are computed here instead of by calling Python, because training scores every
// validation and because a number is only comparable if everybody computes it in the same way; docs/reference/metrics.md says how the
// equality is checked. Every function throws DataError if the numbers of sentences differ, if there are none, or if text is not valid
// UTF-8.
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
  std::string name;         // "BLEU", "chrF2", "chrF2++", "TER", "GLEU", "AER"
  double score = 0;         // 0 to 100; lower is better for TER, which may exceed 100, and AER
  std::string signature;    // "nrefs:1|case:mixed|...|version:starling-0.1.0"
  std::string verbose;      // BLEU's precisions, brevity penalty and lengths; empty for the other metrics
  double length_ratio = 0;  // of BLEU: words in the hypotheses over words in the references; 0 if these have none, and for other metrics

  /// Returns "BLEU|nrefs:1|... = 24.18 77.1/40.5/..." with `width` decimals.
  std::string signed_text(int width = 2) const;
  /// Returns sacreBLEU's keys in its order: name, score (not rounded), signature, verbose_score if any, and each part of the signature.
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

/// One string per sentence; several reference translations are several such lists of equal length.
using Sentences = std::span<const std::string>;
using References = std::span<const std::vector<std::string>>;

/// Computes a metric by name; throws ConfigError for a name that is not one of these:
/// "bleu" (Papineni et al., 2002), 0 to 100;
/// "chrf" and "chrf++" (Popović, 2015 and 2017), 0 to 100; with several references, the best-scoring one counts;
/// "ter", translation edit rate (Snover et al., 2006) by Tercom's search: edits per hundred reference words, a shift being one edit;
/// "gleu", the mean over sentences of 100 times their GLEU, below; with several references, the best-scoring one counts;
/// "aer", alignment error rate (Och and Ney, 2003): sentences are lines of links (text/links.h), and the one list of references gold ones.
MetricScore evaluate(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options = {});

/// Compute BLEU and chrF with one reference per sentence.
MetricScore corpus_bleu(Sentences hypotheses, Sentences references, const EvaluateOptions& options = {});
MetricScore corpus_chrf(Sentences hypotheses, Sentences references, const EvaluateOptions& options = {});

/// Returns the smallest number of edits, shifts included, that the search finds to turn the hypothesis into the reference. Words are
/// numbers.
std::int64_t translation_edits(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference);

/// Returns for each word of the hypothesis whether the same search matches it with an equal word of the reference, moved or not: what
/// word-level quality estimation calls OK.
std::vector<bool> matched_words(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference);

/// Returns the sentence GLEU (Wu et al., 2016) of token ids, 0 to 1: the smaller of precision and recall over all 1- to 4-grams; 0 if both
/// are empty.
double sentence_gleu(std::span<const std::int32_t> hypothesis, std::span<const std::int32_t> reference);

/// The counts of a metric by sentence. The score of a corpus is a function of the sums of these counts, so that corpora resampled from the
/// sentences can be scored without processing their text again (metrics/significance.h).
struct CountedMetric {
  std::size_t width = 0;                                      // numbers per sentence
  std::vector<double> counts;                                 // [sentences, width]; whole numbers, except for GLEU
  std::function<double(std::span<const double> sums)> score;  // [width] sums over sentences to the score
  MetricScore corpus;                                         // of all sentences together

  std::size_t sentences() const { return counts.size() / width; }
  std::span<const double> row(std::size_t sentence) const { return std::span(counts).subspan(sentence * width, width); }
  /// Returns the [width] sums over all sentences.
  std::vector<double> sums() const;
};

/// Like `evaluate`, but returns the counts by sentence too; throws the same errors.
CountedMetric count_metric(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options = {});

}  // namespace starling
