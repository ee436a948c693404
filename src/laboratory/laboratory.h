// The program `starling-lab`, all but `main`.
#pragma once

namespace starling {

// Runs the verb that the arguments name; returns the exit status.
int run_laboratory(int argc, char** argv);

}  // namespace starling
