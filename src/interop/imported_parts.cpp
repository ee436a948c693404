// The parts of ImportedModel that format readers need; kept apart so that fuzz targets need not link the models.
#include "interop/imported_model.h"

namespace starling {
namespace {

const std::string kOriginal = "original-";

}  // namespace

OwnedTensor float_tensor(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
  return {std::move(name), "F32", std::move(shape), std::move(values)};
}

std::vector<Part> further_files(const ForeignFiles& folder) {
  constexpr size_t kMost = size_t{1} << 20;  // bytes; more are not a licence
  std::vector<Part> parts;
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md", "README.md", "metadata.json"}) {
    if (!folder.has(name)) continue;
    std::string content = folder.peek(name, kMost);
    if (content.size() < kMost) parts.push_back(text_part(kOriginal + name, std::move(content)));
  }
  return parts;
}

}  // namespace starling
