// The processor cores that this process may use: a batch system, mpirun or a container may have given it fewer than the machine has.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace starling {

// Returns the cores of the process's affinity mask in ascending order, and of those only as many as the quota of its cgroup is worth; {0}
// if the kernel does not report them.
std::vector<int> usable_core_list();
int usable_cores();
// Returns how many compute threads to use when `asked` are requested (0: one per core): never more than there are cores, because
// oversubscribed threads wait for each other and are slower than fewer threads. Passes `warn` a line if that is fewer than requested.
int threads_to_use(int asked, const std::vector<int>& cores, const std::function<void(const std::string&)>& warn);
// Formats cores for messages: "core 3", "cores 0-3, 8".
std::string cores_text(const std::vector<int>& cores);

}  // namespace starling
