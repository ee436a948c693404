// Beam search for a batch of sentences that all begin together (decode/search.h).
#pragma once

#include <functional>

#include "decode/search.h"

namespace starling {

// Returns the n_best hypotheses of each source (token ids ending with end of sentence), best first; fewer if pruning left fewer. `work`, if
// given, accumulates the cost; `each_step`, if given, is called before every step and may throw.
std::vector<std::vector<Hypothesis>> beam_search(Model& model, std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work = nullptr, const std::function<void()>& each_step = {});

// The models of a search, or of an ensemble of several (decode/search.h), and their weights, if they do not count alike.
struct SearchModels {
  std::vector<Model*> models;
  std::vector<double> weights;
};
// The same with sources[m], the sentences in the tokens of model m, and options for all sentences or, as many, for each of them.
std::vector<std::vector<Hypothesis>> beam_search(const SearchModels& models, std::span<const std::vector<std::vector<int32_t>>> sources,
                                                 std::span<const SearchOptions> options, SearchWork* work = nullptr,
                                                 const std::function<void()>& each_step = {});

}  // namespace starling
