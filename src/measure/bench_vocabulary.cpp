#include "measure/bench_vocabulary.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/corpus.h"
#include "data/tokenize.h"
#include "text/vocabulary.h"

namespace starling {
namespace {

constexpr int64_t kProbe = 20'000;  // lines of each file on which tokens are counted

std::vector<std::string> first_lines(const DataOptions& data, size_t count) {
  std::vector<std::string> lines;
  CorpusLines next(data, Side::both);
  for (std::string_view line; lines.size() < count && next(line);) lines.emplace_back(line);
  return lines;
}

}  // namespace

std::vector<SampleRow> bench_vocabulary(const BenchVocabularyOptions& o, const Say& say) {
  DataOptions data;
  data.train = {{o.source, o.target, "", 1}};
  std::string directory = (std::filesystem::temp_directory_path() / "starling-vocabulary-XXXXXX").string();
  if (!mkdtemp(directory.data())) throw IoError(fmt::format("{}: cannot be made", directory));
  const auto files = real_file_system();
  std::vector<SampleRow> rows;
  std::vector<Vocabulary> vocabularies;
  try {
    for (const int64_t lines : o.lines) {
      VocabularyOptions options;
      options.size = o.vocabulary;
      options.type = o.type;
      options.seed = o.seed;
      options.sample_lines = lines;
      const std::string path = join_path(directory, "vocab.spm");
      VocabularyWatch watch;
      watch.say = say;
      const double start = steady_seconds();
      const VocabularyReport report = train_vocabulary(CorpusLines(data, Side::both), options, path, watch);
      vocabularies.push_back(Vocabulary::load(path));
      rows.push_back({.sampled = report.sampled,
                      .sampled_bytes = report.sampled_bytes,
                      .seconds = steady_seconds() - start,
                      .peak_child_bytes = peak_memory().children,
                      .pieces = report.size});
    }
  } catch (...) {
    files->remove_all(directory);
    throw;
  }
  files->remove_all(directory);

  const std::vector<std::string> probe = first_lines(data, 2 * kProbe);
  std::set<std::string> last;
  for (int32_t id = 0; id < vocabularies.back().size(); ++id) last.insert(vocabularies.back().piece(id));
  for (size_t i = 0; i < rows.size(); ++i) {
    const Vocabulary& vocabulary = vocabularies[i];
    std::vector<bool> in_last(static_cast<size_t>(vocabulary.size()));
    int64_t shared = 0, tokens = 0, shared_tokens = 0;
    for (int32_t id = 0; id < vocabulary.size(); ++id) shared += in_last[static_cast<size_t>(id)] = last.contains(vocabulary.piece(id));
    for (const std::string& line : probe)
      for (const int32_t id : vocabulary.encode(line)) ++tokens, shared_tokens += in_last[static_cast<size_t>(id)];
    rows[i].shared = static_cast<double>(shared) / static_cast<double>(vocabulary.size());
    rows[i].shared_use = static_cast<double>(shared_tokens) / static_cast<double>(std::max<int64_t>(tokens, 1));
    rows[i].tokens_per_line = static_cast<double>(tokens) / static_cast<double>(std::max<size_t>(probe.size(), 1));
  }
  return rows;
}

}  // namespace starling
