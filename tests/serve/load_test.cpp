// The load that bench_serve makes: every request is counted once, at the asked rate, whatever the server does.
#include "bench/load.h"

#include <gmock/gmock.h>

#include <atomic>

#include "base/error.h"
#include "http/http.h"
#include "tests/serve/client.h"

namespace starling {
namespace {

class LoadTest : public testing::Test {
 protected:
  LoadTest()
      : server_(
            "127.0.0.1:0", {},
            [this](std::shared_ptr<const HttpRequest> r, HttpServer::Reply reply) -> HttpServer::Cancel {
              const auto json = nlohmann::json::parse(r->body);
              const int64_t number = json["q"].is_array() ? 0 : ++requests_;
              large_ += json["q"].is_array() && json["q"].size() == 20;
              languages_ok_ = languages_ok_ && json["source"] == "en" && json["target"] == "de";
              reply({every_ > 0 && number % every_ == 1 ? 429 : 200, "{}", "application/json", {}});
              return nullptr;
            },
            nullptr) {
    target_.url = "http://127.0.0.1:" + std::to_string(server_.port()), target_.source = "en", target_.target = "de";
    target_.sentences = {"one", "two"};
  }
  std::atomic<int64_t> requests_{0}, large_{0};
  std::atomic<bool> languages_ok_{true};
  int64_t every_ = 0;
  LoadTarget target_;
  HttpServer server_;
};

TEST_F(LoadTest, CountsEveryRequest) {
  every_ = 4;
  const LoadResult lone = lone_load(target_, 8);
  EXPECT_EQ(lone.sent, 8);
  EXPECT_EQ(lone.answered.size(), 6u);
  EXPECT_EQ(lone.refused.at(429), 2);
  const int64_t before = requests_;
  const LoadResult open = open_load(target_, 2000, 0.5, 7);
  EXPECT_EQ(requests_ - before, open.sent);
  EXPECT_EQ(static_cast<int64_t>(open.answered.size()) + open.refused.at(429), open.sent);
  EXPECT_NEAR(static_cast<double>(open.sent), 1000, 150);  // Poisson: 32 is one standard deviation
  EXPECT_TRUE(languages_ok_);
  EXPECT_GT(full_load(target_, 0.2).answered.size(), 10u);
}

TEST_F(LoadTest, AsksForManySentencesBeside) {
  const LoadResult r = open_load(target_, 100, 0.3, 1, 20);
  EXPECT_EQ(r.beside, large_);
  EXPECT_GT(r.beside, 0);
  EXPECT_EQ(static_cast<int64_t>(r.answered.size()), r.sent);
}

TEST_F(LoadTest, SaysWhereNobodyAnswers) {
  target_.url = "http://127.0.0.1:1";
  try {
    lone_load(target_, 1);
    FAIL();
  } catch (const IoError& e) {
    EXPECT_STREQ(e.what(), "http://127.0.0.1:1: no answer; check the address, --source and --target");
  }
}

TEST(LoadResults, AreRanksAndRates) {
  LoadResult r{.seconds = 2, .answered = {0.1, 0.2, 0.3, 0.4}};
  EXPECT_EQ(r.percentile(0.5), 0.2);
  EXPECT_EQ(r.percentile(0.51), 0.3);
  EXPECT_EQ(r.percentile(0.99), 0.4);
  EXPECT_EQ(r.percentile(0), 0.1);
  EXPECT_EQ(r.goodput(0.3), 1.5);
  EXPECT_EQ(r.goodput(0.05), 0);
  EXPECT_EQ(LoadResult{}.percentile(0.5), 0);
}

}  // namespace
}  // namespace starling
