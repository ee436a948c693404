#include "http/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace starling {

std::string plain_address(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  char text[INET6_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return address;
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1) return "";
  if (IN6_IS_ADDR_V4MAPPED(&six))
    inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
  else
    inet_ntop(AF_INET6, &six, text, sizeof text);
  return text;
}

std::string network_of(const std::string& address) {
  in6_addr six{};
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1) return address;
  std::memset(&six.s6_addr[8], 0, 8);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &six, text, sizeof text);
  return std::string(text) + "/64";
}

std::string forwarded_client(const std::string& peer, const NamedValues& headers, std::span<const std::string> proxies) {
  const std::string plain = plain_address(peer);
  std::string client = plain.empty() ? peer : plain;
  if (proxies.empty()) return client;
  std::string told;
  for (const auto& [name, value] : headers)
    if (name == "x-forwarded-for") told += (told.empty() ? "" : ",") + value;
  while (!told.empty() && std::find(proxies.begin(), proxies.end(), client) != proxies.end()) {
    const size_t comma = told.rfind(',');
    std::string last = told.substr(comma == std::string::npos ? 0 : comma + 1);
    told.resize(comma == std::string::npos ? 0 : comma);
    std::erase(last, ' ');
    const std::string before = plain_address(last);
    if (before.empty()) break;
    client = before;
  }
  return client;
}

}  // namespace starling
