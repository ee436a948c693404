// The verbs of the laboratory, as both programs list them: `starling` knows no more of them, and starts `starling-lab` for them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace starling {

struct LaboratoryVerb {
  const char *name, *text;
};
inline constexpr LaboratoryVerb kSimulate{"simulate", "Train on a simulated cluster: real gradients, virtual time"};
inline constexpr LaboratoryVerb kPlan{"plan", "Which ways to arrange workers fit into memory, and how fast each would be (simulated)"};
inline constexpr LaboratoryVerb kRace{"race", "Compare strategies side by side on simulated clusters: real gradients, virtual time"};
inline constexpr LaboratoryVerb kTune{"tune",
                                      "Find a better learning rate, batch, optimizer and dropout for a configuration by short runs"};
inline constexpr LaboratoryVerb kBench{"bench", "measure training and translating against the machine's own limits"};
inline constexpr LaboratoryVerb kLaboratoryVerbs[] = {kSimulate, kPlan, kRace, kTune, kBench};

inline bool is_laboratory_verb(const std::string& word) {
  for (const LaboratoryVerb& verb : kLaboratoryVerbs)
    if (word == verb.name) return true;
  return false;
}

inline CLI::App* add_verb(CLI::App& app, const LaboratoryVerb& verb) { return app.add_subcommand(verb.name, verb.text); }

}  // namespace starling
