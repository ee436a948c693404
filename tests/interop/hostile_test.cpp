// Small files that would take much: each is refused before the memory is taken, by a message that names the file and shows nothing that a
// terminal would obey. bench/hostile_models.py measures whole processes; here single readers are looked at.
#include <gmock/gmock.h>

#include "base/byte_budget.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/quotes.h"
#include "base/random.h"
#include "formats/zip.h"
#include "interop/ct2.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"
#include "tests/interop/archives.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kFixtures = std::string(STARLING_SOURCE_DIR) + "/tests/fixtures";

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ByteBudget, AllowsWhatWasReadAndSomeMore) {
  ByteBudget budget(1000);
  budget.take(ByteBudget::kSpare + 1000, "f", "it");
  EXPECT_EQ(
      refusal([&] { budget.take(1, "f", "the table"); }),
      "f: the table would take 48 MiB and more, where the size of the file allows 48 MiB; it is damaged or was made to harm, so fetch it "
      "again");
  budget.allow(10);
  {
    const BudgetScope scope(budget);
    budget.take(10, "f", "it");
    EXPECT_EQ(budget.left(), 0u);
  }
  EXPECT_EQ(budget.left(), 10u);
  EXPECT_THROW(budget.take(UINT64_MAX, "f", "it"), DataError);
}

// What the document takes is measured by counting what the allocator gives: the charge must not be below it.
TEST(BoundedJson, ChargesAtLeastWhatTheDocumentTakes) {
  for (const std::string& text : {"[" + repeated("[],", 300'000) + "[]]", "[" + repeated("{},", 300'000) + "{}]",
                                  "[" + repeated("\"a text of some length\",", 200'000) + "0]", "[" + repeated("0,", 900'000) + "0]"}) {
    ByteBudget budget(uint64_t{1} << 40);
    const int64_t before = resident_memory();
    const nlohmann::json json = parse_json(text, "f", budget);
    EXPECT_GE(static_cast<int64_t>(budget.taken()) + (4 << 20), resident_memory() - before) << text.substr(0, 20);
    EXPECT_EQ(json, nlohmann::json::parse(text));
  }
}

TEST(BoundedJson, RefusesDocumentsThatTakeManyTimesTheirText) {
  const auto why = [](const std::string& text) { return refusal([&] { parse_json_object(text, "f"); }); };
  EXPECT_THAT(why("{\"a\":[" + repeated("[],", 1'000'000) + "0]}"), StartsWith("f: the JSON in it would take 5"));
  EXPECT_EQ(why(repeated("{\"a\":", 9)), "f: JSON nested deeper than 8 levels");
  EXPECT_EQ(why("{\"a\":0,\"a\":1}"), "f: the JSON key 'a' occurs twice");
  EXPECT_EQ(why("{\"a\":" + std::string(100'000, '\n') + "0}"), "f: has more than 64 KiB of white space");
  EXPECT_EQ(why("{\"a\":\"" + std::string(5 << 20, 'x') + "\"}"), "f: has a text of more than 4 MiB");
  EXPECT_EQ(why("{\"a\":\"\\\"" + std::string(5 << 20, 'x') + "\"}"), "f: has a text of more than 4 MiB");
  EXPECT_EQ(why("[]"), "f: is JSON, but not an object");
  EXPECT_LT(why("{\"" + std::string(1 << 20, 'x')).size(), 300u);
  EXPECT_EQ(parse_json_object("{\"a\": [1, {\"b\": \"\\u00e9\"}], \"c\": null}" + std::string(1 << 20, ' '), "f").dump(),
            "{\"a\":[1,{\"b\":\"\xc3\xa9\"}],\"c\":null}");
}

TEST(Printable, ShowsNothingThatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[2J\x07\n\xff\xe2\x80\xae\xc2\x9bZ \xc3\xa9"), "a\\x1b[2J\\x07\\x0a\\xff\\xe2\\x80\\xae\\xc2\\x9bZ \xc3\xa9");
  EXPECT_EQ(without_controls("a\x1b[2J\r\n\tb\xff" + std::string(300, 'x')), "a\\x1b[2J\\x0d\n\tb\\xff" + std::string(300, 'x'));
  EXPECT_EQ(printable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(printable(std::string(100'000, 'x')), std::string(200, 'x') + "...");
}

class HostileModel : public InteropTest {
 protected:
  void put(const std::string& name, const std::string& content) { files_->write_file(path(name), content); }
  std::string why_not(const std::string& from) {
    const std::string why = refusal([&] { imported(from); });
    EXPECT_EQ(printable(why.substr(0, 150)), why.substr(0, 150));
    EXPECT_LT(why.size(), 1000u);
    return why;
  }
  std::string fixture(const std::string& name) { return files_->read_file(kFixtures + "/" + name); }
};

TEST_F(HostileModel, ArchivesAreUnpackedAsFarAsTheirSizeAllows) {
  const std::string zeros = zip_of({{"model.npz", std::string(200 << 20, '\0')}, {"v.spm", fixture("marian/v.spm")}}, true);
  put("zeros.zip", zeros);
  EXPECT_LT(zeros.size(), size_t{1} << 20);
  EXPECT_THAT(why_not(path("zeros.zip")), HasSubstr("would take 200 MiB and more, where the size of the file allows 48 MiB"));
  ByteBudget budget;
  const std::string large(120 << 20, 'x'), packed = zip_of({{"w.npy", npy_of("'|i1'", "(125829120,)", large)}}, true);
  EXPECT_THAT(refusal([&] { read_npz(std::as_bytes(std::span(packed)), "m.npz", budget); }), StartsWith("m.npz: unpacking it would take"));
}

// Heads may say that there are bytes which do not come: 3,000 MiB here.
TEST_F(HostileModel, SizesInArchivesAreNotBelieved) {
  Random random(3, 3);
  std::string content;
  for (int i = 0; i < 4 << 20; ++i) content += static_cast<char>(random.below(256));
  std::string archive = zip_of({{"m.npz", content}}, true);
  const size_t at = archive.rfind("PK\x01\x02");
  archive.replace(at + 24, 4, bytes_of(uint64_t{3000} << 20, 4));
  const int64_t before = peak_memory().own;
  const ZipArchive zip(std::as_bytes(std::span(archive)), "it.zip");
  EXPECT_EQ(refusal([&] { zip.read(zip.entries()[0]); }), "it.zip: m.npz is damaged; fetch the archive again");
  EXPECT_LT(peak_memory().own - before, 100 << 20);
}

TEST_F(HostileModel, ArraysWithoutElementsHaveNoShapes) {
  const std::string one("\0\0\x80\x3f", 4);
  std::vector<ForeignArray> arrays{{"decoder_l1_ffn_W1", "q8", {0, 2147483647}, std::string(), 1.0f}};
  const std::string bytes = marian_bin(arrays);
  EXPECT_THAT(refusal([&] { read_marian_bin(bytes, "m.bin"); }), HasSubstr("the shape of decoder_l1_ffn_W1 does not match its data"));
}

// One layer of 1 MiB that stands for a hundred would be copied a hundred times.
TEST_F(HostileModel, AliasesOfWeightsAreCharged) {
  const std::string bytes = fixture("ct2/v2-aren-transliteration-i8/model.bin");
  Ct2File file = read_ct2(bytes, "model.bin");
  const ModelConfig config = ct2_config(file, "model.bin");
  ByteBudget none(0);
  none.take(ByteBudget::kSpare, "", "");
  EXPECT_NO_THROW(ct2_tensors(file, config, "model.bin", none));
  const std::string weight = "encoder/layer_0/ffn/linear_0/weight";
  file.aliases["encoder/layer_1/ffn/linear_0/weight"] = weight;
  file.arrays.erase("encoder/layer_1/ffn/linear_0/weight");
  EXPECT_THAT(refusal([&] { ct2_tensors(file, config, "model.bin", none); }), StartsWith("model.bin: a weight that stands for several"));
}

TEST_F(HostileModel, PositionsThatNobodyStoredAreCharged) {
  std::filesystem::copy(kFixtures + "/hf/marian", path("hf"));
  const std::string config = fixture("hf/marian/config.json");
  const std::string from = "\"max_position_embeddings\": 48";
  ASSERT_NE(config.find(from), std::string::npos);
  std::string changed = config;
  files_->write_file(path("hf/config.json"), changed.replace(config.find(from), from.size(), "\"max_position_embeddings\": 1048576"));
  EXPECT_THAT(why_not(path("hf")), HasSubstr("the table of positions that config.json asks for would take 128 MiB"));
}

// A link that leads to itself, beside a model, is nothing.
TEST_F(HostileModel, LoopingLinksAreIgnored) {
  std::filesystem::copy(kFixtures + "/marian/post", path("post"));
  std::filesystem::copy(kFixtures + "/marian/v.spm", path("post/v.spm"));
  std::filesystem::create_symlink("loop", path("post/loop"));
  std::filesystem::create_directory(path("post/inner"));
  std::filesystem::create_symlink("loop", path("post/inner/loop"));
  EXPECT_EQ(refusal([&] { imported(path("post")); }), "");
}

TEST_F(HostileModel, NamesAreShownEscaped) {
  const std::string evil = "evil\x1b[2J\x07";
  std::string npz = fixture("marian/ssru/model.npz");
  std::vector<std::pair<std::string, std::string>> entries;
  const ZipArchive zip(std::as_bytes(std::span(npz)), "m.npz");
  for (const ZipEntry& e : zip.entries()) entries.emplace_back(e.name, zip.read(e));
  entries.emplace_back(evil + ".npy", npy_of("'<f4'", "(1,)", "1234"));
  std::filesystem::create_directory(path("m"));
  put("m/model.npz", zip_of(entries));
  put("m/v.spm", fixture("marian/v.spm"));
  EXPECT_THAT(why_not(path("m")), HasSubstr("evil\\x1b[2J\\x07.npy in it is not an array"));
  put("m.zip", zip_of({{"model.npz", fixture("marian/ssru/model.npz")}, {"v.spm", fixture("marian/v.spm")}, {"LICENSE" + evil, "x"}}));
  const std::string directory = imported(path("m.zip"));
  for (const std::string& name : files_->list(directory)) EXPECT_THAT(name, Not(HasSubstr("LICENSE")));
}

}  // namespace
}  // namespace starling
