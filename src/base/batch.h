// A batch of packed tokens: the one type in which the data loader hands text to models. There is no padding: sentence i owns rows
// [offsets[i], offsets[i+1]). Every sentence ends with the end-of-sentence token on both sides.
#pragma once

#include <cstdint>
#include <vector>

namespace starling {

struct PackedTokens {
  std::vector<int32_t> tokens;      // [N]
  std::vector<int32_t> offsets{0};  // [B+1], offsets[0] == 0, offsets[B] == N
  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t count() const { return static_cast<int64_t>(tokens.size()); }
  void append(const int32_t* begin, const int32_t* end) {
    tokens.insert(tokens.end(), begin, end);
    offsets.push_back(static_cast<int32_t>(tokens.size()));
  }
};

// A target token that comes from a source token, by their positions within the sentence (guided alignment).
struct TokenLink {
  uint16_t source = 0, target = 0;
  bool operator==(const TokenLink&) const = default;
};

struct Batch {
  PackedTokens source, target;        // equal numbers of sentences
  std::vector<float> weights;         // [B] loss weight of each sentence; empty: all 1
  std::vector<int64_t> sample_ids;    // [B] global index of the sentence in this epoch's corpus; keys dropout
  std::vector<TokenLink> links;       // of all sentences, in their order; those of one in the order of their targets
  std::vector<int32_t> link_offsets;  // [B+1] sentence i has the links [link_offsets[i], link_offsets[i+1]); empty: there are none
  double guide = 0;                   // the factor of the loss that guides attention along the links
  double r_drop = 0;                  // above 0: sentences 2i and 2i + 1 are two passes of one (LossRows::r_drop)
  int64_t epoch = 0;                  // 0-based
  int64_t index = 0;                  // 0-based batch index within the epoch
};

}  // namespace starling
