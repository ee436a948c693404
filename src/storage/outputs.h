// What no output may be: one of the inputs, which would be emptied before it is read, or what belongs to a run, the names that a training
// makes in its directory and goes on from, in one list. Every verb that writes asks here first, before it opens anything. Everything else
// in a run's directory is the user's, so translations and reports may lie there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

// A path as the user gave it; "-" is standard output or input. `name` is what messages call it: "--output".
struct NamedPath {
  std::string name, path;
};

// ConfigError naming both when the output is one of the inputs by whatever name (another spelling, a hard or symbolic link, /dev/fd/N, a
// redirection), or when it would lie in an input that is a directory. Devices, pipes and terminals are nobody's input.
void refuse_own_input(const NamedPath& output, const std::vector<NamedPath>& inputs);

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

// Makes an empty file beside `path` to write it into until it is complete, and gives its name: PATH.partial, or PATH.partial-2 and so on
// where something of that name is there, be it a link that leads nowhere: it is the user's. IoError if the directory does not take it.
std::string make_partial(const std::string& path);

}  // namespace starling
