// Man pages, and completions of options for shells.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "manual/commands.h"

namespace starling {

// Returns the pages of a program and its verbs: file names such as "starling-translate.1", and their text in roff.
std::vector<std::pair<std::string, std::string>> man_pages(const Command& program, const std::string& version);

// Return a shell's script that completes verbs, options, and the words that options may have; elsewhere the names of files.
std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace starling
