// Chooses the best average of a run's checkpoints after the run is over, so that its reach back in time need not be fixed by a decay set
// before the first update.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace starling {

struct AverageProfile {
  std::string name;             // "the last 3"
  std::vector<double> weights;  // one per checkpoint, the oldest first; they sum to 1
};

// Returns the averages to try for checkpoints after these updates, in ascending order: means of the last 1, 2, 3, 4, 6, 8 ... of them, and
// of all of them with weights that grow as a power of the update. The latter is what remains of an average with a power-function profile
// (Karras et al. 2024, "Analyzing and Improving the Training Dynamics of Diffusion Models"): it reaches back over the same share of the
// run, however long that was.
std::vector<AverageProfile> average_profiles(std::span<const int64_t> updates);

}  // namespace starling
