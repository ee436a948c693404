#include "backend/compression.h"

#include <algorithm>

namespace starling {

int64_t chunk_bytes(Coding coding, int64_t count, int64_t element) {
  switch (coding) {
    case Coding::full:
      return index_bytes(count) + count * element;
    case Coding::bf16:
      return index_bytes(count) + count * 2;
    case Coding::two_bit:
      return 4 + index_bytes(count) + (count + 3) / 4;
    case Coding::ternary:
      return element + (count + 4) / 5;
    default:
      return 2 + (count + 1) / 2;
  }
}

namespace {

// The number of entries for elements [0, end) of a tensor. Chunks take differences of these, so that rounding does not accumulate.
int64_t entries(int64_t end, double keep) { return std::min(end, static_cast<int64_t>(std::llround(keep * static_cast<double>(end)))); }

void add_part(CodeLayout& layout, const Range& tensor, double keep) {
  const bool sparse = is_sparse(layout.coding);
  CodePart part{layout.chunks.size(), layout.chunks.size(), sparse ? entries(tensor.count(), keep) : 0};
  const int64_t chunks = (tensor.count() + kChunk - 1) / kChunk;
  int64_t header = layout.bytes;
  if (sparse) layout.bytes += 2 * chunks;
  const int64_t places = layout.bytes;
  for (int64_t begin = 0; begin < tensor.count(); begin += kChunk, header += sparse ? 2 : 0, ++part.last) {
    const int64_t end = std::min(tensor.count(), begin + kChunk);
    CodeChunk c{tensor.begin + begin, static_cast<int32_t>(end - begin), 0, header, layout.bytes};
    if (sparse) c.keep = static_cast<int32_t>(entries(end, keep) - entries(begin, keep));
    layout.bytes += chunk_bytes(layout.coding, sparse ? c.keep : c.count, layout.element);
    layout.chunks.push_back(c);
  }
  // However the entries are distributed, the lists of indices together need at most half a byte per chunk more than one list would.
  if (layout.by_tensor) layout.bytes = places + chunk_bytes(layout.coding, part.keep, layout.element) + (chunks + 1) / 2;
  layout.elements += tensor.count();
  layout.parts.push_back(part);
}

}  // namespace

CodeLayout make_layout(Coding coding, bool by_tensor, const std::vector<Range>& tensors, double keep, DType type) {
  CHECK(keep > 0 && keep <= 1, "keep {}", keep);
  CHECK(!by_tensor || coding == Coding::full || coding == Coding::bf16, "entries by tensor need values of their own");
  CodeLayout layout;
  layout.coding = coding;
  layout.by_tensor = by_tensor;
  layout.element = size_of(type);
  for (const Range& t : tensors) add_part(layout, t, keep);
  layout.bytes = round_up(layout.bytes, 16);  // so that ranks' codes are equal parts of what is gathered
  return layout;
}

std::vector<int64_t> code_places(const CodeLayout& layout, const uint8_t* code, const CodePart& part) {
  std::vector<int64_t> places;
  int64_t place = part.first < part.last ? layout.chunks[part.last - 1].header + 2 : 0;
  for (size_t c = part.first; c < part.last; ++c) {
    places.push_back(layout.by_tensor ? place : layout.chunks[c].place);
    if (layout.by_tensor) place += chunk_bytes(layout.coding, get<uint16_t>(code + layout.chunks[c].header), layout.element);
  }
  return places;
}

std::vector<int64_t> code_places(const CodeLayout& layout, const uint8_t* code) {
  std::vector<int64_t> places;
  for (const CodePart& part : layout.parts) {
    const std::vector<int64_t> own = code_places(layout, code, part);
    places.insert(places.end(), own.begin(), own.end());
  }
  return places;
}

}  // namespace starling
