// The laboratory, a program of its own: `starling-lab` has the verbs race, plan, simulate, tune and bench.
#pragma once

#include <string>

namespace starling {

// Its file: beside this program, as in a directory that was built, or where an installation has it. Throws IoError if it is in neither
// place; `verb` is what needs it.
std::string laboratory_program(const std::string& verb);

// Whether a file is called as the laboratory is.
bool is_laboratory(const std::string& path);

}  // namespace starling
