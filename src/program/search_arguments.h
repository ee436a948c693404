// The search options that several verbs share. Options that are not given keep the values of the model's decode.yml.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "decode/beam_search.h"

namespace starling {

// Checks that a real number is between low and high; unlike CLI::Range, it refuses NaN.
CLI::Validator real_range(double low, double high);
// For transform(): accepts seconds as a number or as a duration such as 90s, 12m or 1h30m.
CLI::Validator duration_range(double low, double high);

class SearchArguments {
 public:
  // Adds an option for each key of SearchOptions except `without`.
  void add_to(CLI::App& verb, const std::vector<std::string>& without = {});
  bool given(const std::string& key) const;
  // Returns the model's options, overridden by those that were given.
  SearchOptions apply(SearchOptions options) const;

 private:
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // by key
};

}  // namespace starling
