// The weights of a model that is divided, written by a replica's first rank without ever having them whole: the others send theirs,
// parameter by parameter, whenever it writes a file of them.
#pragma once

#include "comm/mesh.h"
#include "decode/model_directory.h"
#include "parallel/stages.h"

namespace starling {

class StageWeights {
 public:
  // Both must live as long as this.
  StageWeights(Model& part, const Mesh& mesh);
  // Of the first rank: for model_parts, in the parameters' type; null where the model is whole.
  FetchWeights fetch();
  // Of the first rank, once it writes no more; elsewhere nothing.
  void done();
  // Of the replica's other ranks: sends the weights that are here whenever the first rank writes, until it is done.
  void serve();

 private:
  Model& part_;
  const Mesh& mesh_;
  std::vector<std::vector<Owner>> owners_;  // by parameter
};

}  // namespace starling
