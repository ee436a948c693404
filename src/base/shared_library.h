// A shared library that is loaded at run time, so that the program starts even where the library is missing.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace starling {

class SharedLibrary {
 public:
  // Looks for the file name, e.g. libmecab.so.2, where the system does (LD_LIBRARY_PATH, the system's folders), then in `folders` in
  // order. A library that cannot be opened is not an error until find() is called.
  explicit SharedLibrary(const std::string& name, std::span<const std::filesystem::path> folders = {});
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool is_open() const { return handle_ != nullptr; }
  // Says why it is not open: "libmecab.so.2: cannot open shared object file: ...".
  const std::string& problem() const { return problem_; }
  // Returns the address of a function, cast to its type. Throws ConfigError if the library is not open or does not export the name.
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
