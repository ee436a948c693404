// The table of backends.
#include <map>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
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
  if (const auto found = registered().find(spec); found != registered().end()) return found->second(threads);
  if (spec == "reference") return make_reference_backend();
  if (spec == "cpu" || spec == "cpu:f32") return make_cpu_backend(DType::f32, threads);
  if (spec == "cpu:bf16") {
    if (!cpu_has_bf16()) throw ConfigError("this CPU has no bf16 matrix products (AVX512-BF16); use --precision f32 or auto");
    return make_cpu_backend(DType::bf16, threads);
  }
  throw ConfigError(fmt::format("there is no backend '{}'; choose reference, cpu:f32 or cpu:bf16", spec));
}

}  // namespace starling
