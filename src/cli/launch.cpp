// The verb `starling launch`: runs mpirun with arguments that suit Starling. It only builds and runs a command line, so mpirun or srun can
// also start a run directly (docs/guides/distributed.md).
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/affinity.h"
#include "base/error.h"
#include "base/messages.h"
#include "cli/launch_hosts.h"
#include "cli/verbs.h"
#include "config/config.h"

extern char** environ;

namespace starling {
namespace {

struct LaunchArguments {
  int ranks = 0;
  std::string hosts, hostfile, bind, mpirun_args;
  std::vector<std::string> program;   // arguments after "--"
  std::vector<std::string> unmarked;  // CLI11's view of them, which includes arguments before "--" and splits lists
  bool dry_run = false;
};

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

int ranks_of_slurm() {
  const char* tasks = std::getenv("SLURM_NTASKS");
  return tasks ? std::atoi(tasks) : 0;
}

std::string find_mpirun() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ":"))
    if (const std::string file = folder + "/mpirun"; access(file.c_str(), X_OK) == 0) return file;
  throw ConfigError("mpirun was not found on PATH; install Open MPI (apt-get install openmpi-bin)");
}

std::string this_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw IoError(fmt::format("/proc/self/exe: {}; start with mpirun directly", error.message()));
  return path.string();
}

// Returns the environment variables that ranks on other hosts must see too.
std::vector<std::string> forwarded_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    for (const char* prefix : {"STARLING_", "OMP_", "GOMP_"})
      if (name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void append(std::vector<std::string>& command, const std::vector<std::string>& more) {
  command.insert(command.end(), more.begin(), more.end());
}

std::vector<std::string> build_command(const LaunchArguments& a, const std::vector<std::string>& program) {
  if (!a.hosts.empty() && !a.hostfile.empty()) throw ConfigError("--hosts and --hostfile were both given; leave one out");
  std::vector<LaunchHost> hosts;
  if (!a.hosts.empty()) hosts = hosts_of_list(a.hosts);
  if (!a.hostfile.empty()) hosts = hosts_of_file(a.hostfile);
  const bool slurm = std::getenv("SLURM_JOB_ID") && hosts.empty(), here = !slurm && hosts.empty();
  const int cores = usable_cores();
  int ranks = a.ranks, room = 0, per_host = 0;  // room: ranks that fit without sharing cores; 0 = only mpirun knows
  const bool known = std::all_of(hosts.begin(), hosts.end(), [](const LaunchHost& h) { return h.slots > 0; });
  if (!hosts.empty()) {
    for (const LaunchHost& h : hosts) {
      room += known ? h.slots : 0;
      per_host = known ? std::max(per_host, h.slots) : 0;
    }
    if (ranks == 0) ranks = room;
  } else if (slurm) {
    if (ranks == 0) ranks = ranks_of_slurm();
  } else if (here) {
    if (ranks == 0) ranks = cores;
    room = cores;
    per_host = ranks;
  }

  std::vector<std::string> command{"mpirun"};
  if (ranks > 0) append(command, {"-n", std::to_string(ranks)});
  // mpirun's own count of how many ranks fit ignores both a container's limits and hyperthreads.
  if (here) append(command, {"--host", fmt::format("localhost:{}", ranks)});
  if (!hosts.empty()) append(command, {"--host", host_list(hosts)});
  if (room > 0 && ranks > room) command.push_back("--oversubscribe");

  const bool whole_machine = cores == sysconf(_SC_NPROCESSORS_ONLN);  // mpirun ignores the affinity mask that taskset sets
  const int each = per_host > 0 ? cores / per_host : 0;
  bool bind = here && ranks > 1 && each >= 1 && whole_machine;
  if (a.bind == "none") bind = false;
  if (a.bind == "core") {
    if (each < 1)
      throw ConfigError(
          fmt::format("--bind core needs a core for each rank, known from --hosts, from --hostfile or on this host alone ({} cores); "
                      "use --bind none, or --mpirun-args",
                      cores));
    bind = true;
  }
  if (bind)
    append(command, {"--use-hwthread-cpus", "--map-by", fmt::format("slot:PE={}", each), "--bind-to", "hwthread"});
  else if (!slurm || a.bind == "none")
    append(command, {"--bind-to", "none"});

  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  if (!here)
    for (const std::string& name : forwarded_variables()) append(command, {"-x", name});
  append(command, split(a.mpirun_args, " \t\n"));
  command.push_back(this_program());
  append(command, program);
  return command;
}

std::string shell_quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

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

// Returns the processes of this program that mpirun has started on this host. (With remote hosts, mpirun also has children of other
// programs.)
std::vector<pid_t> local_ranks(pid_t mpirun) {
  std::vector<pid_t> ranks;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", mpirun), error)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child; children >> child;)
      if (std::filesystem::read_symlink(fmt::format("/proc/{}/exe", child), error) == this_program()) ranks.push_back(child);
  }
  return ranks;
}

// Forwards a signal to stop. A rank that receives it informs the other ranks. The second time, or if no rank runs here, mpirun ends them.
void pass_on_stop(pid_t mpirun, bool first) {
  const std::vector<pid_t> ranks = local_ranks(mpirun);
  if (!first || ranks.empty()) kill(mpirun, SIGTERM);
  for (const pid_t rank : ranks) kill(rank, SIGTERM);
}

// Runs mpirun and returns its exit status, or 128 + the signal that ended it.
int run_mpirun(std::vector<std::string>& command) {
  const std::string mpirun = find_mpirun();
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);

  sigset_t waited, before;
  sigemptyset(&waited);
  // A signal that is ignored, as under nohup, must stay ignored: if blocked, sigwait would still see it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&waited, signal);
  }
  std::signal(SIGCHLD, SIG_DFL);
  sigaddset(&waited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &waited, &before);
  const pid_t child = fork();
  if (child < 0) throw IoError(fmt::format("fork: {}; end other programs", std::strerror(errno)));
  if (child == 0) {
    setpgid(0, 0);  // so that Ctrl-C reaches only this process
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, 0);
    execv(mpirun.c_str(), argv.data());
    tell("starling: error: {}: {}\n", mpirun, std::strerror(errno));
    _exit(127);
  }
  for (bool first = true;;) {
    int signal = 0, status = 0;
    sigwait(&waited, &signal);
    if (signal != SIGCHLD) {
      pass_on_stop(child, first);
      first = false;
    } else if (waitpid(child, &status, WNOHANG) == child && (WIFEXITED(status) || WIFSIGNALED(status))) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

void run_launch(const CLI::App& verb, const LaunchArguments& a) {
  std::vector<std::string> command = build_command(a, program_of(verb, a));
  if (a.dry_run) {
    std::vector<std::string> words;
    for (const std::string& word : command) words.push_back(shell_quoted(word));
    std::cout << fmt::format("{}\n", fmt::join(words, " "));
    return;
  }
  if (const int status = run_mpirun(command); status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_launch(CLI::App& app, std::vector<std::string> behind_dashes) {
  auto* verb = app.add_subcommand("launch", "Run a verb as several processes (ranks), on this host or on several, with mpirun");
  auto a = std::make_shared<LaunchArguments>();
  a->program = std::move(behind_dashes);
  verb->add_option("-n,--ranks", a->ranks,
                   "Number of ranks; default: what --hosts or --hostfile has room for, in a Slurm job its tasks, else one for each core")
      ->check(CLI::Range(1, 100000))
      ->type_name("N");
  verb->add_option("--hosts", a->hosts, "Hosts with their numbers of ranks, for example alpha:2,beta:2; they need ssh and this program")
      ->type_name("LIST");
  verb->add_option("--hostfile", a->hostfile, "The same as a file of mpirun: one host a line, 'alpha slots=2'; without slots: its cores")
      ->type_name("FILE");
  verb->add_option(
          "--bind", a->bind,
          "core = each rank has cores of its own (with --hosts: all hosts are taken to be like this one); none = the ranks of a host "
          "share its cores; default: core on this host alone if there are enough, else none, in a Slurm job as Slurm says")
      ->type_name("core|none")
      ->check(
          [](const std::string& word) {
            return word == "core" || word == "none" ? "" : fmt::format("{} is not allowed; choose core or none", in_quotes(word));
          },
          "");
  verb->add_option("--mpirun-args", a->mpirun_args, "More arguments for mpirun, separated by blanks; they come last and win")
      ->type_name("TEXT");
  verb->add_flag("--dry-run", a->dry_run, "Print the command instead of running it");
  verb->add_option("verb", a->unmarked, "The verb that every rank runs, and its arguments")->type_name("-- VERB ARGUMENT...");
  verb->allow_extras();
  verb->footer("Example: starling launch -n 2 -- train -c run.yml");
  verb->callback([verb, a] { run_launch(*verb, *a); });
}

}  // namespace starling
