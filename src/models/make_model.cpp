// The table of models.
#include "models/gnmt.h"
#include "models/transformer.h"

namespace starling {
namespace {

std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend) {
  if (config.preset.rfind("transformer", 0) == 0) return std::make_unique<Transformer>(config, vocabulary, backend);
  if (config.preset.rfind("gnmt", 0) == 0) return std::make_unique<Gnmt>(config, vocabulary, backend);
  throw ConfigError(fmt::format("model.preset: there is no model '{}'", config.preset));
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training) {
  auto model = declare_model(config, vocabulary, backend);
  model->parameters().allocate(seed, training);
  return model;
}

std::unique_ptr<Model> share_model(Model& model, Backend& backend) {
  auto view = declare_model(model.config(), model.vocabulary(), backend);
  view->parameters().share(model.parameters());
  return view;
}

}  // namespace starling
