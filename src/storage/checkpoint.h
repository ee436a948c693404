// Checkpoints that are either whole or not there. A directory is written aside, every file synced, manifest.json (sizes and hashes)
// last, then renamed into place and the parent directory synced; what is read is verified against the manifest first.
// Format: docs/reference/checkpoint-format.md; guarantees: docs/explanation/checkpoints.md.
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
  uint64_t expected_bytes = 0;  // 0: unknown; only serves the message when the disk is full
};
// A part from text or bytes, which it keeps.
Part text_part(std::string name, std::string content);
// A part of tensors; their data must live until it is written, and is not copied.
Part safetensors_part(std::string name, std::vector<NamedBytes> tensors, SafetensorsMetadata metadata = {});

struct PartInfo {
  std::string name;
  uint64_t size = 0;   // bytes
  std::string sha256;  // hexadecimal
};

// A directory whose manifest and hashes were found right.
struct Loaded {
  std::string directory;
  int64_t step = 0;
  std::vector<PartInfo> files;

  bool has(const std::string& name) const;
  // The path of a part; DataError when the checkpoint has none of that name.
  std::string path(const std::string& name) const;
};

// Told about broken checkpoints that were passed over; one line of text.
using Report = std::function<void(const std::string&)>;

// Writes one file of a directory, with fsync; IoError when the disk does not take it.
PartInfo write_part(FileSystem& files, const std::string& directory, const Part& part);

// A directory on its way to its place. Its files are written aside, by one process or by several that see it; commit() makes it whole and
// puts it in the place of `directory`. Without that, nothing stays of it. Guarantees and errors are those of publish_directory.
class Publication {
 public:
  Publication(FileSystem& files, std::string directory, int64_t step);
  ~Publication();
  Publication(const Publication&) = delete;
  const std::string& aside() const { return aside_; }  // the directory to write into
  int64_t step() const { return step_; }
  void add(PartInfo part);  // that was written there
  void commit();

 private:
  FileSystem& files_;
  const std::string directory_, aside_;
  const int64_t step_;
  std::vector<PartInfo> parts_;
  bool committed_ = false;
};

// Puts a directory with these parts and a manifest in the place of `directory`; after a failure or a crash there is either the old one
// or the new one, whole. IoError when the disk does not take it; ConfigError when `directory` exists and holds files that were not
// published there (they would be lost). The parent directory must exist.
void publish_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts);
// Puts these parts into a published directory, in place of those of the same names or beside; the other files are copied, which checks
// them, and the step stays. Guarantees and errors as those of publish_directory; DataError when a copied file differs from the manifest.
void update_directory(FileSystem& files, const std::string& directory, std::span<const Part> parts);
// Throws what would keep update_directory from working, before the work for it is done: foreign files, no right to write.
void require_updatable(FileSystem& files, const std::string& directory);
// Finishes or undoes what a crash left of publish_directory for this directory.
void recover_directory(FileSystem& files, const std::string& directory);
// Reads the manifest and checks every file's size and hash; DataError or IoError says what is wrong.
Loaded verify_directory(FileSystem& files, const std::string& directory);

// Where the checkpoint of a step is written aside (Publication::aside), for other processes than the one that began it.
std::string checkpoint_aside(const std::string& run_directory, int64_t step);
// The newest sound checkpoint of a run. Writes nothing, so it may look into a run that is being trained.
std::optional<Loaded> latest_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report = {});
// The checkpoint <run>/best, if there is a sound one. Writes nothing.
std::optional<Loaded> best_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report = {});

// The checkpoints of one run: <run>/checkpoints/step-00001000 and so on, and <run>/best. One process at a time may own a run.
class CheckpointStore {
 public:
  // Makes the directories and clears away what a crash left. `keep` >= 1 checkpoints stay; ConfigError below that.
  CheckpointStore(FileSystem& files, std::string run_directory, int keep, Report report = {});

  // Writes the checkpoint of a step (replacing one of that step), then prunes; IoError when the disk does not take it. Whatever happens,
  // the checkpoints before are intact. A failure to remove an old one is only reported.
  void save(int64_t step, std::span<const Part> parts);
  // The same in two acts: what is written in between, by whoever sees the directory, is added to the publication.
  std::unique_ptr<Publication> begin(int64_t step);
  void commit(Publication& publication);
  // Replaces <run>/best, with the same guarantees.
  void save_best(int64_t step, std::span<const Part> parts);
  std::optional<Loaded> latest();
  std::optional<Loaded> best() { return best_checkpoint(files_, run_, report_); }
  // Removes what is older than the newest `keep` sound checkpoints; never the newest sound one, nor the last saved.
  void prune();
  // The directory of a step's checkpoint, whether it exists or not.
  std::string directory(int64_t step) const;

 private:
  bool sound(int64_t step, const std::string& path);

  FileSystem& files_;
  std::string run_, checkpoints_;
  int keep_;
  Report report_;
  std::set<int64_t> known_sound_;  // steps saved or verified by this object
  int64_t last_saved_ = -1;
};

}  // namespace starling
