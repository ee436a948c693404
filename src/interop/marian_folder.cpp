#include "interop/marian_folder.h"

#include <algorithm>
#include <array>

#include "base/push_once.h"
#include "interop/marian.h"
#include "interop/marian_bin.h"

namespace starling {
namespace {

constexpr size_t kMostSettings = size_t{1} << 20, kShown = 6;

bool is_yaml(const std::string& name) { return name.ends_with(".yml") || name.ends_with(".yaml"); }

void remove_all_of(std::string& text, std::string_view part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
}

// What a model is called but for what was made of it: "model" of final.model.npz.best-chrf.npz, model.iter5000.npz,
// model.intgemm.alphas.bin.
std::string stem_of(const std::string& weights) {
  std::string name = without_packing(weights);
  if (const size_t best = name.find(".best-"); best != std::string::npos) name.erase(best);
  for (const char* end : {".npz", ".bin"})
    if (name.ends_with(end)) name.erase(name.size() - 4);
  for (const char* part : {".alphas", ".8bit-finetuned", ".intgemm8", ".intgemm"}) remove_all_of(name, part);
  if (name.starts_with("final.")) name.erase(0, 6);
  const size_t update = name.rfind(".iter");
  if (update != std::string::npos && name.find_first_not_of("0123456789", update + 5) == std::string::npos) name.erase(update);
  return name;
}

// The models that a file of settings names, by the names of their files; none if it is not one.
std::vector<std::string> models_named(const ForeignFiles& folder, const std::string& settings) {
  const std::string yaml = folder.peek(settings, kMostSettings);
  if (yaml.size() == kMostSettings) return {};
  std::vector<std::string> names;
  try {
    for (const std::string& model : marian_model_names(yaml, folder.where(settings))) names.push_back(file_name(model));
  } catch (const DataError&) {
    return {};
  }
  return names;
}

// The files that may say how to search, decoder.yml first. One that belongs to a model by its name is not among them.
std::vector<std::string> shared_settings(const ForeignFiles& folder) {
  std::vector<std::string> found;
  for (const char* usual : {"decoder.yml", "config.yml"})
    if (folder.has(usual)) found.push_back(usual);
  for (const std::string& name : folder.names())
    if (at_top(name) && is_yaml(name) && (name.starts_with("config.") || name.starts_with("decoder."))) push_once(found, name);
  return found;
}

// By how well a metric says that translations are good, best first.
int rank_of(const std::string& weights) {
  constexpr std::array kMetrics{"translation", "comet", "chrf", "bleu-detok", "bleu-segmented", "bleu", "perplexity", "ce-mean-words"};
  for (size_t i = 0; i < kMetrics.size(); ++i)
    if (weights.find(std::string(".best-") + kMetrics[i]) != std::string::npos) return static_cast<int>(i);
  return static_cast<int>(kMetrics.size());
}

// Leaves those of the candidates that have a property, if any does.
template <class F>
void prefer(std::vector<std::string>& candidates, F property) {
  if (std::any_of(candidates.begin(), candidates.end(), property)) std::erase_if(candidates, [&](const auto& c) { return !property(c); });
}

// The one of several files of a model that a user expects; "" if that is not plain.
std::string usual_choice(std::vector<std::string> candidates) {
  prefer(candidates, [](const std::string& c) { return c.starts_with("final."); });
  prefer(candidates, [](const std::string& c) { return c.find(".best-") != std::string::npos; });
  prefer(candidates, [](const std::string& c) { return c.find(".iter") == std::string::npos; });
  prefer(candidates, [](const std::string& c) { return c.find(".alphas.npz") == std::string::npos; });
  prefer(candidates, [](const std::string& c) { return without_packing(c).ends_with(".npz"); });
  prefer(candidates, [](const std::string& c) { return c.find(".alphas.") != std::string::npos; });
  prefer(candidates, [](const std::string& c) { return without_packing(c) == c; });
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  const bool plain = candidates.size() == 1 || rank_of(candidates[0]) < rank_of(candidates[1]);
  return plain ? candidates[0] : "";
}

// The paths of several models, a line each.
std::string paths_of(const std::string& path, const std::vector<std::string>& models) {
  std::string text;
  for (size_t i = 0; i < std::min(models.size(), kShown); ++i) text += "\n  " + join_path(path, models[i]);
  return models.size() > kShown ? text + fmt::format("\n  and {} more", models.size() - kShown) : text;
}

// The models of a list that the folder has, packed or not.
std::vector<std::string> those_there(const std::vector<std::string>& candidates, const std::vector<std::string>& named) {
  std::vector<std::string> there;
  for (const std::string& name : named)
    for (const std::string& c : candidates)
      if (without_packing(c) == without_packing(name)) push_once(there, c);
  return there;
}

std::string settings_of(const ForeignFiles& folder, const std::string& weights) {
  const std::string plain = without_packing(weights);
  for (const std::string& name : {weights, plain})
    if (folder.has(name + ".decoder.yml")) return name + ".decoder.yml";
  const std::vector<std::string> shared = shared_settings(folder);
  for (const std::string& name : shared)
    if (!those_there({weights}, models_named(folder, name)).empty()) return name;
  if (folder.has("decoder.yml")) return "decoder.yml";
  const std::string last = stem_of(weights) + ".npz";  // the others of its training say the same
  for (const std::string& name : {last + ".decoder.yml", plain + ".yml", last + ".yml"})
    if (folder.has(name)) return name;
  std::vector<std::string> any;
  for (const std::string& name : folder.names())
    if (at_top(name) && name.ends_with(".decoder.yml")) any.push_back(name);
  if (any.size() == 1) return any[0];
  for (const std::string& name : shared)
    if (!models_named(folder, name).empty()) return name;
  return "";
}

}  // namespace

bool is_marian_model(const ForeignFiles& folder, const std::string& name) {
  const std::string plain = without_packing(name);
  if (plain.ends_with(".npz")) return !plain.ends_with("optimizer.npz");
  constexpr size_t kHead = 16;
  return plain.ends_with(".bin") && !file_name(plain).starts_with("lex.") && is_marian_bin(peek_unpacked(folder, name, kHead));
}

std::vector<std::string> marian_models(const ForeignFiles& folder) {
  std::vector<std::string> models;
  for (const std::string& name : folder.names()) {
    try {
      if (is_marian_model(folder, name)) models.push_back(name);
    } catch (const DataError&) {
      if (at_top(name)) throw;
    }
  }
  prefer(models, at_top);
  return models;
}

MarianFiles find_marian(const ForeignFiles& folder, const std::string& chosen, const std::string& path) {
  if (!chosen.empty()) return {chosen, settings_of(folder, chosen), {}};
  std::vector<std::string> candidates = marian_models(folder);
  if (candidates.empty()) return {};
  MarianFiles found;
  if (candidates.size() == 1) found.weights = candidates[0];
  for (const std::string& settings : shared_settings(folder)) {
    if (!found.weights.empty() || (settings != "decoder.yml" && settings != "config.yml")) break;
    const std::vector<std::string> named = those_there(candidates, models_named(folder, settings));
    if (named.size() > 1)
      throw ConfigError(fmt::format("{}: {} names an ensemble; give translate one --model for each, and other verbs one of them:{}", path,
                                    settings, paths_of(path, named)));
    if (named.size() == 1) found.weights = named[0];
  }
  const bool one = std::all_of(candidates.begin(), candidates.end(), [&](const auto& c) { return stem_of(c) == stem_of(candidates[0]); });
  if (found.weights.empty() && one) found.weights = usual_choice(candidates);
  if (found.weights.empty())
    throw ConfigError(
        fmt::format("{}: there are {} models; name one of them in its place:{}", path, candidates.size(), paths_of(path, candidates)));
  std::erase(candidates, found.weights);
  found.others = std::move(candidates);
  found.settings = settings_of(folder, found.weights);
  return found;
}

}  // namespace starling
