// Models as other programs': what was imported comes out as it was, byte by byte where types allow; and what is refused.
#include "exporting/export.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "interop/ct2.h"
#include "interop/marian.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kMarian = STARLING_SOURCE_DIR "/tests/fixtures/marian", kCt2 = STARLING_SOURCE_DIR "/tests/fixtures/ct2";

class Export : public InteropTest {
 protected:
  std::string import(const std::string& from) { return imported(from, {from.starts_with(kMarian) ? kMarian + "/v.spm" : "", "", "", ""}); }
  std::string exported(const std::string& model, Program to, bool integers = false, const Languages& languages = {}) {
    const std::string output = fresh();
    export_model(*files_, {model, output, to, integers, languages});
    return output;
  }
  std::string why_not(const std::string& model, Program to, bool integers = false) {
    return refusal([&] { exported(model, to, integers); });
  }
  std::map<std::string, ForeignArray> npz_of_file(const std::string& file) {
    const std::string bytes = files_->read_file(file);
    std::map<std::string, ForeignArray> arrays;
    ByteBudget budget;
    for (ForeignArray& a : read_npz(std::as_bytes(std::span(bytes)), file, budget)) {
      a.bytes = a.bytes.kept();
      arrays[a.name] = a;
    }
    return arrays;
  }
};

TEST_F(Export, MariansArraysComeOutAsTheyWere) {
  for (const std::string name : {"post", "ssru"}) {
    const std::string folder = exported(import(kMarian + "/" + name), Program::marian);
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
      const std::string yaml(arrays.at("special:model.yml").bytes);
      const ModelConfig c = marian_config(yaml.substr(0, yaml.find('\0')), "");
      return std::tuple(c.encoder_layers, c.decoder_layers, c.width, c.heads, c.feed_forward, c.norm, c.activation, c.autoregression,
                        c.tied_embeddings, c.output_bias);
    };
    EXPECT_EQ(config(before), config(now));
    EXPECT_EQ(values_of(imported(folder)), values_of(import(kMarian + "/" + name)));
  }
}

TEST_F(Export, BinariesHoldTheSameModel) {
  for (const std::string name : {"post", "ssru"}) {
    const std::string model = import(kMarian + "/" + name), folder = exported(model, Program::bergamot);
    EXPECT_EQ(values_of(imported(folder)), values_of(model)) << name;
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
    const std::string folder = exported(import(kCt2 + "/" + name), Program::ctranslate2, integers);
    const std::string bytes = files_->read_file(kCt2 + "/" + name + "/model.bin"), again = files_->read_file(folder + "/model.bin");
    const Ct2File before = read_ct2(bytes, ""), now = read_ct2(again, "");
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
    EXPECT_EQ(now.number("encoder/num_heads", 0), 8);
  }
}

TEST_F(Export, AModelOfOursInCTranslate2sAndArgosFormatsIsTheSameModel) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/";
  for (const std::string name : {"pre", "post"}) {
    const std::string folder = exported(ours + name + "/model", Program::ctranslate2);
    EXPECT_TRUE(files_->exists(folder + "/sentencepiece.model"));
    const std::string again = imported(folder);
    EXPECT_EQ(values_of(again), values_of(ours + name + "/model"));
    const ModelDescription a = read_description(*files_, ours + name + "/model"), b = read_description(*files_, again);
    EXPECT_EQ(b.config.first_position, 0);
    EXPECT_EQ(b.config.position_table, 0);
    EXPECT_TRUE(b.config.source_end);
    EXPECT_EQ(b.config.norm, a.config.norm);
    EXPECT_EQ(b.vocabularies.source().encode("Zwei Hunde"), a.vocabularies.source().encode("Zwei Hunde"));
    const std::string package = exported(ours + name + "/model", Program::argos, false, {"en", "de"});
    EXPECT_EQ(values_of(imported(package)), values_of(ours + name + "/model"));
  }
  EXPECT_THAT(why_not(ours + "pre/model", Program::argos), HasSubstr("--source-language"));
}

// What translations begin with goes with a package; positions that CTranslate2 cannot compute are written as a table.
TEST_F(Export, PrefixesAndTablesOfPositions) {
  const std::string model = import(kMarian + "/post");
  change(model + "/decode.yml", "target-prefix: \"\"", "target-prefix: \"▁Ein\"");
  const std::string package = exported(model, Program::argos, false, {"en", "de"});
  EXPECT_EQ(read_description(*files_, imported(package)).search.target_prefix, "▁Ein");

  const std::string computed = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model", directory = exported(computed, Program::ctranslate2);
  const std::string bytes = files_->read_file(directory + "/model.bin");
  Ct2File file = read_ct2(bytes, "");
  const ForeignArray* const table = file.find("encoder/position_encodings/encodings");
  ASSERT_TRUE(table);
  const std::vector<float> rows = elements_of<float>(table->bytes);
  EXPECT_EQ(table->shape[0], 2048);
  EXPECT_NEAR(rows[0], 0, 1e-6);  // the sine of the first position, 0
  EXPECT_NEAR(rows[static_cast<size_t>(table->shape[1])], std::sin(1.0), 1e-6);
}

// All obstacles at once, each with what the program needs.
TEST_F(Export, RefusesWhatTheProgramsCannotHave) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/";
  const std::string pre = why_not(ours + "pre/model", Program::bergamot, true);
  EXPECT_THAT(pre, HasSubstr("model.norm is pre, and bergamot-translator needs post"));
  EXPECT_THAT(pre, HasSubstr("; model.decoder-start is token, and bergamot-translator needs zero; "));
  EXPECT_THAT(pre, HasSubstr("needs a multiple of 64 for 8-bit integers"));
  EXPECT_THAT(pre, HasSubstr("train a model with --model.for bergamot"));
  EXPECT_THAT(why_not(ours + "gnmt/model", Program::ctranslate2), HasSubstr("needs a transformer preset"));
  EXPECT_THAT(why_not(import(kMarian + "/ssru"), Program::ctranslate2), HasSubstr("model.autoregression is ssru"));
  EXPECT_THAT(why_not(import(kMarian + "/post"), Program::marian, true), HasSubstr("choose --to bergamot"));
  // Marian's own decoder does not give what a pre-norm model was trained for.
  EXPECT_THAT(why_not(import(kMarian + "/pre"), Program::marian), HasSubstr("model.norm is pre, and Marian needs post"));
}

}  // namespace
}  // namespace starling
