// The report as a page: page/index.html with what the cleaning found in it as JSON.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/quotes.h"
#include "cleaning/clean_report.h"
#include "cleaning/copy_search.h"
#include "text/detect_language.h"

namespace starling {

extern const std::string_view kCleaningPage;  // embedded by the build

namespace {

using PageJson = nlohmann::ordered_json;

// A number for each key, so that the page can tell copies again.
class KeyNumbers {
 public:
  size_t of(uint64_t key) { return numbers_.emplace(key, numbers_.size()).first->second; }

 private:
  std::map<uint64_t, size_t> numbers_;
};

PageJson thresholds_of(const Rules& rules) {
  constexpr const char* kBreaks[] = {"below", "atLeast", "above"};
  PageJson all = PageJson::array();
  for (const Threshold& t : rules.thresholds())
    all.push_back({{"rule", static_cast<int>(t.rule)},
                   {"measure", static_cast<int>(t.measure)},
                   {"key", t.key},
                   {"breaks", kBreaks[static_cast<int>(t.breaks)]},
                   {"limit", t.limit},
                   {"unit", t.unit},
                   {"asked", t.asked}});
  return all;
}

PageJson rules_of(const CleanOptions& options) {
  const Rules rules(options);
  return {{"thresholds", thresholds_of(rules)},
          {"marks", rules.marks().bits()},
          {"repetitions", rules.repetitions()},
          {"minScore", options.min_score > CleanOptions::kNoScore ? PageJson(options.min_score) : PageJson()}};
}

PageJson corpus_of(const CorpusCleaning& c, const CleanJob& job, const CorpusFiles& files) {
  PageJson corpus = {{"name", c.name},
                     {"pairs", c.pairs},
                     {"kept", c.kept},
                     {"own", files.clean},
                     {"rules", rules_of(corpus_options(job, files))},
                     {"dropped", c.dropped},
                     {"alone", c.alone},
                     {"repaired", c.repaired},
                     {"sampled", c.sample.size()}};
  for (size_t r = 0; r < kRules; ++r) {
    PageJson examples = PageJson::array();
    for (const CleanExample& e : c.examples[r]) examples.push_back({e.line, e.alone, e.source, e.target, e.of});
    corpus["examples"].push_back(examples);
  }
  return corpus;
}

PageJson frequent(const std::vector<FrequentLine>& lines) {
  PageJson all = PageJson::array();
  for (const FrequentLine& line : lines) all.push_back({line.pairs, shortened(line.text, kShownBytes)});
  return all;
}

}  // namespace

std::string clean_page(const CleanReport& report, const CleanJob& job) {
  PageJson data = {{"rules", words(Rule{})},
                   {"repairs", words(Repair{})},
                   {"measures", words(Measure{})},
                   {"standard", rules_of(job.options)},
                   {"copies", word(job.options.copies)},
                   {"underWay", report.under_way},
                   {"judgedBefore", report.pairs_judged_before},
                   {"frequentSources", frequent(report.frequent_sources)},
                   {"frequentTargets", frequent(report.frequent_targets)},
                   {"corpora", PageJson::array()},
                   {"sample", PageJson::array()}};
  KeyNumbers numbers;
  const CopyKey key = key_of_copies(job);
  for (size_t i = 0; i < report.corpora.size(); ++i) {
    const CorpusCleaning& c = report.corpora[i];
    data["corpora"].push_back(corpus_of(c, job, job.data.train[i]));
    for (const SampledPair& p : c.sample)
      data["sample"].push_back({p.corpus, p.line, p.broken.bits(), p.measures.marks.bits(), p.repairs,
                                std::isinf(p.score) ? PageJson() : PageJson(p.score), p.measures.values, numbers.of(p.keys.*key),
                                likely_language(p.source), likely_language(p.target), p.source, p.target, p.of});
  }
  return with_page_data(kCleaningPage, data.dump(-1, ' ', false, PageJson::error_handler_t::replace));
}

}  // namespace starling
