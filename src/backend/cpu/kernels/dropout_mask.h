// Dropout masks a vector at a time; the same masks as in backend/dropout.h.
#pragma once

#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/dropout.h"

namespace starling::kernels::STARLING_ISA {
namespace {

inline void multiply(uint32_t factor, vu x, vu& high, vu& low) {
#if defined(__AVX512F__)
  const __m512i a = (__m512i)x, f = _mm512_set1_epi32(static_cast<int>(factor));
  const __m512i even = _mm512_mul_epu32(a, f), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), f);
  high = (vu)_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
  low = (vu)_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
#elif defined(__AVX2__)
  const __m256i a = (__m256i)x, f = _mm256_set1_epi32(static_cast<int>(factor));
  const __m256i even = _mm256_mul_epu32(a, f), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), f);
  high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
#elif defined(__x86_64__)
  const __m128i a = (__m128i)x, f = _mm_set1_epi32(static_cast<int>(factor));
  const __m128i even = _mm_mul_epu32(a, f), odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), f);
  high = (vu)_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xCC);
  low = (vu)_mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xCC);
#else
  typedef uint64_t Wide __attribute__((vector_size(8 * L)));
  const Wide product = __builtin_convertvector(x, Wide) * uint64_t{factor};
  high = __builtin_convertvector(product >> 32, vu);
  low = x * factor;
#endif
}

// The 128 factors (0 or scale) of columns [128 * super, 128 * super + 128) of one row.
inline void mask_factors(const Mask& m, uint32_t sentence, uint32_t position, int64_t super, float* factors) {
  for (int part = 0; part < 16; part += L) {
    vu c0, c1 = splat_u(position), c2 = splat_u(sentence), c3 = splat_u(0);
    for (int i = 0; i < L; ++i) c0[i] = static_cast<uint32_t>(super * 16 + part + i);
    uint32_t k0 = static_cast<uint32_t>(m.key), k1 = static_cast<uint32_t>(m.key >> 32);
    for (int round = 0; round < kDropoutRounds; ++round) {
      vu h0, l0, h1, l1;
      multiply(0xD2511F53u, c0, h0, l0);
      multiply(0xCD9E8D57u, c2, h1, l1);
      c0 = h1 ^ c1 ^ k0;
      c1 = l1;
      c2 = h0 ^ c3 ^ k1;
      c3 = l0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const vu words[4] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w) {
      store(factors + (2 * w) * 16 + part, (words[w] & 0xffffu) >= splat_u(m.threshold) ? splat(m.scale) : vf{});
      store(factors + (2 * w + 1) * 16 + part, (words[w] >> 16) >= splat_u(m.threshold) ? splat(m.scale) : vf{});
    }
  }
}

// The factors of a whole row of D columns; returns nullptr when there is no dropout.
struct RowMask {
  explicit RowMask(const Mask& mask) : m(mask) {}
  // Calls f(begin, end, factors or nullptr) for stretches of at most 128 columns of [begin, end).
  template <class F>
  void row(int64_t n, int64_t begin, int64_t end, F f) {
    if (m.threshold == 0) return f(begin, end, static_cast<const float*>(nullptr));
    for (int64_t super = (begin + m.first_column) / 128; super * 128 - m.first_column < end; ++super) {
      mask_factors(m, m.sentence[n], m.position[n], super, factors);
      const int64_t first = super * 128 - m.first_column, from = std::max(begin, first), to = std::min(end, first + 128);
      f(from, to, static_cast<const float*>(factors + (from - first)));
    }
  }
  const Mask& m;
  alignas(64) float factors[128 + L];
};

}  // namespace
}  // namespace starling::kernels::STARLING_ISA
