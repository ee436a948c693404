// What computes, as options give it: a device, the precision of its products, threads.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace starling {

struct DeviceChoice {
  std::string precision = "auto";  // auto, bf16, f32, int8
  int threads = 0;                 // on a CPU; 0 = one per core
  std::string device = "auto";     // auto, cpu, cuda, cuda:1; may include the precision: cuda:f32, cuda:1:bf16
};

constexpr const char* kDeviceHelp =
    "what computes: auto (a card if the program was built for cards and there is one, else the processor), cpu, cuda, or cuda:1 for the "
    "second card; cuda:f32 and cuda:bf16 also set the precision";

// Replaces "auto". The device becomes cpu or cuda:N, where cuda without a number is this process's card among those of its host; the
// precision becomes int8 for a quantised model, else bf16 on cards and on CPUs that multiply it faster than f32, else f32. Throws
// ConfigError for unknown words and for two different precisions.
DeviceChoice resolve(DeviceChoice choice, bool quantized, int local_rank = 0);

// The number of cards that this process can use.
int card_count();

// In a program built for cards: why auto means the CPU, as a line for the user; else "".
std::string why_no_card(const DeviceChoice& asked);

// Makes the backend for a choice, resolved or not (then as for a model that is not quantised). With int8, activations are f32 on the CPU
// and bf16 on cards.
std::unique_ptr<Backend> make_backend(const DeviceChoice& choice);

}  // namespace starling
