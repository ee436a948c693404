// Checkpoints that are either complete or absent. A directory is written under a temporary name, every file synced, manifest.json (sizes
// and hashes) last; it is then renamed into place and the parent directory synced. Readers verify the manifest first. Format and
// guarantees: docs/guides/checkpoints.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "storage/safetensors.h"

namespace starling {

// One file of a checkpoint: a plain name, and a function that writes the content.
struct Part {
  std::string name;
  std::function<void(ByteSink&)> write;
  uint64_t expected_bytes = 0;  // 0: unknown; only used in the message for a full disk
};
// Makes a part of text or bytes, which it keeps.
Part text_part(std::string name, std::string content);
// Makes a part of tensors. Their data is not copied and must live until the part is written.
Part safetensors_part(std::string name, std::vector<NamedBytes> tensors, SafetensorsMetadata metadata = {});

struct PartInfo {
  std::string name;
  uint64_t size = 0;   // bytes
  std::string sha256;  // hexadecimal
};

// A directory whose manifest and hashes have been verified.
struct Loaded {
  std::string directory;
  int64_t step = 0;
  std::vector<PartInfo> files;

  bool has(const std::string& name) const;
  // Returns the path of a part; throws DataError if the checkpoint has none of that name.
  std::string path(const std::string& name) const;
};

// Receives a line of text about each damaged checkpoint that was skipped.
using Report = std::function<void(const std::string&)>;

// Writes and syncs one file of a directory; throws IoError if that fails.
PartInfo write_part(FileSystem& files, const std::string& directory, const Part& part);

// A directory that is being published. One process, or several that share the file system, write its files under a temporary name;
// commit() completes it and moves it to `directory`. Without commit() everything is removed. Guarantees and errors are those of
// publish_directory.
class Publication {
 public:
  Publication(FileSystem& files, std::string directory, int64_t step);
  ~Publication();
  Publication(const Publication&) = delete;
  const std::string& aside() const { return aside_; }  // the temporary directory to write into
  int64_t step() const { return step_; }
  void add(PartInfo part);  // registers a part that was written there
  void commit();

 private:
  FileSystem& files_;
  const std::string directory_, aside_;
  const int64_t step_;
  std::vector<PartInfo> parts_;
  bool committed_ = false;
};

// Writes a directory with these parts and a manifest and moves it to `directory`; after a failure or a crash either the old or the new one
// is there, complete. Throws IoError if writing fails, ConfigError if `directory` exists and holds files that were not published there
// (they would be lost). The parent directory must exist.
void publish_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts);
// Adds these parts to a published directory, replacing those with the same names. The other files are copied, and verified on the way; the
// step stays the same. Guarantees and errors are those of publish_directory; throws DataError if a copied file differs from the manifest.
void update_directory(FileSystem& files, const std::string& directory, std::span<const Part> parts);
// Throws if update_directory would fail because of foreign files or missing write permission, so that callers find out before they compute
// the parts.
void require_updatable(FileSystem& files, const std::string& directory);
// Publishes a copy of a published directory elsewhere, whose files are verified on the way.
void copy_directory(FileSystem& files, const std::string& from, const std::string& to);
// Completes or rolls back a publish_directory of this directory that a crash interrupted.
void recover_directory(FileSystem& files, const std::string& directory);
// Reads the manifest and verifies every file's size and hash; throws DataError or IoError that says what is wrong.
Loaded verify_directory(FileSystem& files, const std::string& directory);

// Returns the temporary directory in which the checkpoint of a step is written (Publication::aside), for processes other than the one that
// began it.
std::string checkpoint_aside(const std::string& run_directory, int64_t step);
// Returns the newest intact checkpoint of a run, of those after an update. Writes nothing, so it is safe on a run that is being trained.
std::optional<Loaded> latest_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report = {}, int64_t after = -1);
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
  // report: receives the lines in place of the store's, if given.
  void commit(Publication& publication, const Report& report = {});
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
};

}  // namespace starling
