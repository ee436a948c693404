#include "backend/cpu/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "backend/backend.h"
#include "backend/cpu/vnni/int8_product.h"

namespace starling {

#if defined(__x86_64__)
namespace {

// Leaf 7 of cpuid has a bit each for tiles and for their products of bytes; clang 14's __builtin_cpu_supports does not know them.
bool has_tiles() {
  constexpr unsigned kTiles = 1U << 24, kBytes = 1U << 25;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kTiles) && (edx & kBytes);
}

// Each process has to ask the system once, for all its threads, for the AMX registers: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA).
bool gives_tiles() {
  static const bool given = has_tiles() && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return given;
}

// 2 to 4 of x86-64-v2 to -v4; 5 is v4 with products of bf16, 6 that with AMX.
constexpr int kBf16 = 5, kTiles = 6;

// STARLING_ISA=v2|v3|v4 lowers the choice, for tests and comparisons; v4_bf16 takes AMX away alone.
int level() {
  int best = 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) best = 3;
  if (best == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    best = 4;
  if (best == 4 && __builtin_cpu_supports("avx512bf16")) best = kBf16;
  if (best == kBf16 && gives_tiles()) best = kTiles;
  if (const char* wish = std::getenv("STARLING_ISA"))
    for (const auto& [name, wanted] : {std::pair("v2", 2), {"v3", 3}, {"v4", 4}, {"v4_bf16", kBf16}})
      if (std::string_view(wish) == name) return std::min(best, wanted);
  return best;
}

}  // namespace

const kernels::Table& kernel_table(DType activation) {
  switch (level()) {
    case kTiles:
    case kBf16:
      if (activation == DType::bf16) return kernels::v4_bf16::table(activation);
      [[fallthrough]];
    case 4:
      return kernels::v4::table(activation);
    case 3:
      return kernels::v3::table(activation);
    default:
      return kernels::v2::table(activation);
  }
}

const kernels::CompressionTable& compression_table() {
  switch (level()) {
    case kTiles:
    case kBf16:
    case 4:
      return kernels::v4::compression();
    case 3:
      return kernels::v3::compression();
    default:
      return kernels::v2::compression();
  }
}

bool multiplies_by_vnni() { return level() >= 4 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"); }

bool multiplies_by_tiles() { return level() == kTiles; }

std::string cpu_instruction_set() { return "x86-64-v" + std::to_string(std::min(level(), 4)); }

bool cpu_has_bf16() { return __builtin_cpu_supports("avx512bf16") != 0 && level() >= 4; }

bool cpu_prefers_bf16() {
  if (!cpu_has_bf16() || multiplies_by_tiles()) return cpu_has_bf16();
  static const bool faster = [] {
    const kernels::Table& loops = kernels::v4_bf16::table(DType::bf16);
    using Clock = std::chrono::steady_clock;
    Clock::duration best[2] = {Clock::duration::max(), Clock::duration::max()};
    for (int round = 0; round < 32; ++round) {  // the fastest of each: other programs only ever slow down
      const auto start = Clock::now();
      loops.spin(round % 2 != 0, 2000);
      best[round % 2] = std::min(best[round % 2], Clock::now() - start);
    }
    return best[1] < 2 * best[0];  // an instruction of bf16 makes twice as many products
  }();
  return faster;
}

#else

const kernels::Table& kernel_table(DType activation) { return kernels::neon::table(activation); }
const kernels::CompressionTable& compression_table() { return kernels::neon::compression(); }
bool multiplies_by_vnni() { return false; }
bool multiplies_by_tiles() { return false; }
std::string cpu_instruction_set() { return "armv8-a"; }
bool cpu_has_bf16() { return false; }
bool cpu_prefers_bf16() { return false; }

// Never called: see multiplies_by_vnni().
namespace vnni {
void quantize(const void*, bool, float, uint8_t*, float*, int64_t, int64_t, int64_t) {}
void multiply(const uint8_t*, const float*, int64_t, const Weight&, const Output&, int64_t, int64_t, bool) {}
}  // namespace vnni

#endif

std::string cpu_products() { return !cpu_has_bf16() ? "f32" : cpu_prefers_bf16() ? "bf16 and f32" : "f32 and, slower, bf16"; }

}  // namespace starling
