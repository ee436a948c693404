// What the server refuses, gives up or puts off: deadlines, queues, keys, rates, clients that go.
#include <thread>

#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, EndsAtTheDeadline) {
  start({.deadline_seconds = 0});
  ClientAnswer answer;
  std::thread client([&] { answer = translate({{"q", std::vector<std::string>(100, std::string(900, 'x'))}}); });
  while (server_->waiting() == 0) usleep(100);
  for (int i = 0; i < 20000 && server_->waiting() > 0; ++i) {
    for (const auto& m : models_->all()) m->scheduler().expire(serve_seconds());
    usleep(1000);
  }
  client.join();
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(answer.json()["error"], "the translation was not finished before the deadline; send fewer texts at once, or try again later");
}

TEST_F(ServiceTest, SaysWhenToComeBackWhenTheQueueIsFull) {
  start({}, {.scheduler = {.queue_sentences = 5}});
  const ClientAnswer a = translate({{"q", {"a", "b", "c", "d", "e", "f"}}});
  EXPECT_EQ(a.status, 429);
  EXPECT_EQ(a.header("Retry-After"), "1");
  EXPECT_EQ(a.json()["error"], "0 sentences are waiting already; try again later");
  EXPECT_EQ(translate({{"q", {"a", "b", "c", "d", "e"}}}).status, 200);
}

TEST_F(ServiceTest, IsUnreadyWhileLoadingAndDraining) {
  start({}, {}, false);
  EXPECT_EQ(ask(url("/health")).status, 200);
  EXPECT_EQ(ask(url("/ready")).status, 503);
  ClientAnswer a = translate({{"q", "x"}});
  EXPECT_EQ(a.status, 503);
  EXPECT_EQ(a.header("Retry-After"), "5");
  models_->load();
  EXPECT_EQ(ask(url("/ready")).status, 200);
  EXPECT_EQ(translate({{"q", "x"}}).status, 200);
  service_->drain();
  EXPECT_EQ(ask(url("/ready")).json(), Json({{"error", "draining"}}));
  EXPECT_EQ(translate({{"q", "x"}}).status, 503);
  EXPECT_EQ(ask(url("/health")).status, 200);
}

TEST_F(ServiceTest, AsksForKeys) {
  start();
  // printf %s secret | sha256sum; printf %s twice | sha256sum
  service_->set_keys(
      ApiKeys::parse("ann 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n"
                     "bob 8dd9b7f7d87b8bd3a7d39f4a4d2c7d6c8d9b7f7d87b8bd3a7d39f4a4d2c7d6c8 2\n",
                     "keys"));
  EXPECT_EQ(translate({{"q", "x"}}).status, 403);
  EXPECT_EQ(translate({{"q", "x"}, {"api_key", "wrong"}}).json()["error"], "Invalid API key; send the api_key that you were given");
  EXPECT_EQ(translate({{"q", "x"}, {"api_key", "secret"}}).status, 200);
  EXPECT_EQ(ask(url("/translate"), {.body = "q=x&source=en&target=de", .headers = {"Authorization: Bearer secret"}}).status, 200);
  EXPECT_EQ(ask(url("/detect"), {.body = "q=x"}).status, 403);
  EXPECT_EQ(ask(url("/languages")).status, 200);
  EXPECT_THAT(log_text(), HasSubstr("\"key\":\"ann\""));
  EXPECT_THAT(log_text(), testing::Not(HasSubstr("secret")));
}

TEST_F(ServiceTest, LimitsKeys) {
  start();
  // printf %s secret | sha256sum
  service_->set_keys(ApiKeys::parse("ann 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b 2", "keys"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(translate({{"q", "x"}, {"api_key", "secret"}}).status, 200);
  const ClientAnswer slow = translate({{"q", "x"}, {"api_key", "secret"}});
  EXPECT_EQ(slow.status, 429);
  EXPECT_THAT(slow.header("Retry-After"), testing::AnyOf("30", "29", "28"));
  EXPECT_EQ(slow.json()["error"], "the key ann allows 2 requests per minute; try again later");
}

TEST_F(ServiceTest, LimitsAddressesWhereThereAreNoKeys) {
  start({.requests_a_minute = 2});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(translate({{"q", "x"}}).status, 200);
  const ClientAnswer slow = translate({{"q", "x"}});
  EXPECT_EQ(slow.status, 429);
  EXPECT_THAT(slow.header("Retry-After"), testing::AnyOf("30", "29", "28"));
  EXPECT_EQ(slow.json()["error"], "the server allows 2 requests per minute; try again later");
  EXPECT_EQ(ask(url("/detect"), {.body = "q=x"}).status, 429);
  EXPECT_EQ(ask_json(url("/v2/translate"), {{"text", {"x"}}, {"target_lang", "DE"}, {"source_lang", "EN"}}).json()["message"],
            "the server allows 2 requests per minute; try again later");
  EXPECT_EQ(ask(url("/languages")).status, 200);  // costs nothing
}

TEST_F(ServiceTest, RefusesMoreTextsThanSentencesEvenEmptyOnes) {
  start({.job = {.sentences = 10}});
  EXPECT_EQ(translate({{"q", std::vector<std::string>(10, "")}}).status, 200);
  const ClientAnswer a = translate({{"q", std::vector<std::string>(11, "")}});
  EXPECT_EQ(a.status, 400);
  EXPECT_EQ(a.json()["error"], "Invalid request: 11 texts exceed the limit of 10; send them in parts");
}

TEST_F(ServiceTest, DropsTheWorkOfAClientThatHasGone) {
  start({}, {.scheduler = {.rows = 4, .cache_bytes = 0}});
  BareClient client(server_->port());
  std::string body = "q=" + std::string(1000, 'x');
  for (int i = 0; i < 99; ++i) body += "%0A" + std::string(1000, 'x');
  body += "&source=en&target=de";
  client.send("POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const auto model = models_->find("en", "de");
  while (model->scheduler().requests() == 0) usleep(100);
  client.hang_up();
  // It is counted just behind its end, on the server's thread.
  const auto under_way = [&] { return model->scheduler().requests() > 0 || metrics_.value("starling_cancelled_total") == 0; };
  for (int i = 0; i < 20000 && under_way(); ++i) server_->watch(), usleep(100);
  EXPECT_EQ(model->scheduler().requests(), 0);
  EXPECT_EQ(model->scheduler().queued(), 0);
  EXPECT_EQ(metrics_.value("starling_cancelled_total"), 1);
  EXPECT_EQ(translate({{"q", "x"}}).status, 200);
}

}  // namespace
}  // namespace starling
