// Glossaries: what their files say, where their terms are found in a sentence, and that translations have them.
#include "decode/glossary.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "decode/translator.h"
#include "tests/decode/small_vocabulary.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::vector<std::string>> terms(const std::string& glossary, const std::string& sentence) {
  return Glossary::parse(glossary, "terms.tsv")->terms_in(sentence);
}

TEST(Glossary, FindsTheLongestTermsAsWholeWords) {
  const std::string g = "ice\tEis\nice cream\tSpeiseeis\nC++\tC++\nfire\tFeuer\n";
  EXPECT_THAT(terms(g, "Hot ice cream, ice and iced tea; twice icecream."), ElementsAre(ElementsAre("Speiseeis"), ElementsAre("Eis")));
  EXPECT_THAT(terms(g, "fire\tfire ice  cream"), ElementsAre(ElementsAre("Feuer"), ElementsAre("Feuer"), ElementsAre("Speiseeis")));
  EXPECT_THAT(terms(g, "\"fire\"-fire (fire's) fire_fighter firé"), testing::SizeIs(3));
  EXPECT_THAT(terms(g, "I write C++, not C."), ElementsAre(ElementsAre("C++")));
  EXPECT_THAT(terms(g, ""), IsEmpty());
}

TEST(Glossary, FollowsCapitals) {
  const std::string g = "dog\tchien\nPolish\tpolonais\niPhone\tiPhone\nUSA\tÉtats-Unis\n";
  EXPECT_THAT(terms(g, "dog"), ElementsAre(ElementsAre("chien", "Chien"))) << "a sentence may begin with it";
  EXPECT_THAT(terms(g, "Dog"), ElementsAre(ElementsAre("chien", "Chien")));
  EXPECT_THAT(terms(g, "DOG"), ElementsAre(ElementsAre("CHIEN")));
  EXPECT_THAT(terms(g, "dOg polish usa IPHONE"), ElementsAre(ElementsAre("IPHONE")));
  EXPECT_THAT(terms(g, "Polish POLISH iPhone"),
              ElementsAre(ElementsAre("polonais", "Polonais"), ElementsAre("POLONAIS"), ElementsAre("iPhone")));
  EXPECT_THAT(terms(g, "USA"), ElementsAre(ElementsAre("États-Unis")));
}

TEST(Glossary, KnowsScriptsWithoutSpaces) {
  EXPECT_THAT(terms("狗\tdog\n", "一只狗在跑。"), ElementsAre(ElementsAre("dog", "Dog")));
  EXPECT_THAT(terms("собака\tdog\n", "собаками Собака СОБАКА"), testing::SizeIs(2));
}

TEST(Glossary, ReadsFilesOfOthers) {
  const auto g = Glossary::parse(
      "\xEF\xBB\xBF"
      "dog\tHund\tHunde\t\tHundes\r\n\r\ndog\tKöter\r\n  a   man \t der  Mann\n",
      "g.tsv");
  EXPECT_EQ(g->terms(), 2u);
  EXPECT_EQ(g->size(), 5u);
  EXPECT_THAT(g->terms_in("dog a man"), ElementsAre(ElementsAre("Hund", "Hunde", "Hundes", "Köter"), ElementsAre("der Mann", "Der Mann")));
}

// Letters of a script without spaces neither continue a word of another script nor keep it from beginning.
TEST(Glossary, LatinTermsStandBesideScriptsWithoutSpaces) {
  const std::string path = testing::TempDir() + "/glossary_" + std::to_string(getpid()) + ".spm";
  int next = 0;
  train_vocabulary(
      [&](std::string_view& line) {
        line = next % 2 ? "我的(iPhone)是新的" : "我的iPhone是新的 iPhones";
        return next++ < 200;
      },
      {.size = 40}, path);
  const Vocabulary vocabulary = Vocabulary::load(path);
  std::filesystem::remove(path);
  const auto spelled = TermSpeller(vocabulary).spell({{"iPhone"}});
  ASSERT_TRUE(spelled);
  const auto complete = [&](const std::string& text) {
    Terms::State state;
    for (const int32_t token : vocabulary.encode(text)) state = spelled->after(state, token);
    return spelled->complete(state);
  };
  EXPECT_TRUE(complete("我的iPhone是新的"));
  EXPECT_TRUE(complete("新的 iPhone"));
  EXPECT_FALSE(complete("我的iPhones"));
}

TEST(Glossary, IsBounded) {
  std::string many = "a", dogs;
  for (int i = 0; i < 101; ++i) many += "\tb" + std::to_string(i), dogs += "dog ";
  EXPECT_THROW(Glossary::parse(many, "g.tsv"), DataError);
  EXPECT_EQ(terms("dog\tHund\n", dogs).size(), Terms::kMost);
}

TEST(Glossary, NamesTheLineThatIsWrong) {
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"dog\tHund\ncat Katze\n", "g.tsv:2: a line has a term, a tab"},
                                                        {"\tHund\n", "g.tsv:1: the term before the first tab is missing"},
                                                        {"dog\t \n", "g.tsv:1: the translation after the tab is missing"},
                                                        {"\n\n", "g.tsv: the glossary has no terms"},
                                                        {"d\xFFg\tHund\n", "g.tsv:1: not UTF-8"}}) {
    try {
      Glossary::parse(text, "g.tsv");
      ADD_FAILURE() << part;
    } catch (const DataError& e) {
      EXPECT_THAT(e.what(), HasSubstr(part));
    }
  }
}

// A model with random weights would not say these words.
TEST(Glossary, TranslationsHaveItsTermsAndAllOthersStay) {
  const Vocabularies vocabularies = small_vocabulary();
  const auto backend = make_backend("cpu:f32", 2);
  ModelConfig config = model_preset("transformer-tiny");
  config.width = 16, config.feed_forward = 32, config.heads = 2, config.encoder_layers = config.decoder_layers = 1;
  const auto model = make_model(config, vocabularies.sizes(), *backend, 1, true);
  const std::vector<std::string> lines{"abba ab", "ba ba", "", "baab ab baab", "ab"};
  SearchOptions search;
  search.alignment = true;
  Translator translator(*model, vocabularies, search);
  const auto before = translator.translate(lines);
  translator.set_glossary(Glossary::parse("baab\tabab baba\tbaba\nabba\tbbaa\n", "g.tsv"));
  const auto with = translator.translate(lines);
  EXPECT_EQ(translator.missing_terms(), 0);
  const auto count = [](const std::string& text, const std::string& word) {
    int n = 0;
    const std::string padded = " " + text + " ";
    for (size_t at = 0; (at = padded.find(" " + word + " ", at)) != std::string::npos; at += 1) ++n;
    return n;
  };
  for (const size_t same : {1, 2, 4}) {
    EXPECT_EQ(with[same][0].text, before[same][0].text);
    EXPECT_EQ(with[same][0].score, before[same][0].score);
  }
  EXPECT_GE(count(with[0][0].text, "bbaa"), 1) << with[0][0].text;
  EXPECT_GE(count(with[3][0].text, "abab baba") + count(with[3][0].text, "baba"), 2) << with[3][0].text;
  EXPECT_EQ(with[3][0].hypothesis.alignment.size(), static_cast<size_t>(with[3][0].hypothesis.length));
  // As `score` would say it: the model's own probability of these tokens.
  double sum = 0;
  for (const float p : with[0][0].hypothesis.log_probabilities) sum += p;
  EXPECT_NEAR(with[0][0].log_probability, sum, 1e-4);
  translator.set_glossary(nullptr);
  EXPECT_EQ(translator.translate(lines)[0][0].text, before[0][0].text);
}

}  // namespace
}  // namespace starling
