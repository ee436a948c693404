// Which keys of a configuration go together. Each throws ConfigError, which names the keys and the way out.
#pragma once

#include "settings/config.h"

namespace starling {

// All of them.
void check_settings(const Config& config);
// Muon needs each weight matrix whole where it is updated.
void require_whole_matrices(const Config& config);
void check_batch_growth(const Config& config);
void check_r_drop(const Config& config);

}  // namespace starling
