// Scores of small corpora, for the tests of metrics.
#pragma once

#include <string>
#include <vector>

#include "metrics/metrics.h"

namespace starling {

using Corpus = std::vector<std::string>;
using Words = std::vector<std::string>;

inline const EvaluateOptions kPlain{.tokenizer = bleu_tokenizer_from("none")};

// With one reference for each sentence.
inline MetricScore score_of(const char* metric, const Corpus& hypotheses, const Corpus& references, const EvaluateOptions& options = {}) {
  return evaluate(metric, hypotheses, {&references, 1}, options);
}

// As sacreBLEU prints it, without the signature.
inline std::string text_of(const MetricScore& score) {
  const std::string text = score.signed_text();
  return score.name + text.substr((score.name + "|" + score.signature).size());
}

// 0 to 1.
inline double gleu(const std::string& hypothesis, const std::string& reference) {
  return score_of("gleu", {hypothesis}, {reference}).score / 100;
}

}  // namespace starling
