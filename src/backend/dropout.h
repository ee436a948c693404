// The dropout mask: which 16 random bits belong to (key, sentence, position, column). All backends share it, so that they agree. One
// Philox4x32-7 block holds eight 16-bit numbers; seven rounds pass BigCrush (Salmon et al. 2011). Column c of a row uses half-word (c / 16)
// % 8 of block (c / 128) * 16 + c % 16, so that sixteen blocks side by side serve sixteen columns at a time.
#pragma once

#include <cstdint>

namespace starling {

constexpr int kDropoutRounds = 7;

// The four words of a block: `number` is (c / 128) * 16 + c % 16 of the columns it serves.
constexpr void dropout_words(uint64_t key, uint32_t sentence, uint32_t position, uint32_t number, uint32_t (&words)[4]) {
  uint32_t c0 = number, c1 = position, c2 = sentence, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kDropoutRounds; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

constexpr uint32_t dropout_bits(uint64_t key, uint32_t sentence, uint32_t position, int64_t column) {
  uint32_t words[4] = {};
  dropout_words(key, sentence, position, static_cast<uint32_t>(column / 128 * 16 + column % 16), words);
  const int half = static_cast<int>(column / 16 % 8);
  return (words[half / 2] >> (16 * (half % 2))) & 0xffffu;
}

// Folds site and step into a key (SplitMix64's finaliser); attention adds the head to the site.
constexpr uint64_t dropout_key(uint64_t seed, uint64_t step, uint64_t site) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + step * 0xD1B54A32D192ED03ull + site * 0x8CB92BA72F3D8DD7ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
constexpr uint64_t dropout_head_key(uint64_t key, int64_t head) { return dropout_key(key, 0, static_cast<uint64_t>(head) + 1); }

}  // namespace starling
