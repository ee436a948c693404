// A directory is replaced by atomically exchanging it with the new one, which was written under a temporary name. If the file system
// cannot exchange names, the old directory is first renamed to ".old-NAME"; recover_directory restores it if the machine stopped between
// the two renames.
#include "storage/publication.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/quotes.h"
#include "base/sha256.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* schema = "starling-checkpoint-1";
constexpr uint64_t manifest_limit_bytes = 16 << 20;  // some 100,000 files
constexpr size_t piece_bytes = 1 << 20;              // a piece is hashed and copied while it is in the cache

std::string sibling(const std::string& directory, std::string_view prefix) {
  return join_path(parent_path(directory), std::string(prefix) + file_name(directory));
}

// Returns whether a name is neither hidden nor a path: then it is safe to join to a directory even if it comes from a manifest.
bool plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name != manifest_name && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

// ---- writing ----

// Counts and hashes what passes through to a file.
class HashingSink final : public ByteSink {
 public:
  explicit HashingSink(ByteSink& target) : target_(target) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    size_ += bytes.size();
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), piece_bytes));
      hash_.update(piece);
      target_.write(piece);
      bytes = bytes.subspan(piece.size());
    }
  }
  uint64_t size() const { return size_; }
  std::string sha256() { return to_hex(hash_.digest()); }

 private:
  ByteSink& target_;
  Sha256 hash_;
  uint64_t size_ = 0;
};

// The manifest carries a hash of itself (without that hash), so that any changed byte of it is detected.
std::string manifest_digest(Json manifest) {
  manifest.erase("digest");
  return sha256_hex(manifest.dump());
}

std::string manifest_text(int64_t step, const std::vector<PartInfo>& parts) {
  Json manifest = {{"schema", schema}, {"step", step}, {"files", Json::array()}};
  for (const PartInfo& part : parts) manifest["files"].push_back({{"name", part.name}, {"size", part.size}, {"sha256", part.sha256}});
  manifest["digest"] = manifest_digest(manifest);
  return manifest.dump(2) + "\n";
}

// Moves the finished directory into place. Until the parent is synced, a crash may restore the previous state.
void put_in_place(FileSystem& files, const std::string& aside, const std::string& directory) {
  const std::string parent = parent_path(directory);
  if (!files.exists(directory)) {
    files.rename(aside, directory);
    files.sync_directory(parent);
    return;
  }
  if (files.exchange(aside, directory)) {
    files.sync_directory(parent);
    files.remove_all(aside);
    return;
  }
  const std::string old = old_path(directory);
  files.rename(directory, old);
  files.rename(aside, directory);
  files.sync_directory(parent);
  files.remove_all(old);
}

// ---- reading ----

[[noreturn]] void broken(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}; this checkpoint cannot be used: restore or remove its directory", path, what));
}

PartInfo read_part_info(const std::string& path, const Json& entry) {
  const bool complete = entry.is_object() && entry.contains("name") && entry["name"].is_string() && entry.contains("size") &&
                        entry["size"].is_number_unsigned() && entry.contains("sha256") && entry["sha256"].is_string();
  if (!complete) broken(path, "an entry of 'files' is incomplete");
  PartInfo part{entry["name"].get<std::string>(), entry["size"].get<uint64_t>(), entry["sha256"].get<std::string>()};
  if (!plain_name(part.name)) broken(path, fmt::format("'{}' is not a plain file name", part.name));
  return part;
}

Loaded read_manifest(FileSystem& files, const std::string& directory) {
  const std::string path = join_path(directory, manifest_name);
  if (!files.exists(path)) broken(directory, fmt::format("has no {}", manifest_name));
  const Json manifest = parse_json_object(files.read_file(path, manifest_limit_bytes), path);
  if (manifest.value("schema", Json()) != schema) {
    broken(path, fmt::format("its schema is not '{}', so another version of Starling wrote it", schema));
  }
  if (manifest.value("digest", Json()) != manifest_digest(manifest))
    broken(path, "its digest does not match its content: the file was changed");
  const Json step = manifest.value("step", Json()), entries = manifest.value("files", Json());
  const bool step_fits = step.is_number_unsigned() && step.get<uint64_t>() <= uint64_t{INT64_MAX};
  if (!step_fits || !entries.is_array()) broken(path, "lacks 'step' or 'files'");
  Loaded loaded{directory, step.get<int64_t>(), {}};
  for (const Json& entry : entries) loaded.files.push_back(read_part_info(path, entry));
  return loaded;
}

// Replacing a directory removes its content, so it must hold only files that were published there.
void require_replaceable(FileSystem& files, const std::string& directory) {
  if (!files.exists(directory)) return;
  std::set<std::string> ours;
  try {
    for (const PartInfo& part : read_manifest(files, directory).files) ours.insert(part.name);
    ours.insert(manifest_name);
  } catch (const DataError&) {  // then nothing in it is ours
  }
  for (const std::string& name : files.list(directory)) {
    if (ours.contains(name)) continue;
    throw ConfigError(
        fmt::format("{}: will not be replaced, because it holds '{}', which Starling did not write there; "
                    "remove that file or choose another directory",
                    directory, name));
  }
}

// Makes a part of the next directory from a file of the published one.
Part copied_part(FileSystem& files, const std::string& directory, const PartInfo& info, const GoOn& go_on = {}) {
  const std::string path = join_path(directory, info.name);
  auto write = [&files, path, info, go_on](ByteSink& sink) {
    HashingSink checked(sink);
    files.read_pieces(path, [&](std::span<const std::byte> piece) {
      if (go_on) go_on();
      checked.write(piece);
    });
    if (checked.sha256() != info.sha256) broken(path, "its content does not match the hash in the manifest");
  };
  return {info.name, std::move(write), info.size};
}

}  // namespace

std::string directory_to_make(FileSystem& files, std::string path) {
  if (path.empty()) throw ConfigError("there is no output; name a new directory with --output");
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (const std::string parent = parent_path(path); !files.exists(parent))
    throw ConfigError(fmt::format("{}: is to be made in {}, which does not exist; make that first", printable(path), printable(parent)));
  return path;
}

std::string aside_path(const std::string& directory) { return sibling(directory, kAsidePrefix); }
std::string old_path(const std::string& directory) { return sibling(directory, ".old-"); }

Part text_part(std::string name, std::string content) {
  const uint64_t size = content.size();
  return {std::move(name), [content = std::move(content)](ByteSink& sink) { sink.write(content); }, size};
}

Part safetensors_part(std::string name, std::vector<NamedBytes> tensors, SafetensorsMetadata metadata) {
  const uint64_t size = safetensors_size(tensors, metadata);
  auto write = [tensors = std::move(tensors), metadata = std::move(metadata)](ByteSink& sink) {
    write_safetensors(sink, tensors, metadata);
  };
  return {std::move(name), std::move(write), size};
}

bool Loaded::has(const std::string& name) const {
  return std::any_of(files.begin(), files.end(), [&](const PartInfo& part) { return part.name == name; });
}

std::string Loaded::path(const std::string& name) const {
  if (!has(name)) broken(directory, fmt::format("has no '{}'", name));
  return join_path(directory, name);
}

PartInfo write_part(FileSystem& files, const std::string& directory, const Part& part) {
  CHECK(plain_name(part.name), "part '{}'", part.name);
  const auto file = files.create(join_path(directory, part.name), part.expected_bytes);
  HashingSink sink(*file);
  part.write(sink);
  file->sync();
  file->close();
  return {part.name, sink.size(), sink.sha256()};
}

Publication::Publication(FileSystem& files, std::string directory, int64_t step)
    : files_(files), directory_(std::move(directory)), aside_(aside_path(directory_)), step_(step) {
  CHECK(step >= 0, "step {}", step);
  recover_directory(files_, directory_);
  files_.make_directory(aside_);
}

Publication::~Publication() {
  if (committed_) return;
  try {
    files_.remove_all(aside_);  // frees the space; if that fails too, the next start does it
  } catch (...) {
  }
}

void Publication::add(PartInfo part) {
  const bool known = std::any_of(parts_.begin(), parts_.end(), [&](const PartInfo& p) { return p.name == part.name; });
  CHECK(!known, "two parts '{}'", part.name);
  parts_.push_back(std::move(part));
}

void Publication::commit() {
  files_.write_file(join_path(aside_, manifest_name), manifest_text(step_, parts_));
  files_.sync_directory(aside_);
  committed_ = true;
  put_in_place(files_, aside_, directory_);
}

void replace_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts) {
  Publication publication(files, directory, step);
  for (const Part& part : parts) publication.add(write_part(files, publication.aside(), part));
  publication.commit();
}

void publish_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts) {
  require_replaceable(files, directory);
  replace_directory(files, directory, step, parts);
}

void copy_directory(FileSystem& files, const std::string& from, const std::string& to, const GoOn& go_on) {
  const Loaded there = read_manifest(files, from);
  std::vector<Part> parts;
  for (const PartInfo& info : there.files) parts.push_back(copied_part(files, from, info, go_on));
  publish_directory(files, to, there.step, parts);
}

void update_directory(FileSystem& files, const std::string& directory, std::span<const Part> parts) {
  recover_directory(files, directory);
  const Loaded now = read_manifest(files, directory);
  std::vector<Part> all(parts.begin(), parts.end());
  for (const PartInfo& info : now.files) {
    const bool replaced = std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.name == info.name; });
    if (!replaced) all.push_back(copied_part(files, directory, info));
  }
  publish_directory(files, directory, now.step, all);
}

void require_updatable(FileSystem& files, const std::string& directory) {
  recover_directory(files, directory);
  read_manifest(files, directory);
  require_replaceable(files, directory);
  files.make_directory(aside_path(directory));
  files.remove(aside_path(directory));
}

void recover_directory(FileSystem& files, const std::string& directory) {
  const std::string aside = aside_path(directory), old = old_path(directory);
  const bool has_aside = files.exists(aside), has_old = files.exists(old);
  if (!has_aside && !has_old) return;
  if (has_old && !files.exists(directory)) files.rename(old, directory);
  files.sync_directory(parent_path(directory));  // only now is `directory` durable and the rest superfluous
  files.remove_all(aside);
  files.remove_all(old);
}

Loaded verify_directory(FileSystem& files, const std::string& directory) {
  Loaded loaded = read_manifest(files, directory);
  for (const PartInfo& part : loaded.files) {
    const std::string path = join_path(directory, part.name);
    const FileInfo info = files.info(path);
    if (info.kind != FileKind::file) broken(path, "is missing");
    if (info.size != part.size) broken(path, fmt::format("has {} bytes, the manifest says {}", info.size, part.size));
    if (sha256_file(files, path) != part.sha256) broken(path, "its content does not match the hash in the manifest");
  }
  return loaded;
}

std::optional<Loaded> try_verify(FileSystem& files, const std::string& directory, std::optional<int64_t> step, const Report& report) {
  try {
    Loaded loaded = verify_directory(files, directory);
    if (step && loaded.step != *step) broken(directory, fmt::format("its manifest is for step {}", loaded.step));
    return loaded;
  } catch (const Error& error) {
    if (report) report(error.what());
    return std::nullopt;
  }
}

}  // namespace starling
