#include "backend/cpu/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
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

// 2 to 4 of x86-64-v2 to -v4; 5 is v4 with AMX. STARLING_ISA=v2|v3|v4 lowers the choice, for tests and comparisons.
int level() {
  int best = 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) best = 3;
  if (best == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    best = 4;
  if (best == 4 && gives_tiles()) best = 5;
  if (const char* wish = std::getenv("STARLING_ISA"))
    for (int wanted = 2; wanted < best; ++wanted)
      if (std::string_view(wish) == "v" + std::to_string(wanted)) return wanted;
  return best;
}

}  // namespace

const kernels::Table& kernel_table(DType activation) {
  switch (level()) {
    case 5:
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
    case 5:
    case 4:
      return kernels::v4::compression();
    case 3:
      return kernels::v3::compression();
    default:
      return kernels::v2::compression();
  }
}

bool multiplies_by_vnni() { return level() >= 4 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"); }

bool multiplies_by_tiles() { return level() >= 5; }

std::string cpu_instruction_set() { return "x86-64-v" + std::to_string(std::min(level(), 4)); }

bool cpu_has_bf16() { return __builtin_cpu_supports("avx512bf16") != 0 && level() >= 4; }

#else

const kernels::Table& kernel_table(DType activation) { return kernels::neon::table(activation); }
const kernels::CompressionTable& compression_table() { return kernels::neon::compression(); }
bool multiplies_by_vnni() { return false; }
bool multiplies_by_tiles() { return false; }
std::string cpu_instruction_set() { return "armv8-a"; }
bool cpu_has_bf16() { return false; }

// Never called: see multiplies_by_vnni().
namespace vnni {
void quantize(const void*, bool, float, uint8_t*, float*, int64_t, int64_t, int64_t) {}
void multiply(const uint8_t*, const float*, int64_t, const Weight&, const Output&, int64_t, int64_t, bool) {}
}  // namespace vnni

#endif

}  // namespace starling
