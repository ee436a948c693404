// Answers that are written while the client reads them, over real sockets.
#include "http/http_stream.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/serve/client.h"

namespace starling {
namespace {

// A server whose requests are answered by a stream, which a test writes.
class HttpStreamTest : public testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    server_.emplace(
        "127.0.0.1:0", limits,
        [this](std::shared_ptr<const HttpRequest>, HttpServer::Reply reply) -> HttpServer::Cancel {
          reply({200, "", "text/plain", {}, stream_});
          ++asked_;
          return [this] { ++cancelled_; };
        },
        plain_refusal);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()) + "/"; }
  void wait_for(const std::atomic<int>& count) {
    for (int i = 0; i < 5000 && count == 0; ++i) server_->watch(), usleep(1000);
    EXPECT_EQ(count, 1);
  }

  // Lets a client ask and read the beginning of the stream.
  void begin(BareClient& client) {
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(asked_);
    stream_->write("begun");
    EXPECT_TRUE(client.receives("begun"));
  }

  std::shared_ptr<HttpStream> stream_ = std::make_shared<HttpStream>();
  std::atomic<int> asked_{0}, cancelled_{0};
  std::optional<HttpServer> server_;
};

TEST_F(HttpStreamTest, SendsWhatIsWrittenWhenItIsWritten) {
  start();
  BareClient client(server_->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for(asked_);
  std::string sent;
  for (const std::string part : {"one", "two", "three"}) {
    stream_->write(part);
    sent += part;
    EXPECT_TRUE(client.receives(part)) << part;  // before the next one is written
    for (int i = 0; i < 1000 && !stream_->caught_up(); ++i) usleep(1000);
    EXPECT_TRUE(stream_->caught_up());
  }
  stream_->end();
  stream_->write("too late");
  EXPECT_TRUE(client.receives("\r\n0\r\n\r\n"));
  EXPECT_EQ(client.received().find("too late"), std::string::npos);
  server_.reset();
  EXPECT_EQ(cancelled_, 0);
}

TEST_F(HttpStreamTest, TakesLongBodiesFromManyWrites) {
  start();
  std::string whole;
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) {
      const std::string part = std::to_string(i) + std::string(static_cast<size_t>(i % 700), 'x');
      whole += part;
      stream_->write(part);
    }
    stream_->end();
  });
  const ClientAnswer answer = ask(url());
  writer.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.size(), whole.size());
  EXPECT_TRUE(answer.body == whole);
}

TEST_F(HttpStreamTest, IsCancelledWhenTheClientGoes) {
  start();
  {
    BareClient client(server_->port());
    begin(client);
    server_->watch();
    EXPECT_EQ(cancelled_, 0);
  }
  wait_for(cancelled_);
  stream_->write("nobody reads this");
  stream_->end();
}

// A client may wait for the server, but not the server for the client.
TEST_F(HttpStreamTest, OnlyTheClientsTimeIsLimited) {
  start({.request_seconds = 1});
  BareClient client(server_->port());
  begin(client);
  for (int i = 0; i < 150; ++i) server_->watch(), usleep(10000);
  EXPECT_EQ(cancelled_, 0);
  stream_->write("late");
  EXPECT_TRUE(client.receives("late"));
  stream_->write(std::string(64 << 20, 'x'));  // more than sockets hold, and the client reads no further
  EXPECT_FALSE(stream_->caught_up());
  for (int i = 0; i < 300 && cancelled_ == 0; ++i) server_->watch(), usleep(10000);
  EXPECT_EQ(cancelled_, 1);
}

TEST_F(HttpStreamTest, EndsInTheMiddleWithTheServer) {
  start();
  BareClient client(server_->port());
  begin(client);
  EXPECT_EQ(server_->waiting(), 1);
  server_.reset();
  EXPECT_EQ(cancelled_, 1);
  stream_->write("more");
}

TEST_F(HttpStreamTest, ClientsOfTheFirstVersionGetItToo) {
  start();
  stream_->write("all of it");
  stream_->end();
  BareClient client(server_->port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.receives("all of it"));
}

}  // namespace
}  // namespace starling
