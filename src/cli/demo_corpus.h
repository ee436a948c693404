// The verb `starling demo-corpus`: writes the built-in artificial corpus.
#pragma once

#include <CLI/CLI.hpp>

namespace starling {

// Registers the sub-command; its work runs in the callback and throws IoError when a file cannot be written.
void add_demo_corpus(CLI::App& app);

}  // namespace starling
