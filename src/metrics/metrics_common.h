// Shared by the metrics: validates the input once, so that inner loops need not, and makes the end of a signature.
#pragma once

#include <string>
#include <vector>

#include "metrics/metrics.h"

namespace starling::detail {

/// One or several lists of references, by index, without copies.
using ReferenceLists = std::vector<Sentences>;

/// Throws DataError unless there is at least one sentence, every list has as many as the hypotheses, and all are valid UTF-8.
void check_corpus(Sentences hypotheses, const ReferenceLists& references);

/// Compute each metric's counts by sentence and the score of the corpus. word_order: for chrF; 2 is chrF++.
CountedMetric count_bleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options);
CountedMetric count_chrf(Sentences hypotheses, const ReferenceLists& references, int word_order, bool lowercase);
CountedMetric count_ter(Sentences hypotheses, const ReferenceLists& references, const TerOptions& options);
CountedMetric count_aer(Sentences hypotheses, const ReferenceLists& references);
CountedMetric count_gleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options);

/// Returns "version:starling-0.1.0".
std::string version_part();

}  // namespace starling::detail
