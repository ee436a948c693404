// Tells systemd, or whoever else watches the process in its way, how far it is: one datagram to the socket that NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace starling {

// A line NAME=VALUE for each thing to tell, as in sd_notify(3): "READY=1". Nothing happens where nobody asked for it.
void tell_service_manager(const std::string& lines);

}  // namespace starling
