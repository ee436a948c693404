// <run>/best, which is replaced only by what is better. A run that goes on from an older checkpoint (the newer ones were damaged, or the
// machine stopped in between) does not know the best model that lies there, so its score lies beside it; and one whose scores cannot be
// compared (another metric, other validation text) sets the old model aside.
#pragma once

#include <cstdint>
#include <string>

#include "base/task_progress.h"
#include "storage/checkpoint.h"

namespace starling {

class BestModel {
 public:
  // metric: the one that decides; measure: tells what else its scores depend on, equal for scores that can be compared. `say` gets a line
  // when a model is kept or set aside. The arguments must live as long as this.
  BestModel(FileSystem& files, std::string run_directory, std::string metric, std::string measure, Say say);

  // Makes these parts the best model, unless the one that is there is better. `known`: update of the best model that the run knew of
  // before, -1 if none. IoError as CheckpointStore::save_best.
  void save(CheckpointStore& checkpoints, int64_t step, double score, int64_t known, std::vector<Part> parts);

 private:
  // Whether the model that is there gives way; it is then set aside if need be.
  bool gives_way(int64_t step, double score, int64_t known);

  FileSystem& files_;
  std::string run_, metric_, measure_;
  Say say_;
  bool ours_ = false;  // what is there was saved by this object
};

// What a run's last line adds when <run>/best is not the model of `step` with this score, the best that the run itself knows of; "" if it
// is.
std::string kept_best(FileSystem& files, const std::string& run_directory, int64_t step, double score);

}  // namespace starling
