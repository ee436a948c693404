#include "laboratory/laboratory.h"

#include <iostream>

#include "laboratory/verbs.h"
#include "manual/commands.h"
#include "program/help.h"
#include "program/program.h"

namespace starling {
namespace {

// What the manual of `starling` needs to know of the verbs here.
void add_commands(CLI::App& app) {
  auto* verb = app.add_subcommand("commands", "print the verbs and their options as JSON");
  verb->callback([&app] {
    const VerbHelp help;
    std::cout << to_text(command_of(app, app.get_name(), [&](const CLI::Option* o) { return help.make_option_opts(o); })) << "\n";
  });
}

VerbProgram program() {
  return {"The laboratory of Starling: 'starling VERB' starts it for these verbs.", [](CLI::App& app, const std::vector<std::string>&) {
            add_simulate(app);
            add_plan(app);
            add_race(app);
            add_tune(app);
            add_bench(app);
            add_commands(app);
          }};
}

}  // namespace

int run_laboratory(int argc, char** argv) { return run_program(program(), argc, argv); }

int call_laboratory(const std::vector<std::string>& arguments) { return call_program(program(), arguments); }

}  // namespace starling
