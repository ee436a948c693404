// The weights of a Hugging Face folder: one safetensors file, or several with an index.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "interop/foreign_files.h"
#include "interop/hf_config.h"
#include "interop/imported_model.h"
#include "storage/safetensors.h"

namespace starling {

class HfWeights {
 public:
  // Throws ConfigError if the folder has weights in another format only, DataError if files are damaged or do not belong together.
  explicit HfWeights(const ForeignFiles& folder);
  // From the bytes of a single file, which messages call `where`.
  HfWeights(std::string bytes, std::string where);

  // What messages call the files.
  const std::string& where() const { return where_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Each of these counts the tensor as used. Throws DataError if it is not there, has another shape, or no floats.
  std::vector<float> floats(const std::string& name, const std::vector<int64_t>& shape);
  // Marks tensors as used that a model of ours does not need.
  void ignore(const std::string& name) { used_.insert(name); }
  // Whether two tensors are equal byte for byte.
  bool same(const std::string& a, const std::string& b) const;
  // Throws ConfigError, naming them, if tensors were not used.
  void require_all_used() const;

 private:
  void add(std::string bytes, const std::string& where, ByteBudget& budget);

  std::string where_;
  std::vector<std::unique_ptr<std::string>> files_;  // whose bytes the tensors point into
  std::map<std::string, NamedBytes> tensors_;
  std::set<std::string> used_;
};

// The tensors by our names. Completes the configuration's model: tied tables, stored positions, the output's bias, the decoder's start
// where it is the end of sentence or the padding. Removes the padding's row where it is the last and holds zeros; `config` then has one row
// less, and its pad is -1. Throws as above.
// What is computed charges the budget.
std::vector<OwnedTensor> hf_tensors(HfWeights& weights, HfConfig& config, ByteBudget& budget, std::vector<std::string>& notes);

}  // namespace starling
