#include "cli/starling.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/system_reason.h"
#include "cli/verbs.h"
#include "launch/laboratory.h"
#include "program/help.h"
#include "program/laboratory_verbs.h"
#include "program/program.h"

namespace starling {
namespace {

void add_listed(CLI::App& app, const LaboratoryVerb& verb) {
  add_verb(app, verb)->footer(fmt::format("'starling {} --help-all' lists its options.", verb.name));
}

void add_verbs(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  add_train(app);
  add_launch(app, {dashes == arguments.end() ? dashes : dashes + 1, arguments.end()});
  for (const LaboratoryVerb& verb : {kSimulate, kPlan, kRace, kTune}) add_listed(app, verb);
  add_translate(app);
  add_serve(app);
  add_watch(app);
  add_doctor(app);
  add_tune_search(app);
  add_calibrate(app);
  add_score(app);
  add_evaluate(app);
  add_average(app);
  add_quantize(app);
  add_import(app);
  add_export(app);
  add_listed(app, kBench);
  add_align(app);
  add_clean(app);
  add_domain(app);
  add_synthesize(app);
  add_demo_corpus(app);
  add_manual(app);
}

VerbProgram program() { return {"Starling trains neural machine translation models and translates with them.", add_verbs}; }

// Returns the verb of the laboratory that these arguments name, or "".
std::string laboratory_verb(std::vector<std::string> arguments) {
  arguments = help_as_option(std::move(arguments));
  const auto verb = std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) { return !word.starts_with('-'); });
  return verb != arguments.end() && is_laboratory_verb(*verb) ? *verb : "";
}

// The process becomes the laboratory, so that signals, status and streams need no passing on.
[[noreturn]] void become_laboratory(const std::string& verb, char** argv) {
  const std::string file = laboratory_program(verb);
  limit_spinning();
  execv(file.c_str(), argv);
  throw IoError(fmt::format("{} cannot be started: {}", file, system_reason(errno)));
}

}  // namespace

int run_starling(int argc, char** argv) {
  if (const std::string verb = laboratory_verb({argv + std::min(argc, 1), argv + argc}); !verb.empty())
    return status_of([&]() -> int { become_laboratory(verb, argv); });
  return run_program(program(), argc, argv);
}

int call_starling(const std::vector<std::string>& arguments) { return call_program(program(), arguments); }

}  // namespace starling
