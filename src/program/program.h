// What a program of verbs does around them: it finds the verb, runs it, and is one of the three places where errors are caught. Exit
// status: 0 success, 1 internal error or out of memory, 2 wrong usage or configuration, 3 wrong data or a failed file operation, 4 a
// training diverged, 5 another rank was lost; a verb may return others.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace starling {

struct VerbProgram {
  const char* text;  // what it is, for its help
  std::function<void(CLI::App&, const std::vector<std::string>& arguments)> add_verbs;
};

// Runs the verb that the arguments name; returns the exit status. The program calls itself `starling`, whatever its file is called.
int run_program(const VerbProgram& program, int argc, char** argv);
// The same, but leaves the process as it is.
int call_program(const VerbProgram& program, const std::vector<std::string>& arguments);

// Returns what `body` returns; an error that it throws is printed, and the status is as above.
int status_of(const std::function<int()>& body);

// Limits spinning in OpenMP, in what this process starts from now on; returns false if the environment sets it already.
bool limit_spinning();

}  // namespace starling
