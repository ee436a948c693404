// Reports the server's state to systemd or another supervisor with its protocol: one datagram to the socket that NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace starling {

// Sends lines NAME=VALUE as in sd_notify(3), such as "READY=1". Does nothing if NOTIFY_SOCKET is not set.
void tell_service_manager(const std::string& lines);

}  // namespace starling
