// rank-R.safetensors: what one rank of a run keeps beside the model. A state that has an element for each parameter (moments, raw weights)
// is saved by the parameters' names, "adam.m/encoder.0.norm.bias"; where a rank has only ranges of one, the file's "layout" says which, and
// of a shard how the parameter was cut. So any other number of ranks, and any other division of the parameters among them, can read it.
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
  // Elements `ranges` (ascending) of a flat state, one behind the other. Tensors must stay unchanged until the part is written.
  void add(const std::string& state, const Tensor& elements, std::span<const Range> ranges);
  // A tensor as it is.
  void add(const std::string& name, const Tensor& tensor);
  // The file; nothing if nothing was added.
  std::optional<Part> part(int rank);

 private:
  void add(const std::string& name, std::vector<int64_t> shape, const Tensor& tensor);

  const ParameterStore& parameters_;
  std::vector<NamedBytes> tensors_;
  std::vector<Tensor> here_;  // in the host's memory: what the bytes of tensors_ belong to
  nlohmann::json layout_ = nlohmann::json::object();
};

// The shards of a checkpoint, mapped; also training.safetensors and ranks.safetensors of older versions, which had the flat states.
class RankCheckpoints {
 public:
  // Of a run whose replicas had so many ranks each. DataError for a layout that does not fit its tensors or the parameters.
  RankCheckpoints(FileSystem& files, const Loaded& checkpoint, const ParameterStore& parameters, int replica_ranks = 1);

  // Elements `ranges` of a flat state, one behind the other, from the shards of a replica (nothing: from those of all ranks together).
  // False, with zeros in between, if not all of them are there in elements of this size; padding between parameters is zero.
  bool read(const std::string& state, std::optional<int> replica, std::span<const Range> ranges, std::span<std::byte> to) const;
  // IoError when a shard was cut short while it was read. read() asks it itself; to be asked behind the reading of what find() gave.
  void require_whole() const;
  // Whether any shard has some of the state.
  bool has(const std::string& state) const { return pieces_.contains(state); }
  // A tensor as it was added; null if there is none of that name and size.
  const NamedBytes* find(int rank, const std::string& name, int64_t bytes) const;
  // Whether ranks have tensors that are not of the parameters: what a strategy keeps for each.
  bool has_own() const;
  int replicas() const { return (ranks_ + replica_ranks_ - 1) / replica_ranks_; }  // that have shards
  // DataError, naming the checkpoint, unless a state is whole.
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

  const ParameterStore& parameters_;  // a part of the model's, where that is divided
  const std::string directory_;
  std::deque<SafetensorsFile> files_;
  std::map<std::string, Pieces> pieces_;
  std::map<std::pair<int, std::string>, const NamedBytes*> whole_;
  int ranks_ = 0, replica_ranks_;
};

}  // namespace starling
