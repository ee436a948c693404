// The processor cores that this process may use: a batch system or mpirun may have given it fewer than the machine has.
#pragma once

#include <string>
#include <vector>

namespace starling {

// Of the process's affinity mask, ascending; {0} if the kernel does not tell.
std::vector<int> usable_core_list();
int usable_cores();
// "core 3", "cores 0-3, 8".
std::string cores_text(const std::vector<int>& cores);

}  // namespace starling
