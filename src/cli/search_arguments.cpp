#include "cli/search_arguments.h"

#include <fmt/format.h>

#include "cli/help.h"

namespace starling {

CLI::Validator real_range(double low, double high) {
  const std::string range = fmt::format("[{} - {}]", low, high);
  return {[=](std::string& text) {
            double value = 0;
            const bool inside = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
            return inside ? std::string() : fmt::format("Value {} not in range {}", text, range);
          },
          "FLOAT in " + range};
}

void add_search_options(CLI::App& verb, SearchArguments& a, bool penalties) {
  verb.add_option("--beam", a.beam, "beam width; default: the model's")->check(CLI::Range(1, 1024));
  if (penalties) {
    verb.add_option("--length-penalty", a.length_penalty, "alpha of ((5+|Y|)/6)^alpha; default: the model's")->check(real_range(0, 10));
    verb.add_option("--coverage-penalty", a.coverage_penalty,
                    "beta of what source tokens with less than 1 of attention in all cost; 0 = off; default: the model's")
        ->check(real_range(0, 10))
        ->group(kFurtherGroup);
  }
  verb.add_option("--prune-threshold", a.prune_threshold,
                  "hypotheses so many nats below the best are given up; 0 = never; default: the model's")
      ->check(real_range(0, 1000))
      ->group(kFurtherGroup);
  verb.add_option("--max-length-factor", a.max_length_factor, "at most factor * source tokens + offset; default: the model's")
      ->check(real_range(0, 100))
      ->group(kFurtherGroup);
  verb.add_option("--max-length-offset", a.max_length_offset, "the offset, tokens; default: the model's")
      ->check(CLI::Range(1, 100000))
      ->group(kFurtherGroup);
}

SearchOptions apply_search_arguments(SearchOptions o, const SearchArguments& a) {
  if (a.beam > 0) o.beam = a.beam;
  if (a.length_penalty >= 0) o.length_penalty = a.length_penalty;
  if (a.coverage_penalty >= 0) o.coverage_penalty = a.coverage_penalty;
  if (a.prune_threshold >= 0) o.prune_threshold = a.prune_threshold;
  if (a.max_length_factor >= 0) o.max_length_factor = a.max_length_factor;
  if (a.max_length_offset >= 0) o.max_length_offset = a.max_length_offset;
  return o;
}

}  // namespace starling
