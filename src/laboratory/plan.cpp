// The verb `starling plan`: finds, by simulation, which arrangements of a number of workers fit into memory, and how fast each is.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "laboratory/cluster.h"
#include "laboratory/prediction_history.h"
#include "measure/layouts.h"
#include "program/config_arguments.h"
#include "settings/corpus_defaults.h"

namespace starling {
namespace {

constexpr double kMib = 1 << 20;

struct PlanArguments {
  double memory_gib = 0;
  int shown = 12;
  bool measure_again = false;
  std::vector<std::string> history;  // directories of runs
  std::string format = "text";
};

// Formats keys as in a file, section by section.
std::string as_yaml(const std::vector<ConfigLine>& keys) {
  std::string text, section;
  for (const auto& [name, value] : keys) {
    const size_t last = name.rfind('.');
    const std::string own = name.substr(0, last);
    std::string indent = "  ";
    if (own != section) {
      const size_t dot = own.find('.');
      if (section.substr(0, section.find('.')) != own.substr(0, dot)) text += "  " + own.substr(0, dot) + ":\n";
      if (dot != std::string::npos) text += "    " + own.substr(dot + 1) + ":\n";
      section = own;
    }
    if (own.find('.') != std::string::npos) indent += "  ";
    text += fmt::format("  {}{}: {}\n", indent, name.substr(last + 1), value);
  }
  return text;
}

nlohmann::ordered_json to_json(const Layout& l, double alone, const Certainty* sure) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::object();
  for (const auto& [name, value] : l.keys) keys[name] = value;
  nlohmann::ordered_json json{{"simulated", true}, {"strategy", l.strategy}, {"keys", keys}};
  if (!l.refused.empty()) {
    json["refused"] = l.refused;
    return json;
  }
  const LayoutResult& r = l.result;
  json.update({{"stages", r.stages},
               {"shards", r.shards},
               {"hybrid", l.run.parallel.hybrid},
               {"replicas", r.replicas},
               {"tokens_per_second", r.tokens_per_second()},
               {"speedup", r.tokens_per_second() / alone},
               {"tokens_per_update", r.tokens},
               {"seconds_per_update", r.seconds},
               {"micro_batches", r.passes},
               {"bubble", r.bubble},
               {"memory_mib", largest_memory(r) / kMib}});
  const double speed = r.tokens_per_second();
  if (sure) json.update({{"tokens_per_second_low", speed / sure->high}, {"tokens_per_second_high", speed / sure->low}});
  for (size_t i = 0; i < r.memory.size(); ++i) {
    const RankMemory& m = r.memory[i];
    const RankBytes& b = r.bytes[i];
    json["ranks"].push_back({{"parameters_mib", m.parameters / kMib},
                             {"gradients_mib", m.gradients / kMib},
                             {"optimizer_mib", m.optimizer / kMib},
                             {"packed_mib", m.packed / kMib},
                             {"copies_mib", m.copies / kMib},
                             {"strategy_mib", m.strategy / kMib},
                             {"activations_mib", m.activations / kMib},
                             {"boundaries_sent_mib", b.boundaries / kMib},
                             {"shared_sent_mib", b.shared / kMib},
                             {"shards_sent_mib", b.shards / kMib},
                             {"strategy_sent_mib", b.strategy / kMib}});
  }
  return json;
}

void run_plan(const CLI::App& verb, const ConfigArguments& arguments, const ClusterArguments& cluster, const PlanArguments& a) {
  if (verb.get_option("--history")->count() > 0) {
    std::vector<std::string> runs = a.history;
    std::erase(runs, "");
    return show_history(runs, cluster, a.measure_again);
  }
  const auto [file, overrides] = arguments.given(verb);
  Config config = load_new_config(file, overrides);
  if (config.train.threads == 0) config.train.threads = 1;
  if (config.train.objective == Objective::mixed)
    throw ConfigError("plan does not support train.objective mixed, whose samples take most of the time; use 'starling simulate'");
  const StopNote note("stopped: nothing was written; the same command begins again, and --cluster.ranks less is faster");
  const bool json = a.format == "json";
  const auto say = [&](const std::string& line) {
    if (json)
      tell("{}\n", line);
    else
      std::cout << line << std::endl;
  };
  if (const std::string choices = choices_text(config); !choices.empty()) say(choices);
  Scenario scenario = cluster.load_for_prediction(calibration_model(config), a.measure_again, say);
  const std::string& gpu = scenario.network.gpu;
  const PredictionHistory history(history_path());
  const Certainty sure = certainty_here(history, scenario.drift);
  const double given_gib = a.memory_gib > 0 || gpu == "none" ? a.memory_gib : 0.9 * gpu_memory_gib(gpu);
  const double memory = given_gib > 0 ? given_gib * 1024 * kMib
                                      : static_cast<double>(usable_memory().bytes) / static_cast<double>(scenario.network.ranks_per_node);
  std::vector<Layout> layouts = layouts_of(config, scenario.ranks);
  Scenario single = scenario;
  single.ranks = 1;
  single.stragglers.clear();
  single.link_faults.clear();
  single.crashes.clear();
  Config one = config;
  one.strategy = {};
  one.parallel = {};
  const LayoutResult alone = forecast(layout_run(one), single);
  {
    TaskProgress progress("plan", standard_error_screen());
    forecast_all(layouts, scenario, memory, [&](size_t done, size_t of) {
      if (progress.due()) progress.tell(static_cast<double>(done) / static_cast<double>(of), fmt::format("layout {} of {}", done + 1, of));
    });
  }
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Layout& l : layouts) all.push_back(to_json(l, alone.tokens_per_second(), gpu == "none" ? &sure : nullptr));
    std::cout << all.dump(1) << "\n";
    return;
  }
  say(fmt::format(
      "simulated: {} ranks, network {}, {} with {:.2f} M parameters; memory of a rank: {:.2f} GiB{}; one worker alone {:.0f} target "
      "tokens/s with {:.2f} GiB",
      scenario.ranks, scenario.network.preset, config.model.preset, static_cast<double>(alone.parameters) / 1e6, memory / kMib / 1024,
      given_gib > 0 ? "" : " (what is usable here; --memory says otherwise)", alone.tokens_per_second(),
      largest_memory(alone) / kMib / 1024));
  say(fmt::format("{:>3} {:>8} {:>6} {:>8}  {:<30} {:>9} {:>8} {:>13} {:>10} {:>7} {:>9}", "", "stages", "shards", "replicas", "strategy",
                  "tokens/s", "speed-up", "tokens/update", "memory GiB", "bubble", "sent MiB"));
  for (size_t i = 0; i < layouts.size() && static_cast<int>(i) < a.shown; ++i) {
    const Layout& l = layouts[i];
    if (!l.refused.empty()) break;
    const LayoutResult& r = l.result;
    double sent = 0;
    for (const RankBytes& b : r.bytes) sent = std::max(sent, b.total());
    const std::string stages = l.run.parallel.hybrid ? fmt::format("{} hybrid", r.stages) : std::to_string(r.stages);
    say(fmt::format("{:>3} {:>8} {:>6} {:>8}  {:<30} {:>9.0f} {:>7.2f}x {:>13.0f} {:>10.2f} {:>7} {:>9.2f}{}", i + 1, stages, r.shards,
                    r.replicas, l.strategy, r.tokens_per_second(), r.tokens_per_second() / alone.tokens_per_second(), r.tokens,
                    largest_memory(r) / kMib / 1024, r.stages > 1 ? fmt::format("{:.1f} %", 100 * r.bubble) : "-", sent / kMib,
                    largest_memory(r) > memory ? "  does not fit" : ""));
  }
  if (gpu == "none") say(certainty_text(history, scenario.drift));  // rates of cards are assumed
  if (layouts.empty() || !layouts.front().refused.empty()) return;
  const Layout& best = layouts.front();
  double least = largest_memory(best.result);
  for (const Layout& l : layouts)
    if (l.refused.empty()) least = std::min(least, largest_memory(l.result));
  if (least > memory)
    say(fmt::format("nothing fits: the smallest need is {:.2f} GiB a rank; start more ranks, or lower train.micro-batch-tokens",
                    least / kMib / 1024));
  else
    say(best.keys.empty() ? "for the first the defaults are right: nothing to write" : "for the first, write:\n" + as_yaml(best.keys));
  say("speed is not all: strategies whose update sees more tokens, or whose replicas differ, need not reach the same loss after as many "
      "tokens; 'starling race' shows that");
}

}  // namespace

void add_plan(CLI::App& app) {
  auto* verb = add_verb(app, kPlan);
  const auto arguments = ConfigArguments::add_to(*verb);
  const auto cluster = ClusterArguments::add_to(*verb);
  auto a = std::make_shared<PlanArguments>();
  verb->add_option("--memory", a->memory_gib,
                   "memory of a rank, GiB; 0 = nine tenths of a GPU's, or what is usable here, divided by the ranks of a node")
      ->check(CLI::Range(0.0, 1e6));
  verb->add_option("--history", a->history,
                   "compare the throughput of these runs of this host with what is predicted for them, keep that, and show how well "
                   "predictions have done here; without a run only show it")
      ->type_name("RUN ...")
      ->expected(0, 1000);
  add_measure_again(*verb, a->measure_again);
  verb->add_option("--show", a->shown, "rows of the table")->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--format", a->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  verb->callback([=] { run_plan(*verb, *arguments, *cluster, *a); });
}

}  // namespace starling
