// The verbs of `starling-lab`, the laboratory: one file each, as in src/cli/. `starling` lists them and starts this program for them.
#pragma once

#include "program/arguments.h"
#include "program/laboratory_verbs.h"

namespace starling {

void add_simulate(CLI::App& app);
void add_plan(CLI::App& app);
void add_race(CLI::App& app);
void add_tune(CLI::App& app);
void add_bench(CLI::App& app);
void add_bench_distributed(CLI::App& bench);  // subcommands of bench
void add_bench_exchange(CLI::App& bench);
void add_bench_vocabulary(CLI::App& bench);

}  // namespace starling
