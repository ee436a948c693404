// The server's page in a real browser, by keyboard and pointer, against an API with known answers; and what a screen reader is told.
// Skipped where there is no Chromium.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "base/text_files.h"
#include "http/http_stream.h"
#include "serve/service.h"
#include "tests/serve/browser.h"
#include "tests/serve/client.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string page() { return read_text_file(STARLING_SOURCE_DIR "/src/serve/page/index.html"); }

// Answers as the server does; translations are the text with its words in the other order, aligned.
class PageTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test::Browser::program().empty()) GTEST_SKIP() << "without Chromium";
    server_.emplace(
        "127.0.0.1:0", HttpLimits{},
        [this](std::shared_ptr<const HttpRequest> r, HttpServer::Reply reply) -> HttpServer::Cancel {
          reply(answer(*r));
          return nullptr;
        },
        plain_refusal);
    browser_.emplace();
  }
  void TearDown() override {
    browser_.reset();
    server_.reset();
  }

  HttpResponse answer(const HttpRequest& r) {
    const std::lock_guard lock(mutex_);
    if (r.path == "/") {
      return {200, page(), "text/html; charset=utf-8", {{"Content-Security-Policy", kPagePolicy}}};
    }
    if (r.path == "/languages")
      return json({{{"code", "en"}, {"name", "English"}, {"targets", {"de"}}},
                   {{"code", "de"}, {"name", "German"}, {"targets", {"en", "fr"}}},
                   {{"code", "fr"}, {"name", "French"}, {"targets", Json::array()}}});
    if (r.path == "/frontend/settings")
      return json({{"charLimit", 60},
                   {"frontendTimeout", 100},
                   {"keyRequired", key_required_},
                   {"filesTranslation", true},
                   {"language", {{"source", {{"code", "en"}}}, {"target", {{"code", "de"}}}}}});
    if (r.path == "/translate_file") {
      Json fields;
      for (const auto& [name, value] : r.fields) fields[name] = value;
      requests_.push_back(fields);
      if (r.files.front().second == "bad.zip") return {400, R"({"error":"an archive"})", "application/json", {}};
      return json({{"translatedFileUrl", "http://other:1/download_file/12.a.txt"}});
    }
    requests_.push_back(Json::parse(r.body));
    if (busy_ > 0) {
      --busy_;
      return {429, R"({"error":"Too many requests"})", "application/json", {{"Retry-After", "1"}}};
    }
    const std::string q = requests_.back()["q"];
    if (q == "bad") return {400, R"({"error":"xx is not <b>supported</b>"})", "application/json", {}};
    const size_t space = q.find(' ');
    const std::string first = q.substr(0, space), second = space == std::string::npos ? "" : q.substr(space + 1);
    Json result{{"translatedText", second + " " + first}, {"alternatives", {"other " + q, "<i>third</i>"}}};
    if (requests_.back()["source"] == "auto") result["detectedLanguage"] = {{"confidence", 90}, {"language", "de"}};
    const size_t n = first.size(), m = second.size();  // ASCII only: bytes are UTF-16 units
    result["alignment"] = {{{n + 1, n + 1 + m}, {0, m}}, {{0, n}, {m + 1, m + 1 + n}}};
    if (first == "stream") {
      stream_ = std::make_shared<HttpStream>();
      stream_->write(
          "event: more\ndata: {\"index\":0,\"text\":\"one. \"}\n\nevent: preview\ndata: {\"index\":0,\"text\":\"tw\"}\n\nevent: mo");
      end_ = "re\ndata: {\"index\":0,\"text\":\"two.\"}\n\nevent: done\ndata: " + result.dump() + "\n\n";
      return {200, "", "text/event-stream", {}, stream_};
    }
    return json(result);
  }
  static HttpResponse json(const Json& j) { return {200, j.dump(), "application/json", {}}; }

  void open(const std::string& hash = "") {
    browser_->call("Page.navigate", {{"url", "http://127.0.0.1:" + std::to_string(server_->port()) + "/" + hash}});
    ASSERT_TRUE(browser_->becomes_true("document.querySelectorAll('#to option').length"));
  }
  std::string target() { return browser_->value("document.getElementById('target').textContent"); }
  bool shows(const std::string& text) {
    return browser_->becomes_true("document.getElementById('target').textContent === " + Json(text).dump());
  }
  // The words that are marked in the copy of the source, and in the translation.
  Json marked() {
    return browser_->value(
        "[[...document.querySelectorAll('#behind mark')].map(e => e.textContent), [...document.querySelectorAll('#target .on')].map(e => "
        "e.textContent)]");
  }
  std::string last_text() {
    const std::lock_guard lock(mutex_);
    return requests_.back()["q"];
  }
  // Sends the rest of the stream, or what `change` makes of it.
  void end_stream(const std::function<std::string(const std::string&)>& change = [](const std::string& rest) { return rest; }) {
    const std::lock_guard lock(mutex_);
    stream_->write(change(end_));
    stream_->end();
  }
  size_t requests() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

  std::mutex mutex_;
  std::vector<Json> requests_;
  int busy_ = 0;
  bool key_required_ = false;
  std::shared_ptr<HttpStream> stream_;  // of a text that begins with "stream"
  std::string end_;                     // what is missing of it
  std::optional<HttpServer> server_;
  std::optional<test::Browser> browser_;
};

TEST_F(PageTest, TranslatesWhileOneTypes) {
  open();
  EXPECT_EQ(browser_->value("document.activeElement.id"), "source");
  browser_->type("hello world");
  ASSERT_TRUE(shows("world hello"));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(requests_.back(), (Json{{"q", "hello world"},
                                      {"source", "en"},
                                      {"target", "de"},
                                      {"format", "text"},
                                      {"alternatives", 2},
                                      {"alignment", true},
                                      {"stream", true}}));
  }
  EXPECT_EQ(browser_->value("[...document.querySelectorAll('#alternatives li')].map(e => e.firstChild.textContent)"),
            (Json{"other hello world", "<i>third</i>"}));  // text, not markup
  EXPECT_EQ(browser_->value("document.getElementById('count').textContent"), "11 of 60 characters");
  browser_->value("document.getElementById('clear').click()");
  ASSERT_TRUE(shows(""));
  EXPECT_EQ(browser_->value("document.getElementById('others').hidden"), true);
  const size_t before = requests();
  browser_->type("two words, and then many more: more than the sixty that it takes");
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('error').textContent.includes('this server takes 60 characters')"));
  EXPECT_EQ(requests(), before);
}

TEST_F(PageTest, FilesAreDroppedAndFetched) {
  open();
  const auto drop = [&](const std::string& name) {
    browser_->value("(() => { const data = new DataTransfer(); data.items.add(new File(['a dog'], '" + name +
                    "')); for (const type of ['dragover', 'drop']) document.body.dispatchEvent(new DragEvent(type, {bubbles: true, "
                    "cancelable: true, dataTransfer: data})); })()");
  };
  drop("a.txt");
  ASSERT_TRUE(browser_->becomes_true("!document.getElementById('fetched').hidden"));
  EXPECT_EQ(browser_->value("document.getElementById('fetched').pathname"), "/download_file/12.a.txt");
  EXPECT_EQ(browser_->value("document.getElementById('fetched').textContent"), "Fetch the translation of a.txt");
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(requests_.back(), (Json{{"file", "a dog"}, {"source", "en"}, {"target", "de"}}));
  }
  drop("bad.zip");
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('error').textContent === 'an archive'"));
  EXPECT_EQ(browser_->value("document.getElementById('fetched').hidden"), true);
}

TEST_F(PageTest, TextsInLinksMayHaveSlashes) {
  open("#en/de/and/or%20that");
  ASSERT_TRUE(shows("that and/or"));
}

TEST_F(PageTest, ShowsSentencesAsTheyCome) {
  open("#en/de/stream%20house");
  ASSERT_TRUE(shows("one. tw"));
  EXPECT_EQ(browser_->value("document.getElementById('target').ariaBusy"), "true");
  EXPECT_EQ(browser_->value("document.getElementById('copy').disabled"), true);
  end_stream();
  ASSERT_TRUE(shows("house stream"));
  EXPECT_EQ(browser_->value("document.getElementById('target').ariaBusy"), nullptr);
  EXPECT_EQ(browser_->value("document.getElementById('copy').disabled"), false);
  // One that ends in its middle is told.
  browser_->value("document.getElementById('clear').click()");
  browser_->type("stream again");
  for (int i = 0; i < 5000 && last_text() != "stream again"; ++i) usleep(1000);
  ASSERT_TRUE(shows("one. tw"));
  end_stream(
      [](const std::string& rest) { return rest.substr(0, rest.find("\n\n") + 2) + "event: error\ndata: {\"error\":\"no time\"}\n\n"; });
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('error').textContent === 'no time'"));
}

TEST_F(PageTest, ShowsWhichWordsBelongTogether) {
  open("#en/de/red%20house");
  ASSERT_TRUE(shows("house red"));
  browser_->hover("document.querySelectorAll('#target .word')[0]");
  ASSERT_TRUE(browser_->becomes_true("document.querySelector('#behind mark')"));
  EXPECT_EQ(marked(), (Json{{"house"}, {"house"}}));
  // By keyboard in the translation, read aloud.
  browser_->value("document.getElementById('target').focus()");
  browser_->press("End");
  EXPECT_EQ(marked(), (Json{{"red"}, {"red"}}));
  EXPECT_EQ(browser_->value("document.getElementById('status').textContent"), "red: red");
  browser_->press("ArrowLeft");
  EXPECT_EQ(marked(), (Json{{"house"}, {"house"}}));
  // By the caret in the text.
  browser_->value("document.getElementById('source').focus(), document.getElementById('source').setSelectionRange(1, 1)");
  ASSERT_TRUE(browser_->becomes_true("document.querySelector('#target .on')?.textContent === 'red'"));
  // What is changed is no longer what was translated.
  browser_->type("x");
  EXPECT_EQ(marked()[0], Json::array());
}

TEST_F(PageTest, ChoosesLanguages) {
  open();
  EXPECT_EQ(browser_->value("[...document.querySelectorAll('#from option')].map(o => o.value)"), (Json{"auto", "en", "de"}));
  EXPECT_EQ(browser_->value("[...document.querySelectorAll('#to option')].map(o => o.value)"), (Json{"de"}));
  browser_->type("good day");
  ASSERT_TRUE(shows("day good"));
  browser_->value("document.getElementById('swap').click()");
  ASSERT_TRUE(shows("good day"));  // the translation is translated back
  EXPECT_EQ(browser_->value(
                "[document.getElementById('from').value, document.getElementById('to').value, document.getElementById('source').value]"),
            (Json{"de", "en", "day good"}));
  const auto choose = [&](const std::string& id, const std::string& code) {
    browser_->value("(s => { s.value = '" + code + "'; s.dispatchEvent(new Event('change')); })(document.getElementById('" + id + "'))");
  };
  choose("to", "fr");
  EXPECT_EQ(browser_->value("document.getElementById('swap').disabled"), true);  // nothing translates from French
  choose("from", "auto");
  EXPECT_EQ(browser_->value("[...document.querySelectorAll('#to option')].map(o => o.value)"), (Json{"en", "de", "fr"}));
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('found').textContent === 'Detected: German'"));
  EXPECT_EQ(browser_->value("document.getElementById('target').lang"), "fr");
}

TEST_F(PageTest, SaysWhatIsWrongAndTriesAgain) {
  open("#en/de/bad");
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('error').textContent"));
  EXPECT_EQ(browser_->value("document.getElementById('error').textContent"), "xx is not <b>supported</b>");
  EXPECT_EQ(browser_->value("document.getElementById('error').getAttribute('role')"), "alert");
  {
    const std::lock_guard lock(mutex_);
    busy_ = 1;
  }
  browser_->value("document.getElementById('clear').click()");
  browser_->type("try again");
  ASSERT_TRUE(shows("again try"));
  EXPECT_EQ(requests(), 3u);
  server_->cancel_all();
  const int port = server_->port();
  server_.reset();
  browser_->type("!");
  ASSERT_TRUE(browser_->becomes_true("document.getElementById('error').textContent.includes('cannot be reached')")) << port;
}

TEST_F(PageTest, AsksForAKeyWhereOneIsNeeded) {
  {
    const std::lock_guard lock(mutex_);
    key_required_ = true;
  }
  open();
  EXPECT_EQ(browser_->value("document.getElementById('key-line').hidden"), false);
  browser_->value("document.getElementById('key').value = 'secret'");
  browser_->type("with key");
  ASSERT_TRUE(shows("key with"));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(requests_.back()["api_key"], "secret");
}

// What assistive technology gets: every control has a role and a name.
TEST_F(PageTest, CanBeReadAloud) {
  open("#en/de/red%20house");
  ASSERT_TRUE(shows("house red"));
  std::vector<std::string> found;
  const Json tree = browser_->call("Accessibility.getFullAXTree");
  for (const Json& node : tree["nodes"]) {
    const std::string role = node.value("role", Json::object()).value("value", "");
    const std::string name = node.value("name", Json::object()).value("value", "");
    for (const char* control : {"combobox", "button", "textbox", "alert", "status", "group", "heading", "list", "form", "main", "region"})
      if (role == control) found.push_back(role + ": " + name);
    EXPECT_FALSE(name.empty() && (role == "button" || role == "combobox" || role == "textbox")) << node;
  }
  for (const char* control : {"combobox: From", "combobox: To", "button: Swap languages", "textbox: Text", "button: Clear",
                              "group: Translation", "button: Copy translation", "alert: ", "status: ", "heading: Other translations",
                              "button: Copy: <i>third</i>", "form: Translate", "region: Other translations"})
    EXPECT_THAT(found, testing::Contains(control));
  EXPECT_EQ(browser_->value("document.documentElement.lang"), "en");
  EXPECT_EQ(browser_->value("document.getElementById('target').lang"), "de");
  // The way of the tab key, without traps.
  std::vector<std::string> way;
  browser_->value("document.getElementById('from').focus()");
  for (int i = 0; i < 6; ++i) {
    way.push_back(browser_->value("document.activeElement.id"));
    browser_->call("Input.dispatchKeyEvent", {{"type", "rawKeyDown"}, {"key", "Tab"}, {"code", "Tab"}, {"windowsVirtualKeyCode", 9}});
    browser_->call("Input.dispatchKeyEvent", {{"type", "keyUp"}, {"key", "Tab"}, {"code", "Tab"}, {"windowsVirtualKeyCode", 9}});
  }
  EXPECT_EQ(way, (std::vector<std::string>{"from", "swap", "to", "source", "clear", "target"}));
}

TEST_F(PageTest, FitsAPhone) {
  browser_->call("Emulation.setDeviceMetricsOverride", {{"width", 360}, {"height", 740}, {"deviceScaleFactor", 2}, {"mobile", true}});
  open("#en/de/" + std::string(50, 'w') + "%20x");
  ASSERT_TRUE(shows("x " + std::string(50, 'w')));
  EXPECT_LE(browser_->value("document.documentElement.scrollWidth").get<int>(), 360);
  EXPECT_GT(browser_->value("document.getElementById('target').getBoundingClientRect().top").get<double>(),
            browser_->value("document.getElementById('source').getBoundingClientRect().bottom").get<double>());
  for (const char* id : {"from", "swap", "to", "clear", "copy"})
    EXPECT_GE(browser_->value("document.getElementById('" + std::string(id) + "').getBoundingClientRect().height").get<double>(), 43.9)
        << id;
}

TEST(Page, NeedsNothingFromOutside) {
  const std::string text = page();
  for (const char* outside : {"src=", "@import", "url(", "<link rel=\"stylesheet", "https://", "//cdn"})
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
  size_t addresses = 0;
  for (size_t at = text.find("http://"); at != std::string::npos; at = text.find("http://", at + 1)) ++addresses;
  EXPECT_EQ(addresses, 1u);  // the name space of the icon
}

}  // namespace
}  // namespace starling
