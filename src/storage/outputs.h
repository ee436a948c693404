// Refuses outputs that would do damage: an output must not be one of the inputs, which would be truncated before it is read, nor a file or
// directory that a run creates and resumes from (one list names them all). Every command that writes checks here before it opens anything.
// Everything else in a run's directory is the user's, so translations and reports may be written there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// A path as the user gave it; "-" is standard output or input. `name` is what messages call it: "--output".
struct NamedPath {
  std::string name, path;
};

// Throws ConfigError naming both if the output is one of the inputs under any name (another spelling, a hard or symbolic link, /dev/fd/N,
// a redirection), or would lie in an input that is a directory. Devices, pipes and terminals are never refused.
void refuse_own_input(const NamedPath& output, const std::vector<NamedPath>& inputs);

// Returns whether a name in a run's directory belongs to the run: settings, vocabularies, tokens, checkpoints, best models, logs, locks.
bool belongs_to_run(std::string_view name);
// The same for the directory of a race, whose runs have directories of their own.
bool belongs_to_race(std::string_view name);

// Returns whether a run was trained in this directory: it has checkpoints, a best model or a record of updates.
bool is_run_directory(const std::string& directory);
bool is_race_directory(const std::string& directory);

// Throws ConfigError if the output (a file or a directory to be created) is or lies in something that belongs to a run or a race, or lies
// in a model directory, under any name (links, a redirection). "-" is standard output.
void refuse_run_files(const NamedPath& output);

// Returns the path by which files and directories are compared: whole, without links, and without a slash at its end. What does not exist
// yet, or any more, keeps its name.
std::filesystem::path real_path(const std::string& path);
// Returns whether a real path lies below a real directory.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& directory);

// Creates an empty file beside `path`, to be written until it is complete, and returns its name: PATH.partial, or PATH.partial-2 and so on
// if that name exists, even as a dangling link, since it is the user's. Throws IoError if the file cannot be created.
std::string make_partial(const std::string& path);

}  // namespace starling
