// The verbs of `starling`: one file each, registered by one function. A verb does its work in the callback of its subcommand, writes
// results to std::cout and throws the errors of base/error.h. To exit with a status and no message, it throws CLI::RuntimeError(status).
// Those of the laboratory are in src/laboratory/.
#pragma once

#include "program/arguments.h"

namespace starling {

void add_train(CLI::App& app);
void add_launch(CLI::App& app, std::vector<std::string> behind_dashes);  // the arguments after "--", in which CLI11 would split lists
void add_translate(CLI::App& app);
void add_synthesize(CLI::App& app);
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
void add_align(CLI::App& app);
void add_clean(CLI::App& app);
void add_domain(CLI::App& app);
void add_demo_corpus(CLI::App& app);
void add_manual(CLI::App& app);

}  // namespace starling
