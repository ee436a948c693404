#include "decode/beam_search.h"

namespace starling {
namespace {

std::vector<std::vector<Hypothesis>> run(Search& search, size_t sentences, SearchWork* work, const std::function<void()>& each_step) {
  std::vector<std::vector<Hypothesis>> results(sentences);
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

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(Model& model, std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work, const std::function<void()>& each_step) {
  Search search(model);
  for (size_t i = 0; i < sources.size(); ++i) search.add(static_cast<int64_t>(i), sources[i], options);
  return run(search, sources.size(), work, each_step);
}

std::vector<std::vector<Hypothesis>> beam_search(std::span<Model* const> models, std::span<const std::vector<std::vector<int32_t>>> sources,
                                                 const SearchOptions& options, SearchWork* work, const std::function<void()>& each_step) {
  CHECK(!models.empty() && models.size() == sources.size(), "sources for {} of {} models", sources.size(), models.size());
  Search search(*models[0], {models.begin() + 1, models.end()});
  for (size_t i = 0; i < sources[0].size(); ++i) {
    std::vector<std::vector<int32_t>> others;
    for (size_t m = 1; m < models.size(); ++m) others.push_back(sources[m][i]);
    search.add(static_cast<int64_t>(i), sources[0][i], options, std::move(others));
  }
  return run(search, sources[0].size(), work, each_step);
}

}  // namespace starling
