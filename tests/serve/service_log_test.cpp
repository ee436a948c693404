// What the server counts and writes down, and what it does not.
#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, CountsAndLogsWhatIsRefusedBeforeItIsRead) {
  start();
  const std::string much(300000, 'x');
  const ClientAnswer libre = ask(url("/translate"), {.body = "q=" + much}), deepl = ask(url("/v2/translate"), {.body = "text=" + much});
  EXPECT_EQ(libre.status, 413);
  EXPECT_EQ(libre.json(), Json({{"error", "the request is larger than 200000 bytes; send it in parts"}}));
  EXPECT_EQ(deepl.status, 413);
  EXPECT_EQ(deepl.json(), Json({{"message", "the request is larger than 200000 bytes; send it in parts"}}));
  EXPECT_EQ(deepl.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(metrics_.value("starling_requests_total", "api=\"deepl_translate\",code=\"413\""), 1);
  EXPECT_EQ(metrics_.value("starling_rejected_total", "reason=\"body\""), 2);
  server_.reset();
  std::istringstream lines(log_text());
  for (const char* path : {"/translate", "/v2/translate"}) {
    std::string line;
    std::getline(lines, line);
    const Json entry = Json::parse(line);
    EXPECT_EQ(entry["path"], path);
    EXPECT_EQ(entry["status"], 413);
    EXPECT_EQ(entry["client"], "127.0.0.1");
  }
}

TEST_F(ServiceTest, LogsWithoutTextsUnlessAsked) {
  start();
  translate({{"q", "a private word"}});
  ask(url("/nothing"));
  server_.reset();
  const std::string text = log_text();
  EXPECT_THAT(text, testing::Not(HasSubstr("private")));
  const Json first = Json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["path"], "/translate");
  EXPECT_EQ(first["status"], 200);
  EXPECT_EQ(first["sentences"], 1);
  EXPECT_EQ(first["characters"], 14);
  EXPECT_EQ(first["source"], "en");
  EXPECT_EQ(first["client"], "127.0.0.1");
  EXPECT_THAT(text, HasSubstr("\"status\":404"));
}

TEST_F(ServiceTest, RepeatsLittleOfWhatItRefusesAndLogsNothingOfIt) {
  start();
  const std::string much(150000, 'x');
  for (const Json& request : {Json{{"q", "a"}, {"source", much}}, Json{{"q", "a"}, {"target", much}}, Json{{"q", "a"}, {"format", much}}}) {
    const ClientAnswer a = translate(request);
    EXPECT_EQ(a.status, 400);
    EXPECT_LT(a.body.size(), 600u);
  }
  const ClientAnswer a = ask(url("/translate"), {.body = "{\"" + much, .headers = {"Content-Type: application/json"}});
  EXPECT_EQ(a.status, 400);
  EXPECT_LT(a.body.size(), 600u);
  EXPECT_EQ(translate({{"q", "a"}, {"target", "some words"}}).json()["error"], "some words is not supported");
  server_.reset();
  EXPECT_THAT(log_text(), testing::Not(testing::AnyOf(HasSubstr("xx"), HasSubstr("some words"))));
}

TEST_F(ServiceTest, LogsTextsWhenAsked) {
  start({.log_texts = true});
  const Json answer = translate({{"q", "a private word"}}).json();
  server_.reset();
  const Json entry = Json::parse(log_text());
  EXPECT_EQ(entry["q"], Json({"a private word"}));
  EXPECT_EQ(entry["translated"], Json({answer["translatedText"]}));
}

TEST_F(ServiceTest, CountsForPrometheus) {
  start();
  translate({{"q", "a small house"}});
  translate({{"q", ""}});
  const ClientAnswer m = ask(url("/metrics"));
  EXPECT_EQ(m.type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line : {"starling_requests_total{api=\"translate\",code=\"200\"} 1",
                           "starling_requests_total{api=\"translate\",code=\"400\"} 1", "starling_rejected_total{reason=\"request\"} 1",
                           "starling_request_duration_seconds_count{api=\"translate\"} 2", "starling_queue_sentences 0", "starling_ready 1",
                           "starling_model_info{source=\"en\",target=\"de\",step=\"0\",precision=\"f32\"} 1"})
    EXPECT_THAT(m.body, HasSubstr(std::string("\n") + line + "\n"));
}

}  // namespace
}  // namespace starling
