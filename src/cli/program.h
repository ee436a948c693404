// The program `starling`, all but `main`: that is compiled for itself, and would read these headers once more.
#pragma once

namespace starling {

// Runs the verb that the arguments name; returns the exit status.
int run_program(int argc, char** argv);

}  // namespace starling
