#include "evaluation/validation_script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/task_progress.h"

extern char** environ;

namespace starling {
namespace {

constexpr size_t kKept = size_t{64} << 10;  // bytes of output that are kept, its end
constexpr int kLookMs = 100;

// A variable in the environment of a script, which everything that it starts inherits. Its name differs from that of any other script: a
// shell keeps one variable of a name, and a script may train another model.
std::string new_mark() {
  static std::atomic<int64_t> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();  // containers repeat the numbers of processes
  return fmt::format("STARLING_SCRIPT_{}_{}_{}=1", getpid(), ++count, now);
}

// Returns the processes that have this variable: what a script has started, also in the background and in sessions of its own.
std::vector<pid_t> marked_processes(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ptr != name.data() + name.size()) continue;
    std::ifstream file(at->path() / "environ", std::ios::binary);  // of others' processes it cannot be read
    const std::string variables = '\0' + std::string(std::istreambuf_iterator<char>(file), {});
    if (variables.find('\0' + mark + '\0') != std::string::npos) found.push_back(process);
  }
  return found;
}

void end_marked_processes(const std::string& mark) {
  constexpr double kSeconds = 2;  // within which what is killed is gone
  const double until = steady_seconds() + kSeconds;
  for (;;) {
    const std::vector<pid_t> left = marked_processes(mark);
    for (const pid_t process : left) kill(process, SIGKILL);
    if (left.empty() || steady_seconds() > until) return;
    usleep(10'000);
  }
}

// A running script. At the end of this it is killed, if it has not ended, and so is everything that it has started.
class Script {
 public:
  Script(const std::string& command, const std::vector<std::string>& arguments) : mark_(new_mark()) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    read_ = ends[0];
    std::vector<std::string> words{"sh", "-c", command + " \"$@\"", "sh"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<char*> variables{mark_.data()};
    for (char** each = environ; *each; ++each) variables.push_back(*each);
    variables.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, usual;  // signals that this process ignores or blocks are the script's own affair
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawn(&process_, "/bin/sh", &actions, &attributes, argv.data(), variables.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
      close(read_);
      throw std::system_error(error, std::generic_category(), "/bin/sh");
    }
  }
  ~Script() {
    kill(-process_, SIGKILL);
    if (!ended_) waitpid(process_, nullptr, 0);
    close(read_);
    end_marked_processes(mark_);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  // Waits a little for output; returns false when it has ended.
  bool look() {
    pollfd ready{read_, POLLIN, 0};
    // What it wrote before its end is still there when it has ended.
    if (!ended_ && waitpid(process_, &status_, WNOHANG) == process_) ended_ = true;
    if (open_ && poll(&ready, 1, ended_ ? 0 : kLookMs) > 0) {
      char part[4096];
      const ssize_t count = read(read_, part, sizeof part);
      if (count > 0) output_.append(part, static_cast<size_t>(count));
      if (output_.size() > 2 * kKept) output_.erase(0, output_.size() - kKept);
      open_ = count > 0 || (count < 0 && errno == EINTR);
      return true;
    }
    if (!ended_ && !open_) usleep(1000 * kLookMs);
    return !ended_;
  }
  int status() const { return status_; }
  const std::string& output() const { return output_; }

 private:
  std::string mark_;
  pid_t process_ = 0;
  int read_ = -1, status_ = 0;
  bool open_ = true, ended_ = false;
  std::string output_;
};

// Returns the number at the end of the last line that is not blank.
std::optional<double> last_number(const std::string& output) {
  const size_t end = output.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return std::nullopt;
  const size_t before = output.find_last_of(" \t\n=:", end);
  const char* const begin = output.data() + (before == std::string::npos ? 0 : before + 1);
  double value = 0;
  const auto [at, error] = std::from_chars(begin + (*begin == '+'), output.data() + end + 1, value);
  if (error != std::errc() || at != output.data() + end + 1 || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

ScriptResult run_validation_script(const std::string& command, const std::vector<std::string>& arguments, double seconds,
                                   const std::function<bool()>& stop) {
  const double start = steady_seconds();
  try {
    Script script(command, arguments);
    while (script.look()) {
      if (stop && stop()) return {{}, "it was interrupted", true};
      if (steady_seconds() - start > seconds) return {{}, fmt::format("it ran for more than {:.0f} s and was killed", seconds)};
    }
    const int status = script.status();
    if (WIFSIGNALED(status)) return {{}, fmt::format("it was ended by signal {}", WTERMSIG(status))};
    if (WEXITSTATUS(status) != 0) return {{}, fmt::format("it ended with status {}", WEXITSTATUS(status))};
    const std::optional<double> score = last_number(script.output());
    if (!score) return {{}, "the last line that it printed does not end with a number"};
    return {score, ""};
  } catch (const std::system_error& e) {
    return {{}, fmt::format("it cannot be started: {}", e.what())};
  }
}

}  // namespace starling
