// A model for two directions, trained on toy corpora in which the same words have other translations in each: it reads by the tag into
// which language it is to translate, validations measure each direction, and what is made of the model keeps its directions.
#include <nlohmann/json.hpp>

#include "base/text_files.h"
#include "decode/framing.h"
#include "decode/translator.h"
#include "evaluation/validation.h"
#include "tests/run/word_run.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DirectionsTest : public WordRunTest {
 protected:
  DirectionsTest() {
    write_word_pairs(path("a"), path("b"), 200, 4, 2, 2);
    // Into the other language words are kept.
    std::filesystem::copy_file(path("a"), path("c"));
  }
  std::vector<Override> two(const std::vector<Override>& more = {}) const {
    std::vector<Override> all;
    for (auto& [key, value] : given("run", {{"valid.source", ""}, {"valid.target", ""}}))
      if (!key.starts_with("data.")) all.emplace_back(key, value);
    for (const auto& [n, target, language] : {std::tuple{"0", "b", "de"}, {"1", "c", "fr"}})
      for (const std::string list : {"data.train.", "valid.sets."})
        all.insert(all.end(), {{list + n + ".source", path("a")},
                               {list + n + ".target", path(target)},
                               {list + n + ".source-language", "en"},
                               {list + n + ".target-language", language}});
    all.insert(all.end(), {{"valid.metrics", "chrf,cross-entropy"},
                           {"model.width", "32"},
                           {"model.feed-forward", "64"},
                           {"train.batch-tokens", "300"},
                           {"train.learning-rate", "5e-3"},
                           {"train.warmup", "10"},
                           {"model.dropout", "0"},
                           {"train.label-smoothing", "0"},
                           {"valid.every", "300"},
                           {"checkpoint.every", "300"},
                           {"train.max-steps", "300"}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(DirectionsTest, TheTagDecidesIntoWhichLanguage) {
  ASSERT_EQ(run_training(load_run_config("", two())), 0);
  const auto files = real_file_system();
  const LoadedModel loaded = load_model(*files, path("run"), DeviceChoice{"f32", 1, "cpu"});
  const ModelDescription& d = loaded.description;
  EXPECT_THAT(d.languages.directions, ElementsAre("en:de", "en:fr"));
  const auto translated = [&](const std::string& language) {
    Translator translator(*loaded.model, d.vocabularies, into_language(d.search, d, language));
    return translator.translate(std::vector<std::string>{"red blue"}).front().front().text;
  };
  EXPECT_EQ(translated("de"), "cat dog");
  EXPECT_EQ(translated("FR"), "red blue");
  EXPECT_THAT(error<ConfigError>([&] { translated(""); }), HasSubstr("translates into de, fr; choose one of them"));
  EXPECT_THAT(error<ConfigError>([&] { translated("it"); }), HasSubstr("--target-language it: the model translates into de, fr"));
  // Text that looks like a tag is text.
  EXPECT_THAT(d.vocabularies.source().encode(">>de<< red"), testing::Not(testing::Contains(d.vocabularies.source().id_of(">>de<<"))));

  // Each direction scores as it does alone, and their means are the scores.
  ValidConfig valid = load_run_config("", two()).valid;
  const World world = make_local_world();
  const Validator::Result both = Validator(valid, d.vocabularies).run(*loaded.model, *world.comm);
  ASSERT_EQ(both.by_text.size(), 2u);
  std::vector<Validator::Scores> alone;
  for (const ValidSet& set : std::vector(valid.sets)) {
    valid.sets = {set};
    alone.push_back(Validator(valid, d.vocabularies).run(*loaded.model, *world.comm).scores);
  }
  EXPECT_EQ(both.by_text[0], (std::pair{std::string("en:de a"), alone[0]}));
  EXPECT_EQ(both.by_text[1], (std::pair{std::string("en:fr a"), alone[1]}));
  for (size_t m = 0; m < 2; ++m) EXPECT_NEAR(both.scores[m].second, (alone[0][m].second + alone[1][m].second) / 2, 1e-12);
  EXPECT_GT(both.scores[0].second, 99) << "chrF";

  // What is kept says of which sentences the translations are, for people who do not have the texts.
  valid = load_run_config("", two()).valid;
  valid.keep_translations = true;
  ValidatorRank rank;
  rank.directory = path("kept"), rank.step = [] { return int64_t{5}; };
  Validator(valid, d.vocabularies, rank).run(*loaded.model, *world.comm);
  const auto lines = [](const std::string& file) {
    std::vector<std::string> all;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  };
  const auto kept = nlohmann::json::parse(read_text_file(path("kept/sentences.json")))["sentences"];
  const size_t count = lines(path("a")).size();
  ASSERT_EQ(lines(path("kept/0000005.txt")).size(), 2 * count);
  ASSERT_EQ(kept.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const ValidSet& set = valid.sets[i / 2];
    const size_t line = kept[i]["line"].get<size_t>() - i / 2 * count;
    EXPECT_EQ(kept[i]["text"], set.name());
    EXPECT_EQ(kept[i]["source"], lines(set.source).at(line));
    EXPECT_EQ(kept[i]["reference"], lines(set.target).at(line));
  }

  // The run goes on with its directions, also where only its record names them.
  EXPECT_THAT(load_run_config("", two()).languages.directions, ElementsAre("en:de", "en:fr"));
  EXPECT_THAT(load_run_config("", {{"train.output", path("run")}}).languages.directions, ElementsAre("en:de", "en:fr"));

  // A run that begins with the model has its directions; one whose vocabulary lacks a tag is refused.
  const Config tuned = load_run_config("", {{"train.initial-model", path("run")},
                                            {"train.output", path("tuned")},
                                            {"data.source", path("a")},
                                            {"data.target", path("b")},
                                            {"data.source-language", "en"},
                                            {"data.target-language", "de"}});
  EXPECT_THAT(tuned.languages.directions, ElementsAre("en:de", "en:fr"));
  EXPECT_EQ(tuned.data.train[0].tag, ">>de<<");
  const Config third = load_run_config("", two({{"train.initial-model", path("run")},
                                                {"train.output", path("third")},
                                                {"data.train.1.target-language", "it"},
                                                {"valid.sets.1.target-language", "it"}}));
  EXPECT_THAT(error<ConfigError>([&] { run_training(third); }), HasSubstr("has no piece >>it<<"));
}

// Synthetic text has a tag of its own, which a vocabulary that is trained for the run gets as a piece that stands for no text.
TEST_F(DirectionsTest, ATagOfACorpusIsAPieceOfANewVocabulary) {
  std::vector<Override> keys = given("tagged", {{"train.max-steps", "1"}});
  std::erase_if(keys, [](const Override& key) { return key.first.starts_with("data."); });
  for (const auto& [n, target] : {std::pair{"0", "b"}, {"1", "c"}})
    keys.insert(keys.end(),
                {{std::string("data.train.") + n + ".source", path("a")}, {std::string("data.train.") + n + ".target", path(target)}});
  keys.emplace_back("data.train.1.tag", "<bt> <de>");
  ASSERT_EQ(run_training(load_run_config("", keys)), 0);
  const LoadedModel loaded = load_model(*real_file_system(), path("tagged"), DeviceChoice{"f32", 1, "cpu"});
  const Vocabulary& vocabulary = loaded.description.vocabularies.source();
  for (const std::string tag : {"<bt>", "<de>"}) {
    ASSERT_GE(vocabulary.id_of(tag), 0) << tag;
    EXPECT_THAT(vocabulary.encode(tag + " red"), testing::Not(testing::Contains(vocabulary.id_of(tag)))) << "what is typed is text";
  }
  keys.back().second = "a,b";
  keys.emplace_back("train.output", path("comma"));
  EXPECT_THAT(error<ConfigError>([&] { run_training(load_run_config("", keys)); }), HasSubstr("'a,b' cannot be a tag"));
}

}  // namespace
}  // namespace starling
