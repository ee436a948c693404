// The verb `starling evaluate`: scores a file of translations against one or several files of references.
#pragma once

#include <CLI/CLI.hpp>

namespace starling {

/// Registers the sub-command; its work runs in the callback, prints to standard output, and throws IoError for a file that cannot
/// be read and DataError for unequal numbers of lines or invalid UTF-8.
void add_evaluate(CLI::App& app);

}  // namespace starling
