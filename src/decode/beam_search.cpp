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

std::vector<std::vector<Hypothesis>> beam_search(const SearchModels& m, std::span<const std::vector<std::vector<int32_t>>> sources,
                                                 std::span<const SearchOptions> options, SearchWork* work,
                                                 const std::function<void()>& each_step) {
  CHECK(!m.models.empty() && m.models.size() == sources.size(), "sources for {} of {} models", sources.size(), m.models.size());
  const size_t count = sources[0].size();
  CHECK(options.size() == 1 || options.size() == count, "{} options for {} sentences", options.size(), count);
  Search search(*m.models[0], {m.models.begin() + 1, m.models.end()}, m.weights);
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::vector<int32_t>> others;
    for (size_t k = 1; k < m.models.size(); ++k) others.push_back(sources[k][i]);
    search.add(static_cast<int64_t>(i), sources[0][i], options[options.size() == 1 ? 0 : i], std::move(others));
  }
  return run(search, count, work, each_step);
}

}  // namespace starling
