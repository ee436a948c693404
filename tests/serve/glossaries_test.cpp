// Glossaries as DeepL's clients and those of /translate send them.
#include "serve/glossaries.h"

#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class GlossariesTest : public ServiceTest {
 protected:
  ClientAnswer create(const Json& more = Json::object(), const std::string& key = "") {
    Json json{{"name", "animals"},
              {"source_lang", "EN"},
              {"target_lang", "de"},
              {"entries", "dog\tWasserhund\nhouse\tHaus"},
              {"entries_format", "tsv"}};
    json.update(more);
    return ask_json(url("/v2/glossaries"), with_key(json, key));
  }
  static Json with_key(Json json, const std::string& key) {
    if (!key.empty()) json["auth_key"] = key;
    return json;
  }
  std::string deepl(const std::string& text, const std::string& id) {
    Json json{{"text", {text}}, {"source_lang", "EN"}, {"target_lang", "DE"}};
    if (!id.empty()) json["glossary_id"] = id;
    const ClientAnswer answer = ask_json(url("/v2/translate"), json);
    return answer.status == 200 ? answer.json()["translations"][0]["text"].get<std::string>() : answer.body;
  }
};

TEST_F(GlossariesTest, AreCreatedUsedListedAndDeleted) {
  start();
  const ClientAnswer made = create();
  EXPECT_EQ(made.status, 201);
  const std::string id = made.json()["glossary_id"];
  EXPECT_EQ(made.json()["entry_count"], 2);
  EXPECT_EQ(made.json()["source_lang"], "en");
  EXPECT_EQ(id.size(), 36u);
  EXPECT_THAT(made.json()["creation_time"].get<std::string>(), testing::ContainsRegex("^[-0-9]+T[:0-9]+\\.[0-9]{6}Z$"));
  EXPECT_EQ(ask(url("/v2/glossaries")).json()["glossaries"], Json::array({made.json()}));
  EXPECT_EQ(ask(url("/v2/glossaries/" + id)).json(), made.json());
  EXPECT_EQ(ask(url("/v2/glossaries/" + id + "/entries")).body, "dog\tWasserhund\nhouse\tHaus");

  const std::string before = deepl("the dog", "");
  EXPECT_THAT(before, Not(HasSubstr("Wasserhund")));
  EXPECT_THAT(deepl("the dog", id), HasSubstr("Wasserhund"));
  EXPECT_EQ(deepl("the dog", ""), before) << "the cache knows which glossary it was";
  EXPECT_EQ(deepl("we go now", id), deepl("we go now", ""));

  EXPECT_EQ(ask(url("/v2/glossaries/" + id), {.method = "DELETE"}).status, 204);
  EXPECT_EQ(ask(url("/v2/glossaries/" + id)).status, 404);
  EXPECT_THAT(deepl("the dog", id), HasSubstr("Glossary not found"));
  EXPECT_EQ(ask(url("/v2/glossaries")).json()["glossaries"], Json::array());
}

TEST_F(GlossariesTest, AreRefusedWithAReason) {
  start();
  EXPECT_THAT(create({{"entries", "dog Hund"}}).body, HasSubstr("glossary:1: a line has a term, a tab"));
  EXPECT_THAT(create({{"entries_format", "xml"}}).body, HasSubstr("'entries_format' not supported: xml"));
  EXPECT_THAT(create({{"source_lang", "fr"}}).body, HasSubstr("'source_lang' not supported: fr"));
  EXPECT_THAT(create({{"name", ""}}).body, HasSubstr("'name' not specified"));
  const std::string id = create().json()["glossary_id"];
  const auto refused = [&](const Json& json) { return ask_json(url("/v2/translate"), json); };
  EXPECT_THAT(refused({{"text", {"x"}}, {"target_lang", "DE"}, {"glossary_id", id}}).body, HasSubstr("needs 'source_lang'"));
  EXPECT_THAT(refused({{"text", {"x"}}, {"source_lang", "DE"}, {"target_lang", "EN"}, {"glossary_id", id}}).body,
              HasSubstr("the glossary is for en to de, but the request is for de to en; choose another one"));
  EXPECT_EQ(ask(url("/v2/glossaries"), {.method = "DELETE"}).status, 405);
  EXPECT_EQ(ask(url("/v2/glossaries/" + id), {.body = "x=y"}).status, 405);
  EXPECT_EQ(ask(url("/v2/glossaries/" + id + "/entries"), {.method = "DELETE"}).status, 405);
  EXPECT_EQ(ask(url("/v2/glossariesx")).status, 404);
}

TEST_F(GlossariesTest, CommaSeparatedValuesAreRead) {
  start();
  const ClientAnswer made =
      create({{"entries", "dog,Wasserhund,en,de\r\n\"a \"\"small\"\" house, now\",\"Haus, klein\"\r\n"}, {"entries_format", "csv"}});
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(ask(url("/v2/glossaries/" + made.json()["glossary_id"].get<std::string>() + "/entries")).body,
            "dog\tWasserhund\na \"small\" house, now\tHaus, klein\n");
}

TEST_F(GlossariesTest, OutliveTheServerInADirectory) {
  const std::string directory = testing::TempDir() + "/glossaries_" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  start({.glossaries = directory});
  const std::string id = create().json()["glossary_id"], other = create().json()["glossary_id"];
  EXPECT_EQ(ask(url("/v2/glossaries/" + other), {.method = "DELETE"}).status, 204);
  server_.reset();
  service_.reset();
  start({.glossaries = directory});
  EXPECT_EQ(ask(url("/v2/glossaries")).json()["glossaries"].size(), 1u);
  EXPECT_THAT(deepl("the dog", id), HasSubstr("Wasserhund"));
  std::ofstream(directory + "/.tmp-x.json") << "{";  // a crash while it was written
  EXPECT_NO_THROW(Glossaries{directory});
  EXPECT_FALSE(std::filesystem::exists(directory + "/.tmp-x.json"));
  std::ofstream(directory + "/wrong.json") << "{}";
  EXPECT_THROW(Glossaries{directory}, DataError);
  std::filesystem::remove_all(directory);
}

TEST_F(GlossariesTest, BelongToAKey) {
  start();
  const auto line = [](const std::string& name, const std::string& key) { return name + " " + sha256_hex(std::string_view(key)) + "\n"; };
  service_->set_keys(ApiKeys::parse(line("ann", "apple") + line("bob", "pear"), "keys"));
  EXPECT_EQ(create().status, 403);
  const std::string id = create(Json::object(), "apple").json()["glossary_id"];
  const auto get = [&](const std::string& path, const std::string& key) {
    return ask(url(path), {.headers = {"Authorization: DeepL-Auth-Key " + key}});
  };
  EXPECT_EQ(get("/v2/glossaries/" + id, "apple").status, 200);
  EXPECT_EQ(get("/v2/glossaries/" + id, "pear").status, 404);
  EXPECT_EQ(get("/v2/glossaries", "pear").json()["glossaries"], Json::array());
}

TEST_F(GlossariesTest, MayComeWithARequest) {
  start();
  const std::string before = translate({{"q", "the dog"}}).json()["translatedText"];
  const Json glossary{{"dog", {"Hündin", "Wasserhund"}}};
  const std::string with = translate({{"q", "the dog"}, {"glossary", glossary}}).json()["translatedText"];
  EXPECT_TRUE(with.find("Hündin") != std::string::npos || with.find("Wasserhund") != std::string::npos) << with;
  EXPECT_EQ(translate({{"q", "the dog"}}).json()["translatedText"], before);
  // Each glossary has translations of its own in the cache.
  for (const std::string word : {"Kater", "Maus"})
    EXPECT_THAT(translate({{"q", "the dog"}, {"glossary", {{"dog", word}}}}).json()["translatedText"].get<std::string>(), HasSubstr(word));
  EXPECT_THAT(
      translate({{"q", "<b>the dog</b>"}, {"format", "html"}, {"glossary", "dog\tWasserhund"}}).json()["translatedText"].get<std::string>(),
      HasSubstr("Wasserhund"));
  const ClientAnswer stream = translate({{"q", "the dog"}, {"stream", true}, {"glossary", "dog\tWasserhund"}});
  EXPECT_THAT(stream.body, HasSubstr("Wasserhund"));
  EXPECT_THAT(translate({{"q", "the dog"}, {"glossary", {{"dog", 3}}}}).body,
              HasSubstr("the glossary's translation of 'dog' is not a string"));
  Json many;
  for (int i = 0; i < 1001; ++i) many["dog" + std::to_string(i)] = "x";
  EXPECT_THAT(translate({{"q", "the dog"}, {"glossary", many}}).body, HasSubstr("has 1001 terms, but a request may have at most 1000"));
}

}  // namespace
}  // namespace starling
