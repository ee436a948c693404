#include "serve/notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace starling {

void tell_service_manager(const std::string& lines) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (!path || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract socket, not a file
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  // A supervisor that does not read must not keep the server from ending.
  const timeval patience{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  // If this is lost, the supervisor notices by its own timeout; nothing can be done here.
  [[maybe_unused]] const ssize_t sent =
      sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
  close(fd);
}

}  // namespace starling
