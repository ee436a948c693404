// Translations through a third language, and many models with little memory.
#include <random>
#include <thread>

#include "serve/directions.h"
#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

// German and Italian into English, and English into French and Italian.
class PivotTest : public ServiceTest {
 protected:
  void start_pivot(ServiceOptions options = {}, ModelOptions model = {}) {
    options.job.pivots = {"en"};
    start(options, model, true, {"de-en=" + kOtherModel, "en-fr=" + kModel, "it-en=" + kModel, "en-it=" + kMuteModel});
  }
  Json ask_translation(Json json, const char* source, const char* target) const {
    json["source"] = source, json["target"] = target;
    const ClientAnswer answer = translate(json);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  // From German into French by two requests.
  Json by_two(Json json) const {
    Json first = json;
    first.erase("alternatives");
    json["q"] = ask_translation(first, "de", "en")["translatedText"];
    return ask_translation(json, "en", "fr");
  }
};

const std::vector<std::string> kTexts{"a small house", "the dog runs", "", "we go now\n\n  the house", "-- 😀", "house"};

TEST_F(PivotTest, AnswersAsTwoRequestsDo) {
  start_pivot();
  const Json answer = ask_translation({{"q", kTexts}}, "de", "fr");
  EXPECT_EQ(answer, by_two({{"q", kTexts}}));
  EXPECT_EQ(answer["translatedText"][0], expected({expected({kTexts[0]}, 1, kOtherModel)[0][0]})[0][0]);
  EXPECT_NE(answer["translatedText"][0], "");
  EXPECT_EQ(answer["translatedText"][2], "");
  EXPECT_EQ(answer["translatedText"][4], "-- 😀");
  // Another pivot's second leg is another model, and a direct model is preferred.
  EXPECT_EQ(ask_translation({{"q", "house"}}, "de", "it")["translatedText"],
            expected({expected({"house"}, 1, kOtherModel)[0][0]}, 1, kMuteModel)[0][0]);
  EXPECT_EQ(ask_translation({{"q", "house"}}, "en", "it")["translatedText"], expected({"house"}, 1, kMuteModel)[0][0]);
}

TEST_F(PivotTest, AlternativesAreThoseOfTheLastModel) {
  start_pivot();
  const Json query{{"q", {"a small house", "the dog runs"}}, {"alternatives", 3}};
  const Json answer = ask_translation(query, "de", "fr");
  EXPECT_EQ(answer, by_two(query));
  EXPECT_EQ(answer["alternatives"][0].size(), 3u);
}

// A sentence of one model is one for the next, even where its translation would be taken for two.
TEST_F(PivotTest, SentencesStaySentences) {
  start_pivot();
  const std::vector<std::string> lines{"one. Two! Three?", "the dog"};
  std::vector<std::string> middle;
  for (const std::string sentence : {"one.", "Two!", "Three?", "the dog"}) middle.push_back(expected({sentence}, 1, kOtherModel)[0][0]);
  const auto last = expected(middle);
  EXPECT_EQ(ask_translation({{"q", lines[0] + "\n" + lines[1]}}, "de", "fr")["translatedText"],
            last[0][0] + " " + last[1][0] + " " + last[2][0] + "\n" + last[3][0]);
}

TEST_F(PivotTest, KeepsTagsAndPlaceholders) {
  start_pivot();
  const std::string post =
      "<p>Hello <a href=\"https://example.social/@u\" class=\"mention\">@<span>user</span></a> a small house<br>the <b>dog</b></p>";
  const std::string text = ask_translation({{"q", post}, {"format", "html"}}, "de", "fr")["translatedText"];
  EXPECT_THAT(text, testing::StartsWith("<p>"));
  EXPECT_THAT(text, testing::EndsWith("</p>"));
  for (const char* tag : {"<a href=\"https://example.social/@u\" class=\"mention\">", "<span>", "</span>", "</a>", "<br>", "<b>", "</b>"})
    EXPECT_THAT(text, HasSubstr(tag));
  const std::string plain = "<p>a small house</p>\n<div>the dog runs &amp; runs</div>";
  EXPECT_EQ(ask_translation({{"q", plain}, {"format", "html"}}, "de", "fr"), by_two({{"q", plain}, {"format", "html"}}));
}

TEST_F(PivotTest, AlignsWithTheFirstSource) {
  start_pivot();
  const Json answer = ask_translation({{"q", "ä small house"}, {"alignment", true}}, "de", "fr");
  const auto length = static_cast<int64_t>(answer["translatedText"].get<std::string>().size());
  ASSERT_FALSE(answer["alignment"].empty());
  for (const auto& pair : answer["alignment"]) {
    EXPECT_LT(pair[0][0], pair[0][1]);
    EXPECT_LE(pair[0][1], 13);
    EXPECT_LE(pair[1][1], length);
  }
}

TEST_F(PivotTest, IsListedAndFoundOut) {
  start_pivot();
  const Json languages = ask(url("/languages")).json();
  EXPECT_EQ(languages[0], Json::parse(R"({"code":"de","name":"German","targets":["en","fr","it","de"]})"));
  EXPECT_EQ(languages[1]["targets"], Json({"fr", "it", "en"}));
  const std::string german = "Das Wetter ist heute sehr schön und wir gehen spazieren.";
  const Json detected = ask_translation({{"q", german}}, "auto", "fr");
  EXPECT_EQ(detected["detectedLanguage"]["language"], "de");
  EXPECT_EQ(detected["translatedText"], ask_translation({{"q", german}}, "de", "fr")["translatedText"]);
}

TEST_F(PivotTest, EachModelGetsAllSentencesAtOnce) {
  start_pivot({}, {.scheduler = {.cache_bytes = 0}});
  const int64_t before = metrics_.observed("starling_queue_wait_seconds");
  const double sentences = metrics_.value("starling_sentences_total");
  ask_translation({{"q", {"a small house", "the dog runs", "we go now"}}}, "de", "fr");
  EXPECT_EQ(metrics_.observed("starling_queue_wait_seconds"), before + 2);
  EXPECT_EQ(metrics_.value("starling_sentences_total"), sentences + 6);
}

TEST_F(PivotTest, LimitsAndTheLogCountBothModels) {
  start_pivot({.job = {.sentences = 5}});
  const ClientAnswer refused = translate({{"q", {"a", "b", "c"}}, {"source", "de"}, {"target", "fr"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"], "Invalid request: 6 sentences exceed the limit of 5; send them in parts");
  ask_translation({{"q", {"a", "b"}}}, "de", "fr");
  server_.reset();
  std::istringstream lines(log_text());
  std::string line;
  std::getline(lines, line), std::getline(lines, line);
  const Json entry = Json::parse(line);
  EXPECT_EQ(entry["sentences"], 4);
  EXPECT_EQ(entry["pivoted"], 2);
  EXPECT_EQ(entry["characters"], 2);
}

// While the second model translates the deadline passes, or the client goes.
TEST_F(PivotTest, EndsInTheSecondModel) {
  start_pivot({}, {.scheduler = {.rows = 4, .cache_bytes = 0}});
  std::vector<std::string> lines;
  for (int i = 0; i < 150; ++i) lines.push_back("the house " + std::to_string(i));
  const std::string body = Json{{"q", lines}, {"source", "de"}, {"target", "fr"}}.dump();
  const auto second = models_->find("en", "fr");
  for (const bool gone : {false, true}) {
    BareClient client(server_->port());
    client.send(fmt::format("POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                            body.size(), body));
    for (int i = 0; i < 50000 && second->scheduler().requests() == 0; ++i) usleep(100);
    ASSERT_EQ(second->scheduler().requests(), 1);
    if (gone)
      client.hang_up();
    else
      models_->expire(1e18);
    const auto ended = [&] {
      for (const auto& m : models_->all())
        if (m->scheduler().requests() > 0) return false;
      return gone ? metrics_.value("starling_cancelled_total") == 1
                  : metrics_.value("starling_requests_total", "api=\"translate\",code=\"504\"") == 1;
    };
    for (int i = 0; i < 20000 && !ended(); ++i) server_->watch(), usleep(1000);
    EXPECT_TRUE(ended());
  }
}

// Six directions by three models with memory for two: they come and go while clients ask for all of them.
TEST_F(PivotTest, AnswersStayRightWhileModelsComeAndGo) {
  const std::vector<std::pair<std::string, std::string>> models{{"de", kOtherModel}, {"en", kModel},     {"es", kMuteModel},
                                                                {"fr", kOtherModel}, {"it", kMuteModel}, {"pt", kModel}};
  std::vector<std::string> sources;
  for (size_t i = 0; i < models.size(); ++i)
    sources.push_back(models[i].first + "-" + models[(i + 1) % models.size()].first + "=" + models[i].second);
  ModelOptions options{.max_source_tokens = 100};
  options.scheduler.rows = 8, options.scheduler.cache_bytes = 1000;
  options.on_demand.on = true;
  options.on_demand.memory = int64_t{1} << 40;
  start({.job = {.pivots = {"en", "it"}}}, options, true, sources);
  ask_translation({{"q", "a"}}, "de", "en"), ask_translation({{"q", "a"}}, "es", "fr");
  options.on_demand.memory = static_cast<int64_t>(metrics_.value("starling_models_bytes")) * 5 / 4;
  server_.reset(), models_.reset();
  start({.job = {.pivots = {"en", "it"}}}, options, true, sources);
  const std::vector<std::string> lines{"a small house", "the dog runs", "we go now", "the house"};
  std::map<std::string, std::vector<std::vector<std::string>>> want;  // by directory
  for (const std::string& directory : {kModel, kOtherModel, kMuteModel}) want[directory] = expected(lines, 1, directory);
  const auto pivoted = expected({want[kOtherModel][0][0]});  // German, English, Spanish
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (unsigned c = 0; c < 6; ++c)
    clients.emplace_back([&, c] {
      std::minstd_rand random(c + 1);
      for (int i = 0; i < 25; ++i) {
        const size_t m = random() % models.size(), at = random() % lines.size();
        const auto& [source, directory] = models[m];
        const Json answer = translate({{"q", lines[at]}, {"source", source}, {"target", models[(m + 1) % models.size()].first}}).json();
        wrong += answer.value("translatedText", "?") != want.at(directory)[at][0];
        if (i % 5 == 0)
          wrong += translate({{"q", lines[0]}, {"source", "de"}, {"target", "es"}}).json().value("translatedText", "?") != pivoted[0][0];
      }
    });
  for (auto& c : clients) c.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(metrics_.value("starling_model_drops_total"), 10);
  EXPECT_LE(metrics_.value("starling_models_bytes"), static_cast<double>(options.on_demand.memory));
}

}  // namespace
}  // namespace starling
