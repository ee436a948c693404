// The table of models, and what all of them share.
#include "models/gnmt.h"
#include "models/transformer.h"

namespace starling {
namespace {

class WholePass : public ChunkedPass {
 public:
  WholePass(Model& model, const Batch& batch, double label_smoothing) : model_(model), batch_(batch), label_smoothing_(label_smoothing) {}
  size_t steps() const override { return 1; }
  StepShare share(size_t) const override {
    return {static_cast<double>(batch_.source.count()), static_cast<double>(batch_.target.count())};
  }
  std::vector<Var> forward(Tape& tape, std::vector<Var> in, Loss& loss) override {
    return model_.forward(tape, batch_, label_smoothing_, std::move(in), loss);
  }

 private:
  Model& model_;
  const Batch& batch_;
  double label_smoothing_;
};

}  // namespace

std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                     const ModelPart& part) {
  if (vocabulary.begin < 0 && config.decoder_start == DecoderStart::token)
    throw ConfigError("the target vocabulary has no <s> to begin with; set model.decoder-start: zero, or train a vocabulary that has it");
  if (vocabulary.padding < 0 && config.decoder_start == DecoderStart::pad)
    throw ConfigError("model.decoder-start: the target vocabulary has no <pad> to begin with; set it to token or zero");
  if (architecture_of(config.preset) == Architecture::gnmt) return std::make_unique<Gnmt>(config, vocabulary, backend, part);
  return std::make_unique<Transformer>(config, vocabulary, backend, part);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training, const ModelPart& part) {
  auto model = declare_model(config, vocabulary, backend, part);
  model->parameters().allocate(seed, training);
  return model;
}

const EmbeddingTable* table_of(const std::vector<EmbeddingTable>& tables, const Parameter& parameter) {
  for (const EmbeddingTable& t : tables)
    if (t.table == &parameter) return &t;
  return nullptr;
}

bool Model::has_first() { return parameters().units().has(0); }
bool Model::has_output() { return parameters().units().has(units() - 1); }
bool Model::whole() { return has_first() && parameters().units().in_range(units() - 1) && !parameters().shards(); }

VocabularyShard Model::output_shard() {
  for (const EmbeddingTable& t : embedding_tables())
    if (t.output) return vocabulary_shard(parameters(), *t.table);
  return {};
}

Loss Model::loss(Tape& tape, const Batch& batch, double label_smoothing) {
  CHECK(has_first() && has_output(), "some units of a model have no loss of their own");
  Loss loss(tape);
  forward(tape, batch, label_smoothing, {}, loss);
  return loss;
}

std::unique_ptr<ChunkedPass> Model::begin_pass(const Batch& batch, double label_smoothing, int64_t) {
  return std::make_unique<WholePass>(*this, batch, label_smoothing);
}

std::unique_ptr<ChunkedPass> Model::begin_layers(const Batch&, std::span<const Batch>, int64_t) {
  CHECK(false, "the output of {} is not apart", config().preset);
  return nullptr;
}

std::unique_ptr<ChunkedPass> Model::begin_output(const Batch&, double) {
  CHECK(false, "the output of {} is not apart", config().preset);
  return nullptr;
}

std::vector<std::vector<Shape>> Model::boundary_pieces(size_t unit, const Batch& batch, int64_t) const { return {boundary(unit, batch)}; }

// By the names that both models declare.
bool multiplies_source(const Parameter& matrix) {
  return matrix.name.starts_with("encoder.") || matrix.name.find(".kv.") != std::string::npos;
}

bool multiplies_steps(const Parameter& matrix) { return matrix.name.ends_with(".recurrent.weight"); }

std::unique_ptr<Model> share_model(Model& model, Backend& backend) {
  auto view = declare_model(model.config(), model.vocabulary(), backend, model.parameters().part());
  view->parameters().view(model.parameters());
  return view;
}

}  // namespace starling
