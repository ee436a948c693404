// Zip archives and NumPy's arrays: what they hold, and what is refused.
#include <gmock/gmock.h>
#include <zlib.h>
#include <zstd.h>

#include <map>

#include "base/random.h"
#include "formats/zip.h"
#include "interop/npz.h"
#include "tests/interop/archives.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Zip, GivesWhatWasStoredAndDeflated) {
  const std::string large(100'000, 'x');
  for (bool deflate : {false, true}) {
    const std::string bytes = zip_of({{"a.txt", large}, {"folder/", ""}, {"folder/b", "short"}, {"empty", ""}}, deflate);
    EXPECT_EQ(bytes.size() < large.size(), deflate);
    const ZipArchive zip(as_bytes(bytes), "it.zip");
    ASSERT_EQ(zip.entries().size(), 4u);
    std::map<std::string, std::string> content;
    for (const ZipEntry& e : zip.entries()) content[e.name] = zip.read(e);
    EXPECT_EQ(content, (std::map<std::string, std::string>{{"a.txt", large}, {"folder/", ""}, {"folder/b", "short"}, {"empty", ""}}));
  }
}

// The archive with new contents of the entries for which `content` returns one.
std::string rewritten(const ZipArchive& zip, const std::function<std::optional<std::string>(const ZipEntry&)>& content) {
  std::string out;
  ZipRewriter rewriter(zip, [&](std::string_view bytes) { out += bytes; });
  for (const ZipEntry* e : zip.in_order()) {
    if (const auto fresh = content(*e))
      rewriter.replace(*e, [&](const ZipRewriter::Write& write) { write(fresh->substr(0, 1)), write(fresh->substr(1)); });
    else
      rewriter.copy(*e);
  }
  rewriter.end();
  return out;
}

TEST(Zip, IsRewrittenWithTheRestAsItWas) {
  const std::string old = zip_of({{"a", std::string(5000, 'a')}, {"b", "second"}, {"c", "third"}, {"d", "fourth"}}, true);
  const ZipArchive zip(as_bytes(old), "it.zip");
  EXPECT_EQ(rewritten(zip, [](const ZipEntry&) { return std::nullopt; }), old);
  std::vector<std::string> asked;
  const std::string fresh = rewritten(zip, [&](const ZipEntry& e) -> std::optional<std::string> {
    asked.push_back(e.name);
    if (e.name == "a" || e.name == "b") return "new " + e.name;
    return std::nullopt;
  });
  EXPECT_THAT(asked, ElementsAre("a", "b", "c", "d"));
  const ZipArchive again(as_bytes(fresh), "it.zip");
  std::vector<std::string> content;
  for (const ZipEntry& e : again.entries()) content.push_back(e.name + (e.deflated ? " deflated: " : " stored: ") + again.read(e));
  EXPECT_THAT(content, ElementsAre("a deflated: new a", "b stored: new b", "c deflated: third", "d stored: fourth"));
}

// What writes to a pipe puts sizes and sum behind the content (flag 8) and marks sizes in the header as unknown.
TEST(Zip, SizesBehindTheContentComeInFrontOfIt) {
  std::string piped = zip_of({{"a", "first"}});
  const size_t record = piped.find("PK\x01\x02");
  piped[6] = piped[record + 8] = 8;
  for (size_t i = 14; i < 26; ++i) piped[i] = 0;
  const ZipArchive zip(as_bytes(piped), "it.zip");
  EXPECT_EQ(rewritten(zip, [](const ZipEntry&) { return std::nullopt; }), zip_of({{"a", "first"}}));
}

TEST(Zip, RefusesWhatIsDamaged) {
  const std::string whole = zip_of({{"a", "some content"}, {"b", "more"}});
  const auto all = [](const std::string& bytes) {
    const ZipArchive zip(as_bytes(bytes), "it.zip");
    for (const ZipEntry& e : zip.entries()) zip.read(e);
  };
  EXPECT_EQ(refusal([&] { all(whole); }), "");
  EXPECT_THAT(refusal([&] { all(whole.substr(0, whole.size() - 5)); }), HasSubstr("was it cut short?"));
  EXPECT_THAT(refusal([&] { all(""); }), HasSubstr("too short"));
  std::string other = whole;
  other[other.find("some content")] = 'S';
  EXPECT_THAT(refusal([&] { all(other); }), HasSubstr("a is damaged: its checksum is wrong"));
}

// A kilobyte that claims to be gigabytes, and so on: nothing but a refusal, and no memory for what cannot be there.
TEST(Zip, MutationsAreReadOrRefused) {
  const std::string whole = zip_of({{"a", std::string(3000, 'a')}, {"b", "more"}, {"c", std::string(500, 'c')}}, true);
  Random random(1, 1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 1 + i % 4; ++k) bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    if (i % 7 == 0) bytes.resize(random.below(bytes.size()));
    try {
      const ZipArchive zip(as_bytes(bytes), "it.zip");
      for (const ZipEntry& e : zip.entries()) {
        EXPECT_LT(e.size, 1100 * (bytes.size() + 1));
        zip.read(e);
      }
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

// Of any content, a zip archive too, which no reader of text would take.
TEST(Unpacked, ArchivesOfGzipAndZstandard) {
  const std::string content = zip_of({{"a", std::string(3'000'000, 'a')}});
  std::string gzip(compressBound(content.size()) + 32, '\0'), zstd(ZSTD_compressBound(content.size()), '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(gzip.data());
  stream.avail_out = static_cast<uInt>(gzip.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  gzip.resize(stream.total_out);
  deflateEnd(&stream);
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), content.data(), content.size(), 3));
  ByteBudget budget;
  for (const std::string& archive : {gzip, zstd}) {
    EXPECT_LT(archive.size(), content.size() / 10);
    EXPECT_TRUE(unpacked(archive, "m.bin.gz", budget) == content);
    EXPECT_THAT(refusal([&] { unpacked(archive.substr(0, archive.size() / 2), "m.bin.gz", budget); }), testing::StartsWith("m.bin.gz: "));
  }
  EXPECT_EQ(unpacked("plain", "m.bin", budget), "plain");
  EXPECT_EQ(without_packing("m.bin.gz") + without_packing("m.bin.zst") + without_packing("m.bin"), "m.binm.binm.bin");
}

TEST(Npz, GivesTypesShapesAndElements) {
  const std::string bytes = zip_of({{"w.npy", npy_of("'<f4'", "(2, 3)", std::string(24, 'f'))},
                                    {"v.npy", npy_of("'|i1'", "(5,)", "hello")},
                                    {"one.npy", npy_of("'<f8'", "()", std::string(8, '\0'))}});
  ByteBudget budget;
  const std::vector<ForeignArray> arrays = read_npz(as_bytes(bytes), "m.npz", budget);
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].name, "w");
  EXPECT_EQ(arrays[0].type, "f4");
  EXPECT_THAT(arrays[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(arrays[0].bytes, std::string(24, 'f'));
  EXPECT_EQ(arrays[1].type, "i1");
  EXPECT_EQ(arrays[1].bytes, "hello");
  EXPECT_TRUE(arrays[2].shape.empty());
}

TEST(Npz, RefusesOtherArrays) {
  const auto with = [](const std::string& content) { return refusal([&] { read_npy(content, "m.npz: w.npy"); }); };
  EXPECT_THAT(with("no array, as everybody sees"), HasSubstr("m.npz: w.npy: not a NumPy array (it does not start with NumPy's signature)"));
  EXPECT_THAT(with(npy_of("'>f4'", "(1,)", "1234")), HasSubstr("unsupported type '>f4'"));
  EXPECT_THAT(with(npy_of("[('a', '<f4')]", "(1,)", "1234")), HasSubstr("unsupported type"));
  EXPECT_THAT(with(npy_of("'<f4'", "(3,)", "1234")), HasSubstr("4 bytes of elements, but its shape needs 12"));
  EXPECT_THAT(with(npy_of("'<f4'", "(1000000000, 1000000000, 1000000000)", "1234")), HasSubstr("cut short"));
  EXPECT_THAT(with(npy_of("'<f4'", "(-1,)", "1234")), HasSubstr("shape is damaged"));
  EXPECT_THAT(with(npy_of("'<f4'", "(1", "1234")), HasSubstr("shape is damaged"));
  EXPECT_EQ(with(npy_of("'<f4'", "(1,)", "1234")), "");
}

}  // namespace
}  // namespace starling
