// Checks that the keys of a configuration are compatible. Each function throws ConfigError, naming the keys and the way out.
#pragma once

#include "settings/config.h"

namespace starling {

// Makes all checks.
void check_settings(const Config& config);
// Refuses Muon, which needs each weight matrix whole where it is updated, if the configuration divides matrices.
void require_whole_matrices(const Config& config);
void check_batch_growth(const Config& config);
void check_r_drop(const Config& config);
void check_guided_alignment(const Config& config);
// Refuses clean.before-training where many short runs are made of one text.
void refuse_cleaning(const Config& config, const char* what);

}  // namespace starling
