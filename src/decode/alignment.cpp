#include "decode/alignment.h"

#include "base/error.h"

namespace starling {

AlignedText align(const EncodedLine& source, const Vocabulary& target, const Hypothesis& hypothesis) {
  CHECK(hypothesis.alignment.size() >= hypothesis.tokens.size(), "{} tokens, alignment of {}", hypothesis.tokens.size(),
        hypothesis.alignment.size());
  DecodedLine line = target.decode_with_bytes(hypothesis.tokens);
  AlignedText aligned{std::move(line.text), {}};
  for (size_t t = 0; t < hypothesis.tokens.size(); ++t) {
    const auto from = static_cast<size_t>(hypothesis.alignment[t]);
    if (from < source.bytes.size() && source.bytes[from].count() > 0 && line.bytes[t].count() > 0)
      aligned.links.push_back({source.bytes[from], line.bytes[t]});
  }
  return aligned;
}

}  // namespace starling
