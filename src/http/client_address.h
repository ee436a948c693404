// Where a request came from, for the access log and the limits of addresses: the other end of its connection or, where that is a proxy of
// ours, the address that the proxy tells.
#pragma once

#include <span>
#include <string>

#include "http/http.h"

namespace starling {

// The last address of X-Forwarded-For that is none of the proxies', as long as each behind it is: whatever a client writes there stands
// before what the proxies add. `peer`: the other end of the connection. Header names are in lower case.
std::string forwarded_client(const std::string& peer, const NamedValues& headers, std::span<const std::string> proxies);

// An address as it is compared: "::ffff:1.2.3.4" is "1.2.3.4". "" for what is none.
std::string plain_address(const std::string& address);

// What one client has at its disposal: an address of IPv4, the network of an address of IPv6 (64 bits).
std::string network_of(const std::string& address);

}  // namespace starling
