// The verb `starling tune`: searches for better values of a configuration within a budget. See docs/guides/tune.md.
#include "experiments/tune.h"

#include "base/affinity.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/files.h"
#include "base/stop_note.h"
#include "experiments/race_screen.h"
#include "laboratory/cluster.h"
#include "program/config_arguments.h"

namespace starling {
namespace {

struct TuneArguments {
  TuneOptions options;
  std::string budget = "1h";
  int jobs = 0;
};

// Parses "90m", "2h", "1h30m" or "45" as minutes.
double minutes_of(const std::string& text) {
  const std::optional<double> seconds = duration_seconds(text);
  double minutes = 0;
  if (seconds)
    minutes = *seconds / 60;
  else if (!CLI::detail::lexical_cast(text, minutes))
    minutes = 0;
  if (!(minutes > 0) || minutes > 1e6)
    throw ConfigError(fmt::format("--budget {} is not a duration; give hours or minutes, such as 2h, 45m or 1h30m", in_quotes(text)));
  return minutes;
}

void run(const CLI::App& verb, const ConfigArguments& arguments, const TuneArguments& a) {
  TuneOptions o = a.options;
  std::tie(o.config, o.settings) = arguments.given(verb);
  o.minutes = minutes_of(a.budget);
  o.jobs = a.jobs > 0 ? a.jobs : std::min(usable_cores(), 4);
  const StopNote note(fmt::format("stopped; what is complete is kept in {}, and the same command continues", o.output));
  o.progress = race_screen();
  const std::string rates = join_path(o.output, "cluster.yml");
  o.set_rates = [&](RaceRecipe& recipe) {
    const RaceRun one{&recipe.baseline, 1, 1, recipe.baseline.rates.front(), ""};
    recipe.cluster.compute = measured_rates(calibration_model(race_config(recipe, one)), 1, rates, o.progress.say);
    recipe.rates_given = true;
    keep_rates({recipe.cluster.compute}, rates);
  };
  if (const int status = run_tune(o); status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto* verb = add_verb(app, kTune);
  auto a = std::make_shared<TuneArguments>();
  const auto arguments = ConfigArguments::add_to(*verb);
  TuneOptions& o = a->options;
  verb->add_option("-o,--output", o.output, "Directory of the tuning; the same command continues one that was stopped")
      ->capture_default_str()
      ->type_name("DIRECTORY");
  verb->add_option("--budget", a->budget, "Wall clock that may be spent, about: 2h, 45m")->capture_default_str()->type_name("TIME");
  verb->add_option("--candidates", o.candidates, "Sets of values that are tried, besides those of the configuration")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--keys", o.keys,
                   fmt::format("What is tuned, of {}; all if not given, without dropout and subword sampling where the longest runs are "
                               "less than a third of the configuration's",
                               fmt::join(tunable_keys(), ", ")))
      ->delimiter(',')
      ->type_name("SECTION.KEY,...");
  verb->add_option("-j,--jobs", a->jobs, "Runs that are trained at a time, with one thread each; 0 = as many as there are cores, at most 4")
      ->check(CLI::Range(0, 1024));
  verb->add_flag("--dry-run", o.dry_run, "Measure the speed, say what would be run, and stop");
  verb->callback([=] { run(*verb, *arguments, *a); });
}

}  // namespace starling
