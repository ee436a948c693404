#include "http/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/ascii.h"
#include "base/error.h"
#include "base/system_reason.h"

namespace starling {
namespace {

constexpr int kBacklog = 1024;  // connections that may wait to be accepted

struct HostPort {
  std::string host, port;
};

HostPort split(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort parts{address.substr(0, colon), colon == std::string::npos ? "" : address.substr(colon + 1)};
  const bool bracketed = parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']';
  if (bracketed) parts.host = parts.host.substr(1, parts.host.size() - 2);
  const bool number = !parts.port.empty() && parts.port.size() <= 5 && std::all_of(parts.port.begin(), parts.port.end(), is_ascii_digit) &&
                      std::stoi(parts.port) <= 65535;
  if (parts.host.empty() || !number || (!bracketed && parts.host.find(':') != std::string::npos))
    throw ConfigError(
        fmt::format("--listen {}: is not a valid address; write HOST:PORT, for example 127.0.0.1:5000 or [::1]:5000", address));
  return parts;
}

}  // namespace

int listen_at(const std::string& address) {
  const HostPort parts = split(address);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found))
    throw ConfigError(fmt::format("--listen {}: the host {} is not known ({}); name an address of this machine", address, parts.host,
                                  gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
    const std::string reason = system_reason(errno);
    if (fd >= 0) close(fd);
    throw ConfigError(fmt::format("--listen {}: {}; choose another address or port, or stop the program that uses it", address, reason));
  }
  return fd;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  CHECK(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace starling
