// Beam search for a batch of sentences that all begin together (decode/search.h).
#pragma once

#include <functional>

#include "decode/search.h"

namespace starling {

// Returns the n_best hypotheses of each source (token ids ending with end of sentence), best first; fewer if pruning left fewer. `work`, if
// given, accumulates the cost; `each_step`, if given, is called before every step and may throw.
std::vector<std::vector<Hypothesis>> beam_search(Model& model, std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work = nullptr, const std::function<void()>& each_step = {});

// The same with an ensemble (decode/search.h): sources[m] are the sentences in the tokens of model m.
std::vector<std::vector<Hypothesis>> beam_search(std::span<Model* const> models, std::span<const std::vector<std::vector<int32_t>>> sources,
                                                 const SearchOptions& options, SearchWork* work = nullptr,
                                                 const std::function<void()>& each_step = {});

}  // namespace starling
