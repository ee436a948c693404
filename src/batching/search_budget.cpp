#include "batching/search_budget.h"

#include <algorithm>

#include "base/counted.h"
#include "base/resource_error.h"
#include "decode/search_need.h"

namespace starling {
namespace {

int64_t mebibytes(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

// Returns the bytes of one thread: the larger of as many usual sentences as the rows allow and one sentence with the widest search.
int64_t bytes_of(const ModelDescription& model, int64_t activation, const SearchDemand& demand, int64_t rows) {
  const auto need = [&](const SearchOptions& search, int64_t sentences) {
    const int64_t tokens = demand.source_tokens + static_cast<int64_t>(search.source_prefix_ids.size());
    return search_need(model.config, model.vocabularies.sizes(), search, sentences, sentences * tokens, activation).total();
  };
  return std::max(need(demand.usual, std::max<int64_t>(1, rows / demand.usual.beam)), need(demand.widest, 1));
}

}  // namespace

std::string SearchBudget::text() const {
  std::string text = fmt::format("{} with {} rows take {} MiB at most", counted(threads, "thread"), rows, mebibytes(bytes));
  if (rows < asked) text += fmt::format(" ({} rows would take more memory than there is; see --batch-rows, --max-source-tokens)", asked);
  return text;
}

SearchBudget fit_search_budget(const ModelDescription& model, const Backend& backend, const SearchDemand& demand,
                               const UsableMemory& memory) {
  SearchBudget fit{demand.rows, demand.rows, backend.threads(), 0};
  for (;; fit.rows /= 2) {
    fit.bytes = fit.threads * bytes_of(model, size_of(backend.activation()), demand, fit.rows);
    if (fit.bytes <= memory.bytes) return fit;
    if (fit.rows <= demand.usual.beam) break;
  }
  throw ResourceError(fmt::format(
      "{}: {}, each with one sentence of {} tokens, may take {} MiB, but usable is {}; lower --threads, --max-source-tokens, --beam or "
      "--max-alternatives, or serve fewer models",
      model.directory, counted(fit.threads, "thread"), demand.source_tokens, mebibytes(fit.bytes), memory.text()));
}

}  // namespace starling
