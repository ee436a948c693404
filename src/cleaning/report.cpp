// What a cleaning did, as text and as JSON.
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "cleaning/clean_report.h"

namespace starling {
namespace {

double percent(int64_t part, int64_t all) { return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all); }

}  // namespace

std::string shortened(const std::string& utf8, size_t bytes) {
  if (utf8.size() <= bytes) return utf8;
  while (bytes > 0 && is_continuation(static_cast<unsigned char>(utf8[bytes]))) --bytes;
  return utf8.substr(0, bytes) + "…";
}

std::string clean_text(const CleanReport& report) {
  std::string text;
  for (const CorpusCleaning& c : report.corpora) {
    text += fmt::format("{}: {} of {} kept ({:.1f} %)\n", printable(c.name), c.kept, counted(c.pairs, report.monolingual ? "line" : "pair"),
                        percent(c.kept, c.pairs));
    for (size_t i = 0; i < kRepairs; ++i)
      if (c.repaired[i] > 0)
        text +=
            fmt::format("  repaired {:<14} {:>9} {}\n", word(static_cast<Repair>(i)), c.repaired[i], c.repaired[i] == 1 ? "side" : "sides");
    for (size_t r = 0; r < kRules; ++r)
      if (c.dropped[r] > 0)
        text +=
            fmt::format("  dropped  {:<14} {:>9} {}, {:5.2f} %, of which {} by this rule alone\n", word(static_cast<Rule>(r)), c.dropped[r],
                        report.monolingual ? (c.dropped[r] == 1 ? "line" : "lines") : (c.dropped[r] == 1 ? "pair" : "pairs"),
                        percent(c.dropped[r], c.pairs), c.alone[r]);
  }
  return text;
}

std::string clean_json(const CleanReport& report) {
  nlohmann::ordered_json json;
  json["facts"] = report.facts;
  json["seconds"] = {{"judging", report.judging}, {"comparing", report.comparing}, {"writing", report.writing}};
  json["pairs_judged_before"] = report.pairs_judged_before;
  for (const CorpusCleaning& c : report.corpora) {
    nlohmann::ordered_json corpus = {{"corpus", c.name}, {"kept_file", c.kept_file},   {"pairs", c.pairs},
                                     {"kept", c.kept},   {"kept_words", c.kept_words}, {"usual_ratio", c.usual_ratio}};
    for (size_t i = 0; i < kRepairs; ++i) corpus["repaired_sides"][std::string(word(static_cast<Repair>(i)))] = c.repaired[i];
    for (size_t r = 0; r < kRules; ++r) {
      nlohmann::ordered_json rule = {{"dropped", c.dropped[r]}, {"alone", c.alone[r]}};
      for (const CleanExample& e : c.examples[r]) {
        rule["examples"].push_back({{"line", e.line}, {"alone", e.alone}, {"source", e.source}, {"target", e.target}});
        if (!e.of.empty()) rule["examples"].back()["of"] = e.of;
      }
      corpus["rules"][std::string(word(static_cast<Rule>(r)))] = rule;
    }
    json["corpora"].push_back(corpus);
  }
  for (const auto& [name, lines] :
       {std::pair("frequent_sources", &report.frequent_sources), {"frequent_targets", &report.frequent_targets}})
    for (const FrequentLine& line : *lines) json[name].push_back({{"pairs", line.pairs}, {"text", line.text}});
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";  // a file's name may be anything
}

}  // namespace starling
