#include "starling/metrics.h"

#include "library/guarded.h"
#include "metrics/metrics.h"
#include "metrics/tokenizer_choice.h"

namespace starling {

v0::MetricScore v0::evaluate(const std::string& metric, const std::vector<std::string>& hypotheses,
                             const std::vector<std::vector<std::string>>& references, const MetricOptions& options) {
  return guarded([&] {
    EvaluateOptions o;
    o.lowercase = options.lowercase;
    if (is_tokenized(metric)) o.tokenizer = choose_tokenizer(options.tokenize, references).tokenizer;
    const starling::MetricScore score = starling::evaluate(metric, hypotheses, references, o);
    return v0::MetricScore{score.name, score.score, score.signature};
  });
}

}  // namespace starling
