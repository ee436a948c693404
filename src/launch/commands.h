// Runs other programs for a limited time and leaves nothing of them running: ssh and mpirun wait for minutes, or for ever, for a host whose
// packets are dropped.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct CommandLimits {
  double run_s;      // after which a command gets SIGINT, on which mpirun ends its ranks everywhere
  double end_s = 5;  // that it then has to end before it is killed
};

struct CommandEnd {
  int status = 0;      // exit status, or 128 + the signal that ended it; kNoProgram: it could not be started
  bool late = false;   // the limit ended it
  std::string output;  // its first 64 KiB
};
constexpr int kNoProgram = 127;

// Where the output of commands goes: it is kept for the caller; or standard output is kept and also passed on as it comes, and standard
// error is this process's own.
enum class CommandOutput : unsigned char { kept, passed_on };

// Runs the commands side by side, found on PATH and without input, and returns how each has ended. Whatever they have started and left
// behind on this host is killed. A signal to stop (SIGINT, SIGTERM, SIGHUP) ends them all, and then this process.
std::vector<CommandEnd> run_commands(const std::vector<std::vector<std::string>>& commands, const CommandLimits& limits,
                                     CommandOutput output = CommandOutput::kept);
// The same, for callers with something left to do: returns the signal to stop that has ended the commands, or 0.
int run_to_end(const std::vector<std::vector<std::string>>& commands, const CommandLimits& limits, CommandOutput output,
               std::vector<CommandEnd>& ends);

// Returns the command by which mpirun starts a process on another host: ssh, or what OMPI_MCA_plm_rsh_agent names.
std::vector<std::string> ssh_command();

}  // namespace starling
