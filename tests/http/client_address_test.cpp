// Who is taken for the client, where proxies and clients tell addresses.
#include "http/client_address.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

std::string client(const std::string& peer, const std::string& told, const std::vector<std::string>& proxies) {
  return forwarded_client(peer, {{"host", "x"}, {"x-forwarded-for", told}}, proxies);
}

TEST(ClientAddress, IsTheOtherEndUnlessThatIsAProxyOfOurs) {
  EXPECT_EQ(client("1.2.3.4", "9.9.9.9", {}), "1.2.3.4");
  EXPECT_EQ(client("1.2.3.4", "9.9.9.9", {"127.0.0.1"}), "1.2.3.4");
  EXPECT_EQ(client("127.0.0.1", "9.9.9.9", {"127.0.0.1"}), "9.9.9.9");
  EXPECT_EQ(forwarded_client("127.0.0.1", {}, std::vector<std::string>{"127.0.0.1"}), "127.0.0.1");
  EXPECT_EQ(client("::ffff:127.0.0.1", "::ffff:9.9.9.9", {"127.0.0.1"}), "9.9.9.9");  // a socket of both kinds
}

TEST(ClientAddress, IsWhatTheOutermostProxySawWhateverTheClientWrote) {
  const std::vector<std::string> proxies{"127.0.0.1", "10.0.0.1"};
  EXPECT_EQ(client("127.0.0.1", "6.6.6.6, 127.0.0.1, 9.9.9.9, 10.0.0.1", proxies), "9.9.9.9");
  EXPECT_EQ(client("127.0.0.1", "10.0.0.1,127.0.0.1", proxies), "10.0.0.1");
  EXPECT_EQ(client("127.0.0.1", "9.9.9.9, unknown", proxies), "127.0.0.1");
  EXPECT_EQ(client("127.0.0.1", "<script>", proxies), "127.0.0.1");
  EXPECT_EQ(client("127.0.0.1", "2001:DB8::0:1", proxies), "2001:db8::1");
  EXPECT_EQ(forwarded_client("127.0.0.1", {{"x-forwarded-for", "6.6.6.6"}, {"x-forwarded-for", "9.9.9.9"}}, proxies), "9.9.9.9");
}

TEST(ClientAddress, LimitsWholeNetworksOfIpv6) {
  EXPECT_EQ(network_of("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8:1:2::"), network_of("2001:db8:1:2:ffff::1"));
  EXPECT_NE(network_of("2001:db8:1:2::"), network_of("2001:db8:1:3::"));
}

TEST(ClientAddress, IsWrittenInOneWay) {
  EXPECT_EQ(plain_address("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(plain_address("0:0::1"), "::1");
  for (const char* bad : {"", "localhost", "127.0.0.1:80", "1.2.3", "[::1]", "1.2.3.4 "}) EXPECT_EQ(plain_address(bad), "") << bad;
}

}  // namespace
}  // namespace starling
