// The HTTP layer over real sockets: what handlers get, limits, clients that go, are slow or send nonsense.
#include "http/http.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "tests/serve/client.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A server whose handler answers at once with what it got, or keeps the request of /later.
class HttpTest : public testing::Test {
 protected:
  void start(HttpLimits limits = {.body_bytes = 100000, .request_seconds = 60}) {
    server_.emplace(
        "127.0.0.1:0", limits,
        [this](std::shared_ptr<const HttpRequest> r, HttpServer::Reply reply) -> HttpServer::Cancel {
          if (r->path == "/throw") throw Error("the handler's words");
          if (r->path == "/large") {
            reply({200, std::string(32 << 20, 'x'), "text/plain", {}});
            return nullptr;
          }
          if (r->path == "/stop") {
            std::unique_lock lock(mutex_);
            ++stopped_;
            changed_.wait(lock, [&] { return go_on_; });
          }
          if (r->path == "/later") {
            const std::lock_guard lock(mutex_);
            kept_.push_back(std::move(reply));
            changed_.notify_all();
            return [this] {
              const std::lock_guard lock(mutex_);
              ++cancelled_;
            };
          }
          nlohmann::json json{
              {"method", r->method}, {"path", r->path}, {"body", r->body}, {"type", r->content_type()}, {"client", r->client}};
          json["fields"] = r->fields;
          json["x"] = r->header("x-some-header");
          reply({201, json.dump(), "application/json", {{"X-Back", "yes"}}});
          return nullptr;
        },
        plain_refusal);
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(server_->port()) + path; }
  // Waits until the handler keeps so many requests.
  void wait_for_kept(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return kept_.size() >= count; }));
  }
  int cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }
  // Of requests for /stop, how many have come; their handler goes on after go_on.
  int stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  void go_on() {
    const std::lock_guard lock(mutex_);
    go_on_ = true;
    changed_.notify_all();
  }
  // Clients whose large requests the handler stops at, one after the other: each has its own thread of the server's while there are any.
  std::vector<std::unique_ptr<BareClient>> stop_large_requests(int count) {
    std::vector<std::unique_ptr<BareClient>> clients;
    for (int i = 0; i < count; ++i) {
      const int before = stopped();
      clients.push_back(std::make_unique<BareClient>(server_->port()));
      clients.back()->send(
          "POST /stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 50000\r\n\r\n" +
          std::string(50000, 'x'));
      for (int wait = 0; stopped() == before && (wait < 50 || before == 0); ++wait) usleep(1000);
    }
    return clients;
  }
  // The server notices that a client goes, and not before.
  void expect_noticed(BareClient& client) {
    server_->watch();
    EXPECT_EQ(cancelled(), 0);
    client.hang_up();
    for (int i = 0; i < 2000 && cancelled() == 0; ++i) server_->watch(), usleep(1000);
    EXPECT_EQ(cancelled(), 1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HttpServer::Reply> kept_;
  int cancelled_ = 0, stopped_ = 0;
  bool go_on_ = false;
  std::optional<HttpServer> server_;
};

TEST_F(HttpTest, GivesTheHandlerTheWholeRequest) {
  start();
  const ClientAnswer a = ask(url("/a%20b?x=1&y=%C3%A4&x=2"),
                             {.body = "{\"a\":1}", .headers = {"Content-Type: Application/JSON; charset=utf-8", "X-Some-Header: v"}});
  EXPECT_EQ(a.status, 201);
  EXPECT_EQ(a.type, "application/json");
  EXPECT_EQ(a.header("X-Back"), "yes");
  EXPECT_EQ(a.json(), nlohmann::json({{"method", "POST"},
                                      {"path", "/a b"},
                                      {"body", "{\"a\":1}"},
                                      {"type", "application/json"},
                                      {"client", "127.0.0.1"},
                                      {"fields", NamedValues{{"x", "1"}, {"y", "ä"}, {"x", "2"}}},
                                      {"x", "v"}}));
}

TEST_F(HttpTest, TakesFormsApart) {
  start();
  const std::string value(30000, 'v');
  EXPECT_TRUE(ask(url("/"), {.body = "q=a+b%26&empty=&q=" + value + "&last=1"}).json()["fields"] ==
              nlohmann::json(NamedValues{{"q", "a b&"}, {"empty", ""}, {"q", value}, {"last", "1"}}));
  // As clients send it that do not escape what they should.
  EXPECT_TRUE(ask(url("/"), {.body = "q=<a href=\"x=1\">100% b</a>&&x&y=%C3%A4%zz"}).json()["fields"] ==
              nlohmann::json(NamedValues{{"q", "<a href=\"x=1\">100% b</a>"}, {"x", ""}, {"y", "ä%zz"}}));
  EXPECT_TRUE(ask(url("/?k=v"), {.form = {{"q", value + "\n\"x\""}, {"target", "de"}}}).json()["fields"] ==
              nlohmann::json(NamedValues{{"k", "v"}, {"q", value + "\n\"x\""}, {"target", "de"}}));
}

TEST_F(HttpTest, AnswersLaterFromAnotherThread) {
  start();
  ClientAnswer answer;
  std::thread client([&] { answer = ask(url("/later")); });
  wait_for_kept(1);
  EXPECT_EQ(server_->waiting(), 1);
  kept_[0]({200, "now", "text/plain", {}});
  kept_[0]({200, "twice", "text/plain", {}});  // ignored
  client.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "now");
}

TEST_F(HttpTest, KeepsManyRequestsWithoutAThreadForEach) {
  start();
  std::vector<std::unique_ptr<BareClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<BareClient>(server_->port()));
    ASSERT_TRUE(clients.back()->send("GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  }
  wait_for_kept(200);
  EXPECT_EQ(ask(url("/")).status, 201);  // others are answered meanwhile
  for (auto& reply : kept_) reply({200, "done", "text/plain", {}});
  for (auto& c : clients) EXPECT_THAT(c->receive(), HasSubstr("done"));
}

TEST_F(HttpTest, NoticesThatAClientHasGone) {
  start();
  BareClient gone(server_->port()), patient(server_->port());
  gone.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  patient.send("GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  wait_for_kept(2);
  expect_noticed(gone);
  for (auto& reply : kept_) reply({200, "late", "text/plain", {}});  // one of them goes nowhere
  EXPECT_THAT(patient.receive(), HasSubstr("late"));
}

TEST_F(HttpTest, RefusesBodiesThatAreTooLarge) {
  start();
  const ClientAnswer told = ask(url("/"), {.body = std::string(200000, 'x'), .headers = {"Content-Type: text/plain"}});
  EXPECT_EQ(told.status, 413);
  EXPECT_EQ(told.body, "the request is larger than 100000 bytes; send it in parts");
  // A client that waits for leave to send gets the answer in its place; who does not, after it has sent all.
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\nContent-Type: text/plain\r\n";
  BareClient careful(server_->port()), proxy(server_->port());
  careful.send(head + "Expect: 100-continue\r\n\r\n");
  EXPECT_THAT(careful.receive(), StartsWith("HTTP/1.1 413"));
  proxy.send(head + "\r\n");
  for (int i = 0; i < 10; ++i, usleep(20000)) ASSERT_TRUE(proxy.send(std::string(20000, 'x'))) << i;
  EXPECT_THAT(proxy.receive(), StartsWith("HTTP/1.1 413"));
  // In pieces, whose sum nobody knows before.
  BareClient chunked(server_->port());
  chunked.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n");
  const std::string piece = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(chunked.send(piece));
  chunked.send("0\r\n\r\n");
  EXPECT_THAT(chunked.receive(), StartsWith("HTTP/1.1 413"));
  // Without an end: cut off.
  BareClient endless(server_->port());
  endless.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n");
  int sent = 0;
  while (sent < 100000 && endless.send(piece)) ++sent;
  EXPECT_LT(sent, 100000);
  EXPECT_EQ(
      ask(url("/"), {.body = "x", .headers = {"Content-Length: 99999999999999999999", "Content-Type: text/plain"}, .timeout_ms = 2000})
              .status /
          100,
      4);
  EXPECT_EQ(ask(url("/")).status, 201);
}

TEST_F(HttpTest, BodiesTakeSoMuchMemoryTogether) {
  start({.body_bytes = 100000, .body_total_bytes = 150000});
  const auto status_of = [&](const Ask& what) { return ask(url("/"), what).status; };
  const Ask large{.body = std::string(80000, 'x'), .headers = {"Content-Type: text/plain"}};
  const Ask small{.body = std::string(1000, 'x'), .headers = {"Content-Type: text/plain"}};
  const std::string head = "POST /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\n";
  {
    // Has sent most of its body. On a busy machine the large one may be there first, and then this one is refused and comes again.
    std::optional<BareClient> one;
    for (int i = 0; i < 12 && (!one || status_of(large) == 201); ++i) {
      one.emplace(server_->port());
      one->send(head + "Content-Length: 90000\r\n\r\n" + std::string(89000, 'x'));
      usleep(1000 << i);
    }
    BareClient& slow = *one;
    EXPECT_EQ(status_of(large), 429);
    EXPECT_EQ(status_of(small), 201);
    // In pieces, of which nobody knows the sum before.
    BareClient chunked(server_->port());
    chunked.send(head + "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; ++i) chunked.send("4000\r\n" + std::string(0x4000, 'x') + "\r\n");
    EXPECT_EQ(status_of(small), 201);  // its pieces have been thrown away
    chunked.send("0\r\n\r\n");
    EXPECT_THAT(chunked.receive(), StartsWith("HTTP/1.1 429"));
    slow.send(std::string(1000, 'x'));
    wait_for_kept(1);
    EXPECT_EQ(status_of(large), 429);  // until the request is over
    kept_[0]({200, "done", "text/plain", {}});
    EXPECT_THAT(slow.receive(), HasSubstr("done"));
  }
  long status = 0;
  for (int i = 0; i < 20000 && status != 201; ++i, usleep(1000)) status = status_of(large);
  EXPECT_EQ(status, 201);
}

TEST_F(HttpTest, BodiesThatAreHeldBackKeepNobodyOut) {
  start({.body_bytes = 100000, .body_total_bytes = 150000});
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 70000\r\n\r\n";
  BareClient first(server_->port()), second(server_->port());
  const auto begin = std::chrono::steady_clock::now();
  for (BareClient* c : {&first, &second}) c->send(head + std::string(69000, 'x')), usleep(20000);
  for (int i = 0; i < 5; ++i) server_->watch(), usleep(1000);
  const auto newcomer = [&] { return ask(url("/"), {.body = std::string(30000, 'x'), .headers = {"Content-Type: text/plain"}}).status; };
  const long status = newcomer();
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(1)) {
    EXPECT_EQ(status, 429);  // they may take a second
  }
  std::atomic<bool> enough{false};
  std::thread watcher([&] {
    while (!enough) server_->watch(), usleep(1000);
  });
  EXPECT_EQ(first.receive(), "");  // comes back when it is cut off
  for (int i = 0; i < 20000 && newcomer() != 201; ++i) usleep(1000);
  EXPECT_EQ(newcomer(), 201);
  second.send(std::string(1000, 'x'));  // it was enough that one goes
  EXPECT_THAT(second.receive(), StartsWith("HTTP/1.1 201"));
  enough = true;
  watcher.join();
}

TEST_F(HttpTest, LargeRequestsThatTakeLongKeepNobodyWaiting) {
  start({.body_bytes = 100000});
  auto clients = stop_large_requests(8);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(ask(url("/"), {.timeout_ms = 20000}).status, 201);
  clients.pop_back();  // goes while it waits for its turn
  for (int i = 0; i < 20000 && server_->waiting() > 7; ++i) server_->watch(), usleep(1000);
  go_on();
  for (const auto& client : clients) EXPECT_THAT(client->receive(), StartsWith("HTTP/1.1 201"));
  EXPECT_EQ(stopped(), 7) << "a request that nobody waits for is not handled";
}

TEST_F(HttpTest, EndsWithLargeRequestsThatWait) {
  start({.body_bytes = 100000});
  const auto clients = stop_large_requests(4);
  EXPECT_EQ(stopped(), 2);
  std::thread later([&] { usleep(500000), go_on(); });
  server_.reset();
  later.join();
  EXPECT_EQ(stopped(), 2) << "what had not begun is forgotten";
  for (const auto& client : clients) client->receive();  // an answer or an end
}

TEST_F(HttpTest, TakesTheClientsAddressFromAProxy) {
  start({.proxies = {"127.0.0.1"}});
  EXPECT_EQ(ask(url("/"), {.headers = {"X-Forwarded-For: 6.6.6.6, 9.9.9.9"}}).json()["client"], "9.9.9.9");
  EXPECT_EQ(ask(url("/")).json()["client"], "127.0.0.1");
  start();
  EXPECT_EQ(ask(url("/"), {.headers = {"X-Forwarded-For: 6.6.6.6, 9.9.9.9"}}).json()["client"], "127.0.0.1");
}

TEST_F(HttpTest, RefusesBrokenForms) {
  start();
  const ClientAnswer a = ask(url("/"), {.body = "--b", .headers = {"Content-Type: multipart/form-data; boundary=b"}});
  EXPECT_EQ(a.status, 400);
  EXPECT_EQ(a.body, "the multipart form does not end with a line --b--; send it whole, with line breaks of CR and LF");
}

TEST_F(HttpTest, ClosesConnectionsWhoseRequestNeverEnds) {
  start({.request_seconds = 0});
  BareClient slow(server_->port());
  slow.send("GET / HTT");
  std::thread watcher([&] {
    for (int i = 0; i < 3000; ++i) server_->watch(), usleep(1000);
  });
  EXPECT_EQ(slow.receive(), "");  // comes back only when it is closed
  watcher.join();
}

TEST_F(HttpTest, CutsOffClientsThatDoNotFetchTheirAnswers) {
  start({.body_bytes = 100000, .request_seconds = 1});
  BareClient client(server_->port());
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 20000 && server_->waiting() == 0; ++i) usleep(1000);
  EXPECT_EQ(server_->waiting(), 1);
  for (int i = 0; i < 20000 && server_->waiting() > 0; ++i) server_->watch(), usleep(1000);
  EXPECT_EQ(server_->waiting(), 0);
}

TEST_F(HttpTest, NewcomersGetInHoweverManyConnectionsSayNothing) {
  start({.body_bytes = 100000, .connections = 20});
  BareClient waiting(server_->port());
  waiting.send("GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  wait_for_kept(1);
  std::vector<std::unique_ptr<BareClient>> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(std::make_unique<BareClient>(server_->port()));
  std::atomic<bool> enough{false};
  std::thread watcher([&] {
    while (!enough) server_->watch(), usleep(1000);
  });
  EXPECT_EQ(ask(url("/")).status, 201);
  enough = true;
  watcher.join();
  kept_[0]({200, "done", "text/plain", {}});  // whoever waits for an answer is left alone
  EXPECT_THAT(waiting.receive(), HasSubstr("done"));
}

TEST_F(HttpTest, WaitsAtItsEndForWhatHadComeOnly) {
  start();
  BareClient half(server_->port()), before(server_->port()), after(server_->port());
  half.send("GET / HTT");
  before.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_kept(1);
  server_->drain();
  after.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_kept(2);
  EXPECT_EQ(server_->waiting(), 1);
  kept_[0]({200, "done", "text/plain", {}});
  EXPECT_THAT(before.receive(), testing::AllOf(HasSubstr("Connection: close"), HasSubstr("done")));  // the connection ends, too
  for (int i = 0; i < 20000 && server_->waiting() > 0; ++i) usleep(1000);
  EXPECT_EQ(server_->waiting(), 0);
}

TEST_F(HttpTest, NoticesThatAClientHasGoneWithFurtherRequestsSent) {
  start();
  BareClient gone(server_->port());
  gone.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_kept(1);
  expect_noticed(gone);
}

TEST_F(HttpTest, TakesFormsApartThatComeByteByByte) {
  start();
  const NamedValues fields{{"q", "a b&"}, {"empty", ""}, {"target", "de"}};
  const std::string multipart =
      "--a-boundary-of-a-browser\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na "
      "b&\r\n--a-boundary-of-a-browser\r\nContent-Disposition: form-data; "
      "name=\"empty\"\r\n\r\n\r\n--a-boundary-of-a-browser\r\nContent-Disposition: form-data; "
      "name=\"target\"\r\n\r\nde\r\n--a-boundary-of-a-browser--\r\n";
  for (const auto& [type, body] : {std::pair<std::string, std::string>{"application/x-www-form-urlencoded", "q=a+b%26&empty=&target=de"},
                                   {"multipart/form-data; boundary=a-boundary-of-a-browser", multipart}}) {
    BareClient client(server_->port());
    const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: " + type;
    client.send(head + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
    for (const char c : body) client.send(std::string(1, c)), usleep(300);
    const std::string answer = client.receive();
    EXPECT_EQ(nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4))["fields"], nlohmann::json(fields));
  }
}

TEST_F(HttpTest, RefusesFormsOfVeryManyFields) {
  start();
  std::string body;
  for (int i = 0; i < 20000; ++i) body += "a&";
  const ClientAnswer a = ask(url("/"), {.body = body});
  EXPECT_EQ(a.status, 413);
  EXPECT_EQ(a.body, "the request has 20000 fields or more; send it in parts");
  EXPECT_EQ(ask(url("/"), {.body = body.substr(10)}).json()["fields"].size(), 19995u);
}

TEST_F(HttpTest, SurvivesNonsense) {
  start();
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 5000; ++i) many += "X-" + std::to_string(i) + ": " + std::string(50, 'v') + "\r\n";
  for (const std::string& nonsense : std::vector<std::string>{
           "\r\n\r\n", "\0\0\0\0", "GET", std::string(100000, 'A'), "GET " + std::string(100000, 'a') + " HTTP/1.1\r\n\r\n", many + "\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: "
           "30\r\n\r\n--b\r\nContent-Disposition: fo",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data\r\nContent-Length: 5\r\n\r\nhello",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\n%%%=&&=%"}) {
    BareClient client(server_->port());
    client.send(nonsense);
    client.hang_up();
  }
  EXPECT_EQ(ask(url("/")).status, 201);
}

TEST_F(HttpTest, AnExceptionOfTheHandlerIsStatus500) {
  start();
  const ClientAnswer a = ask(url("/throw"));
  EXPECT_EQ(a.status, 500);
  EXPECT_EQ(a.body, "the handler's words");
}

TEST_F(HttpTest, EndsWithRequestsWaiting) {
  start();
  BareClient client(server_->port());
  client.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_kept(1);
  server_.reset();
  EXPECT_EQ(cancelled(), 1);
  EXPECT_EQ(client.receive(), "");
  kept_[0]({200, "nobody", "text/plain", {}});
}

TEST(HttpServerTest, RefusesAddressesWithAdvice) {
  const auto complaint = [](const std::string& address) {
    try {
      HttpServer server(address, {}, nullptr, nullptr);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  const std::string form = ": is not a valid address; write HOST:PORT, for example 127.0.0.1:5000 or [::1]:5000";
  for (const std::string bad : {"5000", "127.0.0.1", "127.0.0.1:", ":5000", "127.0.0.1:70000", "::1:5000", "a:b"})
    EXPECT_EQ(complaint(bad), "--listen " + bad + form);
  EXPECT_THAT(complaint("no-such-host.invalid:5000"), HasSubstr("the host no-such-host.invalid is not known"));
  HttpServer first("127.0.0.1:0", {}, nullptr, nullptr);
  EXPECT_THAT(complaint("127.0.0.1:" + std::to_string(first.port())), HasSubstr("choose another address or port"));
}

}  // namespace
}  // namespace starling
