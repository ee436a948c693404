// The verbs of `starling`: one file each, registered by one function. A verb does its work in the callback of its subcommand, writes
// results to std::cout and throws the errors of base/error.h. To exit with a status and no message, it throws CLI::RuntimeError(status).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "metrics/tokenizer_choice.h"

namespace starling {

void add_train(CLI::App& app);
void add_launch(CLI::App& app, std::vector<std::string> behind_dashes);  // the arguments after "--", in which CLI11 would split lists
void add_translate(CLI::App& app);
void add_serve(CLI::App& app);
void add_watch(CLI::App& app);
void add_doctor(CLI::App& app);
void add_tune_search(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_score(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_average(CLI::App& app);
void add_quantize(CLI::App& app);
void add_import(CLI::App& app);
void add_export(CLI::App& app);
void add_bench(CLI::App& app);
void add_bench_distributed(CLI::App& bench);  // subcommands of bench
void add_bench_data(CLI::App& bench);
void add_bench_serve(CLI::App& bench);
void add_simulate(CLI::App& app);
void add_plan(CLI::App& app);
void add_race(CLI::App& app);
void add_tune(CLI::App& app);
void add_demo_corpus(CLI::App& app);
void add_manual(CLI::App& app);

// Help of --precision for verbs that use a model without training it.
constexpr const char* kPrecisionHelp = "auto (int8 for a quantised model, else bf16 where the processor has it), bf16, f32 or int8";

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
