// The table of models.
#include "models/gnmt.h"
#include "models/transformer.h"

namespace starling {
namespace {

std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend) {
  if (architecture_of(config.preset) == Architecture::gnmt) return std::make_unique<Gnmt>(config, vocabulary, backend);
  return std::make_unique<Transformer>(config, vocabulary, backend);
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training) {
  auto model = declare_model(config, vocabulary, backend);
  model->parameters().allocate(seed, training);
  return model;
}

// By the names that both models declare.
bool multiplies_source(const Parameter& matrix) {
  return matrix.name.starts_with("encoder.") || matrix.name.find(".kv.") != std::string::npos;
}

std::unique_ptr<Model> share_model(Model& model, Backend& backend) {
  auto view = declare_model(model.config(), model.vocabulary(), backend);
  view->parameters().share(model.parameters());
  return view;
}

}  // namespace starling
