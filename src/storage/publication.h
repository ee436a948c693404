// Directories that are either complete or absent. A directory is written under a temporary name, every file synced, manifest.json (sizes
// and hashes) last; it is then renamed into place and the parent directory synced. Readers verify the manifest first. Format and
// guarantees: docs/guides/checkpoints.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
// The same for a directory whose content may be lost, whatever it is.
void replace_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts);
// Adds these parts to a published directory, replacing those with the same names. The other files are copied, and verified on the way; the
// step stays the same. Guarantees and errors are those of publish_directory; throws DataError if a copied file differs from the manifest.
void update_directory(FileSystem& files, const std::string& directory, std::span<const Part> parts);
// Throws if update_directory would fail because of foreign files or missing write permission, so that callers find out before they compute
// the parts.
void require_updatable(FileSystem& files, const std::string& directory);
// Throws if something is to be given up, between two pieces of it; may be empty.
using GoOn = std::function<void()>;
// Publishes a copy of a published directory elsewhere, whose files are verified on the way.
void copy_directory(FileSystem& files, const std::string& from, const std::string& to, const GoOn& go_on = {});
// Completes or rolls back a publish_directory of this directory that a crash interrupted.
void recover_directory(FileSystem& files, const std::string& directory);
// Reads the manifest and verifies every file's size and hash; throws DataError or IoError that says what is wrong.
Loaded verify_directory(FileSystem& files, const std::string& directory);

// Returns the directory if it is intact and, where a step is given, of that step; else nullopt, after reporting what is wrong.
std::optional<Loaded> try_verify(FileSystem& files, const std::string& directory, std::optional<int64_t> step, const Report& report);

// Returns the names beside a directory under which the new one is written, and the old one kept where names cannot be exchanged.
inline constexpr std::string_view kAsidePrefix = ".tmp-";  // before its own name
std::string aside_path(const std::string& directory);
std::string old_path(const std::string& directory);

// Returns the path, without slashes at its end, of a directory that a user wants to be made. Throws ConfigError if there is none, or if
// what it is to lie in does not exist.
std::string directory_to_make(FileSystem& files, std::string path);

}  // namespace starling
