// The table of backends.
#include <map>
#include <regex>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "backend/reference/reference.h"

namespace starling {

namespace {

std::map<std::string, BackendMaker, std::less<>>& registered() {
  static std::map<std::string, BackendMaker, std::less<>> makers;
  return makers;
}

}  // namespace

void register_backend(const std::string& spec, BackendMaker maker) { registered()[spec] = std::move(maker); }

std::unique_ptr<Backend> make_backend(std::string_view spec, int threads) {
  const std::string asked(spec);
  if (const auto found = registered().find(spec); found != registered().end()) return found->second(threads);
  if (spec == "reference") return make_reference_backend();
  if (spec == "cpu" || spec == "cpu:f32") return make_cpu_backend(DType::f32, threads);
  if (spec == "cpu:bf16") {
    if (!cpu_has_bf16()) throw ConfigError("this CPU has no bf16 matrix products (AVX512-BF16); use --precision f32 or auto");
    return make_cpu_backend(DType::bf16, threads);
  }
  if (std::smatch m; std::regex_match(asked, m, std::regex("cuda(?::([0-9]{1,4}))?(?::(f32|bf16))?")))
    return STARLING_CUDA::make_cuda_backend(m[1].matched ? std::stoi(m[1]) : 0, m[2] == "f32" ? DType::f32 : DType::bf16);
  throw ConfigError(fmt::format(
      "there is no backend '{}'; choose reference, cpu:f32, cpu:bf16, cuda:f32 or cuda:bf16 (cuda:1:bf16 on a second card)", spec));
}

}  // namespace starling
