#include "launch/mpirun.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/messages.h"
#include "launch/blocked_signals.h"
#include "launch/command.h"
#include "launch/laboratory.h"

namespace starling {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEndSeconds = 5;      // that mpirun has to end its ranks before it is killed
constexpr double kLingerSeconds = 5;   // after which what is left is ended: mpirun without ranks here, or ranks without mpirun
constexpr double kOneStopSeconds = 2;  // within which a second signal is taken for the first: all processes of a job get it
constexpr int kRankLost = 5;           // exit status

std::string find_mpirun() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split_words(path ? path : "/usr/local/bin:/usr/bin:/bin", ":"))
    if (const std::string file = folder + "/mpirun"; access(file.c_str(), X_OK) == 0) return file;
  throw ConfigError("mpirun was not found on PATH; install Open MPI (apt-get install openmpi-bin)");
}

bool is_rank(pid_t process) {
  std::error_code error;
  const std::string program = program_of(std::to_string(process), error);
  return program == this_program() || is_laboratory(program);  // which a rank becomes if its verb is the laboratory's
}

// Returns the processes of this program that mpirun has started on this host. (With remote hosts, mpirun also has children of other
// programs.)
std::vector<pid_t> local_ranks(pid_t mpirun) {
  std::vector<pid_t> ranks;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", mpirun), error)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child; children >> child;)
      if (is_rank(child)) ranks.push_back(child);
  }
  return ranks;
}

// Forwards a signal to stop. A rank that receives it informs the other ranks. If none runs here, mpirun passes on SIGUSR1. The second time,
// mpirun ends all ranks.
void pass_on_stop(pid_t mpirun, bool first) {
  const std::vector<pid_t> ranks = local_ranks(mpirun);
  if (!first) kill(mpirun, SIGINT);
  if (first && ranks.empty()) kill(mpirun, SIGUSR1);
  for (const pid_t rank : ranks) kill(rank, SIGTERM);
}

// Whether mpirun, which blocks SIGTERM, was sent one.
bool told_to_stop(pid_t mpirun) {
  std::ifstream status(fmt::format("/proc/{}/status", mpirun));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("ShdPnd:")) return std::strtoull(line.c_str() + 7, nullptr, 16) >> (SIGTERM - 1) & 1;
  return false;
}

// Kills those of these ranks that outlive mpirun, which was killed.
void end_what_is_left(std::vector<pid_t> ranks) {
  const auto until = Clock::now() + std::chrono::duration<double>(kLingerSeconds);
  for (;;) {
    std::erase_if(ranks, [](pid_t rank) { return !is_rank(rank); });
    if (ranks.empty()) return;
    if (Clock::now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  tell("starling: launch: mpirun has ended, but ranks of this host have not; killing them\n");
  for (const pid_t rank : ranks) kill(rank, SIGKILL);
}

void end_all(pid_t mpirun) {
  for (const pid_t rank : local_ranks(mpirun)) kill(rank, SIGKILL);
  kill(mpirun, SIGKILL);
}

// Starts mpirun in a process group of its own, so that Ctrl-C reaches only this process, and without input. It would kill its ranks a
// second after SIGTERM, so that is blocked; its ranks unblock it.
pid_t start(const std::string& path, const std::vector<std::string>& command, const BlockedSignals& signals) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.data()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw IoError(fmt::format("cannot start a process: {}; stop other programs", std::strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGINT);
  sigset_t blocked = signals.before();
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (const int null = open("/dev/null", O_RDWR); null >= 0) dup2(null, 0);
  execvp(path.c_str(), argv.data());
  tell("starling: error: {}: {}\n", path, std::strerror(errno));
  _exit(127);
}

// Whether the child has ended, and how.
bool ended(pid_t child, int& status) {
  int how = 0;
  if (waitpid(child, &how, WNOHANG) != child || !(WIFEXITED(how) || WIFSIGNALED(how))) return false;
  status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  return true;
}

}  // namespace

MpirunEnd run_mpirun(const std::vector<std::string>& command, double grace_seconds) {
  constexpr double kTick = 0.5;
  const std::string mpirun = find_mpirun();
  const BlockedSignals signals;
  const pid_t child = start(mpirun, command, signals);
  MpirunEnd end;
  enum { running, stopping, ending } phase = running;
  bool lingers = false;
  int stop_signal = SIGTERM;  // or what came in its place
  std::vector<pid_t> ranks;   // that were seen last
  Clock::time_point until = Clock::time_point::max(), ranks_until = until, one_stop;
  const auto in = [](double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  while (!ended(child, end.status)) {
    const int signal = signals.wait(kTick);
    const bool late = Clock::now() >= until;
    const bool told = signal != 0 && signal != SIGCHLD, insists = signal == SIGINT || signal == SIGTERM;
    const bool again = phase == stopping && (!insists || Clock::now() < one_stop);
    if ((told && !again) || (phase == running && told_to_stop(child))) {
      end.stopped = true;
      if (told) stop_signal = signal;
      if (phase == running) one_stop = in(kOneStopSeconds);
      pass_on_stop(child, phase == running);
      if (phase == running && grace_seconds > 0) until = in(grace_seconds);
      if (phase != running) until = in(kEndSeconds);
      phase = phase == running ? stopping : ending;
    } else if (late && phase == stopping) {
      tell("starling: launch: the ranks have not ended within {:g} s (--grace): they are ended now\n", grace_seconds);
      pass_on_stop(child, false);
      phase = ending;
      until = in(kEndSeconds);
    } else if (late) {
      end_all(child);
      until = in(kEndSeconds);
    }
    // All ranks end together, but mpirun waits for minutes, or for ever, for a host that it cannot reach.
    if (std::vector<pid_t> now = local_ranks(child); !now.empty()) {
      ranks = std::move(now);
      ranks_until = in(kLingerSeconds);
    } else if (!lingers && phase != ending && Clock::now() >= ranks_until) {
      tell(
          "starling: launch: the ranks of this host have ended, but mpirun has not, perhaps because it cannot reach another host; killing "
          "it\n");
      end_all(child);
      lingers = true;
    }
  }
  end_what_is_left(std::move(ranks));
  if (end.stopped && end.status == 128 + SIGUSR1) end.status = 128 + stop_signal;  // ranks elsewhere got SIGUSR1
  if (lingers && !end.stopped) end.status = kRankLost;
  return end;
}

int pause_for(double seconds) {
  const BlockedSignals signals;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    if (left <= 0) return 0;
    if (const int signal = signals.wait(left); signal != 0 && signal != SIGCHLD) return signal;
  }
}

}  // namespace starling
