#include "base/hash64.h"

#define XXH_INLINE_ALL  // the header is the whole library: there is nothing to link
#include <xxhash.h>

namespace starling {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

struct Hash64::State : XXH3_state_t {};

Hash64::Hash64() : state_(std::make_unique<State>()) { XXH3_64bits_reset(state_.get()); }
Hash64::~Hash64() = default;
void Hash64::update(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
uint64_t Hash64::digest() const { return XXH3_64bits_digest(state_.get()); }

}  // namespace starling
