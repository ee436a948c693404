// Processor time used by this process and by others: a measurement taken while other programs run does not describe the machine.
#pragma once

#include <string>

namespace starling {

struct ProcessorUse {
  // Seconds that processors were busy, of all processes since boot and of this one.
  double all_s = 0, own_s = 0;
  int processors = 0;   // 0: unknown
  double stolen_s = 0;  // of all_s, those that the host of this virtual machine took
};

/// Reads the use up to now. `root` is the directory that holds proc/; tests pass one other than "/".
ProcessorUse processor_use(const std::string& root = "/");

/// Returns how many processors other programs kept busy, on average, between two readings `seconds` apart; 0 if unknown.
double used_by_others(const ProcessorUse& before, const ProcessorUse& after, double seconds);

}  // namespace starling
