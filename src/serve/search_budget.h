// What the searches of a model's threads may take, asked before it is served: a server that grows beyond the memory of its machine or
// container is killed without a word, perhaps days later, when many long sentences come together.
#pragma once

#include <cstdint>
#include <string>

#include "base/memory.h"
#include "decode/model_directory.h"

namespace starling {

struct SearchBudget {
  int64_t rows = 0;          // hypotheses that each thread extends together: as many as were asked for, or as fit
  int64_t asked = 0;         // rows that were asked for
  int threads = 0;           // of the model
  int64_t bytes = 0;         // of all threads, at most, where translations are about as long as their sources
  std::string text() const;  // for the operator
};

struct SearchDemand {
  int64_t rows, source_tokens;  // hypotheses of a thread; tokens of a sentence, at most
  SearchOptions usual, widest;  // how sentences are searched for, and how the widest search is
};

// The rows are lowered until the threads fit into the memory, all with the longest sentences that they take. ResourceError where not even
// one sentence for each thread does.
SearchBudget fit_search_budget(const LoadedModel& model, const SearchDemand& demand, const UsableMemory& memory);

}  // namespace starling
