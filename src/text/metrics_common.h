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

/// "version:starling-0.1.0"
std::string version_part();

}  // namespace starling::detail
