// What the metrics share: checking their input once at the door, so that the inner loops need not, and the end of a signature.
#pragma once

#include <string>
#include <vector>

#include "metrics/metrics.h"

namespace starling::detail {

/// References by number, without copying: one list or several.
using ReferenceLists = std::vector<Sentences>;

/// Throws DataError unless there is at least one sentence, every list has as many as the hypotheses, and all are valid UTF-8.
void check_corpus(Sentences hypotheses, const ReferenceLists& references);

/// Each metric counted by sentence, with the corpus' score. word_order: of chrF, 2 is chrF++.
CountedMetric count_bleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options);
CountedMetric count_chrf(Sentences hypotheses, const ReferenceLists& references, int word_order, bool lowercase);
CountedMetric count_ter(Sentences hypotheses, const ReferenceLists& references, const TerOptions& options);
CountedMetric count_gleu(Sentences hypotheses, const ReferenceLists& references, const EvaluateOptions& options);

/// "version:starling-0.1.0"
std::string version_part();

}  // namespace starling::detail
