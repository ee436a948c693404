// A listening TCP socket.
#pragma once

#include <string>

namespace starling {

// Listens at "HOST:PORT" ("[::1]:5000" for IPv6; port 0: a free one) and gives the socket, which does not block. ConfigError when the text
// is no address or the system refuses it.
int listen_at(const std::string& address);

// The port of a listening socket.
int port_of(int socket);

}  // namespace starling
