// Translation quality, equal to sacreBLEU in numbers and signatures.
#pragma once

#include <string>
#include <vector>

#include "starling/error.h"

STARLING_NAMESPACE_BEGIN

struct MetricOptions {
  std::string tokenize = "auto";  // of BLEU: auto (by the references' language), 13a, intl, char, zh, ja-mecab, none, spm:FILE
  bool lowercase = false;
};

struct MetricScore {
  std::string name;       // "BLEU"
  double score = 0;       // 0 to 100; of TER lower is better
  std::string signature;  // what the score depends on
};

/// Scores a corpus. `metric`: bleu, chrf, chrf++, ter, gleu, or aer for lines of links. `references`: one list or several, each as long as
/// the hypotheses. Throws Error.
STARLING_API MetricScore evaluate(const std::string& metric, const std::vector<std::string>& hypotheses,
                                  const std::vector<std::vector<std::string>>& references, const MetricOptions& options = {});

STARLING_NAMESPACE_END
