// Answers that are streams of events: their texts are those of plain answers, come in order and early, and end however the request does.
#include <limits>

#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

struct Event {
  std::string name;
  Json data;
};

std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> all;
  for (size_t begin = 0, end = 0; (end = body.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    const std::string event = body.substr(begin, end - begin);
    const size_t line = event.find('\n');
    EXPECT_TRUE(event.starts_with("event: ") && event.compare(line, 7, "\ndata: ") == 0) << event;
    all.push_back({event.substr(7, line - 7), Json::parse(event.substr(line + 7))});
  }
  return all;
}

// The texts that the events add up to.
std::vector<std::string> texts_of(const std::vector<Event>& events, size_t count) {
  std::vector<std::string> texts(count);
  for (const Event& e : events)
    if (e.name == "more") texts.at(e.data["index"]) += e.data["text"];
  return texts;
}

class StreamTest : public ServiceTest {
 protected:
  // Asks for the same without and with a stream, and compares; returns the events.
  std::vector<Event> expect_equal(Json query) {
    const ClientAnswer plain = translate(query);
    EXPECT_EQ(plain.status, 200) << plain.body;
    query["stream"] = true;
    const ClientAnswer streamed = translate(query);
    EXPECT_EQ(streamed.status, 200);
    EXPECT_THAT(streamed.type, testing::StartsWith("text/event-stream"));
    const std::vector<Event> events = events_of(streamed.body);
    if (events.empty() || events.back().name != "done") {
      ADD_FAILURE() << streamed.body;
      return events;
    }
    EXPECT_EQ(events.back().data, plain.json());
    const Json text = plain.json()["translatedText"];
    const auto texts = text.is_array() ? text.get<std::vector<std::string>>() : std::vector{text.get<std::string>()};
    EXPECT_EQ(texts_of(events, texts.size()), texts);
    return events;
  }
};

// `cache` off: the second request would otherwise be answered from it, in order and at once.
ModelOptions uncached(SchedulerLimits limits = {}) {
  ModelOptions model;
  model.scheduler = limits;
  model.scheduler.cache_bytes = 0;
  return model;
}

const std::string kLong = "A small house. The dog runs, and runs, and runs over the hill! We go now.\n\n  The house? A dog.\n";

TEST_F(StreamTest, AddsUpToThePlainAnswer) {
  start({}, uncached());
  EXPECT_GT(expect_equal({{"q", kLong}}).size(), 3u);  // not all at once
  expect_equal({{"q", {kLong, "", "12", "the dog", kLong}}, {"alternatives", 2}, {"alignment", true}});
  expect_equal({{"q", kLong}, {"source", "auto"}});
  expect_equal({{"q", {"ein kleines haus und der hund", kLong}}, {"source", "auto"}});  // one of them is in the target's language
  expect_equal({{"q", "<p>The <b>small house</b> &amp; a dog</p><div>the dog <i>runs</i>. We go</div> now"}, {"format", "html"}});
  expect_equal({{"q", "Ask me@example.org or https://example.org/a now. The dog runs."}});
}

TEST_F(StreamTest, AddsUpWhereTheAnswerIsInTheCache) {
  start();
  expect_equal({{"q", kLong}});
  expect_equal({{"q", kLong + "One more dog."}});
}

TEST_F(StreamTest, AddsUpWhereTextsGoThroughAPivot) {
  ServiceOptions options;
  options.job.pivots = {"en"};
  start(options, uncached(), true, {"de-en=" + kOtherModel, "en-fr=" + kModel});
  const auto events = expect_equal({{"q", {kLong, "<b>house</b>"}}, {"source", "de"}, {"target", "fr"}, {"alternatives", 1}});
  EXPECT_GT(events.size(), 3u);
  expect_equal({{"q", "<p>a <b>small</b> house. The dog</p>"}, {"source", "de"}, {"target", "fr"}, {"format", "html"}});
}

// U+2028 ends lines for some programs, and is a character of the text here.
TEST_F(StreamTest, LineSeparatorsAreText) {
  start({}, uncached());
  for (const std::string q : {"12 \xE2\x80\xA8 the dog", "\xE2\x80\xA8. The dog runs."}) expect_equal({{"q", q}});
}

TEST_F(StreamTest, SentencesOfManyPartsComeWhole) {
  ModelOptions model = uncached();
  model.max_source_tokens = 8;
  start({}, model);
  expect_equal({{"q", "the small house and the dog and a hill, and a small dog runs to the house and to the hill. We go."}});
}

TEST_F(StreamTest, PreviewsAreTheBeginningsOfWhatComes) {
  ModelOptions model = uncached({.rows = 1});
  model.search = [](SearchOptions o) {
    o.beam = 1;
    return o;
  };
  start({}, model);
  size_t previews = 0;
  for (int attempt = 0; attempt < 20 && previews == 0; ++attempt) {  // they are skipped where the client does not wait
    const auto events = expect_equal({{"q", kLong}});
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].name != "preview") continue;
      ++previews;
      const auto next =
          std::find_if(events.begin() + static_cast<int64_t>(i), events.end(), [](const Event& e) { return e.name == "more"; });
      ASSERT_NE(next, events.end());
      EXPECT_THAT(next->data["text"].get<std::string>(), testing::StartsWith(events[i].data["text"].get<std::string>()));
    }
  }
  EXPECT_GT(previews, 0u);
}

// Kept text in front of a sentence is sent once, with the sentence, and not in each of its previews.
TEST_F(StreamTest, PreviewsDoNotRepeatLongTextThatIsKept) {
  ModelOptions model = uncached({.rows = 1});
  model.search = [](SearchOptions o) {
    o.beam = 1;
    return o;
  };
  start({}, model);
  const std::string kept(5000, '-');
  for (const Event& e : expect_equal({{"q", kept + "\nthe small house and the dog"}}))
    EXPECT_TRUE(e.name != "preview" || e.data["text"].get<std::string>().size() < 1000u);
}

TEST_F(StreamTest, WhatIsRefusedBeforehandHasItsStatus) {
  start({.job = {.sentences = 2}});
  EXPECT_EQ(translate({{"q", "x"}, {"target", "xx"}, {"stream", true}}).status, 400);
  const ClientAnswer many = translate({{"q", kLong}, {"stream", true}});
  EXPECT_EQ(many.status, 400);
  EXPECT_THAT(many.json()["error"], HasSubstr("sentences"));
  EXPECT_EQ(translate({{"q", "x"}, {"stream", "perhaps"}}).status, 400);
}

// A request that is under way when its time is up, or when its client goes.
class LongStreamTest : public StreamTest {
 protected:
  static void ask_for(const std::string& text, BareClient& client) {
    const std::string body = Json{{"q", text}, {"source", "en"}, {"target", "de"}, {"stream", true}}.dump();
    client.send("POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
  }
  static constexpr int64_t kLines = 4000;
  static std::string endless() {
    std::string text;
    for (int64_t i = 0; i < kLines; ++i) text += "The house number " + std::to_string(i) + " and the dog.\n";
    return text;
  }
};

// The first sentence is on its way while most of the others wait, though it is the shortest of all.
TEST_F(LongStreamTest, SentencesComeInTheirOrder) {
  start({}, uncached());
  BareClient client(server_->port());
  ask_for(endless(), client);
  ASSERT_TRUE(client.receives("event: more\n"));
  int64_t waiting = 0;
  for (const auto& m : models_->all()) waiting += m->scheduler().queued();
  EXPECT_GT(waiting, kLines / 2);
}

TEST_F(LongStreamTest, EndsWithAnErrorWhenItsTimeIsUp) {
  start({}, uncached());
  BareClient client(server_->port());
  ask_for(endless(), client);
  ASSERT_TRUE(client.receives("event: more\n"));
  for (const auto& m : models_->all()) m->scheduler().expire(std::numeric_limits<double>::infinity());
  ASSERT_TRUE(client.receives("event: error\ndata: {\"error\":\"the translation was not finished before the deadline"));
  ASSERT_TRUE(client.receives("\r\n0\r\n\r\n"));  // the end of the answer
  EXPECT_THAT(log_text(), HasSubstr("\"status\":504"));
}

TEST_F(LongStreamTest, EndsWhenItsClientGoes) {
  start({}, uncached());
  BareClient client(server_->port());
  ask_for(endless(), client);
  for (int i = 0; i < 2000 && models_->all().front()->scheduler().requests() == 0; ++i) usleep(1000);
  client.hang_up();
  const auto busy = [&] {
    int64_t requests = server_->waiting();
    for (const auto& m : models_->all()) requests += m->scheduler().requests();
    return requests > 0;
  };
  for (int i = 0; i < 5000 && busy(); ++i) server_->watch(), usleep(1000);
  EXPECT_FALSE(busy());
  for (int i = 0; i < 5000 && log_text().empty(); ++i) usleep(1000);  // it is written behind that
  EXPECT_THAT(log_text(), HasSubstr("\"status\":499"));
  EXPECT_EQ(translate({{"q", "the house"}}).status, 200);
}

}  // namespace
}  // namespace starling
