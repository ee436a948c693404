// The processor cores that this process may use: a batch system or mpirun may have given it fewer than the machine has.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace starling {

// Of the process's affinity mask, ascending; {0} if the kernel does not tell.
std::vector<int> usable_core_list();
int usable_cores();
// How many computing threads are used where `asked` are asked for (0: one a core): never more than there are cores, since threads that
// wait for each other compute slower than fewer would. `warn` gets a line where they are fewer than asked for.
int threads_to_use(int asked, const std::vector<int>& cores, const std::function<void(const std::string&)>& warn);
// "core 3", "cores 0-3, 8".
std::string cores_text(const std::vector<int>& cores);

}  // namespace starling
