// The verb `starling bench distributed`: measures over MPI or predicts on a simulated cluster, with the same code and the same figures.
#include "measure/bench_distributed.h"

#include <iostream>

#include "base/counted.h"
#include "base/error.h"
#include "base/messages.h"
#include "base/range.h"
#include "config/config.h"
#include "laboratory/cluster.h"
#include "measure/bench_report.h"
#include "measure/forecast.h"
#include "measure/history.h"
#include "measure/time_layout.h"
#include "program/help.h"
#include "program/search_arguments.h"
#include "storage/outputs.h"
#include "strategies/factory.h"

namespace starling {
namespace {

// The sections of a configuration that can be set here.
std::vector<ConfigSection> sections_of(ModelConfig& model, StrategyOptions& strategy, ParallelOptions& parallel) {
  std::vector<ConfigSection> all = config_sections("strategy", "Several workers", strategy);
  all.push_back(config_section("parallel", "A model divided among several ranks", parallel));
  all.push_back(config_section("model", "Architecture", model));
  return all;
}

// Prints a line that is not part of the result: on standard error if standard output is JSON.
void say_beside(const std::string& format, const std::string& line) {
  if (format == "json")
    tell("{}\n", line);
  else
    std::cout << line << std::endl;
}

Findings findings(const BenchDistributedResult& r, bool simulated) {
  const auto ms = [](double s) { return fmt::format("{:.1f} ms", 1e3 * s); };
  const bool several = r.ranks > 1;
  double most = 0, waited = 0;
  for (const double b : r.bytes_sent) most = std::max(most, b);
  for (const double w : r.waited) waited += w / static_cast<double>(r.waited.size());
  Findings found;
  found.line("simulated", "times are those of the model, not of this machine", {{"simulated", simulated}}, simulated);
  found.line("machine", r.machine, {{"machine", r.machine}, {"ranks", r.ranks}, {"workers", r.workers}});
  found.line("model",
             fmt::format("{:.2f} M parameters, gradient {:.1f} MiB", static_cast<double>(r.parameters) / 1e6,
                         static_cast<double>(r.gradient_bytes) / (1 << 20)),
             {{"parameters", r.parameters}, {"gradient_mib", static_cast<double>(r.gradient_bytes) / (1 << 20)}});
  found.line("step, one alone", fmt::format("{} ({:.0f} target tokens/s)", ms(r.alone), r.tokens_per_step / r.workers / r.alone),
             {{"steps", r.steps}, {"tokens_per_step", r.tokens_per_step}, {"alone_ms", 1e3 * r.alone}});
  found.line(
      "step, all apart",
      fmt::format("{}: forward {}, backward {}; {:.3f} of the rate alone", ms(r.local), ms(r.forward), ms(r.backward), r.alone / r.local),
      {{"local_ms", 1e3 * r.local}, {"forward_ms", 1e3 * r.forward}, {"backward_ms", 1e3 * r.backward}});
  found.line("matrix products",
             fmt::format("{:.0f} GFLOP/s per rank alone, {:.0f} all at once: {:.3f}", r.product_rate_alone / 1e9,
                         r.product_rate_together / 1e9, r.product_rate_together / r.product_rate_alone),
             {{"product_gflops_alone", r.product_rate_alone / 1e9}, {"product_gflops_together", r.product_rate_together / 1e9}},
             r.product_rate_alone > 0);
  found.line("link", fmt::format("{:.1f} us, {:.2f} Gbit/s", 1e6 * r.latency_s, 8e-9 * r.bandwidth),
             {{"latency_us", 1e6 * r.latency_s}, {"bandwidth_gbit_s", 8e-9 * r.bandwidth}}, several);
  found.line("strategy", r.strategy, {{"strategy", r.strategy}}, several);
  found.line("all-reduce alone",
             fmt::format("{} for the whole gradient, dense: r = {:.2f} of a step's computing", ms(r.exchange), r.exchange / r.alone),
             {{"exchange_ms", 1e3 * r.exchange}, {"last_bucket_ms", 1e3 * r.last_bucket}, {"ratio_r", r.exchange / r.alone}}, several);
  found.line("step, blocking", ms(r.blocking), {{"blocking_ms", 1e3 * r.blocking}}, several);
  found.line("step, overlapped",
             fmt::format("{} ({:.0f} target tokens/s): {:.2f}x one rank alone, {:.3f} of {}", ms(r.overlapped),
                         r.tokens_per_step / r.overlapped, r.workers * r.alone / r.overlapped, r.alone / r.overlapped, r.workers),
             {{"overlapped_ms", 1e3 * r.overlapped}, {"speedup", r.alone / r.overlapped * r.workers}}, several);
  found.line("ideal",
             fmt::format("{} = forward + max(backward, all-reduce) + last bucket + update; measured is {:.3f} of it; buckets in turn {}",
                         ms(r.ideal), r.overlapped / r.ideal, ms(r.pipeline)),
             {{"ideal_ms", 1e3 * r.ideal}, {"pipeline_ms", 1e3 * r.pipeline}}, several);
  found.line("sent per step",
             fmt::format("{:.2f} MiB by the rank that sends most; ranks waited {} on average", most / (1 << 20), ms(waited)),
             {{"bytes_sent", r.bytes_sent}, {"waited_s", r.waited}}, several);
  return found;
}

struct DistributedArguments {
  std::string preset = "transformer-base", format = "text";
  BenchTrainOptions train;
  int64_t batches = 8, steps = 0;
  std::string write_cluster;
  bool measure_again = false;
  ParallelOptions parallel;
  std::vector<std::pair<std::string, CLI::Option*>> keys;
};

// sure: of a simulated result with measured rates, else null.
void print_layout(const LayoutResult& r, const std::string& format, bool simulated, const Certainty* sure) {
  const double ms = 1e3 * r.seconds;
  const double low = sure ? ms * sure->low : 0, high = sure ? ms * sure->high : 0;
  Findings found;
  found.only_json({{"simulated", simulated},
                   {"ranks", r.ranks},
                   {"stages", r.stages},
                   {"replicas", r.replicas},
                   {"parameters", r.parameters},
                   {"step_ms", ms},
                   {"tokens_per_step", r.tokens},
                   {"micro_batches", r.passes},
                   {"bubble", r.bubble},
                   {"even_bubble", r.even_bubble()},
                   {"shards", r.shards}});
  found.only_text(fmt::format("{}{} of {} rank{} each; step {:.1f} ms{}, {:.0f} target tokens/s\n", simulated ? "simulated: " : "",
                              counted(r.replicas, "replica"), r.ranks / r.replicas, r.ranks == r.replicas ? "" : "s", ms,
                              sure ? fmt::format(" ({:.1f} to {:.1f} in nine of ten cases)", low, high) : "", r.tokens_per_second()));
  found.only_text(layout_text(r));
  if (!r.disturbance.empty()) found.only_json({{"disturbance", r.disturbance}});
  if (!r.disturbance.empty()) found.only_text(fmt::format("warning: this measurement was disturbed: {}\n", r.disturbance));
  if (sure) found.only_json({{"step_ms_low", low}, {"step_ms_high", high}});
  std::vector<double> memory, activations;
  for (const RankMemory& m : r.memory) memory.push_back(m.total() / (1 << 20)), activations.push_back(m.activations / (1 << 20));
  if (!memory.empty()) found.only_json({{"memory_mib", memory}, {"activations_mib", activations}});
  found.print(std::cout, format);
}

// Measures only this layout: if a model is divided, no rank could train it alone.
void run_layout(const DistributedArguments& a, const BenchDistributedOptions& o, const ClusterArguments& cluster) {
  if (!a.write_cluster.empty())
    throw ConfigError("--write-cluster keeps the rates of ranks that have the whole model; leave --parallel out");
  if (a.parallel.pipeline == 1 && a.parallel.micro_batches + a.parallel.time_pieces > 0)
    throw ConfigError("--parallel.micro-batches and --parallel.time-pieces do nothing without stages; set --parallel.pipeline too");
  if (a.parallel.time_pieces > 0 && architecture_of(a.preset) != Architecture::gnmt)
    throw ConfigError(fmt::format("--parallel.time-pieces is for recurrent models, which {} is not; leave it out", a.preset));
  LayoutRun run;
  run.train = o.train;
  run.strategy = o.strategy;
  run.parallel = a.parallel;
  run.optimizer.learning_rate = 1e-4;
  run.strategy.batch = BatchScope::per_worker;
  run.strategy.synchronous_steps = 0;
  if (o.steps > 0) run.updates = o.steps;
  if (family_of(o.strategy) == Family::periodic) run.updates = round_up(run.updates, o.strategy.periodic.interval);
  if (cluster.given()) {
    run.train.threads = std::max(run.train.threads, 1);
    const auto say = [&](const std::string& line) { say_beside(a.format, line); };
    const Scenario scenario = cluster.load_for_prediction(run.train, a.measure_again, say);
    const Certainty sure = certainty_here(PredictionHistory(history_path()), scenario.drift);
    return print_layout(forecast(run, scenario), a.format, true, scenario.network.gpu == "none" ? &sure : nullptr);
  }
  World world = started_by_mpi() ? make_mpi_world() : make_local_world();
  const LayoutResult result = time_layout(run, world);
  if (world.comm->rank() == 0) print_layout(result, a.format, false, nullptr);
}

void run(DistributedArguments a, const ClusterArguments& cluster) {
  BenchDistributedOptions o;
  o.train = a.train;
  o.train.model = model_preset(a.preset);
  o.steps = a.steps;
  o.batches = a.batches;
  if (o.train.vocabulary == 0) o.train.vocabulary = a.preset == "transformer-base" || a.preset == "transformer-big" ? 32000 : 8000;
  for (const auto& [name, option] : a.keys)
    if (name == "strategy.name" && option->count() > 0) o.strategy = strategy_preset(option->results().back());
  const std::vector<ConfigSection> sections = sections_of(o.train.model, o.strategy, a.parallel);
  for (const auto& [name, option] : a.keys)
    if (option->count() > 0) apply_override(sections, name, option->results().back());
  check_strategy(o.strategy);
  // If any key of `parallel` is given, only that layout is measured.
  const bool layout = std::any_of(a.keys.begin(), a.keys.end(),
                                  [](const auto& key) { return key.first.starts_with("parallel.") && key.second->count() > 0; });
  if (family_of(o.strategy) == Family::periodic && !layout)
    throw ConfigError(
        fmt::format("bench distributed measures one update and its exchange, but {} exchanges every {} updates; "
                    "with --parallel.pipeline 1 it measures whole rounds of them",
                    o.strategy.name, o.strategy.periodic.interval));
  if (family_of(o.strategy) == Family::asynchronous)
    throw ConfigError(fmt::format(
        "bench distributed measures updates that all ranks make together, and {} has none; 'starling simulate' shows what a run "
        "of it takes",
        o.strategy.name));
  if (layout) return run_layout(a, o, cluster);
  if (!a.write_cluster.empty()) {
    refuse_own_input({"--write-cluster", a.write_cluster}, {{"--cluster", cluster.file()}});
    refuse_run_files({"--write-cluster", a.write_cluster});
  }
  const auto show = [&](const BenchDistributedResult& r, bool simulated) { findings(r, simulated).print(std::cout, a.format); };
  o.say = [](const std::string& line) { tell("{}\n", line); };
  if (cluster.given()) {
    if (o.strategy.algorithm == Algorithm::library)
      throw ConfigError("strategy.algorithm library is MPI's own and is not simulated; choose auto, ring, tree or halving-doubling");
    if (o.train.threads == 0) o.train.threads = 1;
    if (o.steps == 0) o.steps = 16;
    const auto say = [&](const std::string& line) { say_beside(a.format, line); };
    const Scenario scenario = cluster.load_for_prediction(o.train, a.measure_again, say);
    o.say(fmt::format("simulating {} ranks with {}: making models and batches", scenario.ranks, a.preset));
    BenchDistributedResult result;
    const SimulationResult simulation = simulate(scenario, [&](World& world) {
      const BenchDistributedResult mine = bench_distributed(o, world);
      if (world.comm->rank() == 0) result = mine;
    });
    return show(result, true);
  }
  o.settle = !a.write_cluster.empty();
  World world = started_by_mpi() ? make_mpi_world() : make_local_world();
  const BenchDistributedResult result = bench_distributed(o, world);
  if (world.comm->rank() != 0) return;
  show(result, false);
  if (!a.write_cluster.empty()) write_cluster(a.write_cluster, result);
}

}  // namespace

void add_bench_distributed(CLI::App& bench) {
  auto* verb =
      bench.add_subcommand("distributed", "what several ranks gain: run it under mpirun or 'starling launch', or with a simulated cluster");
  auto a = std::make_shared<DistributedArguments>();
  a->train.vocabulary = 0;
  verb->add_option("--preset", a->preset, "model preset")->capture_default_str();
  verb->add_option("--vocabulary", a->train.vocabulary, "joint pieces; 0 = 32000 for base and big, else 8000")
      ->check(CLI::Range(0, 1000000));
  verb->add_option("--precision", a->train.precision, "auto, bf16 or f32")
      ->check(CLI::IsMember({"auto", "bf16", "f32"}))
      ->capture_default_str();
  add_threads_option(*verb, a->train.threads);  // per rank
  verb->add_option("--batch-tokens", a->train.batch_tokens, "target tokens of a worker and step")
      ->check(CLI::Range(16, 1000000))
      ->capture_default_str();
  verb->add_option("--mean-length", a->train.mean_length, "mean sentence length, tokens")->check(CLI::Range(2, 100))->capture_default_str();
  verb->add_option("--seconds", a->train.seconds, "of measured steps of each kind")
      ->transform(duration_range(0.1, 3600))
      ->capture_default_str();
  verb->add_option("--batches", a->batches, "distinct batches, taken in turn")->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--steps", a->steps, "measured steps of each kind; 0 = as many as --seconds hold")->check(CLI::Range(0, 1000000));
  verb->add_option("--format", a->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  add_measure_again(*verb, a->measure_again);
  verb->add_option("--write-cluster", a->write_cluster, "keep what was measured as a cluster to simulate (--cluster)")->type_name("FILE");
  ModelConfig model;
  StrategyOptions strategy;
  ParallelOptions parallel;
  for (const ConfigSection& section : sections_of(model, strategy, parallel))
    for (const ConfigField& field : section.fields) {
      const std::string name = section.name + "." + field.key;
      CLI::Option* option = verb->add_option("--" + name)->description(field.help)->expected(1)->take_last();
      const bool common = name == "strategy.name" || section.name == "parallel";
      a->keys.emplace_back(name, option->group(common ? "Options" : section.name == "model" ? kFurtherGroup : kStrategyGroup));
    }
  const auto cluster = ClusterArguments::add_to(*verb);
  verb->callback([=] { run(*a, *cluster); });
}

}  // namespace starling
