// Arrays of plain values in files, written as their bytes and read where they lie.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace starling {

template <class T>
std::string_view bytes_of(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

// The values of a file of a cleaning, valid as long as the object.
template <class T>
class MappedValues {
 public:
  // Throws IoError, also for a file that is missing.
  MappedValues(FileSystem& files, const std::string& path) {
    const FileInfo info = files.info(path);
    if (info.kind != FileKind::file)
      throw IoError(fmt::format("{}: is missing, so the pairs must be judged again; remove its directory", path));
    if (info.size > 0) file_ = files.map(path);  // an empty file cannot be mapped
  }
  std::span<const T> span() const {
    if (!file_) return {};
    const std::span<const std::byte> bytes = file_->bytes();  // at the beginning of a page
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  std::unique_ptr<MappedFile> file_;
};

}  // namespace starling
