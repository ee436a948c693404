// The program `starling`, all but `main`: that is compiled for itself, and would read CLI11's headers once more.
#pragma once

namespace starling {

// Runs the verb that the arguments name; becomes the laboratory if it is one of that. Returns the exit status.
int run_starling(int argc, char** argv);

}  // namespace starling
