// Reports scores in sacreBLEU's formats, and holds the table of metric names.
#include "metrics/metrics.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/version.h"
#include "metrics/metrics_common.h"
#include "text/unicode.h"

namespace starling {

namespace detail {

static void check_utf8(Sentences sentences, const std::string& what) {
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (const auto offset = invalid_utf8_offset(sentences[i])) {
      throw DataError(fmt::format("{} {}: invalid UTF-8 at byte {}; convert the text to UTF-8", what, i + 1, *offset));
    }
  }
}

void check_corpus(Sentences hypotheses, const ReferenceLists& references) {
  if (references.empty()) throw DataError("no references to score against; give at least one list of references");
  if (hypotheses.empty()) throw DataError("no hypotheses to score; the corpus has no sentences");
  check_utf8(hypotheses, "hypothesis");
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() != hypotheses.size()) {
      throw DataError(fmt::format("{} hypotheses but {} sentences in reference list {}; give one reference for each hypothesis",
                                  hypotheses.size(), references[r].size(), r + 1));
    }
    check_utf8(references[r], fmt::format("reference list {}, sentence", r + 1));
  }
}

std::string version_part() { return fmt::format("version:starling-{}", kVersion); }

}  // namespace detail

std::string MetricScore::signed_text(int width) const {
  return fmt::format("{}|{} = {:.{}f}{}{}", name, signature, score, width, verbose.empty() ? "" : " ", verbose);
}

nlohmann::ordered_json MetricScore::to_json() const {
  nlohmann::ordered_json json{{"name", name}, {"score", score}, {"signature", signature}};
  if (!verbose.empty()) json["verbose_score"] = verbose;
  for (std::size_t begin = 0; begin < signature.size();) {
    const std::size_t end = std::min(signature.find('|', begin), signature.size());
    const std::string part = signature.substr(begin, end - begin);
    const std::size_t colon = part.find(':');
    json[part.substr(0, colon)] = part.substr(colon + 1);
    begin = end + 1;
  }
  return json;
}

std::vector<double> CountedMetric::sums() const {
  std::vector<double> sums(width, 0.0);
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i % width] += counts[i];
  return sums;
}

CountedMetric count_metric(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options) {
  const detail::ReferenceLists lists(references.begin(), references.end());
  if (metric == "bleu") return detail::count_bleu(hypotheses, lists, options);
  if (metric == "chrf") return detail::count_chrf(hypotheses, lists, 0, options.lowercase);
  if (metric == "chrf++") return detail::count_chrf(hypotheses, lists, 2, options.lowercase);
  if (metric == "ter") return detail::count_ter(hypotheses, lists, options.ter);
  if (metric == "gleu") return detail::count_gleu(hypotheses, lists, options);
  if (metric == "aer") return detail::count_aer(hypotheses, lists);
  throw ConfigError(fmt::format("unknown metric '{}'; choose from bleu, chrf, chrf++, ter, gleu, aer", metric));
}

MetricScore evaluate(std::string_view metric, Sentences hypotheses, References references, const EvaluateOptions& options) {
  return count_metric(metric, hypotheses, references, options).corpus;
}

MetricScore corpus_bleu(Sentences hypotheses, Sentences references, const EvaluateOptions& options) {
  return detail::count_bleu(hypotheses, {references}, options).corpus;
}

MetricScore corpus_chrf(Sentences hypotheses, Sentences references, const EvaluateOptions& options) {
  return detail::count_chrf(hypotheses, {references}, 0, options.lowercase).corpus;
}

}  // namespace starling
