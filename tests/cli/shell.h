// A command line run by the shell, for tests of the program as users start it.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace starling {

struct ShellOutcome {
  int status;        // exit status; -1: ended by a signal
  std::string text;  // standard output and error
};

inline ShellOutcome run_shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  std::string text;
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace starling
