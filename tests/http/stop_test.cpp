// HTTP servers that end while their clients send.
#include <gtest/gtest.h>

#include <thread>

#include "http/http.h"
#include "tests/serve/client.h"

namespace starling {
namespace {

// libmicrohttpd 0.9.75 reads a null pointer if it refuses a head by itself, here one that is too large, once it has been told to stop.
TEST(HttpStop, ServersEndWhileClientsSendHeadsThatAreRefused) {
  const std::string much = "GET /" + std::string(60'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  for (int round = 0; round < 20; ++round) {
    auto server = std::make_unique<HttpServer>(
        "127.0.0.1:0", HttpLimits{}, [](std::shared_ptr<const HttpRequest>, HttpServer::Reply) { return nullptr; }, plain_refusal);
    std::vector<std::unique_ptr<BareClient>> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<BareClient>(server->port()));
    std::thread sender([&] {
      for (const auto& client : clients) client->send(much);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    server.reset();
    sender.join();
  }
}

}  // namespace
}  // namespace starling
