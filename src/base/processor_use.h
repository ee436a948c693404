// Processor time used by this process and by others: a measurement taken while other programs run does not describe the machine.
#pragma once

#include <string>

namespace starling {

struct ProcessorUse {
  // Seconds since boot that processors were idle, and that this process has used. Idle time is exact, while busy times are sampled by the
  // kernel's ticks and may be off by a tenth where processes are throttled.
  double idle_s = 0, own_s = 0;
  int processors = 0;   // 0: unknown
  double stolen_s = 0;  // that the host of this virtual machine took
};

/// Reads the use up to now. `root` is the directory that holds proc/; tests pass one other than "/".
ProcessorUse processor_use(const std::string& root = "/");

}  // namespace starling
