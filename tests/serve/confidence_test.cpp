// The server's confidence: that of the model's file, for each sentence of a text.
#include "decode/confidence.h"

#include <cmath>
#include <filesystem>

#include "base/text_files.h"
#include "serve/libretranslate.h"
#include "storage/publication.h"
#include "tests/own_directory.h"
#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

class ServiceConfidence : public ServiceTest {
 protected:
  // A model whose words are as sure as their least probable piece alone says.
  ServiceConfidence() {
    std::filesystem::copy(kModel, calibrated());
    model_.intercept = 0.5;
    for (ConfidenceModel::Term& term : model_.terms) term = {0, -100, 100};
    model_.terms[1].weight = 0.75;
    const std::vector<Part> parts{confidence_part(model_, model_digest(*files_, calibrated() + "/model.safetensors"))};
    update_directory(*files_, calibrated(), parts);
  }
  std::string calibrated() const { return directory_.file("calibrated"); }
  Json answer(Json json) {
    json["confidence"] = true;
    const ClientAnswer a = translate(json);
    EXPECT_EQ(a.status, 200) << a.body;
    return a.json();
  }
  // The confidence of a sentence by the translator and the formula.
  Json of_sentence(const std::string& line) const {
    const LoadedModel loaded = load_model(*files_, kModel, {"f32", 1});
    const Vocabulary& vocabulary = loaded.description.vocabularies.target();
    Translator translator(*loaded.model, loaded.description.vocabularies, loaded.description.search);
    const Translation t = translator.translate(std::vector{line})[0][0];
    const DecodedLine decoded = vocabulary.decode_with_bytes(t.hypothesis.tokens);
    Json words = Json::array();
    double sum = 0;
    for (const TextWord& w : words_of_pieces(decoded.text, decoded.bytes)) {
      double worst = 0;
      for (const size_t piece : w.pieces) worst = std::min<double>(worst, t.hypothesis.log_probabilities[piece]);
      const double value = 1 / (1 + std::exp(-(0.5 + 0.75 * worst)));
      words.push_back({t.text.substr(static_cast<size_t>(w.bytes.begin), static_cast<size_t>(w.bytes.count())), value});
      sum += value;
    }
    return {{"text", t.text}, {"value", sum / static_cast<double>(words.size())}, {"words", words}};
  }
  static void expect_near(const Json& found, const Json& expected) {
    EXPECT_EQ(found["text"], expected["text"]);
    EXPECT_NEAR(found["value"].get<double>(), expected["value"].get<double>(), 1e-5);
    ASSERT_EQ(found["words"].size(), expected["words"].size());
    for (size_t i = 0; i < found["words"].size(); ++i) {
      EXPECT_EQ(found["words"][i][0], expected["words"][i][0]);
      EXPECT_NEAR(found["words"][i][1].get<double>(), expected["words"][i][1].get<double>(), 1e-5);
    }
  }

  OwnDirectory directory_;
  ConfidenceModel model_;
};

TEST_F(ServiceConfidence, OfEachSentence) {
  start({}, {}, true, {"en-de=" + calibrated(), "de-en=" + kModel});
  const Json one = of_sentence("A dog is running."), two = of_sentence("A small house!");
  const Json text = answer({{"q", "A dog is running. A small house!\n"}})["confidence"];
  ASSERT_EQ(text["sentences"].size(), 2u);
  expect_near(text["sentences"][0], one);
  expect_near(text["sentences"][1], two);
  const double words = static_cast<double>(one["words"].size() + two["words"].size());
  double sum = 0;
  for (const Json& sentence : {one, two})
    for (const Json& word : sentence["words"]) sum += word[1].get<double>();
  EXPECT_NEAR(text["value"].get<double>(), sum / words, 1e-5);
  for (int again = 0; again < 2; ++again) {  // the second time from the memory of translations
    const Json html = answer({{"q", "<p><b>A dog</b> is running.</p><p>A small house!</p>"}, {"format", "html"}})["confidence"];
    ASSERT_EQ(html["sentences"].size(), 2u);
    expect_near(html["sentences"][0], one);
  }
  const Json list = answer({{"q", {"A small house!", " "}}, {"alternatives", 2}});
  expect_near(list["confidence"][0]["sentences"][0], two);
  EXPECT_EQ(list["confidence"][1], Json::parse(R"({"value":1.0,"sentences":[]})")) << "nothing was translated";
  EXPECT_EQ(answer({{"q", "A dog"}, {"target", "en"}})["confidence"]["value"], 1.0) << "is in the language already";
  EXPECT_FALSE(translate({{"q", "A dog"}}).json().contains("confidence"));
}

TEST_F(ServiceConfidence, SaysWhyThereIsNone) {
  start({.job = {.pivots = {"en"}}}, {}, true, {"en-fr=" + calibrated(), "de-en=" + kModel});
  const auto refused = [&](Json json) {
    json["confidence"] = true;
    const ClientAnswer a = translate(json);
    EXPECT_EQ(a.status, 400) << a.body;
    return a.json()["error"].get<std::string>();
  };
  EXPECT_EQ(
      refused({{"q", "Hund"}, {"source", "de"}, {"target", "en"}}),
      "Invalid request: the model from de to en has no calibration for confidence; leave it out, or ask the operator to run 'starling "
      "calibrate'");
  EXPECT_EQ(refused({{"q", "Hund"}, {"source", "de"}, {"target", "fr"}}),
            "Invalid request: confidence is not available from de to fr, since the text goes through en; leave it out, or translate into "
            "en first");
  EXPECT_EQ(translate({{"q", "Hund"}, {"source", "de"}, {"target", "fr"}}).status, 200);
}

TEST(LibreTranslateConfidence, IsAFieldOfTheAnswer) {
  const TextQuery query{.texts = {"a"}, .source = "en", .target = "de", .confidence = true};
  const std::vector<TranslatedText> texts{{.text = "x y", .confidence = {0.5, {{"x y", 0.5, {{"x", 0.25}, {"y", 0.75}}}}}}};
  EXPECT_EQ(
      translate_answer(query, texts).body,
      R"({"translatedText":"x y","confidence":{"value":0.5,"sentences":[{"text":"x y","value":0.5,"words":[["x",0.25],["y",0.75]]}]}})");
}

}  // namespace
}  // namespace starling
