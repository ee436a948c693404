#include "translate/models.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decode/framing.h"
#include "interop/usable_model.h"

namespace starling {
namespace {

LoadedModel load_first(FileSystem& files, const TranslateOptions& o, ShardRanks& shards, const Say& say) {
  DeviceChoice choice = o.compute;
  choice.threads = shards.threads(choice.threads);
  if (const std::string why = why_no_card(choice); !why.empty()) say(why);
  ModelDescription description = shards.describe(files, usable_model(files, o.models.front(), say), choice);
  return load_model(files, std::move(description), choice, shards.group());
}

SearchOptions search_of(const ModelDescription& model, const TranslateOptions& o) {
  return into_language(o.search(model.search), model, o.target_language);
}

SearchOptions checked_search(const ModelDescription& model, const TranslateOptions& o) {
  SearchOptions search = search_of(model, o);
  if (o.sampling || (o.n_best > search.beam && !o.beam_given)) search.beam = o.n_best;
  if (o.n_best > std::max<int64_t>(search.beam, std::llround(static_cast<double>(search.beam) * search.patience)))
    throw ConfigError(fmt::format("--n-best {} is more than the beam of {}; raise --beam, or --patience", o.n_best, search.beam));
  if (o.sampling && (search.repetition_penalty != 1 || search.prefix_bias > 0))
    throw ConfigError(
        "--sampling draws from the model's own probabilities; leave it out, or set --repetition-penalty 1 and --prefix-bias 0");
  search.n_best = o.n_best;
  search.alignment = o.document || o.lines.alignment;
  search.attention = o.lines.soft_alignment || o.lines.alignment_threshold > 0;
  return search;
}

Languages languages_of(const ModelDescription& model, const TranslateOptions& o) {
  Languages languages = model.languages;
  if (!o.source_language.empty() && !o.leaves_other_languages()) languages.source = o.source_language;
  if (!o.target_language.empty()) languages.target = o.target_language;
  return languages;
}

std::vector<double> shares_of(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

}  // namespace

TranslationModels::TranslationModels(FileSystem& files, const TranslateOptions& o, ShardRanks& shards, const Say& say)
    : first_(load_first(files, o, shards, say)) {
  if (o.confidence) first_.confidence.require();
  for (size_t m = 1; m < o.models.size(); ++m) {
    const LoadedModel& other = others_.emplace_back(load_beside(files, usable_model(files, o.models[m], say), first_));
    members_.push_back({other.model.get(), &other.description.vocabularies, search_of(other.description, o).source_prefix});
  }
  search_ = checked_search(first_.description, o);
  languages_ = languages_of(first_.description, o);
}

std::vector<NamedPath> TranslationModels::directories() const {
  std::vector<NamedPath> all{{"--model", first_.description.directory}};
  for (const LoadedModel& other : others_) all.push_back({"--model", other.description.directory});
  return all;
}

bool TranslationModels::have_room(std::string_view line, int64_t tokens) const {
  const auto has_room = [&](const LoadedModel& model, const std::string& prefix) {
    const Vocabulary& source = model.description.vocabularies.source();
    return std::ssize(source.encode(line)) + std::ssize(source.ids_of(prefix, "source-prefix")) <= tokens;
  };
  if (!has_room(first_, search_.source_prefix)) return false;
  for (size_t i = 0; i < others_.size(); ++i)
    if (!has_room(others_[i], members_[i].source_prefix)) return false;
  return true;
}

Translator TranslationModels::translator(const TranslateOptions& o, int processes) const {
  Translator translator(*first_.model, first_.description.vocabularies, search_, o.batch_sentences, o.max_source_tokens, nullptr, members_);
  translator.set_memory({.processes = processes});
  if (o.sampling) translator.set_sampling(o.drawing);
  if (!o.glossary.empty()) translator.set_glossary(Glossary::load(o.glossary));
  translator.set_form(o.form);
  translator.set_weights(shares_of(o.weights));
  if (o.leaves_other_languages()) {
    const std::vector<std::string> sources = source_languages(languages_);
    if (sources.empty())
      throw ConfigError(fmt::format("--source-language auto: {} does not say which language it translates from; leave the option out",
                                    first_.description.directory));
    translator.set_source_languages(sources, languages_.target);
  }
  if (!o.memory.empty()) translator.set_translation_memory(TranslationMemory::load(o.memory, languages_.source, languages_.target));
  return translator;
}

}  // namespace starling
