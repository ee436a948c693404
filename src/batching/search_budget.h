// Bounds the memory of a model's searches before it is served. A server that outgrows the memory of its machine or container is killed
// without a message, perhaps days later, when many long sentences arrive together.
#pragma once

#include <cstdint>
#include <string>

#include "base/memory.h"
#include "decode/model_directory.h"

namespace starling {

struct SearchBudget {
  int64_t rows = 0;          // hypotheses that each thread extends in one step: as many as requested, or as fit
  int64_t asked = 0;         // rows requested
  int threads = 0;           // threads of the model
  int64_t bytes = 0;         // upper bound for all threads, if translations are about as long as their sources
  std::string text() const;  // for the operator
};

struct SearchDemand {
  int64_t rows, source_tokens;  // hypotheses per thread; most tokens of a sentence, without the search's prefixes
  SearchOptions usual, widest;  // the usual search, and the widest one; with the numbers of their prefixes
};

// Lowers the rows until all threads of the backend fit into the memory with the longest sentences that they accept. Throws ResourceError if
// not even one sentence per thread fits.
SearchBudget fit_search_budget(const ModelDescription& model, const Backend& backend, const SearchDemand& demand,
                               const UsableMemory& memory);

}  // namespace starling
