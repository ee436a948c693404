// The command line of mpirun that suits ranks of this program.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "launch/hosts.h"

namespace starling {

struct LaunchOptions {
  int ranks = 0;  // 0: what the hosts have room for, in a Slurm job its tasks, else one for each core
  std::vector<LaunchHost> hosts;
  std::string bind;         // core, none, or empty: core on this host alone if there are enough
  std::string mpirun_args;  // more arguments, separated by blanks
};

// Returns mpirun with its arguments, for ranks that run `program`, a verb with its arguments. Throws ConfigError for a binding that cannot
// be had.
std::vector<std::string> launch_command(const LaunchOptions& options, const std::vector<std::string>& program);

// Returns a word as a shell reads it.
std::string shell_quoted(const std::string& word);

// Returns the path from which a process ("self", or its number) was started, also where another file has taken its place since.
std::string program_of(const std::string& process, std::error_code& error);

// Returns the path of this program. Throws IoError without /proc.
std::string this_program();

// Returns the words of a text.
std::vector<std::string> split_words(const std::string& text, const char* separators);

}  // namespace starling
