// Of an imported model what readers of formats need, apart from the model that is made of it (the fuzz targets link no models).
#include "interop/foreign_array.h"
#include "interop/imported_model.h"

namespace starling {
namespace {

const std::string kOriginal = "original-";

}  // namespace

OwnedTensor float_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values) {
  return {std::move(name), "F32", std::move(shape), element_bytes(values)};
}

std::vector<Part> further_files(const ForeignFiles& folder) {
  constexpr size_t kMost = size_t{1} << 20, kMostFiles = 16;  // bytes; more are not a licence
  std::vector<Part> parts;
  for (const std::string& name : folder.names()) {
    const bool kept = name.starts_with("LICENSE") || name == "README.md" || name == "metadata.json";
    if (!kept || !at_top(name) || parts.size() == kMostFiles) continue;
    std::string content = folder.peek(name, kMost);
    if (content.size() < kMost) parts.push_back(text_part(kOriginal + name, std::move(content)));
  }
  return parts;
}

}  // namespace starling
