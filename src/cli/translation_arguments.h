// Options that the verbs which translate lines share.
#pragma once

#include <CLI/CLI.hpp>

#include "program/search_arguments.h"
#include "translate/options.h"

namespace starling {

void add_models(CLI::App& verb, TranslateOptions& options);     // --model, --weights
void add_sampling(CLI::App& verb, TranslateOptions& options);   // --sampling and what goes with it
void add_computing(CLI::App& verb, TranslateOptions& options);  // --batch-size and devices

// Has the search options that were given replace a model's own; the arguments must outlive the options.
void take_search(const SearchArguments& given, TranslateOptions& options);

}  // namespace starling
