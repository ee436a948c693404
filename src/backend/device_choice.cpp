#include "backend/device_choice.h"

#include <algorithm>
#include <regex>

#include "backend/cuda/cuda.h"

namespace starling {

int card_count() { return STARLING_CUDA::cuda_devices(); }

DeviceChoice resolve(DeviceChoice c, bool quantized, int local_rank) {
  std::smatch m;
  const std::string asked = c.device;
  if (asked == "auto")
    c.device = STARLING_CUDA::cuda_devices() > 0 ? "cuda" : "cpu";
  else if (asked != "cpu" && !std::regex_match(asked, m, std::regex("cuda(?::([0-9]{1,4}))?(?::(f32|bf16))?")))
    throw ConfigError(fmt::format("there is no device '{}'; choose auto, cpu, cuda, or with a card's number cuda:1", asked));
  if (c.device != "cpu") {
    if (m.size() > 2 && m[2].matched) {
      if (c.precision != "auto" && c.precision != m[2].str())
        throw ConfigError(fmt::format("device {} and precision {} name different precisions; leave one of them out", asked, c.precision));
      c.precision = m[2];
    }
    const int cards = std::max(STARLING_CUDA::cuda_devices(), 1);
    c.device = "cuda:" + (m.size() > 1 && m[1].matched ? m[1].str() : std::to_string(local_rank % cards));
  }
  const bool narrow = c.device != "cpu" || cpu_prefers_bf16();
  if (c.precision == "auto") c.precision = quantized ? "int8" : narrow ? "bf16" : "f32";
  if (c.precision != "bf16" && c.precision != "f32" && c.precision != "int8")
    throw ConfigError(fmt::format("there is no precision '{}'; choose auto, bf16, f32 or int8", c.precision));
  return c;
}

std::string why_no_card(const DeviceChoice& asked) {
  if (asked.device != "auto" || !STARLING_CUDA::has_cuda() || STARLING_CUDA::cuda_devices() > 0) return "";
  return "computing on the processor: " + STARLING_CUDA::describe_cuda();
}

std::unique_ptr<Backend> make_backend(const DeviceChoice& choice) {
  const DeviceChoice c = resolve(choice, false);
  const std::string activations = c.precision != "int8" ? c.precision : c.device == "cpu" ? "f32" : "bf16";
  return make_backend(c.device + ":" + activations, c.threads);
}

}  // namespace starling
