// A listening TCP socket.
#pragma once

#include <string>

namespace starling {

// Listens at "HOST:PORT" ("[::1]:5000" for IPv6; port 0: a free one) and returns the non-blocking socket. Throws ConfigError if the address
// is invalid or the system refuses it.
int listen_at(const std::string& address);

// Returns the port of a listening socket.
int port_of(int socket);

}  // namespace starling
