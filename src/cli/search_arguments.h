// The options of the search that several verbs have; what is not given stays as the model's decode.yml says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "decode/beam_search.h"

namespace starling {

// A check that a real number is within low to high; unlike CLI::Range it refuses NaN.
CLI::Validator real_range(double low, double high);
// For transform(): seconds, as a number or as a duration such as 90s, 12m or 1h30m.
CLI::Validator duration_range(double low, double high);

class SearchArguments {
 public:
  // An option for each key of SearchOptions but `without`.
  void add_to(CLI::App& verb, const std::vector<std::string>& without = {});
  bool given(const std::string& key) const;
  // The model's options with those that were given in their place.
  SearchOptions apply(SearchOptions options) const;

 private:
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // by key
};

}  // namespace starling
