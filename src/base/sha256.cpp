// SHA-256: padding and buffering are shared; only the function that mixes whole 64-byte blocks exists twice (portable, and with x86 SHA
// instructions). Both are tested with the same vectors.
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/files.h"

namespace starling {
namespace {

using State = std::array<uint32_t, 8>;

// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// FIPS 180-4, 5.3.3: the first 32 bits of the fractional parts of the square roots of the first 8 primes.
constexpr State initial_state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

inline uint32_t load_big_endian(const std::byte* at) {
  uint32_t word;
  std::memcpy(&word, at, 4);
  return __builtin_bswap32(word);
}

inline uint32_t sigma(uint32_t x, int a, int b, int c) { return std::rotr(x, a) ^ std::rotr(x, b) ^ std::rotr(x, c); }

void mix_portable(State& state, const std::byte* data, size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    uint32_t w[16];
    for (int t = 0; t < 16; ++t) w[t] = load_big_endian(data + 4 * t);
    auto [a, b, c, d, e, f, g, h] = state;
#pragma GCC unroll 64
    for (int t = 0; t < 64; ++t) {
      if (t >= 16) {
        const uint32_t x = w[(t + 1) & 15], y = w[(t + 14) & 15];
        w[t & 15] += (std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3)) + w[(t + 9) & 15] + (std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10));
      }
      const uint32_t t1 = h + sigma(e, 6, 11, 25) + (g ^ (e & (f ^ g))) + round_constants[t] + w[t & 15];
      const uint32_t t2 = sigma(a, 2, 13, 22) + ((a & b) | (c & (a | b)));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const State mixed = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += mixed[i];
  }
}

#if defined(__x86_64__)
// The SHA instructions want the eight words as two registers, (a b e f) and (c d g h), highest word first.
__attribute__((target("sha,sse4.1"))) void mix_hardware(State& state, const std::byte* data, size_t blocks) {
  const __m128i byte_order = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i abef = _mm_set_epi32(int(state[0]), int(state[1]), int(state[4]), int(state[5]));
  __m128i cdgh = _mm_set_epi32(int(state[2]), int(state[3]), int(state[6]), int(state[7]));
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), byte_order);
    }
#pragma GCC unroll 16
    for (int group = 0; group < 16; ++group) {  // four rounds each
      __m128i& now = w[group & 3];
      if (group >= 4) {
        const __m128i before = w[(group + 3) & 3], seven_back = _mm_alignr_epi8(before, w[(group + 2) & 3], 4);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(group + 1) & 3]), seven_back), before);
      }
      const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(round_constants + 4 * group));
      const __m128i sum = _mm_add_epi32(now, k);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  alignas(16) uint32_t first[4], second[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(first), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(second), cdgh);
  state = {first[3], first[2], second[3], second[2], first[1], first[0], second[1], second[0]};
}

}  // namespace

bool sha256_has_hardware() {
  // Asked once: in a virtual machine the answer takes longer than hashing a kilobyte.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
  }();
  return has;
}
#else
constexpr auto mix_hardware = mix_portable;

}  // namespace

bool sha256_has_hardware() { return false; }
#endif

Sha256::Sha256(bool allow_hardware) : state_(initial_state), hardware_(allow_hardware && sha256_has_hardware()) {}

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t waiting = length_ % 64;
  length_ += bytes.size();
  const auto mix = hardware_ ? mix_hardware : mix_portable;
  if (waiting > 0) {
    const size_t taken = std::min(64 - waiting, bytes.size());
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < 64) return;
    mix(state_, block_.data(), 1);
  }
  mix(state_, bytes.data(), bytes.size() / 64);
  const auto rest = bytes.last(bytes.size() % 64);
  std::copy(rest.begin(), rest.end(), block_.begin());
}

Sha256Digest Sha256::digest() {
  const uint64_t bits = length_ * 8;
  std::array<std::byte, 72> padding{std::byte{0x80}};
  const size_t zeros_end = (length_ % 64 < 56 ? 56 : 120) - length_ % 64;
  std::array<std::byte, 8> length_bytes;
  for (size_t i = 0; i < 8; ++i) length_bytes[i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(padding).first(zeros_end));
  update(length_bytes);
  Sha256Digest digest;
  for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string to_hex(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return to_hex(hash.digest());
}

std::string sha256_hex(std::string_view bytes) { return sha256_hex(std::as_bytes(std::span(bytes))); }

std::string sha256_file(FileSystem& files, const std::string& path) {
  Sha256 hash;
  files.read_pieces(path, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return to_hex(hash.digest());
}

}  // namespace starling
