// Determines where a request came from, for the access log and the rate limits per address: the peer of its connection or, if the peer is
// one of our proxies, the address that the proxy reports.
#pragma once

#include <span>
#include <string>

#include "http/http.h"

namespace starling {

// Returns the last address of X-Forwarded-For that does not belong to a proxy, provided that all addresses after it do. Whatever a client
// writes there precedes what the proxies append. `peer` is the other end of the connection; header names are in lower case.
std::string forwarded_client(const std::string& peer, const NamedValues& headers, std::span<const std::string> proxies);

// Returns an address in the form used for comparison: "::ffff:1.2.3.4" becomes "1.2.3.4". Returns "" if it is not an IP address.
std::string plain_address(const std::string& address);

// Returns the range of addresses that one client controls: an IPv4 address itself, or the 64-bit network of an IPv6 address.
std::string network_of(const std::string& address);

}  // namespace starling
