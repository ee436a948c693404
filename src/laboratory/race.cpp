// The verb `starling race`: compares strategies side by side in the simulator, according to a recipe.
#include "experiments/race.h"

#include <algorithm>

#include "base/affinity.h"
#include "base/error.h"
#include "base/files.h"
#include "base/stop_note.h"
#include "experiments/race_screen.h"
#include "laboratory/cluster.h"
#include "laboratory/verbs.h"

namespace starling {
namespace {

struct RaceArguments {
  std::string recipe, output;
  std::vector<std::string> settings;
  int jobs = 0;
};

std::vector<Override> settings_of(const RaceArguments& a) {
  std::vector<Override> settings;
  for (const std::string& text : a.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) throw ConfigError(fmt::format("--set {}: there is no '='; write --set section.key=value", text));
    settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if (!a.output.empty()) settings.emplace_back("race.output", a.output);
  return settings;
}

std::string rates_path(const RaceRecipe& recipe) { return join_path(recipe.output, "cluster.yml"); }

// Computing rates that the recipe does not give are measured once and kept with the race.
void set_rates(RaceRecipe& recipe, const std::function<void(const std::string&)>& say) {
  if (recipe.rates_given) return;
  const RaceRun one{&recipe.baseline, 1, recipe.seeds.front(), recipe.baseline.rates.front(), ""};
  const double piece = recipe.cluster.compute.piece_us;
  recipe.cluster.compute = measured_rates(calibration_model(race_config(recipe, one)), 1, rates_path(recipe), say);
  recipe.cluster.compute.piece_us = piece;
}

void run(const RaceArguments& arguments) {
  RaceRecipe recipe = load_recipe(arguments.recipe, settings_of(arguments));
  const StopNote note(fmt::format("stopped between runs; what is complete is kept in {}, and the same command continues", recipe.output));
  RaceProgress progress = race_screen();
  set_rates(recipe, progress.say);
  if (!recipe.rates_given) progress.prepared = [&] { keep_rates({recipe.cluster.compute}, rates_path(recipe)); };
  const int jobs = arguments.jobs > 0 ? arguments.jobs : std::min(usable_cores(), 4);
  if (const int status = run_race(recipe, progress, jobs); status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_race(CLI::App& app) {
  auto* verb = add_verb(app, kRace);
  auto a = std::make_shared<RaceArguments>();
  verb->add_option("recipe", a->recipe, "The recipe, YAML; see docs/guides/race.md")->required()->type_name("FILE");
  verb->add_option("-o,--output", a->output, "Race directory, in place of the recipe's race.output")->type_name("DIRECTORY");
  verb->add_option("-j,--jobs", a->jobs, "Runs that are trained at a time; 0 = as many as there are cores, at most 4")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--set", a->settings,
                   "SECTION.KEY=VALUE, may be repeated: a key of the recipe (race., cluster.) or of the configuration that all arms share")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  verb->callback([=] { run(*a); });
}

}  // namespace starling
