#include "decode/beam_search.h"

namespace starling {

std::vector<std::vector<Hypothesis>> beam_search(Model& model, std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work, const std::function<void()>& each_step) {
  Search search(model);
  for (size_t i = 0; i < sources.size(); ++i) search.add(static_cast<int64_t>(i), sources[i], options);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  while (!search.empty()) {
    if (each_step) each_step();
    for (Search::Finished& f : search.step()) results[static_cast<size_t>(f.key)] = std::move(f.hypotheses);
  }
  if (work) {
    work->steps += search.work().steps;
    work->rows += search.work().rows;
  }
  return results;
}

}  // namespace starling
