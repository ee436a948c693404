// Who has used the machine's processors: what is measured beside other programs is no measure of the machine.
#pragma once

#include <string>

namespace starling {

struct ProcessorUse {
  double all_s = 0, own_s = 0;  // seconds that processors were busy since some moment: for anybody, for this process
  int processors = 0;           // 0: cannot be found out
};

/// Until now. `root` is the directory that holds proc/: other than "/" for tests.
ProcessorUse processor_use(const std::string& root = "/");

/// How many processors other programs kept busy between two moments that lie so many seconds apart; 0 where that cannot be found out.
double used_by_others(const ProcessorUse& before, const ProcessorUse& after, double seconds);

}  // namespace starling
