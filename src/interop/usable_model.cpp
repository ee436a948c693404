#include "interop/usable_model.h"

#include <algorithm>
#include <filesystem>

#include "base/hash64.h"
#include "base/user_directories.h"
#include "interop/hf.h"
#include "interop/import.h"

namespace starling {
namespace {

// The file of a foreign model that tells when it changes; "" if the path is none, by the names of its files.
std::string foreign_file(FileSystem& files, const std::string& path) {
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::file) {
    for (const char* end : {".argosmodel", ".zip", ".npz", ".bin", ".bin.gz", ".bin.zst"})
      if (path.ends_with(end)) return path;
    return "";
  }
  const auto has = [&](const char* name) { return files.exists(join_path(path, name)); };
  if (info.kind != FileKind::directory || (has("config.yml") && has("model.safetensors")) || has("checkpoints")) return "";
  if (files.exists(join_path(path, "config.json")))
    for (const std::string& name : files.list(path))
      if (is_hf_weights(name)) return join_path(path, name);
  if (files.exists(join_path(path, "model.safetensors"))) return "";
  for (const char* name : {"model.bin", "model/model.bin"})
    if (files.exists(join_path(path, name))) return join_path(path, name);
  for (const std::string& name : files.list(path))
    if (name.ends_with(".npz")) return join_path(path, name);
  return "";
}

}  // namespace

std::string usable_model(FileSystem& files, const std::string& path, const std::function<void(const std::string&)>& say) {
  const std::string file = foreign_file(files, path);
  if (file.empty()) return path;
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const auto time = std::filesystem::last_write_time(file).time_since_epoch().count();
  const std::string key = fmt::format("{} {} {}", whole.string(), files.info(file).size, time);
  const std::string cache = user_directory("XDG_CACHE_HOME", ".cache");
  if (cache.empty())
    throw ConfigError(fmt::format("{}: there is no home directory to import it to; use 'starling import {} -o DIRECTORY'", path, path));
  const std::string name = whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  const std::string directory =
      join_path(join_path(cache, "imported"), fmt::format("{}-{:016x}", name, hash64(std::as_bytes(std::span(key)))));
  if (files.exists(directory)) return directory;
  say(fmt::format("importing {} to {}", path, directory));
  try {
    import_model(files, {path, directory, {}, {}});
  } catch (const ConfigError&) {
    if (!files.exists(directory)) throw;  // else another process was quicker
  }
  return directory;
}

std::vector<std::string> packages_in(FileSystem& files, const std::string& folder) {
  std::vector<std::string> packages;
  if (files.info(folder).kind != FileKind::directory) throw ConfigError(fmt::format("{}: there is no such folder", folder));
  for (const std::string& name : files.list(folder)) {
    const std::string path = join_path(folder, name);
    if (name.ends_with(".argosmodel") ||
        (files.exists(join_path(path, "metadata.json")) && files.exists(join_path(path, "model/model.bin"))))
      packages.push_back(path);
  }
  if (packages.empty())
    throw ConfigError(
        fmt::format("{}: there are no packages, neither .argosmodel files nor folders with metadata.json and model/", folder));
  return packages;
}

}  // namespace starling
