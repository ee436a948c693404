// The verbs of `starling`: one file each, registered by one function. A verb does its work in the callback of its sub-command, writes
// results to std::cout and throws the errors of base/error.h; a quiet non-zero exit status is CLI::RuntimeError(status).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "metrics/tokenizer_choice.h"

namespace starling {

void add_train(CLI::App& app);
void add_launch(CLI::App& app, std::vector<std::string> behind_dashes);  // the arguments behind "--", of which CLI11 takes lists apart
void add_translate(CLI::App& app);
void add_serve(CLI::App& app);
void add_tune_search(CLI::App& app);
void add_score(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_average(CLI::App& app);
void add_quantize(CLI::App& app);
void add_bench(CLI::App& app);
void add_bench_distributed(CLI::App& bench);  // verbs of bench
void add_bench_data(CLI::App& bench);
void add_bench_serve(CLI::App& bench);
void add_simulate(CLI::App& app);
void add_plan(CLI::App& app);
void add_race(CLI::App& app);
void add_tune(CLI::App& app);
void add_demo_corpus(CLI::App& app);

// Help of --precision where a model is used and not trained.
constexpr const char* kPrecisionHelp = "auto (int8 for a quantised model, else bf16 where the processor has it), bf16, f32 or int8";

// Options that several verbs have; the variables must live until the command line has been read.
void add_device_options(CLI::App& verb, DeviceChoice& choice);  // the next two, and --precision
void add_device_option(CLI::App& verb, std::string& device);
void add_threads_option(CLI::App& verb, int& threads);
// --tokenize, whose value choose_tokenizer takes; `name` is its default.
void add_tokenize_option(CLI::App& verb, std::string& name);

// Tells on standard error which tokenizer was chosen, if it is not what everybody expects (13a without a warning).
void tell(const TokenizerChoice& choice);

// "starling", or "starling bench train" for a verb within a verb.
std::string command_name(const CLI::App& app);

// Throws the ConfigError for an argument that `app` does not know, naming the nearest option or verb.
[[noreturn]] void unknown_argument(const CLI::App& app, const std::string& argument);

// What a number in CLI11's complaint about an option of the verb was meant to be, "; did you mean 0.6?" of 0,6; "" unless the option
// takes that.
std::string number_advice(const CLI::App& verb, const std::string& message);

// Throws the ConfigError for a word that is none of the verbs, naming the nearest one or what another program's verb is called here.
[[noreturn]] void no_verb(const std::string& word, const std::vector<std::string>& verbs);

// Names of the verbs directly below `app`.
std::vector<std::string> verb_names(const CLI::App& app);

// What `starling --version` prints: version, build, processor, libraries.
std::string version_text();

}  // namespace starling
