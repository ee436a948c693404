// The table of models.
#include "models/gnmt.h"
#include "models/transformer.h"

namespace starling {

std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                     const UnitRange& units) {
  if (architecture_of(config.preset) == Architecture::gnmt) return std::make_unique<Gnmt>(config, vocabulary, backend, units);
  return std::make_unique<Transformer>(config, vocabulary, backend, units);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training, const UnitRange& units) {
  auto model = declare_model(config, vocabulary, backend, units);
  model->parameters().allocate(seed, training);
  return model;
}

bool Model::has_first() { return parameters().units().has(0); }
bool Model::has_output() { return parameters().units().has(units() - 1); }

Loss Model::loss(Tape& tape, const Batch& batch, double label_smoothing) {
  CHECK(whole(), "a part of a model has no loss of its own");
  Loss loss(tape);
  forward(tape, batch, label_smoothing, {}, loss);
  return loss;
}

// By the names that both models declare.
bool multiplies_source(const Parameter& matrix) {
  return matrix.name.starts_with("encoder.") || matrix.name.find(".kv.") != std::string::npos;
}

std::unique_ptr<Model> share_model(Model& model, Backend& backend) {
  auto view = declare_model(model.config(), model.vocabulary(), backend);
  view->parameters().view(model.parameters());
  return view;
}

}  // namespace starling
