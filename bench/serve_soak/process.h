// The server under test: started, ended and killed, with the model directory that it watches.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client.h"

namespace soak {

inline std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Process {
 public:
  // Works in `directory`, with a copy of the model.
  Process(std::string program, const std::string& model, std::string directory)
      : program_(std::move(program)), directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
    std::filesystem::copy(model, model_path(), std::filesystem::copy_options::recursive);
    std::filesystem::remove(model_path() + "/manifest.json");  // files of a directory with one must be as it says
    weights_ = text_of_file(model_path() + "/model.safetensors");
  }
  ~Process() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
  }

  // Waits until it listens; false if it does not come up. The port is the same at all starts. `log`: in the directory.
  bool start(const std::string& options, const std::string& log = "access.log") {
    const std::string err = path("err" + std::to_string(++starts_));
    pid_ = fork();
    if (pid_ == 0) {
      const int fd = open(err.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666), none = open("/dev/null", O_RDWR);
      dup2(none, 0), dup2(none, 1), dup2(fd, 2);
      const std::string command = "exec '" + program_ + "' serve --listen 127.0.0.1:" + std::to_string(port_) + " --model en-de='" +
                                  model_path() + "' --access-log '" + path(log) + "' " + options;
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    const std::string mark = "listening at http://127.0.0.1:";
    for (int i = 0; i < 600; ++i, usleep(100'000)) {
      const std::string said = text_of_file(err);
      if (const size_t at = said.find(mark); at != std::string::npos) {
        port_ = std::atoi(said.c_str() + at + mark.size());
        ++generation_;
        up_ = true;
        return true;
      }
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) return pid_ = 0, false;
    }
    return false;
  }
  void signal(int number) const { kill(pid_, number); }
  // Ends it and gives its exit status; -1: by a signal; -2: not within two minutes.
  int end(int number) {
    up_ = false, ++generation_;
    kill(pid_, number);
    int status = 0;
    for (int i = 0; i < 1200; ++i, usleep(100'000))
      if (waitpid(pid_, &status, WNOHANG) == pid_) return pid_ = 0, WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return -2;
  }
  // Whether it has ended by itself.
  bool dead() {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
    return pid_ <= 0;
  }
  // Another file with the same weights, or with half of them.
  void replace_model(bool broken) const {
    std::ofstream(model_path() + "/new", std::ios::binary) << (broken ? weights_.substr(0, weights_.size() / 2) : weights_);
    std::filesystem::rename(model_path() + "/new", model_path() + "/model.safetensors");
  }
  // The model's file becomes shorter and whole again, in place, while the server reads it.
  void cut_model_short() const {
    signal(SIGHUP);
    for (int i = 0; i < 50; ++i) {
      std::ofstream(model_path() + "/model.safetensors", std::ios::binary)
          .write(weights_.data(), static_cast<std::streamsize>(weights_.size() / 2));
      usleep(1000);
      std::ofstream(model_path() + "/model.safetensors", std::ios::binary) << weights_;
      usleep(1000);
    }
  }
  int64_t resident_mib() const {
    std::ifstream in("/proc/" + std::to_string(pid_.load()) + "/statm");
    int64_t all = 0, resident = 0;
    in >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE) >> 20;
  }
  // What it has said on standard error, of all starts.
  std::string said() const {
    std::string all;
    for (int i = 1; i <= starts_; ++i) all += text_of_file(path("err" + std::to_string(i)));
    return all;
  }
  int port() const { return port_; }
  bool up() const { return up_; }
  int generation() const { return generation_; }
  // Whether it is up and has been since; a client may also begin while it is being ended, before the next one listens.
  bool same_since(int generation) const { return up_ && generation == generation_; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string model_path() const { return path("model"); }
  const std::string program_, directory_;
  std::string weights_;
  std::atomic<pid_t> pid_{0};
  std::atomic<int> port_{0}, generation_{0};
  std::atomic<bool> up_{false};
  int starts_ = 0;
};

}  // namespace soak
