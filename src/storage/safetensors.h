// Reads and writes tensors in the safetensors format (github.com/huggingface/safetensors): eight bytes of little-endian header length, a
// JSON header, then the bytes of all tensors without gaps. It was chosen because every tool reads it, and because the file can be mapped
// into memory as it is. The reader trusts nothing: for any bytes, it returns tensors that lie inside the file or throws DataError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_budget.h"
#include "base/files.h"
#include "base/mapping_guard.h"

namespace starling {

// A named tensor whose bytes (row-major, little-endian) belong to somebody else.
struct NamedBytes {
  std::string name;
  std::string dtype;  // F32, F64, BF16, F16, I8, I32, I64 or U8
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // For writing, in place of data: called to write the bytes to the sink when it is this tensor's turn.
  std::function<void(ByteSink&)> source = {};
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsContent {
  std::vector<NamedBytes> tensors;  // in the order of their bytes
  SafetensorsMetadata metadata;
};

// Returns the bytes of one element; 0 for an unknown dtype.
int64_t dtype_bytes(std::string_view dtype);

// Writes the tensors without copying them, wider dtypes first (so that each is aligned in the file), otherwise in the given order. Throws
// InternalError for duplicate or empty names, unknown dtypes, or data whose size does not match its shape.
void write_safetensors(ByteSink& sink, std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata = {});
// Returns the number of bytes that write_safetensors would write.
uint64_t safetensors_size(std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata = {});

// Parses bytes; the tensors point into them. Throws DataError, beginning with `where`, if they are not valid.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& where);
// Likewise; the header charges the budget.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& where, ByteBudget& budget);

// A mapped safetensors file. Moving it keeps the tensors valid.
class SafetensorsFile {
 public:
  // Throws IoError if the file cannot be mapped, DataError if it is not a valid safetensors file.
  SafetensorsFile(FileSystem& files, const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<NamedBytes>& tensors() const { return content_.tensors; }
  const SafetensorsMetadata& metadata() const { return content_.metadata; }
  // Returns null if there is no tensor of that name.
  const NamedBytes* find(std::string_view name) const;
  // Throws DataError, naming the file, if there is no tensor of that name.
  const NamedBytes& at(std::string_view name) const;
  // Throws IoError if the file was truncated, so that what was read from its tensors may be wrong. Call it after reading.
  void require_whole() const { guard_.require_whole(); }

 private:
  std::string path_;
  std::unique_ptr<MappedFile> mapping_;
  MappingGuard guard_;
  SafetensorsContent content_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace starling
