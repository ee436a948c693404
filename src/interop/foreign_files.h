// The files of a model that another program wrote: a directory, a zip archive, or a single file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"

namespace starling {

class ForeignFiles {
 public:
  virtual ~ForeignFiles() = default;
  // The names of the files, sorted: of a directory also those one folder below ("model/model.bin"), of an archive all, without the folder
  // that all of them lie in, if there is one.
  virtual const std::vector<std::string>& names() const = 0;
  // Returns the content of one of them.
  virtual std::string read(const std::string& name) const = 0;
  // What messages call it.
  virtual std::string where(const std::string& name) const = 0;

  bool has(const std::string& name) const;
};

// Opens a path; a file that is not an archive of files has its own name only. Throws IoError or DataError.
std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path);

// The content of a file that may be packed by gzip or Zstandard. Throws DataError, beginning with `where`, if it is damaged or would have
// more than 8 GiB.
std::string unpacked(std::string content, const std::string& where);
// A file that was read, and what messages call it.
struct ForeignFile {
  std::string name, where, content;
};
// Reads a file of the folder or, if it has none of that name, of the file system, and unpacks it.
ForeignFile read_foreign(FileSystem& files, const ForeignFiles& folder, const std::string& path);
// A name without .gz or .zst.
std::string without_packing(const std::string& name);

}  // namespace starling
