#include "launch/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/system_reason.h"
#include "launch/blocked_signals.h"
#include "launch/command.h"

namespace starling {
namespace {

constexpr size_t kMostOutput = 64 << 10;
constexpr size_t kReads = 256;       // of 4 KiB from one command before the others have their turn
constexpr int kTick = 100;           // ms, between looks at what is running
constexpr double kDyingSeconds = 2;  // within which what is killed is gone

using CommandClock = std::chrono::steady_clock;
CommandClock::time_point after(double seconds) {
  return CommandClock::now() + std::chrono::duration_cast<CommandClock::duration>(std::chrono::duration<double>(seconds));
}

// The signals to stop, and the end of a child, which are read from a file while this exists.
class CaughtSignals {
 public:
  CaughtSignals() : file_(signalfd(-1, &blocked_.set(), SFD_CLOEXEC | SFD_NONBLOCK)) {
    if (file_ < 0) throw IoError(fmt::format("signalfd: {}", system_reason(errno)));
  }
  ~CaughtSignals() { close(file_); }
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;
  int file() const { return file_; }
  const sigset_t& before() const { return blocked_.before(); }
  // Returns a signal to stop that has come, or 0.
  int to_stop() const {
    signalfd_siginfo info{};
    int signal = 0;
    while (read(file_, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) signal = static_cast<int>(info.ssi_signo);
    return signal;
  }

 private:
  const BlockedSignals blocked_;
  const int file_;
};

std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child; file >> child;) found.insert(child);
  }
  return found;
}

// While this exists, processes whose parents have ended become children of this process. At the end those that it had not before are
// killed, with what they have started in turn.
class Adoption {
 public:
  Adoption() : before_(children()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Adoption() {
    for (const auto until = after(kDyingSeconds); CommandClock::now() < until;) {
      std::set<pid_t> left = children();
      std::erase_if(left, [&](pid_t child) { return before_.contains(child); });
      if (left.empty()) break;
      for (const pid_t child : left) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, WNOHANG);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

 private:
  const std::set<pid_t> before_;
};

// A command that has been started, in a process group of its own: this process alone decides what a signal to stop ends.
class RunningCommand {
 public:
  RunningCommand(const std::vector<std::string>& command, const CaughtSignals& signals, bool keeps_errors) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw IoError(fmt::format("pipe: {}", system_reason(errno)));
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.data()));
    argv.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGINT);
      sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
      if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, 0);
      dup2(ends[1], 1);
      if (keeps_errors) dup2(ends[1], 2);
      execvp(argv[0], argv.data());
      _exit(kNoProgram);
    }
    const int error = errno;
    close(ends[1]);
    pipe_ = ends[0];
    fcntl(pipe_, F_SETFL, O_NONBLOCK);
    if (process_ < 0) throw IoError(fmt::format("cannot start a process: {}; stop other programs", system_reason(error)));
    setpgid(process_, process_);  // the child may not have come so far
  }
  ~RunningCommand() { close_pipe(); }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  int pipe() const { return pipe_; }  // -1: it writes nothing any more
  bool running() const { return process_ > 0; }
  void send(int signal) const {
    if (running()) kill(-process_, signal);
  }
  // Takes what it has written, and how it has ended.
  void look(CommandEnd& end, bool pass_on) {
    int how = 0;
    const bool over = running() && waitpid(process_, &how, WNOHANG) == process_;
    char block[4096];
    for (size_t i = 0; pipe_ >= 0 && i < kReads; ++i) {
      const ssize_t n = read(pipe_, block, sizeof block);
      if (n == 0) close_pipe();
      if (n <= 0) break;
      const std::string_view text(block, static_cast<size_t>(n));
      if (pass_on) std::cout << text << std::flush;
      end.output += text.substr(0, kMostOutput - std::min(kMostOutput, end.output.size()));
    }
    if (!over) return;
    process_ = 0;
    end.status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }

 private:
  void close_pipe() {
    if (pipe_ >= 0) close(pipe_);
    pipe_ = -1;
  }
  pid_t process_ = 0;  // 0: it has ended
  int pipe_ = -1;
};

}  // namespace

int run_to_end(const std::vector<std::vector<std::string>>& commands, const CommandLimits& limits, CommandOutput output,
               std::vector<CommandEnd>& ends) {
  ends.resize(commands.size());
  const CaughtSignals signals;
  const Adoption adoption;
  const bool pass_on = output == CommandOutput::passed_on;
  std::vector<std::unique_ptr<RunningCommand>> all;
  for (const auto& command : commands) all.push_back(std::make_unique<RunningCommand>(command, signals, !pass_on));
  enum { running, ending, killed } phase = running;
  int signal = 0;
  for (CommandClock::time_point until = after(limits.run_s);;) {
    std::vector<pollfd> files{{signals.file(), POLLIN, 0}};
    for (size_t i = 0; i < all.size(); ++i) {
      all[i]->look(ends[i], pass_on);
      if (all[i]->running()) files.push_back({all[i]->pipe(), POLLIN, 0});
    }
    if (files.size() == 1) return signal;
    const bool late = CommandClock::now() >= until;
    if (const int now = signals.to_stop(); now != 0) signal = now;
    if (phase == running && (late || signal != 0)) {
      for (size_t i = 0; i < all.size(); ++i) {
        ends[i].late = all[i]->running();
        all[i]->send(SIGINT);
      }
      phase = ending;
      until = after(limits.end_s);
    } else if (phase == ending && late) {
      for (const auto& command : all) command->send(SIGKILL);
      phase = killed;
    }
    poll(files.data(), files.size(), kTick);
  }
}

std::vector<std::string> ssh_command() {
  const char* agent = std::getenv("OMPI_MCA_plm_rsh_agent");
  std::vector<std::string> command = split_words(agent ? agent : "", " ");
  if (command.empty()) command = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  return command;
}

std::vector<CommandEnd> run_commands(const std::vector<std::vector<std::string>>& commands, const CommandLimits& limits,
                                     CommandOutput output) {
  std::vector<CommandEnd> ends;
  if (const int signal = run_to_end(commands, limits, output, ends); signal != 0) raise(signal);
  return ends;
}

}  // namespace starling
