#include "storage/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/system_reason.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

// Returns the status of a regular file or directory, following links; nullopt for anything else.
std::optional<struct stat> identity(const std::string& path, int standard) {
  struct stat status;
  const int result = path == "-" ? ::fstat(standard, &status) : ::stat(path.c_str(), &status);
  if (result != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return std::nullopt;
  return status;
}

std::string shown(const NamedPath& p) { return p.path == "-" ? p.name : p.name + " " + p.path; }

constexpr std::string_view kRun[] = {
    "config.yml",    "cluster.yml",    "times.json",      // settings, and what simulate and race add
    "vocab.spm",     "source.spm",     "target.spm",      // vocabularies,
    "vocab.spm.new", "source.spm.new", "target.spm.new",  // trained for a file elsewhere
    "data",          "data.new",       "data.half",       // tokens
    "cleaned",                                            // text,
    "checkpoints",   "best",                              // models
    "train.log",     "events.jsonl",   "lock",            // records
    "validations",   "tensorboard",    "stream",          // translations, scalars, text from a pipe
};
// ".tmp-" and ".old-" mark a directory that is being replaced (storage/checkpoint.h).
constexpr std::string_view kRunBeginnings[] = {"best-before-", "before-restart", ".tmp-", ".old-"};
constexpr std::string_view kRace[] = {"records.json", "data.json", "cluster.yml", "results.csv", "curves.csv", "table.md", "race.svg",
                                      "lock",         "replays",   "vocab.spm",   "source.spm",  "target.spm", "data",     "data.new"};

template <size_t N>
bool contains(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

bool is_model_directory(const fs::path& directory) {
  return is_there(directory / "manifest.json") && is_there(directory / "model.safetensors");
}

// Throws if the innermost run, race or model directory around the path owns it.
void refuse(const NamedPath& output, const fs::path& path) {
  const auto fail = [&](const std::string& what) { throw ConfigError(fmt::format("{} {}; choose another output", shown(output), what)); };
  for (fs::path inner = path, outer = path.parent_path(); outer != inner; inner = outer, outer = outer.parent_path()) {
    const std::string name = inner.filename().string();
    if (is_model_directory(outer))
      fail(fmt::format("lies in the model directory {}, whose files belong together and would be altered", outer.string()));
    const bool run = is_run_directory(outer.string());
    if (run && belongs_to_run(name)) fail(fmt::format("belongs to the run in {} and would be damaged", outer.string()));
    const bool race = is_race_directory(outer.string());
    if (race && belongs_to_race(name)) fail(fmt::format("belongs to the race in {} and would be damaged", outer.string()));
    if (run || race) return;
  }
}

}  // namespace

void refuse_own_input(const NamedPath& output, const std::vector<NamedPath>& inputs) {
  const auto written = identity(output.path, STDOUT_FILENO);
  for (const NamedPath& input : inputs) {
    if (input.path.empty()) continue;
    const auto read = identity(input.path, STDIN_FILENO);
    if (!read) continue;
    if (written && written->st_dev == read->st_dev && written->st_ino == read->st_ino)
      throw ConfigError(fmt::format("{} is the same {} as {}, which would be overwritten; choose another output", shown(output),
                                    S_ISDIR(read->st_mode) ? "directory" : "file", shown(input)));
    if (S_ISDIR(read->st_mode) && output.path != "-" && lies_in(real_path(output.path), real_path(input.path)))
      throw ConfigError(fmt::format("{} lies in {}, which would be altered; choose an output elsewhere", shown(output), shown(input)));
  }
}

bool belongs_to_run(std::string_view name) {
  return contains(kRun, name) || std::any_of(std::begin(kRunBeginnings), std::end(kRunBeginnings),
                                             [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool belongs_to_race(std::string_view name) { return contains(kRace, name); }

bool is_run_directory(const std::string& directory) {
  const fs::path run(directory);
  if (is_there(run / "events.jsonl") || is_there(run / "best" / "manifest.json")) return true;
  std::error_code none;
  for (fs::directory_iterator entry(run / "checkpoints", none), end; !none && entry != end; entry.increment(none))
    if (entry->path().filename().string().starts_with("step-")) return true;
  return false;
}

bool is_race_directory(const std::string& directory) {
  const fs::path race(directory);
  return is_there(race / "runs") && (is_there(race / "data.json") || is_there(race / "records.json"));
}

void refuse_run_files(const NamedPath& output) {
  std::error_code error;
  const fs::path path = fs::absolute(output.path == "-" ? "/proc/self/fd/1" : output.path, error);
  if (error) return;
  refuse(output, path.lexically_normal());
  if (const fs::path real = fs::weakly_canonical(path, error); !error) refuse(output, real);
}

fs::path real_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);  // first: a path of which nothing exists would stay relative
  fs::path real = fs::weakly_canonical(whole, error);
  if (error) real = whole.lexically_normal();
  return real.has_filename() ? real : real.parent_path();
}

bool lies_in(const fs::path& path, const fs::path& directory) {
  const fs::path relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != ".." && relative != ".";
}

std::string make_partial(const std::string& path) {
  for (int n = 1;; ++n) {
    const std::string name = n == 1 ? path + ".partial" : fmt::format("{}.partial-{}", path, n);
    const int descriptor = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) throw IoError(fmt::format("{}: cannot be written: {}", name, system_reason(errno)));
    ::close(descriptor);
    return name;
  }
}

}  // namespace starling
