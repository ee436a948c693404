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
#include <utility>

#include "backend/backend.h"
#include "backend/cpu/vnni/int8_product.h"

namespace starling {

#if defined(__x86_64__)
namespace {

// Leaf 7 of cpuid has a bit each for AMX's tiles, for their products of bf16 and for those of bytes; clang 14's __builtin_cpu_supports does
// not know them.
constexpr unsigned kTilesOfBf16 = 1U << 22, kTiles = 1U << 24, kTilesOfBytes = 1U << 25;
bool has_tiles(unsigned products) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kTiles) && (edx & products);
}

// Each process has to ask the system once, for all its threads, for the AMX registers: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA).
bool gives_tiles() {
  static const bool given = has_tiles(kTilesOfBf16 | kTilesOfBytes) && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return given;
}

// STARLING_ISA=v2|v3|v4|v4_bf16 lowers the choice of instructions, for tests and comparisons; all of them take AMX away.
std::string_view asked_set() {
  const char* const wish = std::getenv("STARLING_ISA");
  return wish ? wish : "";
}

constexpr std::pair<std::string_view, int> kSets[] = {{"v2", 2}, {"v3", 3}, {"v4", 4}, {"v4_bf16", 5}};
constexpr int kBf16 = 5;

// 2 to 4 of x86-64-v2 to -v4; 5 is v4 with products of bf16.
int level() {
  int best = 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) best = 3;
  if (best == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    best = 4;
  if (best == 4 && __builtin_cpu_supports("avx512bf16")) best = kBf16;
  for (const auto& [name, wanted] : kSets)
    if (asked_set() == name) return std::min(best, wanted);
  return best;
}

bool uses_tiles(unsigned products) {
  for (const auto& [name, wanted] : kSets)
    if (asked_set() == name) return false;
  return level() >= 4 && gives_tiles() && has_tiles(products);
}

}  // namespace

const kernels::Table& kernel_table(DType activation) {
  switch (level()) {
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

bool multiplies_by_tiles() { return uses_tiles(kTilesOfBytes); }

bool multiplies_bf16_by_tiles() { return uses_tiles(kTilesOfBf16); }

std::string cpu_instruction_set() { return "x86-64-v" + std::to_string(std::min(level(), 4)); }

bool cpu_has_bf16() { return __builtin_cpu_supports("avx512bf16") != 0 && level() >= 4; }

bool multiplies_pairs_fast() {
  if (level() < kBf16) return false;
  if (asked_set() == kSets[3].first) return true;
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

bool cpu_prefers_bf16() { return cpu_has_bf16() && (multiplies_bf16_by_tiles() || multiplies_pairs_fast()); }

#else

const kernels::Table& kernel_table(DType activation) { return kernels::neon::table(activation); }
const kernels::CompressionTable& compression_table() { return kernels::neon::compression(); }
bool multiplies_by_vnni() { return false; }
bool multiplies_by_tiles() { return false; }
bool multiplies_bf16_by_tiles() { return false; }
bool multiplies_pairs_fast() { return false; }
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
