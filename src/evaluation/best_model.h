// <run>/best, which is replaced only by a better model. A run that resumes from an older checkpoint (because newer ones were damaged, or
// the machine stopped in between) does not know the best model that is there, so the model's score is stored with it. A run whose scores
// are not comparable (another metric, other validation text) sets the old model aside.
#pragma once

#include <cstdint>
#include <string>

#include "base/task_progress.h"
#include "storage/checkpoint.h"

namespace starling {

class BestModel {
 public:
  // metric: the deciding one; measure: identifies what else its scores depend on, equal for comparable scores. `say` gets a line when a
  // model is kept or set aside. `files` must outlive this object.
  BestModel(FileSystem& files, std::string run_directory, std::string metric, std::string measure, Say say);

  // Saves these parts as the best model, unless the one that is there is better. `known`: update of the best model that the run knew of
  // before, -1 if none. Throws IoError as CheckpointStore::save_best does.
  void save(CheckpointStore& checkpoints, int64_t step, double score, int64_t known, std::vector<Part> parts);

 private:
  // Returns whether the model that is there may be replaced; sets it aside first if necessary.
  bool gives_way(int64_t step, double score, int64_t known);

  FileSystem& files_;
  std::string run_, metric_, measure_;
  Say say_;
  bool ours_ = false;  // the model that is there was saved by this object
};

// Returns what the last line of a run adds if <run>/best is not the model of `step` with this score, the best that the run itself knows of;
// "" if it is.
std::string kept_best(FileSystem& files, const std::string& run_directory, int64_t step, double score);

}  // namespace starling
