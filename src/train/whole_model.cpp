#include "train/whole_model.h"

#include "train/stage_weights.h"

namespace starling {
namespace {

class Bytes : public ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override { all.insert(all.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> all;
};

}  // namespace

std::unique_ptr<Model> whole_model(Model& part, const Mesh& mesh) {
  StageWeights weights(part, mesh);
  if (mesh.replica().rank() > 0) {
    weights.serve();
    return nullptr;
  }
  auto whole = make_model(part.config(), part.vocabulary(), part.parameters().backend(), std::nullopt, false);
  const FetchWeights fetch = weights.fetch();
  for (Parameter& p : whole->parameters().all()) {
    Bytes bytes;
    fetch(p, bytes);
    p.value.upload(bytes.all);
  }
  weights.done();
  whole->parameters().changed();
  return whole;
}

}  // namespace starling
