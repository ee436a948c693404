// 8-bit weights: rounding is stable, a quantised model directory gives the same integers back, and precision words mean what they say.
#include "decode/quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/random.h"
#include "base/text_files.h"
#include "config/config.h"
#include "decode/translator.h"
#include "tests/models/common.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

TEST(Int8Matrix, RoundsToTheNearestOf255StepsOfEachOutput) {
  const Tensor w({3, 2}, DType::f32);
  w.from_doubles(std::vector<double>{1, -0.5, -0.25, 0.1, 0.5, 0});
  const Int8Matrix columns = round_to_int8(w, false), rows = round_to_int8(w, true);
  EXPECT_THAT(columns.scales, testing::ElementsAre(1.0f, 0.5f));
  EXPECT_THAT(columns.values, testing::ElementsAre(127, -127, -32, 25, 64, 0));  // 127 / 4 = 31.75, 127 / 5 = 25.4, 63.5 to even
  EXPECT_THAT(rows.scales, testing::ElementsAre(1.0f, 0.25f, 0.5f));
  EXPECT_THAT(rows.values, testing::ElementsAre(127, -64, -127, 51, 127, 0));
}

TEST(Int8Matrix, RoundingItsOwnValuesGivesTheSameIntegersAndScales) {
  Random random(3, 3);
  for (bool by_row : {false, true}) {
    const Tensor w({61, 47}, DType::f32), again({61, 47}, DType::f32);
    std::vector<double> values(61 * 47);
    for (double& v : values) v = random.normal() * std::exp(8 * random.normal());
    for (int i = 0; i < 47; ++i) values[5 * 47 + i] = 0;
    for (int i = 0; i < 61; ++i) values[i * 47 + 9] = 0;
    w.from_doubles(values);
    const Int8Matrix first = round_to_int8(w, by_row);
    for (int r = 0; r < 61; ++r)
      for (int c = 0; c < 47; ++c) {
        const double scale = first.scales[by_row ? r : c];
        EXPECT_LE(std::abs(first.value(r, c) - w.data<float>()[r * 47 + c]), scale / 254 * 1.000001);
        values[r * 47 + c] = first.value(r, c);
      }
    again.from_doubles(values);
    const Int8Matrix second = round_to_int8(again, by_row);
    EXPECT_EQ(first.values, second.values);
    EXPECT_EQ(first.scales, second.scales);
  }
}

class QuantizedDirectory : public testing::Test {
 protected:
  QuantizedDirectory()
      : directory_(fs::temp_directory_path() /
                   ("starling-int8-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name())),
        vocabularies_((fs::create_directories(directory_), train()), std::nullopt),
        backend_(make_backend("cpu:f32", 1)) {
    config_ = model_preset("transformer-tiny");
    config_.encoder_layers = config_.decoder_layers = 2, config_.width = 64, config_.feed_forward = 128, config_.heads = 2;
    config_.dropout = 0;
    config_.tied_embeddings = TiedEmbeddings::decoder;
    model_ = make_model(config_, vocabularies_.sizes(), *backend_, 9, false);
    batch_ = random_batch(8, vocabularies_.sizes().target_size, 4, 12);
  }
  ~QuantizedDirectory() override { fs::remove_all(directory_); }

  Vocabulary train() {
    const std::vector<std::string> lines{"the dog sees a red house", "a cat runs", "big trees see the house", "dogs run and cats see"};
    size_t at = 0;
    VocabularyOptions options;
    options.size = 40;
    const std::string file = path("v.spm");
    train_vocabulary([&](std::string_view& line) { return at < lines.size() && (line = lines[at++], true); }, options, file);
    return Vocabulary::load(file);
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void publish(const std::string& name) {
    publish_directory(*files_, path(name), 0, model_parts(*model_, config_, {}, vocabularies_, {}, 0));
  }
  double log_perplexity(Model& model) const {
    const LossSums sums = run(model, batch_, false);
    return sums.nll / static_cast<double>(sums.tokens);
  }

  fs::path directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  Vocabularies vocabularies_;
  std::unique_ptr<Backend> backend_;
  ModelConfig config_;
  std::unique_ptr<Model> model_;
  Batch batch_;
};

TEST_F(QuantizedDirectory, GivesTheSameIntegersBackAndCostsLittle) {
  const double floats = log_perplexity(*model_);
  publish("float");
  quantize_all(*model_);
  const double integers = log_perplexity(*model_);
  EXPECT_NEAR(integers, floats, 0.02);
  EXPECT_NE(integers, floats);
  publish("int8");
  EXPECT_LT(fs::file_size(path("int8/model.safetensors")), 0.4 * fs::file_size(path("float/model.safetensors")));
  EXPECT_THAT(read_text_file(path("int8/about.txt")), testing::HasSubstr("8-bit"));
  EXPECT_THAT(read_text_file(path("float/about.txt")), testing::Not(testing::HasSubstr("8-bit")));

  const LoadedModel loaded = load_model(*files_, path("int8"), {"auto", 1});
  EXPECT_TRUE(loaded.description.quantized);
  EXPECT_EQ(loaded.backend->activation(), DType::f32);
  EXPECT_EQ(loaded.model->parameters().values().to_doubles(), model_->parameters().values().to_doubles());
  for (const Parameter& p : loaded.model->parameters().all()) EXPECT_EQ(p.quantized, p.shape.rank() == 2) << p.name;
  EXPECT_EQ(log_perplexity(*loaded.model), integers);
  // The floats that the integers stand for: another precision of the products, the same weights.
  const LoadedModel wide = load_model(*files_, path("int8"), {"f32", 1});
  EXPECT_EQ(wide.model->parameters().values().to_doubles(), model_->parameters().values().to_doubles());
  for (const Parameter& p : wide.model->parameters().all()) EXPECT_FALSE(p.quantized) << p.name;
  EXPECT_NEAR(log_perplexity(*wide.model), floats, 0.02);
  // A float model is rounded when it is loaded, to the same.
  const LoadedModel rounded = load_model(*files_, path("float"), {"int8", 1});
  EXPECT_FALSE(rounded.description.quantized);
  EXPECT_EQ(log_perplexity(*rounded.model), integers);
  EXPECT_EQ(log_perplexity(*load_model(*files_, path("float"), {"f32", 1}).model), floats);
  EXPECT_THROW(load_model(*files_, path("float"), {"int4", 1}), ConfigError);
}

TEST_F(QuantizedDirectory, WeightsLoadedInTheirPlaceDropWhatWasPacked) {
  const double floats = log_perplexity(*model_);
  publish("float");
  quantize_all(*model_);
  const double integers = log_perplexity(*model_);  // packs
  publish("int8");
  load_weights(*files_, path("float/model.safetensors"), model_->parameters());
  EXPECT_EQ(log_perplexity(*model_), floats);
  load_weights(*files_, path("int8/model.safetensors"), model_->parameters(), true);
  EXPECT_EQ(log_perplexity(*model_), integers);
}

TEST_F(QuantizedDirectory, MatricesMayStayFloats) {
  for (const QuantizableMatrix& m : quantizable_matrices(*model_))
    if (m.parameter->name.find("feed_forward") != std::string::npos) quantize(m);
  const double expected = log_perplexity(*model_);
  publish("mixed");
  const LoadedModel loaded = load_model(*files_, path("mixed"), {"int8", 1});
  for (const Parameter& p : loaded.model->parameters().all())
    EXPECT_EQ(p.quantized, p.shape.rank() == 2 && p.name.find("feed_forward") != std::string::npos) << p.name;
  EXPECT_EQ(log_perplexity(*loaded.model), expected);
}

TEST_F(QuantizedDirectory, WorkersTranslateWithTheIntegersOfTheModel) {
  const std::vector<std::string> lines{"the dog sees a cat", "a red house", "trees run"};
  SearchOptions search;
  search.fixed_length = true, search.max_length_factor = 0, search.max_length_offset = 6;
  const auto translations = [&](Model& model) {
    Translator translator(model, vocabularies_, search, 2);
    std::vector<double> result;
    for (const auto& n_best : translator.translate(lines)) result.push_back(n_best.front().log_probability);
    return result;
  };
  const std::vector<double> floats = translations(*model_);
  publish("float");
  quantize_all(*model_);
  const std::vector<double> integers = translations(*model_);
  const LoadedModel loaded = load_model(*files_, path("float"), {"int8", 2});
  const std::vector<double> two_threads = translations(*loaded.model);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NE(integers[i], floats[i]);
    EXPECT_NEAR(integers[i], floats[i], 0.3);
    EXPECT_NEAR(two_threads[i], integers[i], 1e-4);
  }
}

TEST_F(QuantizedDirectory, FilesThatDoNotFitAreRefused) {
  quantize_all(*model_);
  publish("int8");
  const SafetensorsFile file(*files_, path("int8/model.safetensors"));
  const auto write = [&](const std::function<bool(NamedBytes&)>& keep) {
    std::vector<NamedBytes> tensors;
    for (NamedBytes t : file.tensors())
      if (keep(t)) tensors.push_back(t);
    const auto out = files_->create(path("broken.safetensors"));
    write_safetensors(*out, tensors);
    out->close();
  };
  const std::string name = "encoder.0.feed_forward.inner.weight";
  const auto expect = [&](const std::string& message) {
    try {
      load_weights(*files_, path("broken.safetensors"), model_->parameters());
      FAIL() << message;
    } catch (const DataError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(message));
    }
  };
  write([&](NamedBytes& t) { return t.name != name + ".scale"; });
  expect(name + ".scale");
  write([&](NamedBytes& t) {
    if (t.name == name) std::swap(t.shape[0], t.shape[1]);
    return true;
  });
  expect("do not belong together");
  write([&](NamedBytes& t) {
    if (t.name == name + ".scale") t.shape = {2, 64};
    return true;
  });
  expect("do not belong together");
}

}  // namespace
}  // namespace starling
