// rank-R.safetensors: per-rank state, which one rank of a run keeps besides the model. A state with one element per parameter (moments, raw
// weights) is saved under the parameters' names, such as "adam.m/encoder.0.norm.bias". Where a rank has only ranges of a parameter, the
// file's "layout" lists them and, for a shard, says how the parameter was cut. So any other number of ranks, and any other division of the
// parameters among them, can read it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/parameters.h"
#include "base/json.h"
#include "base/range.h"
#include "storage/checkpoint.h"

namespace starling {

class RankCheckpoint {
 public:
  // The parameters must live as long as this.
  explicit RankCheckpoint(const ParameterStore& parameters) : parameters_(parameters) {}
  // Adds the elements `ranges` (ascending) of a flat state, which `elements` has contiguously. Tensors must stay unchanged until the part
  // is written.
  void add(const std::string& state, const Tensor& elements, std::span<const Range> ranges);
  // Adds a tensor as it is, which has no elements per parameter.
  void add(const std::string& name, const Tensor& tensor);
  // Returns the file; nothing if nothing was added.
  std::optional<Part> part(int rank);

 private:
  void add(const std::string& name, std::vector<int64_t> shape, const Tensor& tensor);

  const ParameterStore& parameters_;
  std::vector<NamedBytes> tensors_;
  std::vector<Tensor> here_;  // in host memory: they own the bytes of tensors_
  nlohmann::json layout_ = nlohmann::json::object();
};

// Reads the per-rank files of a checkpoint, memory-mapped; also training.safetensors and ranks.safetensors of older versions, which have
// flat states.
class RankCheckpoints {
 public:
  // replica_ranks: ranks per replica in the run that saved the checkpoint. Throws DataError for a layout that does not fit its tensors or
  // the parameters.
  RankCheckpoints(FileSystem& files, const Loaded& checkpoint, const ParameterStore& parameters, int replica_ranks = 1);

  // Reads the elements `ranges` of a flat state contiguously from the files of a replica (nullopt: from those of all ranks together).
  // Returns false, with zeros for what is missing, unless all of them are there in elements of this size; padding between parameters is
  // zero.
  bool read(const std::string& state, std::optional<int> replica, std::span<const Range> ranges, std::span<std::byte> to) const;
  // Throws IoError if a file was truncated while it was read. read() calls it itself; call it after reading what find() returned.
  void require_whole() const;
  // Whether any file has a part of the state.
  bool has(const std::string& state) const { return pieces_.contains(state); }
  // Returns a tensor as it was added; null if there is none of that name and size.
  const NamedBytes* find(int rank, const std::string& name, int64_t bytes) const;
  // Whether ranks other than 0 have tensors without elements per parameter: a strategy's per-rank state.
  bool has_own() const;
  int replicas() const { return (ranks_ + replica_ranks_ - 1) / replica_ranks_; }  // that have files
  // Throws DataError, naming checkpoint and state, unless `whole`.
  void require(bool whole, const std::string& state) const;

 private:
  struct Piece {
    Range range;  // of the whole parameter
    std::span<const std::byte> bytes;
  };
  // By parameter and rank, ascending.
  using Pieces = std::map<std::pair<size_t, int>, std::vector<Piece>>;
  static int64_t copy(const std::vector<Piece>& pieces, const Range& run, int64_t size, std::byte* to);
  void open(FileSystem& files, const std::string& path, int rank);
  void open_older(FileSystem& files, const Loaded& checkpoint);
  void add_older(int rank, const std::string& name, const NamedBytes& flat, const std::string& prefix);

  const ParameterStore& parameters_;  // this rank's part, where the model is divided
  const std::string directory_;
  std::deque<SafetensorsFile> files_;
  std::map<std::string, Pieces> pieces_;
  std::map<std::pair<int, std::string>, const NamedBytes*> whole_;
  int ranks_ = 0, replica_ranks_;
};

}  // namespace starling
