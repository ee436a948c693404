// What belongs to a run: the names that a training makes in its directory and goes on from, in one list. No verb writes over them;
// everything else in the directory is the user's, so translations and reports may lie there.
#pragma once

#include <string>
#include <string_view>

#include "base/outputs.h"

namespace starling {

// Whether this name in the directory of a run is the run's: settings, vocabularies, tokens, checkpoints, best models, logs, locks.
bool belongs_to_run(std::string_view name);
// The same of the directory of a race, whose runs are in directories of their own.
bool belongs_to_race(std::string_view name);

// Whether training has been in this directory: it has checkpoints, a best model or a record of updates.
bool is_run_directory(const std::string& directory);
bool is_race_directory(const std::string& directory);

// ConfigError if the output, a file or a directory to be, is or lies in what belongs to a run or a race, or lies in a model directory, by
// whatever name (links, a redirection). "-" is standard output.
void refuse_run_files(const NamedPath& output);

}  // namespace starling
