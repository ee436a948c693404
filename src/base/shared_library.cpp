#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace starling {
namespace {

void* open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

}  // namespace

SharedLibrary::SharedLibrary(const std::string& name, std::span<const std::filesystem::path> folders) : name_(name), handle_(open(name)) {
  if (handle_ == nullptr) problem_ = dlerror();
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path path = folder / name;
    if (handle_ != nullptr) break;
    if (std::error_code error; !std::filesystem::exists(path, error)) continue;
    handle_ = open(path.string());
    problem_ = handle_ == nullptr ? dlerror() : "";  // it is there, but does not fit
  }
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::address(const char* function) const {
  if (handle_ == nullptr) throw ConfigError(problem_);
  void* const found = dlsym(handle_, function);
  if (found == nullptr) throw ConfigError(fmt::format("{} does not export {}; it is another version", name_, function));
  return found;
}

}  // namespace starling
