// What the metrics share: checking their input once at the door, so that the inner loops need not, and the end of a signature.
#pragma once

#include <string>
#include <vector>

#include "text/metrics.h"

namespace starling::detail {

/// References by number, without copying: one list or several.
using ReferenceLists = std::vector<Sentences>;
ReferenceLists as_lists(References references);

/// Throws DataError unless there is at least one sentence, every list has as many as the hypotheses, and all are valid UTF-8.
void check_corpus(Sentences hypotheses, const ReferenceLists& references);

/// Each metric counted by sentence, with the corpus' score; what corpus_bleu and the others and count_metric are made of.
CountedMetric count_bleu(Sentences hypotheses, const ReferenceLists& references, const BleuOptions& options);
CountedMetric count_chrf(Sentences hypotheses, const ReferenceLists& references, const ChrfOptions& options);
CountedMetric count_ter(Sentences hypotheses, const ReferenceLists& references, const TerOptions& options);
CountedMetric count_gleu(Sentences hypotheses, const ReferenceLists& references, const GleuOptions& options);

/// "version:starling-0.1.0"
std::string version_part();

}  // namespace starling::detail
