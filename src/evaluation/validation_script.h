// A metric of the user's own: a command that reads translations and prints a number, such as COMET.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace starling {

struct ScriptResult {
  std::optional<double> score;
  std::string complaint;     // why there is none
  bool interrupted = false;  // because `stop` returned true
};

// Runs `command` with /bin/sh and further arguments, in a process group of its own, and returns the number at the end of the last
// line that it prints on standard output. What runs longer than `seconds` is killed, with all that it has started, and so it is when
// `stop`, if given, returns true. Its standard error is this process's.
ScriptResult run_validation_script(const std::string& command, const std::vector<std::string>& arguments, double seconds,
                                   const std::function<bool()>& stop = {});

}  // namespace starling
