#include "interop/usable_model.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/hash64.h"
#include "base/lock.h"
#include "base/user_directories.h"
#include "base/utf8.h"
#include "base/version.h"
#include "interop/hf.h"
#include "interop/import.h"
#include "interop/recognise.h"
#include "storage/publication.h"

namespace starling {
namespace {

// Raise it when an import makes another model of the same files than before.
constexpr int kImporter = 4;

std::string hash_text(const std::string& text) { return fmt::format("{:016x}", hash64(std::as_bytes(std::span(text)))); }

// The content of small files, size and time of others.
std::string state_of_file(FileSystem& files, const std::string& path) {
  constexpr uint64_t kSmall = uint64_t{64} << 10;
  const FileInfo info = files.info(path);
  if (info.kind != FileKind::file) return path + " is not there\n";
  if (info.size <= kSmall) return fmt::format("{} {} {}\n", path, info.size, hash_text(files.read_file(path)));
  std::error_code gone;
  const auto time = std::filesystem::last_write_time(path, gone);
  return gone ? path + " is not there\n" : fmt::format("{} {} {}\n", path, info.size, time.time_since_epoch().count());
}

// Whether an import may read a file, apart from weights of Marian's and CTranslate2's.
bool may_matter(const std::string& name, ModelKind kind) {
  const std::string plain = without_packing(name);
  if (name.starts_with("nonbreaking_prefix.")) return true;
  for (const char* end : {".json", ".spm", ".model", ".yml", ".yaml", ".bpe", ".codes", "codes"})
    if (plain.ends_with(end)) return !plain.ends_with(".progress.yml");
  if (kind == ModelKind::hf && is_hf_weights(plain)) return true;
  if (kind == ModelKind::ct2 && plain.ends_with(".txt")) return true;
  return name.starts_with("LICENSE") || name == "README.md" || name == "preprocess.sh";
}

std::string state_of(FileSystem& files, const std::string& path, const RecognisedModel& m) {
  if (m.folder->directory().empty()) return state_of_file(files, path);
  std::string state = m.weights + "\n";
  for (const std::string& name : m.folder->names())
    if (name == m.weights || may_matter(name, m.kind)) state += state_of_file(files, m.folder->where(name));
  if (m.kind != ModelKind::marian) return state;
  const VocabularyFiles v = marian_vocabularies(files, *m.folder, m.marian, {});
  for (const std::string& vocabulary : {v.source, v.target, v.source_numbers, v.target_numbers})
    if (!vocabulary.empty() && !m.folder->has(vocabulary)) state += state_of_file(files, vocabulary);  // elsewhere
  return state;
}

// Where the import of a path is kept: in a directory of its own in `all`, whose name begins as that of all imports of the path.
struct Place {
  std::string all, before, now;
  std::string directory() const { return join_path(all, now); }
};

Place place_of(FileSystem& files, const std::string& path, const RecognisedModel& m) {
  constexpr size_t kMostName = 100;  // bytes of the model's name that stand in ours, for people
  const std::string cache = user_directory("XDG_CACHE_HOME", ".cache");
  if (cache.empty())
    throw ConfigError(fmt::format("{}: there is no home directory to import it to; use 'starling import {} -o DIRECTORY'", path, path));
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::string name = whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  size_t shown = std::min(kMostName, name.size());
  while (shown < name.size() && is_continuation(static_cast<unsigned char>(name[shown]))) --shown;
  const std::string before = fmt::format("{}-{}-", name.substr(0, shown), hash_text(whole.string()));
  return {join_path(cache, "imported"), before,
          before + hash_text(fmt::format("{} {}\n{}", kImporter, starling::kVersion, state_of(files, path, m)))};
}

// Waits until no other process imports the same path, which would write to the same directory. Null where the file system knows no locks.
std::unique_ptr<FileLock> lock_import(const std::string& file, const std::string& path) {
  constexpr std::chrono::milliseconds kInterval{50};
  constexpr std::chrono::minutes kLongest{30};
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (;; std::this_thread::sleep_for(kInterval)) {
      if (auto lock = FileLock::try_acquire(file)) return lock;
      if (std::chrono::steady_clock::now() - begin > kLongest)
        throw ConfigError(fmt::format("{}: another process has been importing it for half an hour; stop that process and try again", path));
    }
  } catch (const IoError&) {
    return nullptr;
  }
}

}  // namespace

std::string foreign_state(FileSystem& files, const std::string& path) {
  const RecognisedModel m = recognise(files, path);
  return m.kind == ModelKind::ours ? "" : hash_text(state_of(files, path, m));
}

bool is_ready(FileSystem& files, const std::string& path) {
  const RecognisedModel m = recognise(files, path);
  return m.kind == ModelKind::ours || files.exists(place_of(files, path, m).directory());
}

std::string usable_model(FileSystem& files, const std::string& path, const std::function<void(const std::string&)>& say,
                         const Importer& importer) {
  const RecognisedModel m = recognise(files, path);
  if (m.kind == ModelKind::ours) return path;
  const auto place = place_of(files, path, m);
  const auto& [all, before, now] = place;
  const std::string directory = place.directory();
  if (files.exists(directory)) return directory;
  files.make_directories(all);
  const auto lock = lock_import(join_path(all, "." + before + "lock"), path);
  if (files.exists(directory)) return directory;  // another process was quicker
  const std::string which = m.marian.others.empty() ? "" : fmt::format(" ({})", m.weights);
  say(fmt::format("importing {}{} to {}", path, which, directory));
  for (const std::string& other : files.list(all))  // of an import that was killed
    if (other.starts_with(file_name(aside_path(before)))) files.remove_all(join_path(all, other));
  importer(path, directory);
  for (const std::string& other : files.list(all))
    if (other.starts_with(before) && other.size() == now.size() && other != now) files.remove_all(join_path(all, other));
  return directory;
}

std::string usable_model(FileSystem& files, const std::string& path, const std::function<void(const std::string&)>& say) {
  return usable_model(files, path, say, [&](const std::string& from, const std::string& output) {
    import_model(files, {from, output, {}, {}});
  });
}

std::vector<std::string> packages_in(FileSystem& files, const std::string& folder) {
  std::vector<std::string> packages;
  if (files.info(folder).kind != FileKind::directory) throw ConfigError(fmt::format("{}: there is no such folder", folder));
  if (files.exists(join_path(folder, "metadata.json")))
    throw ConfigError(fmt::format("{}: is itself a package; give --model {}, or the folder that it is in", folder, folder));
  for (const std::string& name : files.list(folder)) {
    const std::string path = join_path(folder, name);
    const bool archive = name.ends_with(".argosmodel") || name.ends_with(".zip");
    if (!name.starts_with('.') && (archive || files.info(path).kind == FileKind::directory)) packages.push_back(path);
  }
  if (packages.empty())
    throw ConfigError(
        fmt::format("{}: there are no packages, neither .argosmodel files nor folders with metadata.json and model/", folder));
  return packages;
}

}  // namespace starling
