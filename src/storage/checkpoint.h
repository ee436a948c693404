// The checkpoints of a run, each a directory that is either complete or absent (storage/publication.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "storage/publication.h"

namespace starling {

// Returns the temporary directory in which the checkpoint of a step is written (Publication::aside), for processes other than the one that
// began it.
std::string checkpoint_aside(const std::string& run_directory, int64_t step);
// Returns the newest intact checkpoint of a run, of those after an update. Writes nothing, so it is safe on a run that is being trained.
std::optional<Loaded> latest_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report = {}, int64_t after = -1);
// Returns the newest step of which the run has a checkpoint, intact or not; -1 without one. Reads names only.
int64_t newest_step(FileSystem& files, const std::string& run_directory);
// Returns the checkpoint <run>/best if it exists and is intact. Writes nothing.
std::optional<Loaded> best_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report = {});

// The checkpoints of one run: <run>/checkpoints/step-00001000 and so on, and <run>/best. One process at a time may own a run.
class CheckpointStore {
 public:
  // Creates the directories and cleans up after a crash. `keep` is the number of checkpoints to retain; throws ConfigError if it is
  // below 1.
  CheckpointStore(FileSystem& files, std::string run_directory, int keep, Report report = {})
      : CheckpointStore(files, std::move(run_directory), keep, std::move(report), true) {}

  // Keeps copies in another directory too, which is of this run alone: of each checkpoint, as many, and of the best model. A copy that
  // cannot be made is reported, and the next one is tried again.
  void also_in(const std::string& directory) { second_path_ = directory; }

  // Writes the checkpoint of a step (replacing any of that step), then prunes. Throws IoError if writing fails; earlier checkpoints stay
  // intact in any case. A failure to remove an old one is only reported.
  void save(int64_t step, std::span<const Part> parts);
  // The same in two steps: parts written in between, by any process that sees the directory, are added to the publication.
  std::unique_ptr<Publication> begin(int64_t step);
  // report: receives the lines in place of the store's, if given. go_on: of the copy in the other directory.
  void commit(Publication& publication, const Report& report = {}, const GoOn& go_on = {});
  // Replaces <run>/best, with the same guarantees.
  void save_best(int64_t step, std::span<const Part> parts);
  std::optional<Loaded> latest();
  std::optional<Loaded> best() { return best_checkpoint(files_, run_, report_); }
  // Removes checkpoints older than the newest `keep` intact ones; never the newest intact one, nor the last one saved.
  void prune();
  // Removes the checkpoints of later steps: a run that has gone back makes them anew.
  void remove_after(int64_t step);
  // Returns the directory of a step's checkpoint, whether or not it exists.
  std::string directory(int64_t step) const;

 private:
  CheckpointStore(FileSystem& files, std::string run_directory, int keep, Report report, bool cleans);
  void try_second(const Report& report, const std::string& what, const std::function<void(CheckpointStore& second)>& body);
  bool sound(int64_t step, const std::string& path, const Report& report);
  void prune(const Report& report);
  void clear_away();
  void remove(int64_t step, const std::string& path);

  FileSystem& files_;
  std::string run_, checkpoints_;
  int keep_;
  Report report_;
  std::string second_path_;
  std::set<int64_t> known_sound_;  // steps saved or verified by this object
  int64_t last_saved_ = -1;
  std::set<int64_t> known_in_second_;  // likewise, of the copies
};

}  // namespace starling
