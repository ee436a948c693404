// The verb `starling simulate`: trains like `train`, but on a simulated cluster: real gradients and real convergence, virtual time.
#include <atomic>
#include <csignal>
#include <iostream>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "evaluation/text_roles.h"
#include "experiments/throughput.h"
#include "laboratory/cluster.h"
#include "measure/forecast.h"
#include "program/config_arguments.h"
#include "run/run_directory.h"
#include "run/trainer.h"
#include "storage/outputs.h"

namespace starling {
namespace {

void refuse_own_trace(const Config& config, const ConfigArguments& arguments, const ClusterArguments& cluster, const std::string& trace) {
  if (trace.empty()) return;
  std::vector<NamedPath> inputs = named_texts(config);
  inputs.insert(inputs.begin(), {{"--config", arguments.file()}, {"--cluster", cluster.file()}});
  refuse_own_input({"--trace", trace}, inputs);
  refuse_run_files({"--trace", trace});
}

// Returns what the workers gain over one; "" if nothing was trained.
std::string comparison(const Throughput& throughput, const Config& config, const Scenario& scenario) {
  const double rate = throughput.tokens_per_second();
  if (rate <= 0) return "";
  const double alone = one_worker_tokens_per_second(config, scenario);
  const int workers = throughput.workers();
  return fmt::format(
      "throughput: {:.0f} target tokens a virtual second; one worker alone, by the same model of computing, {:.0f}: {:.2f}x "
      "with {}{}\n",
      rate, alone, rate / alone, counted(workers, "worker"),
      config.parallel.ranks() > 1 ? fmt::format(" of {} ranks", config.parallel.ranks()) : "");
}

void run_simulate(const CLI::App& verb, const ConfigArguments& arguments, const ClusterArguments& cluster, const std::string& trace) {
  Config config = arguments.load_run(verb);
  require_data(config);
  if (config.train.threads == 0) config.train.threads = 1;  // ranks compute side by side
  const auto say = [](const std::string& line) { std::cout << line << std::endl; };
  const auto files = real_file_system();
  { const RunDirectory look(*files, config, config.train.threads, {}); }  // refuses before the machine is measured
  refuse_own_trace(config, arguments, cluster, trace);
  const std::string rates = join_path(config.train.output, "cluster.yml");
  std::optional<Calibration> measured;
  const Scenario scenario = cluster.load(calibration_model(config), rates, say, measured);
  if (scenario.timing_only)
    throw ConfigError("simulate trains for real; for times alone use 'starling bench distributed' with the same cluster options");
  if (config.strategy.algorithm == Algorithm::library)
    throw ConfigError("strategy.algorithm library is MPI's own; choose auto, ring, tree or halving-doubling");
  say("times and speeds of training are virtual, those of the simulated cluster; remaining and validation times are real");
  if (scenario.ranks > 1 && family_of(config.strategy) != Family::asynchronous)
    say("memory and traffic of the ranks, from a few updates of synthetic batches in which nothing is computed:\n" +
        layout_text(forecast(layout_run(config), scenario)));
  std::signal(SIGPIPE, SIG_IGN);
  std::atomic<int> status{0};
  Throughput throughput(scenario.ranks);
  const SimulationResult result = simulate(
      scenario,
      [&](World& world) {
        TrainingWatch watch = throughput.watch(world);
        if (world.comm->rank() == 0)
          watch.updated = [&, count = watch.updated](int64_t step, int64_t tokens, int64_t aside) {
            if (count) count(step, tokens, aside);
            if (measured) keep_rates(*std::exchange(measured, std::nullopt), rates);  // the first update is done, so nothing was refused
          };
        const int mine = run_training(config, world, watch);
        if (world.comm->rank() == 0) status = mine;
      },
      trace);
  say(simulation_text(result, scenario) + comparison(throughput, config, scenario));
  if (status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto* verb = add_verb(app, kSimulate);
  const auto arguments = ConfigArguments::add_to(*verb);
  const auto cluster = ClusterArguments::add_to(*verb);
  auto trace = std::make_shared<std::string>();
  verb->add_option("--trace", *trace, "Write a timeline of all ranks there, in Chrome's trace format (a browser's trace viewer opens it)")
      ->type_name("FILE");
  verb->callback([=] { run_simulate(*verb, *arguments, *cluster, *trace); });
}

}  // namespace starling
