#pragma once

#include <string>

namespace starling {

/// The name of this host, "unnamed" if it has none.
std::string this_host();

}  // namespace starling
