#include "interop/hf.h"

#include <algorithm>

#include "base/counted.h"
#include "interop/hf_vocabulary.h"
#include "interop/hf_weights.h"

namespace starling {
namespace {

constexpr const char *kConfig = "config.json", *kGeneration = "generation_config.json";

}  // namespace

bool is_hf_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") || name.starts_with("pytorch_model");
}

bool is_hf(const ForeignFiles& folder) {
  const std::vector<std::string>& names = folder.names();
  return folder.has(kConfig) && !folder.has("config.yml") && std::any_of(names.begin(), names.end(), is_hf_weights);
}

ImportedModel read_hf(FileSystem& files, const ForeignFiles& folder, const VocabularyFiles& given, const Languages& languages) {
  const HfSettings settings(folder.read(kConfig), folder.where(kConfig), folder.budget());
  HfConfig config = hf_config(settings);
  std::optional<HfSettings> generation;
  if (folder.has(kGeneration)) generation.emplace(folder.read(kGeneration), folder.where(kGeneration), folder.budget());
  std::vector<std::string> notes;
  SearchOptions search = hf_search(settings, generation ? &*generation : nullptr, config.pad, notes);
  if (generation && generation->find("forced_bos_token_id")) config.forced = generation->get<int64_t>("forced_bos_token_id", -1);

  HfWeights weights(folder);
  std::vector<OwnedTensor> tensors = hf_tensors(weights, config, folder.budget(), notes);
  const HfPieces pieces = hf_pieces(files, folder, config, given);
  if (config.forced >= config.target_rows) (generation ? *generation : settings).refuse("forced_bos_token_id");
  if (config.model.decoder_start == DecoderStart::token && pieces.target.at(static_cast<size_t>(config.start)) != "<s>")
    settings.refuse("decoder_start_token_id");
  const bool nllb = std::find(pieces.source.begin(), pieces.source.end(), "eng_Latn") != pieces.source.end();
  ImportedModel model{.kind = fmt::format("Hugging Face's {} ({})",
                                          config.family == HfFamily::marian ? "MarianMT"
                                          : nllb                            ? "NLLB"
                                                                            : "M2M-100",
                                          weights.where()),
                      .config = config.model,
                      .search = search,
                      .languages = languages,
                      .vocabularies = hf_vocabularies(files, folder, pieces)};
  set_hf_languages(folder, config, pieces, model.languages, model.search, notes);
  std::vector<std::string> added;
  for (const auto& [token, found] : pieces.found)
    if (found != vocabulary_format::Found::tag) added.push_back(token);
  if (!added.empty())
    notes.push_back(fmt::format("{}, such as {}, {} found in text as {}.", counted(added.size(), "added token"), printable(added.front()),
                                added.size() == 1 ? "is" : "are", added.size() == 1 ? "it stands" : "they stand"));
  model.notes = std::move(notes);
  model.tensors = std::move(tensors);
  model.further_files = further_files(folder);
  return model;
}

}  // namespace starling
