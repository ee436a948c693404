// What computes, as options say it: a device, the precision of its products, threads.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace starling {

struct DeviceChoice {
  std::string precision = "auto";  // auto, bf16, f32, int8
  int threads = 0;                 // of a CPU; 0 = one per core
  std::string device = "auto";     // auto, cpu, cuda, cuda:1; the precision may be said with it: cuda:f32, cuda:1:bf16
};

constexpr const char* kDeviceHelp =
    "what computes: auto (a card where the program was built for cards and there is one, else the processor), cpu, cuda, or cuda:1 for "
    "the second card; cuda:f32 and cuda:bf16 say the precision too";

// "auto" as what it means. The device becomes cpu or cuda:N, where cuda without a number is the card of this process among those of its
// host; the precision int8 for a quantised model, else bf16 on cards and where the processor has it, else f32. ConfigError for words that
// are none, and for two precisions.
DeviceChoice resolve(DeviceChoice choice, bool quantized, int local_rank = 0);

// How many cards this process can use.
int card_count();

// Why auto means the processor, as a line for the user, in a program that was built for cards; else "".
std::string why_no_card(const DeviceChoice& asked);

// The backend for a choice, resolved or not (as of a model that is not quantised). With int8 activations are f32 on the CPU, bf16 on cards.
std::unique_ptr<Backend> make_backend(const DeviceChoice& choice);

}  // namespace starling
