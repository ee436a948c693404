#include "interop/import_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/resource_error.h"
#include "base/system_reason.h"
#include "base/task_progress.h"

namespace starling {
namespace {

constexpr size_t kMostMessage = 4096;  // bytes
constexpr int kLookMilliseconds = 20;
constexpr int kNice = 10;  // below the threads that translate

// What follows vfork() in a process with threads: system calls only.
[[noreturn]] void become(const std::vector<char*>& argv, uint64_t memory, int messages) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpriority(PRIO_PROCESS, 0, kNice);
  const rlimit data{memory, memory}, no_core{0, 0};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which reserve memory beyond any limit
  setrlimit(RLIMIT_DATA, &data);
#endif
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_FSIZE, &data);
  if (const int null = open("/dev/null", O_RDWR); null >= 0) {
    dup2(null, 0);
    dup2(null, 1);
  }
  dup2(messages, 2);
  execv(argv[0], argv.data());
  _exit(127);
}

// The process, and the end of the pipe that its messages come from.
class ImportProcess {
 public:
  ImportProcess(std::vector<std::string> command, uint64_t memory) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw IoError(fmt::format("pipe: {}", system_reason(errno)));
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = vfork();  // which copies nothing of a large server, and holds no other thread up
    if (process_ == 0) become(argv, memory, ends[1]);
    const int error = errno;
    close(ends[1]);
    messages_ = ends[0];
    fcntl(messages_, F_SETFL, O_NONBLOCK);
    if (process_ < 0) {
      close(messages_);
      throw ResourceError(fmt::format("cannot start a process to import a model: {}; stop other programs", system_reason(error)));
    }
  }
  ~ImportProcess() {
    if (!ended_) {
      kill(process_, SIGKILL);
      waitpid(process_, &how_, 0);
    }
    close(messages_);
  }
  ImportProcess(const ImportProcess&) = delete;
  ImportProcess& operator=(const ImportProcess&) = delete;

  // Returns whether it ended within the time.
  bool wait(double seconds) {
    const double until = steady_seconds() + seconds;
    while (!ended_ && steady_seconds() < until) {
      pollfd file{messages_, POLLIN, 0};
      poll(&file, 1, kLookMilliseconds);
      if (file.revents & POLLHUP) usleep(kLookMilliseconds * 1000 / 10);  // it is about to end
      ended_ = waitpid(process_, &how_, WNOHANG) == process_;
      read_messages();
    }
    return ended_;
  }
  int how() const { return how_; }
  const std::string& message() const { return message_; }

 private:
  void read_messages() {
    char block[1024];
    for (ssize_t n; (n = read(messages_, block, sizeof block)) > 0;)
      message_.append(block, std::min(static_cast<size_t>(n), kMostMessage - message_.size()));
  }

  pid_t process_;
  int messages_, how_ = 0;
  bool ended_ = false;
  std::string message_;
};

}  // namespace

ImportLimits import_limits(uint64_t bytes) {
  constexpr uint64_t kSpare = uint64_t{512} << 20, kTimes = 8;  // packed weights may have four times their bytes, and are read and written
  constexpr double kSpareSeconds = 60, kBytesPerSecond = 1 << 20;
  return {kSpare + kTimes * bytes, kSpareSeconds + static_cast<double>(bytes) / kBytesPerSecond};
}

uint64_t bytes_of_files(FileSystem& files, const std::string& path) {
  constexpr int kDepth = 4;
  const auto below = [&](const auto& self, const std::string& at, int depth) -> uint64_t {
    const FileInfo info = files.info(at);
    if (info.kind == FileKind::file) return info.size;
    uint64_t bytes = 0;
    if (info.kind == FileKind::directory && depth < kDepth)
      for (const std::string& name : files.list(at)) bytes += self(self, join_path(at, name), depth + 1);
    return bytes;
  };
  return below(below, path, 0);
}

void import_in_process(const std::string& program, const std::string& from, const std::string& output, const ImportLimits& limits) {
  ImportProcess process({program, "import", "-o", output, "--", from}, limits.memory);
  if (!process.wait(limits.seconds))
    throw DataError(fmt::format("{}: the import took longer than {:.0f} s; try 'starling import' by hand", from, limits.seconds));
  const int how = process.how();
  if (WIFSIGNALED(how))
    throw DataError(fmt::format("{}: the import was ended by signal {} ({}); it may take {} MiB", from, WTERMSIG(how),
                                strsignal(WTERMSIG(how)), limits.memory >> 20));
  if (WEXITSTATUS(how) == 0) return;
  constexpr std::string_view kBegin = "starling: error: ";
  std::string why = process.message();
  if (const size_t at = why.find(kBegin); at != std::string::npos) why.erase(0, at + kBegin.size());
  while (why.ends_with('\n')) why.pop_back();
  if (why.empty()) why = fmt::format("{}: the import ended with status {}", from, WEXITSTATUS(how));
  if (WEXITSTATUS(how) == 2) throw ConfigError(why);
  if (WEXITSTATUS(how) == 1)
    why = fmt::format("{}: the import failed, perhaps for want of memory: it may take {} MiB", from, limits.memory >> 20);
  throw DataError(why);
}

}  // namespace starling
