// A TCP client that sends what it is told, whole or broken, and reads HTTP answers. And the server as a process.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace soak {

using Json = nlohmann::json;

inline double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Answer {
  int status = 0;          // 0: none came
  std::string head, body;  // the head in lower case
  Json json() const { return Json::parse(body, nullptr, false); }
};

class Client {
 public:
  // Connects; closed() if that fails. Sending and receiving take at most `patience` seconds each.
  explicit Client(int port, double patience = 60) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval t{static_cast<time_t>(patience),
              static_cast<suseconds_t>(1e6 * (patience - static_cast<double>(static_cast<time_t>(patience))))};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port)), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) hang_up();
  }
  Client(Client&& other) noexcept : fd_(other.fd_), rest_(std::move(other.rest_)) { other.fd_ = -1; }
  Client& operator=(Client&& other) noexcept {
    std::swap(fd_, other.fd_), std::swap(rest_, other.rest_);
    return *this;
  }
  ~Client() { hang_up(); }

  bool closed() const { return fd_ < 0; }
  bool send(std::string_view bytes) {
    while (!bytes.empty() && !closed()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return !closed();
  }
  // The next answer on this connection; `bodiless`: to a request that gets none (HEAD).
  Answer receive(bool bodiless = false) {
    Answer a;
    size_t end;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return a;
    a.head = rest_.substr(0, end + 2), rest_.erase(0, end + 4);
    for (char& c : a.head) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const size_t at = a.head.find("\r\ncontent-length: "), blank = a.head.find(' ');
    const size_t size = bodiless || at == std::string::npos ? 0 : std::strtoul(a.head.c_str() + at + 18, nullptr, 10);
    while (rest_.size() < size)
      if (!more()) return a;
    a.body = rest_.substr(0, size), rest_.erase(0, size);
    a.status = blank == std::string::npos ? 0 : std::atoi(a.head.c_str() + blank);
    return a;
  }
  // Whether the other side has closed or answered, without waiting.
  bool ended() const {
    char c;
    const ssize_t n = recv(fd_, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  // Closes; `reset`: as a machine does that has crashed.
  void hang_up(bool reset = false) {
    const linger now{1, 0};
    if (reset && fd_ >= 0) setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  bool more() {
    char block[65536];
    const ssize_t n = closed() ? 0 : recv(fd_, block, sizeof block, 0);
    if (n > 0) rest_.append(block, static_cast<size_t>(n));
    return n > 0;
  }
  int fd_;
  std::string rest_;
};

inline std::string request(const std::string& method, const std::string& path, const std::string& type, const std::string& body,
                           bool close = false) {
  std::string r = method + " " + path + " HTTP/1.1\r\nHost: soak\r\n";
  if (close) r += "Connection: close\r\n";
  if (!type.empty()) r += "Content-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return r + "\r\n" + body;
}

}  // namespace soak
