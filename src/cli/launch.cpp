// The verb `starling launch`: runs mpirun with arguments that suit Starling, and again if a rank is lost. It only builds and runs a command
// line, so mpirun or srun can also start a run directly (docs/guides/distributed.md).
#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "launch/supervisor.h"
#include "program/config_arguments.h"
#include "program/search_arguments.h"

namespace starling {
namespace {

struct LaunchArguments {
  LaunchOptions options;
  Supervision supervision;
  std::string hosts, hostfile;
  std::vector<std::string> program;   // arguments after "--"
  std::vector<std::string> unmarked;  // CLI11's view of them, which includes arguments before "--" and splits lists
  bool dry_run = false;
};

// Returns the verb for the ranks with its arguments. CLI11 leaves "--" among the unknown arguments.
std::vector<std::string> program_of(const CLI::App& verb, const LaunchArguments& a) {
  std::vector<std::string> unknown = verb.remaining();
  const bool marked = std::erase(unknown, "--") > 0;
  if (!marked && !a.unmarked.empty())
    throw ConfigError(
        fmt::format("write -- before the verb that the ranks are to run: starling launch [OPTIONS] -- {} ...", a.unmarked[0]));
  if (!unknown.empty()) unknown_argument(verb, unknown.front());
  const std::vector<std::string>& rest = a.program;
  if (!a.unmarked.empty() && (rest.empty() || a.unmarked.front() != rest.front())) unknown_argument(verb, a.unmarked.front());
  if (rest.empty()) throw ConfigError("there is no verb to launch; write for example: starling launch -n 2 -- train -c run.yml");
  const std::vector<std::string> verbs = verb_names(*verb.get_parent());
  if (std::find(verbs.begin(), verbs.end(), rest.front()) == verbs.end()) no_verb(rest.front(), verbs);
  if (rest.front() == "launch") throw ConfigError("launch does not launch itself; write the verb that the ranks are to run");
  return rest;
}

// Returns the configuration of a training with these arguments.
Config config_of(const std::vector<std::string>& program) {
  if (program.front() != "train")
    throw ConfigError(fmt::format("--restarts: {} cannot be continued from checkpoints; only train can", in_quotes(program.front())));
  CLI::App app;
  const auto arguments = ConfigArguments::add_to(app);
  app.parse(std::vector<std::string>(program.rbegin(), program.rend() - 1));
  const auto [file, overrides] = arguments->given(app);
  return load_config(file, overrides);
}

void run_launch(const CLI::App& verb, LaunchArguments& a) {
  const std::vector<std::string> program = program_of(verb, a);
  const bool list = verb.count("--hosts") > 0, file = verb.count("--hostfile") > 0;  // given but empty, as by an unset variable: refused
  if (list && file) throw ConfigError("--hosts and --hostfile were both given; leave one out");
  if (list) a.options.hosts = hosts_of_list(a.hosts);
  if (file) a.options.hosts = hosts_of_file(a.hostfile);
  if (a.dry_run) {
    std::vector<std::string> words;
    for (const std::string& word : launch_command(a.options, program)) words.push_back(shell_quoted(word));
    std::cout << fmt::format("{}\n", fmt::join(words, " "));
    return;
  }
  if (a.supervision.restarts > 0) {
    const Config config = config_of(program);
    a.supervision.run_directory = config.train.output;
    a.supervision.layout_ranks = config.parallel.ranks();
  }
  if (const int status = supervise(a.options, program, a.supervision); status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_launch(CLI::App& app, std::vector<std::string> behind_dashes) {
  auto* verb = app.add_subcommand("launch", "Run a verb as several processes (ranks), on this host or on several, with mpirun");
  auto a = std::make_shared<LaunchArguments>();
  a->program = std::move(behind_dashes);
  verb->add_option("-n,--ranks", a->options.ranks,
                   "Number of ranks; default: what --hosts or --hostfile has room for, in a Slurm job its tasks, else one for each core")
      ->check(CLI::Range(1, 100000))
      ->type_name("N");
  verb->add_option("--hosts", a->hosts, "Hosts with their numbers of ranks, for example alpha:2,beta:2; they need ssh and this program")
      ->type_name("LIST");
  verb->add_option("--hostfile", a->hostfile, "The same as a file of mpirun: one host a line, 'alpha slots=2'; without slots: its cores")
      ->type_name("FILE");
  verb->add_option(
          "--bind", a->options.bind,
          "core = each rank has cores of its own (with --hosts: all hosts are taken to be like this one); none = the ranks of a host "
          "share its cores; default: core on this host alone if there are enough, else none, in a Slurm job as Slurm says")
      ->type_name("core|none")
      ->check(
          [](const std::string& word) {
            return word == "core" || word == "none" ? "" : fmt::format("{} is not allowed; choose core or none", in_quotes(word));
          },
          "");
  verb->add_option("--mpirun-args", a->options.mpirun_args, "More arguments for mpirun, separated by blanks; they come last and win")
      ->type_name("TEXT");
  verb->add_option("--restarts", a->supervision.restarts,
                   "How often a training is started again from its newest checkpoint after a rank was lost; hosts that do not answer are "
                   "left out; it ends when 3 starts in a row have made no newer checkpoint")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  verb->add_option("--restart-pause", a->supervision.pause_seconds,
                   "Time before the first restart, seconds; twice as long before each further one without progress, at most 10 minutes")
      ->transform(duration_range(0, 600))
      ->capture_default_str();
  verb->add_option(
          "--grace", a->supervision.grace_seconds,
          "Time that the ranks have to save and end after a signal to stop, seconds, before they are killed; 0: as long as it takes")
      ->transform(duration_range(0, 86400))
      ->capture_default_str();
  verb->add_flag("--dry-run", a->dry_run, "Print the command instead of running it");
  verb->add_option("verb", a->unmarked, "The verb that every rank runs, and its arguments")->type_name("-- VERB ARGUMENT...");
  verb->allow_extras();
  verb->footer("Example: starling launch -n 2 -- train -c run.yml");
  verb->callback([verb, a] { run_launch(*verb, *a); });
}

}  // namespace starling
