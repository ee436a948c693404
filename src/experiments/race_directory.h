// Guards the race directory while the race is prepared: one process holds it, it contains no run's files and none of the race's inputs, and
// it is restored if the race is refused.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/lock.h"
#include "experiments/recipe.h"
#include "storage/path_rollback.h"

namespace starling {

class RaceDirectory {
 public:
  // Creates and locks the directory of the recipe's race. Throws ConfigError if another race uses it, if it is or lies within the directory
  // of a run, or if the race would overwrite one of its own input files. What is created from here on is removed unless keep() is called;
  // the arguments must outlive this object.
  RaceDirectory(FileSystem& files, const RaceRecipe& recipe);

  // The race has begun: keeps what was created.
  void keep() { made_.keep(); }
  // The preparation has failed: keeps vocabulary and tokens unless the race was refused (ConfigError, DataError).
  void failed(const std::exception& error) { made_.keep_work_unless_refused(error); }

 private:
  std::unique_ptr<FileLock> lock_;
  PathRollback made_;  // released before the lock
};

}  // namespace starling
