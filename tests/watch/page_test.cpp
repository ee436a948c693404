// The page of `starling watch` in a real browser, served by the program's own handler from records on disk. Skipped without Chromium.
#include <gmock/gmock.h>

#include <mutex>
#include <optional>

#include "tests/serve/browser.h"
#include "tests/serve/client.h"
#include "tests/watch/run_directories.h"
#include "watch/watch.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class WatchPageTest : public test::RunDirectories {
 protected:
  void SetUp() override {
    if (test::Browser::program().empty()) GTEST_SKIP() << "without Chromium";
    test::RunDirectories::SetUp();
    record("good", {{"type", "start"}, {"step", 0}, {"parameters", 6'000'000}, {"backend", "cpu"}, {"pairs", 9}, {"ranks", 2}});
    for (int step = 50; step <= 500; step += 50) report("good", step, 8.0 - 0.01 * step);
    for (const int step : {100, 300, 500})
      record("good", {{"type", "validation"},
                      {"step", step},
                      {"scores", {{"bleu", step == 300 ? 31.5 : 20.0}}},
                      {"by_text", {{"en:de valid.en", {{"bleu", 12.5}}}}},
                      {"metric", "bleu"},
                      {"best", step <= 300},
                      {"seconds", 1}});
    record("good",
           {{"type", "communication"}, {"step", 500}, {"seconds", 10}, {"waited", {0.1, 4}}, {"bytes_per_update", {1048576, 2097152}}});
    record("good", {{"type", "stop"}, {"step", 500}, {"reason", "complete: train.max-steps 500"}});
    append("good/config.yml", "train:\n  max-steps: 500\n  seed: 1\n");
    append("good/train.log", "warning: <b>not bold</b>\n");
    append("good/validations/0000100.txt", "ein Hund\n");
    append("good/validations/0000300.txt", "ein Hund bellt\n");
    append("good/validations/sentences.json",
           R"({"sentences":[{"line":0,"text":"en:de valid.en","source":"a dog barks","reference":"ein Hund bellt laut"}]})");
    report("<script>bad()", 100, 9);
    record("<script>bad()", {{"type", "stop"}, {"step", 100}, {"reason", "error: rank 1 on beta does not answer"}});
    append("<script>bad()/config.yml", "train:\n  max-steps: 500\n  seed: 2\n");
    runs_.emplace(std::vector<std::string>{root_});
    pages_.emplace(WatchOptions{.runs = {}, .names = {}});
    server_.emplace(
        "127.0.0.1:0", HttpLimits{},
        [this](const std::shared_ptr<const HttpRequest>& request, const HttpServer::Reply& reply) {
          const std::lock_guard lock(mutex_);  // the server has several threads
          refresh(*runs_);
          pages_->show(runs_->view());
          reply(pages_->answer(*request));
          return HttpServer::Cancel();
        },
        plain_refusal);
    browser_.emplace();
  }
  void TearDown() override {
    browser_.reset();
    server_.reset();
    test::RunDirectories::TearDown();
  }
  void open() {
    browser_->call("Page.navigate", {{"url", "http://127.0.0.1:" + std::to_string(server_->port()) + "/"}});
    ASSERT_TRUE(browser_->becomes_true("window.starlingWatch && starlingWatch.runs.length === 2"));
  }
  std::string text(const std::string& selector) {
    return browser_->value("document.querySelector(" + Json(selector).dump() + ").innerText").get<std::string>();
  }

  std::mutex mutex_;
  std::optional<WatchedRuns> runs_;
  std::optional<WatchPages> pages_;
  std::optional<HttpServer> server_;
  std::optional<test::Browser> browser_;
};

TEST_F(WatchPageTest, LinksThePagesOfCleanings) {
  append("good/cleaned/report.html",
         "<!doctype html><title>Cleaned</title><p id=text>before</p><script>text.textContent = 'kept'</script>");
  append("good/cleaned/clean.json", "{}");
  runs_.emplace(std::vector<std::string>{root_});
  open();
  ASSERT_TRUE(browser_->becomes_true("!document.querySelector('#cleanings').hidden"));
  EXPECT_EQ(text("#cleanings"), "Cleaned text: good");
  browser_->value("document.querySelector('#cleanings a').click()");
  ASSERT_TRUE(browser_->becomes_true("document.title === 'Cleaned'"));
  EXPECT_EQ(text("#text"), "kept") << "its scripts work";
}

TEST_F(WatchPageTest, ShowsRunsChartsRanksSentencesAndLog) {
  open();
  const std::string table = text("#rows");
  EXPECT_THAT(table, HasSubstr("<script>bad()"));
  EXPECT_THAT(table, HasSubstr("failed"));
  EXPECT_THAT(table, HasSubstr("error: rank 1 on beta does not answer"));
  EXPECT_THAT(table, HasSubstr("finished"));
  EXPECT_THAT(table, HasSubstr("BLEU 31.5 at 300"));
  browser_->value("[...document.querySelectorAll('#rows tr')].find(row => row.innerText.includes('good')).click()");
  EXPECT_THAT(text("#charts"), HasSubstr("best 31.5 at update 300"));
  EXPECT_THAT(text("#awaited"), HasSubstr("the others wait for rank 0"));
  EXPECT_THAT(text("#rank-rows"), HasSubstr("2 MiB"));
  EXPECT_THAT(text("#sentence-list"), HasSubstr("ein Hund bellt"));
  EXPECT_THAT(text("#sentence-list"), HasSubstr("Sentence 1 en:de valid.en"));
  EXPECT_THAT(text("#sentence-list"), HasSubstr("a dog barks"));
  EXPECT_THAT(text("#facts"), HasSubstr("en:de valid.en: BLEU 12.5"));
  EXPECT_EQ(browser_->value("document.querySelector('#sentence-list mark').innerText"), "bellt");
  EXPECT_THAT(text("#log"), HasSubstr("<b>not bold</b>"));
  EXPECT_THAT(text("#settings"), HasSubstr("train.seed"));
  EXPECT_THAT(text("#settings"), Not(HasSubstr("train.max-steps"))) << "it does not differ";
  EXPECT_EQ(browser_->value("typeof bad"), "undefined");
  EXPECT_GT(browser_->value("document.querySelectorAll('#charts path.line').length").get<int>(), 3);
  EXPECT_EQ(browser_->value("[...document.querySelectorAll('#charts h3')].map(title => title.innerText).join(', ')"),
            "Training loss nats per target token, Validation: BLEU 0 to 100, higher is better, Learning rate, "
            "Efficiency share of the time not waiting");
}

// Translations are kept only if a run is told to.
TEST_F(WatchPageTest, SaysHowToSeeSentences) {
  open();
  const std::string choose = "[...document.querySelectorAll('#rows tr')].find(row => row.innerText.includes('bad')).click()";
  browser_->value(choose);
  EXPECT_TRUE(browser_->value("document.querySelector('#sentences').hidden").get<bool>()) << "it has no validation text";
  append("<script>bad()/config.yml", "valid:\n  source: v.en\n  target: v.de\n");
  ASSERT_TRUE(browser_->becomes_true("!document.querySelector('#sentences').hidden"));
  EXPECT_THAT(text("#sentence-text"), HasSubstr("valid.keep-translations: true"));
  append("<script>bad()/config.yml", "  keep-translations: true\n");
  ASSERT_TRUE(browser_->becomes_true("document.querySelector('#sentence-text').innerText.includes('have been kept yet')"));
}

TEST_F(WatchPageTest, FollowsARunThatGoesOn) {
  open();
  record("good", {{"type", "start"}, {"step", 500}});
  report("good", 550, 1.25);
  ASSERT_TRUE(browser_->becomes_true("document.querySelector('#rows').innerText.includes('1.25')"));
  EXPECT_THAT(text("#rows"), HasSubstr("silent"));  // the records are of 10 o'clock
}

TEST_F(WatchPageTest, IsUsableOnAPhoneAndByKeyboard) {
  browser_->call("Emulation.setDeviceMetricsOverride", {{"width", 360}, {"height", 740}, {"deviceScaleFactor", 1}, {"mobile", true}});
  open();
  EXPECT_LE(browser_->value("document.documentElement.scrollWidth").get<int>(), 360);
  browser_->value("document.querySelector('#charts svg[tabindex]').focus()");
  browser_->press("Home");
  const std::string first = text("#charts .reading");
  browser_->press("ArrowRight");
  EXPECT_NE(text("#charts .reading"), first);
  EXPECT_THAT(first, HasSubstr("Update 50:"));
}

// The same page as one file.
TEST_F(WatchPageTest, AReportNeedsNoServer) {
  append("report.html", report_page(*runs_));
  server_.reset();
  browser_->call("Page.navigate", {{"url", "file://" + path("report.html")}});
  ASSERT_TRUE(browser_->becomes_true("window.starlingWatch && starlingWatch.runs.length === 2"));
  EXPECT_THAT(text("#rows"), HasSubstr("BLEU 31.5 at 300"));
}

}  // namespace
}  // namespace starling
