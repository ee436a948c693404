// A library that is opened while the program runs, so that the program starts where the library is missing.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace starling {

class SharedLibrary {
 public:
  // The file name, e.g. libmecab.so.2, is looked for where the system looks (LD_LIBRARY_PATH, the system's folders), then in `folders`, in
  // their order. A library that cannot be opened is not an error yet.
  explicit SharedLibrary(const std::string& name, std::span<const std::filesystem::path> folders = {});
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool is_open() const { return handle_ != nullptr; }
  // Why it is not open: "libmecab.so.2: cannot open shared object file: ...".
  const std::string& problem() const { return problem_; }
  // The address of a function, as its type. ConfigError where the library is not open or has none of this name.
  template <class Function>
  Function* find(const char* function) const {
    return reinterpret_cast<Function*>(address(function));
  }

 private:
  void* address(const char* function) const;

  std::string name_, problem_;
  void* handle_ = nullptr;
};

}  // namespace starling
