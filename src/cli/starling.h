// The program `starling`, all but `main`: that is compiled for itself, and would read CLI11's headers once more.
#pragma once

#include <string>
#include <vector>

namespace starling {

// Runs the verb that the arguments name; becomes the laboratory if it is one of that. Returns the exit status.
int run_starling(int argc, char** argv);
// The same in this process as it is, for tests; verbs of the laboratory are refused.
int call_starling(const std::vector<std::string>& arguments);

}  // namespace starling
