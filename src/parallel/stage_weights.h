// Writes the weights of a divided model on a replica's first rank, which never holds them all: whenever it writes a file of them, the
// others send theirs, parameter by parameter.
#pragma once

#include "comm/mesh.h"
#include "decode/model_directory.h"
#include "parallel/stages.h"

namespace starling {

class StageWeights {
 public:
  // Both must live as long as this.
  StageWeights(Model& part, const Mesh& mesh);
  // On the first rank: the source of weights for model_parts, in the parameters' type; null if the model is whole.
  FetchWeights fetch();
  // On the first rank, once it has nothing more to write; elsewhere it does nothing.
  void done();
  // On the replica's other ranks: sends this rank's weights whenever the first rank writes, until it is done.
  void serve();

 private:
  Model& part_;
  const Mesh& mesh_;
  std::vector<std::vector<Owner>> owners_;  // by parameter
};

}  // namespace starling
