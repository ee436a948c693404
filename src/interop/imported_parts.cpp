// Of an imported model what readers of formats need, apart from the model that is made of it (the fuzz targets link no models).
#include <algorithm>

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
  std::vector<Part> parts;
  for (const std::string& name : folder.names()) {
    const bool kept = name.starts_with("LICENSE") || name == "README.md" || name == "metadata.json";
    const bool again = std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.name == kOriginal + name; });
    if (kept && !again && name.find('/') == std::string::npos) parts.push_back(text_part(kOriginal + name, folder.read(name)));
  }
  return parts;
}

}  // namespace starling
