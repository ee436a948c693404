#include "launch/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/messages.h"
#include "base/this_host.h"
#include "launch/commands.h"
#include "launch/mpirun.h"
#include "launch/restarts.h"

namespace starling {
namespace {

constexpr CommandLimits kAnswer{.run_s = 20, .end_s = 1};

bool is_here(const LaunchHost& host) { return host.name == "localhost" || host.name == this_host(); }

// Asks twice, since a host may be busy. Returns a signal to stop that came during this, or 0.
int ask(const LaunchHost& host, bool& answers) {
  answers = is_here(host);
  std::vector<std::string> command = ssh_command();
  command.insert(command.end(), {host.name, "true"});
  for (int i = 0; i < 2 && !answers; ++i) {
    std::vector<CommandEnd> ends;
    if (const int signal = run_to_end({command}, kAnswer, CommandOutput::kept, ends); signal != 0) return signal;
    answers = ends[0].status == 0 && !ends[0].late;
  }
  return 0;
}

// Takes the hosts that answer, and as many ranks as they have room for. Returns a signal to stop that came during this, or 0. Where mpirun
// is told of another program than ssh in its own way, all are taken to answer.
int take_hosts_that_answer(const LaunchOptions& all, int layout_ranks, LaunchOptions& now) {
  now = all;
  if (all.mpirun_args.find("plm_rsh_agent") != std::string::npos) return 0;
  now.hosts.clear();
  int room = 0;
  bool known = true;
  for (const LaunchHost& host : all.hosts) {
    bool answers = false;
    if (const int signal = ask(host, answers); signal != 0) return signal;
    if (!answers) {
      tell("starling: launch: {} does not answer and is left out\n", host.name);
      continue;
    }
    now.hosts.push_back(host);
    room += host.slots;
    known = known && host.slots > 0;
  }
  if (now.hosts.size() < all.hosts.size() && known && (all.ranks == 0 || all.ranks > room)) now.ranks = whole_layouts(room, layout_ranks);
  return 0;
}

}  // namespace

int supervise(const LaunchOptions& options, const std::vector<std::string>& program, const Supervision& supervision) {
  LaunchOptions now = options;
  RestartPolicy policy(supervision.restarts, supervision.pause_seconds);
  // Rank 0 saves on the first host. If that is this one, a directory that is not there has no checkpoint.
  const bool here = options.hosts.empty() ? !std::getenv("SLURM_JOB_ID") : is_here(options.hosts.front());
  const auto newest = [&]() -> std::optional<int64_t> {
    if (supervision.run_directory.empty()) return std::nullopt;
    const std::optional<int64_t> update = newest_checkpoint(supervision.run_directory);
    return update || !here ? update : -1;
  };
  policy.begin(newest());
  for (;;) {
    const MpirunEnd end = run_mpirun(launch_command(now, program), supervision.grace_seconds);
    if (end.status == 0 || end.stopped || supervision.restarts == 0) return end.status;
    const std::optional<int64_t> update = newest();
    const RestartPolicy::Decision decision = policy.after(end.status, update);
    if (!decision.restart) {
      tell("starling: launch: not started again: {}\n", decision.why);
      return end.status;
    }
    tell("starling: launch: ended ({}); restart {} of {} in {:g} s, from {}\n", decision.why, policy.restarts(), supervision.restarts,
         decision.pause_seconds, update && *update >= 0 ? fmt::format("the checkpoint of update {}", *update) : "the newest checkpoint");
    if (const int signal = pause_for(decision.pause_seconds); signal != 0) return 128 + signal;
    if (const int signal = take_hosts_that_answer(options, supervision.layout_ranks, now); signal != 0) return 128 + signal;
    if (now.hosts.empty() && !options.hosts.empty()) {
      tell("starling: launch: not started again: no host answers\n");
      return end.status;
    }
  }
}

}  // namespace starling
