#include "backend/cuda/libraries.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

namespace starling::STARLING_CUDA {
namespace {

namespace fs = std::filesystem;

// The entries of a folder whose names begin with this, the highest version first; empty if there is no such folder.
std::vector<fs::path> entries(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> toolkits(const Environment& environment) {
  std::vector<fs::path> found;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = environment(variable)) found.emplace_back(folder);
  found.emplace_back("/usr/local/cuda");
  for (const fs::path& folder : entries("/usr/local", "cuda-")) found.push_back(folder);
  return found;
}

// Folders that hold lib/python3.N.
std::vector<fs::path> pythons(const Environment& environment) {
  std::vector<fs::path> found;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* folder = environment(variable)) found.emplace_back(folder);
  std::error_code error;
  if (const char* path = environment("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      for (const fs::path& python : {fs::path(folder) / "python3", fs::canonical(fs::path(folder) / "python3", error)})
        if (fs::exists(python, error)) found.push_back(python.parent_path().parent_path());
  }
  if (const char* home = environment("HOME")) found.push_back(fs::path(home) / ".local");
  found.emplace_back("/usr/local");
  found.emplace_back("/usr");
  return found;
}

}  // namespace

std::vector<fs::path> nvidia_folders(const Environment& environment) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error) && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  };
  for (const fs::path& toolkit : toolkits(environment)) {
    for (const char* name : {"lib64", "lib"}) add(toolkit / name);
    for (const fs::path& target : entries(toolkit / "targets", "")) add(target / "lib");
  }
  for (const fs::path& prefix : pythons(environment))
    for (const fs::path& version : entries(prefix / "lib", "python3"))
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const fs::path& part : entries(version / packages / "nvidia", "")) add(part / "lib");
  return folders;
}

const SharedLibrary& nvidia_library(const std::string& name) {
  static std::mutex mutex;
  // Never closed: the library's own threads and exit handlers may still run when the program ends.
  static auto* const opened = new std::map<std::string, std::unique_ptr<SharedLibrary>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<SharedLibrary>& library = (*opened)[name];
  if (!library) library = std::make_unique<SharedLibrary>(name, nvidia_folders([](const char* variable) { return std::getenv(variable); }));
  return *library;
}

}  // namespace starling::STARLING_CUDA
