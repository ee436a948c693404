// The directory of a race while it is prepared: held by one process, nothing in it a run's or one of the race's inputs, and left as it was
// when the race is refused.
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
  // Makes and locks the directory of the recipe's race. ConfigError if another race uses it, if it is the directory of a run or within
  // what belongs to one, or if a file that the race will write is one that it reads. What is made from here on is taken back unless keep()
  // is reached; the arguments must live as long as this.
  RaceDirectory(FileSystem& files, const RaceRecipe& recipe);

  // The race has begun: what was made stays.
  void keep() { made_.keep(); }
  // The preparation has failed: vocabulary and tokens stay unless the race was refused (ConfigError, DataError).
  void failed(const std::exception& error) { made_.keep_work_unless_refused(error); }

 private:
  std::unique_ptr<FileLock> lock_;
  PathRollback made_;  // released before the lock
};

}  // namespace starling
