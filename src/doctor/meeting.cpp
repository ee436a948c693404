#include "doctor/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/messages.h"
#include "base/start_threads.h"
#include "base/this_host.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

// The numbers of this process's sockets.
std::set<std::string> own_sockets() {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string target = std::filesystem::read_symlink(file.path(), error).string();
    if (!error && target.starts_with("socket:[")) found.insert(target.substr(8, target.size() - 9));
  }
  return found;
}

// Reads an address as /proc/net/tcp has it: "0200000A:0401", bytes in the order of the machine, which is little-endian.
std::string readable_address(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != 8) return text;
  const auto address = static_cast<uint32_t>(std::stoul(text.substr(0, colon), nullptr, 16));
  return fmt::format("{}.{}.{}.{}, TCP port {}", address & 0xff, address >> 8 & 0xff, address >> 16 & 0xff, address >> 24,
                     std::stoul(text.substr(colon + 1), nullptr, 16));
}

// Looks at this process's connections until it is destroyed.
class ConnectionWatch {
 public:
  explicit ConnectionWatch(double patience_s)
      : thread_(start_thread("watching connections", [this, patience_s] { watch(std::chrono::duration<double>(patience_s)); })) {}
  ~ConnectionWatch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

 private:
  void watch(std::chrono::duration<double> patience) {
    std::unique_lock lock(mutex_);
    for (std::set<std::string> told; !wake_.wait_for(lock, patience, [&] { return over_; });)
      for (const std::string& address : unanswered_connections())
        if (told.insert(address).second)
          tell(
              "starling: doctor: {} gets no answer from {}: a firewall drops its packets, or that address is on a network that the two "
              "do not share\n",
              this_host(), address);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;  // after what it uses
};

}  // namespace

std::vector<std::string> unanswered_connections() {
  constexpr const char* kSynSent = "02";
  const std::set<std::string> own = own_sockets();
  std::vector<std::string> addresses;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  std::getline(table, line);  // the names of the columns
  while (std::getline(table, line)) {
    std::istringstream columns(line);
    std::string number, local, remote, state, queues, timer, retries, user, timeout, socket;
    columns >> number >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >> socket;
    if (state == kSynSent && own.contains(socket)) addresses.push_back(readable_address(remote));
  }
  return addresses;
}

World meet_ranks(double patience_s) {
  const ConnectionWatch watch(patience_s);
  return make_mpi_world();
}

}  // namespace starling
