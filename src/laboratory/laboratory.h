// The program `starling-lab`, all but `main`.
#pragma once

#include <string>
#include <vector>

namespace starling {

// Runs the verb that the arguments name; returns the exit status.
int run_laboratory(int argc, char** argv);
// The same in this process as it is, for tests.
int call_laboratory(const std::vector<std::string>& arguments);

}  // namespace starling
