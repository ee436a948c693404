// Which mean of a run's checkpoints is the best model, chosen when the run is over: how far back it reaches is not decided by a decay that
// was set before the first update.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace starling {

struct AverageProfile {
  std::string name;             // "the last 3"
  std::vector<double> weights;  // of each checkpoint, the oldest first; their sum is 1
};

// Those to try for checkpoints after so many updates, ascending: means of the last 1, 2, 3, 4, 6, 8 ... of them, and of all of them with
// weights that grow as a power of the update, which is what an average with a power-function profile leaves of them (Karras et al. 2024,
// "Analyzing and Improving the Training Dynamics of Diffusion Models"): however long the run was, it reaches back the same share of it.
std::vector<AverageProfile> average_profiles(std::span<const int64_t> updates);

}  // namespace starling
