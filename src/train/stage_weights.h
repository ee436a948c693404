// The weights of a model that is divided, written by a replica's first rank without ever having them whole: the others send theirs, parameter
// by parameter, whenever it writes a file of them.
#pragma once

#include "comm/mesh.h"
#include "decode/model_directory.h"

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
  // Whether this rank has some of a parameter for the file.
  bool gives(const Parameter& p, int shard) const { return p.cut.axis >= 0 || shard == 0; }

  Model& part_;
  const Mesh& mesh_;
  std::vector<int> stage_;  // that owns a parameter, by index
};

}  // namespace starling
