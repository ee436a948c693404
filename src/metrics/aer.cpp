// Alignment error rate, 1 - (|A & S| + |A & P|) / (|A| + |S|) for links A, sure gold links S and possible ones P, which include the sure.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "metrics/metrics_common.h"
#include "text/links.h"

namespace starling {
namespace {

constexpr std::size_t kFigures = 5;  // by sentence: |A & S|, |A & P|, |A|, |S|, |P|

template <class Parse>
auto parsed(const std::string& line, const char* what, std::size_t sentence, Parse parse) {
  try {
    return parse(line);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{} {}: {}", what, sentence + 1, error.what()));
  }
}

std::array<double, kFigures> figures_of(const Links& hypothesis, const GoldLinks& gold) {
  const std::set<std::pair<int32_t, int32_t>> links(hypothesis.begin(), hypothesis.end()), sure(gold.sure.begin(), gold.sure.end());
  std::set<std::pair<int32_t, int32_t>> possible(gold.possible.begin(), gold.possible.end());
  possible.insert(sure.begin(), sure.end());
  const auto common = [&](const auto& with) {
    return static_cast<double>(std::count_if(links.begin(), links.end(), [&](const auto& link) { return with.contains(link); }));
  };
  const auto size = [](const auto& of) { return static_cast<double>(of.size()); };
  return {common(sure), common(possible), size(links), size(sure), size(possible)};
}

double share(double part, double whole) { return whole > 0 ? part / whole : 1; }

}  // namespace

CountedMetric detail::count_aer(Sentences hypotheses, const ReferenceLists& references) {
  check_corpus(hypotheses, references);
  if (references.size() > 1)
    throw DataError(fmt::format("aer needs one list of gold links, not {}; mark links that are not in all lists as possible, such as 1?2",
                                references.size()));
  CountedMetric counted{.width = kFigures};
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Links links = parsed(hypotheses[i], "hypothesis", i, parse_links);
    const GoldLinks gold = parsed(references[0][i], "reference", i, parse_gold_links);
    const auto figures = figures_of(links, gold);
    counted.counts.insert(counted.counts.end(), figures.begin(), figures.end());
  }
  counted.score = [](std::span<const double> sums) { return 100 * (1 - share(sums[0] + sums[1], sums[2] + sums[3])); };
  const std::vector<double> sums = counted.sums();
  counted.corpus = {"AER", counted.score(sums), fmt::format("sure:{:.0f}|possible:{:.0f}|{}", sums[3], sums[4] - sums[3], version_part()),
                    fmt::format("(precision = {:.1f} recall = {:.1f} links = {:.0f})", 100 * share(sums[1], sums[2]),
                                100 * share(sums[0], sums[3]), sums[2])};
  return counted;
}

}  // namespace starling
