// The option --tokenize of the verbs that score translations.
#pragma once

#include <CLI/CLI.hpp>

#include "text/tokenizer_choice.h"

namespace starling {

/// Adds --tokenize, whose value choose_tokenizer takes; `name` is its default and must live until the command line has been read.
void add_tokenize_option(CLI::App& verb, std::string& name);

/// Tells on standard error what was chosen, if it is not what everybody expects (13a without a warning).
void tell(const TokenizerChoice& choice);

}  // namespace starling
