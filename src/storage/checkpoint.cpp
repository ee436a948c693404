// A directory is replaced by atomically exchanging it with the new one, which was written under a temporary name. If the file system
// cannot exchange names, the old directory is first renamed to ".old-NAME"; recover_directory restores it if the machine stopped between
// the two renames.
#include "storage/checkpoint.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/sha256.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* schema = "starling-checkpoint-1";
constexpr uint64_t manifest_limit_bytes = 16 << 20;  // some 100,000 files
constexpr size_t piece_bytes = 1 << 20;              // a piece is hashed and copied while it is in the cache

std::string sibling(const std::string& directory, const char* prefix) {
  return join_path(parent_path(directory), prefix + file_name(directory));
}
std::string tmp_path(const std::string& directory) { return sibling(directory, ".tmp-"); }
std::string old_path(const std::string& directory) { return sibling(directory, ".old-"); }

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

// ---- names of checkpoints ----

std::string step_name(int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<int64_t> parse_step(const std::string& name) {
  constexpr size_t prefix = 5, most_digits = 18;
  if (!name.starts_with("step-") || name.size() == prefix || name.size() > prefix + most_digits) return std::nullopt;
  int64_t step = 0;
  for (const char c : name.substr(prefix)) {
    if (c < '0' || c > '9') return std::nullopt;
    step = 10 * step + (c - '0');
  }
  return step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string checkpoints_path(const std::string& run_directory) { return join_path(run_directory, "checkpoints"); }

// Maps each step to its directory, complete or not. One that was renamed to ".old-" counts if no other has taken its place.
std::map<int64_t, std::string> list_steps(FileSystem& files, const std::string& checkpoints) {
  std::map<int64_t, std::string> steps;
  if (!files.exists(checkpoints)) return steps;
  for (const std::string& name : files.list(checkpoints)) {  // sorted: ".old-step-1" comes before "step-1", which overrides it
    const bool aside = name.starts_with(".old-");
    if (const auto step = parse_step(aside ? name.substr(5) : name)) steps[*step] = join_path(checkpoints, name);
  }
  return steps;
}

// Returns the verified directory, or nullopt after reporting what is wrong.
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

void publish(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts) {
  Publication publication(files, directory, step);
  for (const Part& part : parts) publication.add(write_part(files, publication.aside(), part));
  publication.commit();
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
Part copied_part(FileSystem& files, const std::string& directory, const PartInfo& info) {
  const std::string path = join_path(directory, info.name);
  auto write = [&files, path, info](ByteSink& sink) {
    HashingSink checked(sink);
    files.read_pieces(path, [&](std::span<const std::byte> piece) { checked.write(piece); });
    if (checked.sha256() != info.sha256) broken(path, "its content does not match the hash in the manifest");
  };
  return {info.name, std::move(write), info.size};
}

}  // namespace

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
    : files_(files), directory_(std::move(directory)), aside_(tmp_path(directory_)), step_(step) {
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

void publish_directory(FileSystem& files, const std::string& directory, int64_t step, std::span<const Part> parts) {
  require_replaceable(files, directory);
  publish(files, directory, step, parts);
}

void copy_directory(FileSystem& files, const std::string& from, const std::string& to) {
  const Loaded there = read_manifest(files, from);
  std::vector<Part> parts;
  for (const PartInfo& info : there.files) parts.push_back(copied_part(files, from, info));
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
  files.make_directory(tmp_path(directory));
  files.remove(tmp_path(directory));
}

void recover_directory(FileSystem& files, const std::string& directory) {
  const std::string aside = tmp_path(directory), old = old_path(directory);
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

std::string checkpoint_aside(const std::string& run_directory, int64_t step) {
  return tmp_path(join_path(checkpoints_path(run_directory), step_name(step)));
}

std::optional<Loaded> latest_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report, int64_t after) {
  const auto steps = list_steps(files, checkpoints_path(run_directory));
  for (auto at = steps.rbegin(); at != steps.rend() && at->first > after; ++at) {
    if (auto loaded = try_verify(files, at->second, at->first, report)) return loaded;
  }
  return std::nullopt;
}

std::optional<Loaded> best_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report) {
  const std::string best = join_path(run_directory, "best");
  const std::string old = old_path(best);
  if (files.exists(best)) return try_verify(files, best, std::nullopt, report);
  if (files.exists(old)) return try_verify(files, old, std::nullopt, report);
  return std::nullopt;
}

CheckpointStore::CheckpointStore(FileSystem& files, std::string run_directory, int keep, Report report, bool cleans)
    : files_(files), run_(std::move(run_directory)), checkpoints_(checkpoints_path(run_)), keep_(keep), report_(std::move(report)) {
  if (keep < 1) throw ConfigError(fmt::format("checkpoint.keep is {}; at least one checkpoint must stay: set it to 1 or more", keep));
  files_.make_directories(checkpoints_);
  if (!cleans) return;
  recover_directory(files_, join_path(run_, "best"));
  clear_away();
}

// Completes, rolls back or removes what a crash, or a removal that failed, has left.
void CheckpointStore::clear_away() {
  for (const std::string& name : files_.list(checkpoints_))
    if (name.starts_with(".tmp-") || name.starts_with(".old-")) recover_directory(files_, join_path(checkpoints_, name.substr(5)));
}

std::string CheckpointStore::directory(int64_t step) const { return join_path(checkpoints_, step_name(step)); }

void CheckpointStore::save(int64_t step, std::span<const Part> parts) {
  const auto publication = begin(step);
  for (const Part& part : parts) publication->add(write_part(files_, publication->aside(), part));
  commit(*publication);
}

std::unique_ptr<Publication> CheckpointStore::begin(int64_t step) { return std::make_unique<Publication>(files_, directory(step), step); }

void CheckpointStore::commit(Publication& publication, const Report& report) {
  publication.commit();
  const Report& told = report ? report : report_;
  const int64_t step = last_saved_ = publication.step();
  known_sound_.insert(step);
  for (const bool again : {true, false}) {
    try {
      clear_away();
      prune(told);
      break;
    } catch (const IoError& error) {  // the new checkpoint is safe; a surplus old one is no reason to stop
      if (!again && told) told(error.what());
    }
  }
  try_second(told, fmt::format("the checkpoint of update {} could not be copied to", step), [&](CheckpointStore& second) {
    copy_directory(files_, directory(step), second.directory(step));
    second.last_saved_ = step;
    second.known_sound_.insert(step);
    second.prune(told);
  });
}

void CheckpointStore::save_best(int64_t step, std::span<const Part> parts) {
  const std::string best = join_path(run_, "best");
  publish(files_, best, step, parts);
  try_second(report_, "the best model could not be copied to",
             [&](CheckpointStore& second) { copy_directory(files_, best, join_path(second.run_, "best")); });
}

// The other disk may be gone and come back: what is needed of it is made each time. Nothing is cleaned up, since two threads may copy at
// once, a checkpoint and the best model; the run's start has done that.
void CheckpointStore::try_second(const Report& report, const std::string& what, const std::function<void(CheckpointStore& second)>& body) {
  if (second_path_.empty()) return;
  try {
    CheckpointStore second(files_, second_path_, keep_, report, false);
    body(second);
  } catch (const Error& error) {
    if (report) report(fmt::format("warning: {} checkpoint.second-directory: {}", what, error.what()));
  }
}

std::optional<Loaded> CheckpointStore::latest() {
  auto loaded = latest_checkpoint(files_, run_, report_);
  if (loaded) known_sound_.insert(loaded->step);
  return loaded;
}

bool CheckpointStore::sound(int64_t step, const std::string& path, const Report& report) {
  if (known_sound_.contains(step)) return true;
  const bool fine = try_verify(files_, path, step, report).has_value();
  if (fine) known_sound_.insert(step);
  return fine;
}

void CheckpointStore::prune() { prune(report_); }

void CheckpointStore::prune(const Report& report) {
  const auto steps = list_steps(files_, checkpoints_);
  int kept = 0;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const auto& [step, path] = *at;
    if (kept < keep_) {
      kept += sound(step, path, report) ? 1 : 0;
    } else if (step != last_saved_) {
      remove(step, path);
    }
  }
}

void CheckpointStore::remove(int64_t step, const std::string& path) {
  const std::string doomed = tmp_path(directory(step));
  files_.remove_all(doomed);
  files_.rename(path, doomed);  // from here on it is not a checkpoint, however far the removal gets
  files_.sync_directory(checkpoints_);
  files_.remove_all(doomed);
  known_sound_.erase(step);
}

void CheckpointStore::remove_after(int64_t step) {
  for (const auto& [later, path] : list_steps(files_, checkpoints_))
    if (later > step) remove(later, path);
  last_saved_ = std::min(last_saved_, step);
  try_second(report_, fmt::format("checkpoints after update {} could not be removed from", step),
             [&](CheckpointStore& second) { second.remove_after(step); });
}

}  // namespace starling
