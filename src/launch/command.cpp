#include "launch/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/affinity.h"
#include "base/error.h"

extern char** environ;

namespace starling {
namespace {

int ranks_of_slurm() {
  const char* tasks = std::getenv("SLURM_NTASKS");
  return tasks ? std::atoi(tasks) : 0;
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

}  // namespace

std::vector<std::string> split_words(const std::string& text, const char* separators) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string program_of(const std::string& process, std::error_code& error) {
  std::string path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error).string();
  if (const std::string gone = " (deleted)"; path.ends_with(gone)) path.resize(path.size() - gone.size());
  return path;
}

std::string this_program() {
  std::error_code error;
  std::string path = program_of("self", error);
  if (error) throw IoError(fmt::format("/proc/self/exe: {}; mount /proc, or start ranks with mpirun directly", error.message()));
  return path;
}

std::vector<std::string> launch_command(const LaunchOptions& a, const std::vector<std::string>& program) {
  const std::vector<LaunchHost>& hosts = a.hosts;
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
  append(command, split_words(a.mpirun_args, " \t\n"));
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

}  // namespace starling
