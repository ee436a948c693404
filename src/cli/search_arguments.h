// The options of the search that several verbs have; what is not given stays as the model's decode.yml says.
#pragma once

#include <CLI/CLI.hpp>

#include "decode/beam_search.h"

namespace starling {

struct SearchArguments {
  int64_t beam = 0, max_length_offset = -1;  // below the allowed range: not given
  double length_penalty = -1, coverage_penalty = -1, prune_threshold = -1, max_length_factor = -1;
};

// A check that a real number is within low to high; unlike CLI::Range it refuses NaN.
CLI::Validator real_range(double low, double high);

// --beam, --prune-threshold, --max-length-factor, --max-length-offset; with `penalties` --length-penalty and --coverage-penalty too.
// The arguments must live until the command line has been read.
void add_search_options(CLI::App& verb, SearchArguments& arguments, bool penalties);

// The model's options with those that were given in their place.
SearchOptions apply_search_arguments(SearchOptions options, const SearchArguments& arguments);

}  // namespace starling
