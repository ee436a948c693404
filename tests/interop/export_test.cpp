// Models as other programs': what was imported comes out as it was, byte by byte where types allow; and what is refused.
#include "interop/export.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "interop/ct2.h"
#include "interop/import.h"
#include "interop/marian.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kMarian = STARLING_SOURCE_DIR "/tests/fixtures/marian", kCt2 = STARLING_SOURCE_DIR "/tests/fixtures/ct2";

class Export : public testing::Test {
 protected:
  Export() { std::filesystem::remove_all(directory_), std::filesystem::create_directories(directory_); }
  ~Export() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string import(const std::string& from) {
    const std::string output = path("model" + std::to_string(++count_));
    import_model(*files_, {from, output, {from.starts_with(kMarian) ? kMarian + "/v.spm" : "", "", "", ""}, {}});
    return output;
  }
  std::string import_again(const std::string& from) {
    const std::string output = path("model" + std::to_string(++count_));
    import_model(*files_, {from, output, {}, {}});
    return output;
  }
  std::string exported(const std::string& model, ExportFormat to, bool integers = false, const Languages& languages = {}) {
    const std::string output = path("exported" + std::to_string(++count_));
    export_model(*files_, {model, output, to, integers, languages});
    return output;
  }
  std::vector<double> values_of(const std::string& model) {
    const LoadedModel m = load_model(*files_, model, {"f32", 1});
    return m.model->parameters().values().to_doubles();
  }
  std::string refusal(const std::string& model, ExportFormat to, bool integers = false) {
    try {
      exported(model, to, integers);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  }
  std::map<std::string, ForeignArray> npz_of_file(const std::string& file) {
    const std::string bytes = files_->read_file(file);
    std::map<std::string, ForeignArray> arrays;
    for (ForeignArray& a : read_npz(std::as_bytes(std::span(bytes)), file)) arrays[a.name] = a;
    return arrays;
  }
  const std::unique_ptr<FileSystem> files_ = real_file_system();
  const std::string directory_ = testing::TempDir() + "/export." + std::to_string(getpid());
  int count_ = 0;
};

TEST_F(Export, MariansArraysComeOutAsTheyWere) {
  for (const std::string name : {"post", "pre", "ssru"}) {
    const std::string folder = exported(import(kMarian + "/" + name), ExportFormat::marian);
    const auto before = npz_of_file(kMarian + "/" + name + "/model.npz"), now = npz_of_file(folder + "/model.npz");
    EXPECT_EQ(before.size(), now.size());
    for (const auto& [array, a] : before) {
      ASSERT_TRUE(now.contains(array)) << array;
      if (array.starts_with("special:")) continue;
      EXPECT_EQ(now.at(array).shape, a.shape) << array;
      EXPECT_EQ(now.at(array).bytes == a.bytes, true) << array;
    }
    // The settings say the same model.
    const auto config = [](const std::map<std::string, ForeignArray>& arrays) {
      const std::string& yaml = arrays.at("special:model.yml").bytes;
      const ModelConfig c = marian_config(yaml.substr(0, yaml.find('\0')), "");
      return std::tuple(c.encoder_layers, c.decoder_layers, c.width, c.heads, c.feed_forward, c.norm, c.activation, c.autoregression,
                        c.tied_embeddings, c.output_bias);
    };
    EXPECT_EQ(config(before), config(now));
    EXPECT_EQ(values_of(import_again(folder)), values_of(import(kMarian + "/" + name)));
  }
}

TEST_F(Export, BinariesHoldTheSameModel) {
  for (const std::string name : {"post", "pre", "ssru"}) {
    const std::string model = import(kMarian + "/" + name), folder = exported(model, ExportFormat::bergamot);
    EXPECT_EQ(values_of(import_again(folder)), values_of(model)) << name;
    EXPECT_THAT(files_->read_file(folder + "/config.yml"), HasSubstr("gemm-precision: float32"));
  }
}

TEST(MarianBin, IntegersTurnAndComeBack) {
  Random random(1, 1);
  std::string elements;
  for (int i = 0; i < 64 * 24; ++i) elements += static_cast<char>(random.below(256));
  const std::vector<ForeignArray> arrays{{"encoder_l1_ffn_W1", "q8", {64, 24}, elements, 0.5f},
                                         {"Wemb", "q8", {24, 64}, elements, 0.25f},
                                         {"bias", "f4", {1, 2}, std::string(8, 'f')},
                                         {"special:model.yml", "i1", {4}, "abc\n"}};
  const std::string bytes = marian_bin(arrays);
  // Data begins at multiples of 256, a matrix the other way round: its second element is the first of its second row.
  const size_t begin = bytes.size() - 256 - 256 - 2 * 1792;
  EXPECT_EQ(begin % 256, 0u);
  EXPECT_EQ(bytes[begin], elements[0]);
  EXPECT_EQ(bytes[begin + 1], elements[24]);
  EXPECT_EQ(bytes[begin + 1792 + 1], elements[1]);
  float multiplier = 0;
  std::memcpy(&multiplier, bytes.data() + begin + 64 * 24, 4);
  EXPECT_EQ(multiplier, 2.0f);
  EXPECT_TRUE(is_marian_bin(bytes));
  const std::vector<ForeignArray> again = read_marian_bin(bytes, "model.bin");
  ASSERT_EQ(again.size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(again[i].name, arrays[i].name);
    EXPECT_EQ(again[i].type, arrays[i].type);
    EXPECT_EQ(again[i].shape, arrays[i].shape);
    EXPECT_EQ(again[i].bytes, arrays[i].bytes);
    EXPECT_EQ(again[i].unit, arrays[i].unit);
  }
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string other = bytes;
    for (int k = 0; k < 1 + i % 4; ++k) other[random.below(i % 2 ? other.size() : 300)] = static_cast<char>(random.below(256));
    if (i % 9 == 0) other.resize(random.below(other.size()));
    try {
      read_marian_bin(other, "model.bin");
    } catch (const DataError&) {
      ++refused;
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

// Integers are taken over as they are; scales, which are inverted on the way, may differ by their last bits.
TEST_F(Export, CTranslate2sDirectoryComesOutAsItWas) {
  for (const std::string name : {"v2-aren-transliteration-i8", "v1-aren-transliteration-i16"}) {
    const bool integers = name.ends_with("i8");
    const std::string folder = exported(import(kCt2 + "/" + name), ExportFormat::ctranslate2, integers);
    const Ct2File before = read_ct2(files_->read_file(kCt2 + "/" + name + "/model.bin"), ""),
                  now = read_ct2(files_->read_file(folder + "/model.bin"), "");
    for (const auto& [array, a] : before.arrays) {
      const std::string today = array == "encoder/embeddings/weight"         ? "encoder/embeddings_0/weight"
                                : array == "encoder/embeddings/weight_scale" ? "encoder/embeddings_0/weight_scale"
                                                                             : array;
      const ForeignArray* const b = now.find(today);
      ASSERT_TRUE(b) << today;
      EXPECT_EQ(b->shape, a.shape) << today;
      if (a.type == b->type && !array.ends_with("_scale")) {
        EXPECT_TRUE(b->bytes == a.bytes) << today;
        continue;
      }
      if (a.type != "f4") continue;
      for (size_t i = 0; i < a.bytes.size(); i += 4) {
        float x, y;
        std::memcpy(&x, a.bytes.data() + i, 4), std::memcpy(&y, b->bytes.data() + i, 4);
        EXPECT_NEAR(x, y, 3e-7 * std::abs(x)) << today;
      }
    }
    EXPECT_FALSE(now.find("encoder/position_encodings/encodings"));  // theirs begin with 1, as CTranslate2's own
    EXPECT_EQ(read_ct2(files_->read_file(folder + "/model.bin"), "").number("encoder/num_heads", 0), 8);
  }
}

TEST_F(Export, AModelOfOursInCTranslate2sAndArgosFormatsIsTheSameModel) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/";
  for (const std::string name : {"pre", "post"}) {
    const std::string folder = exported(ours + name + "/model", ExportFormat::ctranslate2);
    EXPECT_TRUE(files_->exists(folder + "/sentencepiece.model"));
    const std::string again = import_again(folder);
    EXPECT_EQ(values_of(again), values_of(ours + name + "/model"));
    const ModelDescription a = read_description(*files_, ours + name + "/model"), b = read_description(*files_, again);
    EXPECT_EQ(b.config.first_position, 0);
    EXPECT_EQ(b.config.position_table, 0);
    EXPECT_TRUE(b.config.source_end);
    EXPECT_EQ(b.config.norm, a.config.norm);
    EXPECT_EQ(b.vocabularies.source().encode("Zwei Hunde"), a.vocabularies.source().encode("Zwei Hunde"));
    const std::string package = exported(ours + name + "/model", ExportFormat::argos, false, {"en", "de"});
    EXPECT_EQ(values_of(import_again(package)), values_of(ours + name + "/model"));
  }
  EXPECT_THAT(refusal(ours + "pre/model", ExportFormat::argos), HasSubstr("--source-language"));
}

TEST_F(Export, RefusesWhatTheFormatsCannotHold) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/";
  EXPECT_THAT(refusal(ours + "post/model", ExportFormat::marian), HasSubstr("model.decoder-start: token; train one with zero"));
  EXPECT_THAT(refusal(ours + "gnmt/model", ExportFormat::ctranslate2), HasSubstr("train one with a transformer preset"));
  EXPECT_THAT(refusal(import(kMarian + "/ssru"), ExportFormat::ctranslate2), HasSubstr("model.autoregression: ssru"));
  EXPECT_THAT(refusal(import(kMarian + "/post"), ExportFormat::marian, true), HasSubstr("choose --to bergamot"));
  EXPECT_FALSE(files_->exists(path("exported1")));
}

}  // namespace
}  // namespace starling
