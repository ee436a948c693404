// What the verbs of both programs share: options, advice for arguments that are not known, names and version.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "metrics/tokenizer_choice.h"

namespace starling {

// Help of --precision for verbs that use a model without training it.
constexpr const char* kPrecisionHelp =
    "auto (int8 for a quantised model, else bf16 where the processor multiplies it faster than f32), bf16, f32 or int8";

// Options that several verbs share; the variables must live until the command line has been parsed.
void add_device_options(CLI::App& verb, DeviceChoice& choice);  // --device, --threads and --precision
void add_device_option(CLI::App& verb, std::string& device);
void add_threads_option(CLI::App& verb, int& threads);
void add_target_language_option(CLI::App& verb, std::string& language);
void add_translator_limits(CLI::App& verb, int64_t& max_source_tokens, int64_t& batch_sentences);  // --max-source-tokens, --batch-size
// Adds --tokenize, whose value choose_tokenizer takes; `name` is its default.
void add_tokenize_option(CLI::App& verb, std::string& name);

// Reports on standard error which tokenizer was chosen, unless it is the usual one (13a without a warning).
void tell(const TokenizerChoice& choice);

// Returns "starling", or "starling bench train" for a nested verb.
std::string command_name(const CLI::App& app);

// Throws ConfigError for an argument that `app` does not know, naming the nearest option or verb.
[[noreturn]] void unknown_argument(const CLI::App& app, const std::string& argument);

// Returns what the value in CLI11's complaint about an option was probably meant to be: "; did you mean 0.6?" for 0,6, and the word for
// what another program calls firefox; "" if the option would not accept that.
std::string value_advice(const CLI::App& verb, const std::string& message);

// Throws ConfigError for an unknown verb, naming the nearest one or the equivalent of another program's verb.
[[noreturn]] void no_verb(const std::string& word, const std::vector<std::string>& verbs);

// Returns the names of the verbs directly below `app`.
std::vector<std::string> verb_names(const CLI::App& app);

// Returns the output of `starling --version`: version, build, processor, libraries.
std::string version_text();

}  // namespace starling
