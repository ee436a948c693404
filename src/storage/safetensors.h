// Tensors in a file, in the safetensors layout (github.com/huggingface/safetensors): eight bytes of little-endian header length, a JSON
// header, then the bytes of all tensors without gaps. Chosen because every tool reads it and because reading it is mapping it.
// The reader trusts nothing: whatever the bytes are, it returns tensors that lie inside the file or throws DataError.
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

#include "base/files.h"
#include "base/mapping_guard.h"

namespace starling {

// A named tensor whose bytes (row-major, little-endian) belong to somebody else.
struct NamedBytes {
  std::string name;
  std::string dtype;  // F32, F64, BF16, F16, I8, I32, I64 or U8
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // To be written, in place of data: gives the bytes to the sink when their turn has come.
  std::function<void(ByteSink&)> source = {};
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsContent {
  std::vector<NamedBytes> tensors;  // in the order of their bytes
  SafetensorsMetadata metadata;
};

// Bytes of one element; 0 for an unknown dtype.
int64_t dtype_bytes(std::string_view dtype);

// Writes the tensors straight from where they lie, wider dtypes first (so that each is aligned in the file), otherwise in the order given.
// InternalError on duplicate or empty names, unknown dtypes, or data that does not fill its shape.
void write_safetensors(ByteSink& sink, std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata = {});
// The size in bytes of what write_safetensors would write.
uint64_t safetensors_size(std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata = {});

// Interprets bytes; the tensors point into them. `where` begins the message of the DataError.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& where);

// A mapped safetensors file. Moving it keeps the tensors valid.
class SafetensorsFile {
 public:
  // IoError when the file cannot be mapped, DataError when it is not a sound safetensors file.
  SafetensorsFile(FileSystem& files, const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<NamedBytes>& tensors() const { return content_.tensors; }
  const SafetensorsMetadata& metadata() const { return content_.metadata; }
  // Null when there is none of that name.
  const NamedBytes* find(std::string_view name) const;
  // DataError naming the file when there is none of that name.
  const NamedBytes& at(std::string_view name) const;
  // IoError when somebody has cut the file short, so that what was read of its tensors is not what it had. To be asked behind the reading.
  void require_whole() const { guard_.require_whole(); }

 private:
  std::string path_;
  std::unique_ptr<MappedFile> mapping_;
  MappingGuard guard_;
  SafetensorsContent content_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace starling
