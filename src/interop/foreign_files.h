// The files of a model that another program wrote: a directory, a zip archive, or a single file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/byte_budget.h"
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
  // Returns its first bytes, `most` at most, without reading or unpacking the rest where that can be avoided.
  virtual std::string peek(const std::string& name, size_t most) const { return read(name).substr(0, most); }
  // What messages call it.
  virtual std::string where(const std::string& name) const = 0;
  // The directory that they are files of; "" if they lie in an archive.
  virtual std::string directory() const { return ""; }

  bool has(const std::string& name) const;
  // What unpacking and parsing its files may take; read() allows more of it.
  ByteBudget& budget() const { return budget_; }

 private:
  mutable ByteBudget budget_;
};

// Opens a directory, an archive or, of a file that is not one, the files beside it. Throws IoError or DataError.
std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path);

// The content of a file that may be packed by gzip or Zstandard, which charges the budget. Weights may have four times as many bytes as
// they have packed. Throws DataError, beginning with `where`, if it is damaged or too large.
std::string unpacked(std::string content, const std::string& where, ByteBudget& budget);
// The first bytes of a file, unpacked if it is packed. Throws DataError if it is damaged.
std::string peek_unpacked(const ForeignFiles& folder, const std::string& name, size_t most);
// A file that was read, and what messages call it.
struct ForeignFile {
  std::string name, where, content;
};
// Reads a file of the folder or, if it has none of that name, of the file system, and unpacks it.
ForeignFile read_foreign(FileSystem& files, const ForeignFiles& folder, const std::string& path);
// A name without .gz or .zst.
std::string without_packing(const std::string& name);
// Whether a name is that of a file in the folder itself, not below.
bool at_top(const std::string& name);

}  // namespace starling
