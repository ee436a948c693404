#include "translate/options.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/error.h"

namespace starling {
namespace {

void check_document(const TranslateOptions& o) {
  if (!o.document && o.format != "auto") throw ConfigError(fmt::format("--format {} is for documents; add --document", o.format));
  if (!o.document && !o.keep.empty()) throw ConfigError("--keep is for documents; add --document");
  if (o.leaves_other_languages() && (o.tsv || !o.prefix_file.empty() || o.form.source_pieces || o.form.target_pieces))
    throw ConfigError("--source-language auto is for text; leave out --tsv, --prefix-file, --source-pieces and --target-pieces");
  if (!o.document && !o.source_language.empty() && !o.leaves_other_languages())
    throw ConfigError(
        "--source-language determines where the sentences of a document end; add --document, or leave it out. A model that must be told "
        "the language of its source takes the language's piece: --source-prefix __en__");
  if (!o.leaves_other_languages()) check({o.source_language, ""}, "translate");
  if (o.document && o.n_best > 1)
    throw ConfigError("--n-best gives lists of sentences, and --document one document; leave out one of the two");
  if (o.document && o.shards > 1) throw ConfigError("--document translates with one rank; leave out --parallel.tensor");
  const std::pair<bool, const char*> for_lines[] = {{o.lines.alignment || o.lines.soft_alignment, "--alignment"},
                                                    {o.sampling, "--sampling"},
                                                    {o.lines.scores.has_value(), "--word-scores"},
                                                    {o.confidence, "--confidence"},
                                                    {o.tsv, "--tsv"},
                                                    {!o.prefix_file.empty(), "--prefix-file"},
                                                    {o.form.source_pieces, "--source-pieces"},
                                                    {o.form.target_pieces, "--target-pieces"}};
  for (const auto& [given, option] : for_lines)
    if (o.document && given) throw ConfigError(fmt::format("{} is for lines; leave it out, or --document", option));
  if (o.form.source_pieces && o.lines.alignment == AlignmentUnit::words)
    throw ConfigError("--alignment words needs the words of a text, and --source-pieces reads pieces; choose --alignment pieces");
}

void check_models_and_sampling(const TranslateOptions& o) {
  if (o.models.size() > 1 && o.shards > 1)
    throw ConfigError("an ensemble of several --model translates with one rank; leave out --parallel.tensor");
  if (!o.weights.empty() && o.weights.size() != o.models.size())
    throw ConfigError(fmt::format("--weights has {} for {} --model; give one for each", o.weights.size(), o.models.size()));
  if (!o.weights.empty() && std::accumulate(o.weights.begin(), o.weights.end(), 0.0) <= 0)
    throw ConfigError("--weights are all 0; give at least one above 0");
  if (!o.glossary.empty() && (o.sampling || o.form.source_pieces || o.form.target_pieces || o.models.size() > 1 || o.shards > 1))
    throw ConfigError(
        "--glossary is for text that one model searches translations of; leave out --sampling, --source-pieces, --target-pieces, "
        "--parallel.tensor and further --model");
  if (!o.memory.empty() && (o.form.source_pieces || o.form.target_pieces || o.tsv || !o.prefix_file.empty()))
    throw ConfigError("--memory is for text; leave out --source-pieces, --target-pieces, --tsv and --prefix-file");
  if (!o.sampling) return;
  if (o.tsv || !o.prefix_file.empty())
    throw ConfigError(
        "--tsv and --prefix-file give each translation a beginning, and --sampling draws at random; leave out one of the two");
  if (o.models.size() > 1) throw ConfigError("--sampling draws from one model; leave it out, or all but one --model");
  if (o.beam_given) throw ConfigError("--beam searches, and --sampling draws at random; leave out one of the two");
  if (o.lines.alignment || o.lines.soft_alignment || o.lines.scores)
    throw ConfigError("--alignment and --word-scores are for translations that are searched for; leave them out, or --sampling");
  if (o.shards > 1) throw ConfigError("--sampling translates with one rank; leave out --parallel.tensor");
}

}  // namespace

void check(const TranslateOptions& o) {
  check_document(o);
  check_models_and_sampling(o);
}

}  // namespace starling
