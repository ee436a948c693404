// Lines come out the same from every format, and every defect is told with file and line.
#include "data/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.next(line)) lines.emplace_back(line);
  EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
  return lines;
}

std::string refusal(const std::string& path) {
  return test::message_of<DataError>([&] { lines_of(path); });
}

TEST(LineReader, ReadsPlainGzipAndZstandardAlike) {
  const TemporaryDirectory directory;
  const std::string text = test::sentences(1, 20000);
  const auto plain = lines_of(directory.write("plain", text));
  EXPECT_EQ(plain.size(), 20000u);
  EXPECT_EQ(plain, lines_of(directory.write("text.gz", test::gzip(text))));
  EXPECT_EQ(plain, lines_of(directory.write("text.zst", test::zstandard(text))));
  EXPECT_EQ(plain, lines_of(directory.write("no-extension", test::gzip(text))));
  EXPECT_EQ(plain, lines_of(directory.write("wrong.gz", test::zstandard(text))));
}

TEST(LineReader, ReadsMemoryAsItReadsFiles) {
  const std::string text = test::sentences(1, 20000), packed = test::zstandard(text);
  LineReader from_text("the text", text), from_archive("the archive", packed);
  std::string_view one, other;
  while (from_text.next(one)) ASSERT_TRUE(from_archive.next(other) && one == other) << from_text.line_number();
  EXPECT_FALSE(from_archive.next(other));
  EXPECT_EQ(from_text.line_number(), 20000);
  LineReader torn("the torn one", std::string_view(packed).substr(0, packed.size() - 1));
  const auto read = [&] {
    while (torn.next(one)) continue;
  };
  EXPECT_THAT(test::message_of<DataError>(read), AllOf(StartsWith("the torn one:"), HasSubstr("cut short")));
}

TEST(LineReader, LosesNothingAtTheEdgesOfItsBuffer) {
  const TemporaryDirectory directory;
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{200'000}, size_t{700'000}}) {
    for (const size_t total : {size_t{262'144}, size_t{524'288}, size_t{524'289}, size_t{3'000'000}}) {
      std::vector<std::string> expected;
      std::string text;
      while (text.size() < total) {
        expected.push_back(std::string(size, static_cast<char>('a' + expected.size() % 26)));
        text += expected.back() + "\n";
      }
      text.pop_back();  // the last line has no line end
      const std::vector<std::string> got = lines_of(directory.write("edges", text));
      EXPECT_TRUE(got == expected) << size << " and " << total;
    }
  }
}

TEST(LineReader, ReadsAllMembersAndFrames) {
  const TemporaryDirectory directory;
  EXPECT_THAT(lines_of(directory.write("a", test::gzip("1\n2") + test::gzip("") + test::gzip("3\n4\n"))), ElementsAre("1", "23", "4"));
  EXPECT_THAT(lines_of(directory.write("b", test::gzip("1\n") + std::string(700, '\0'))), ElementsAre("1"));
  EXPECT_THAT(lines_of(directory.write("c", test::zstandard("1\n2") + test::zstandard("") + test::zstandard("3\n"))),
              ElementsAre("1", "23"));
  const std::string skippable("\x51\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_THAT(lines_of(directory.write("d", skippable + test::zstandard("1\n"))), ElementsAre("1"));
}

TEST(LineReader, LineEndsAndByteOrderMark) {
  const TemporaryDirectory directory;
  EXPECT_THAT(lines_of(directory.write("a", "\xef\xbb\xbfone\r\n\r\nthr\ree\nlast")), ElementsAre("one", "", "thr\ree", "last"));
  EXPECT_THAT(lines_of(directory.write("b", "")), ElementsAre());
  EXPECT_THAT(lines_of(directory.write("c", "\n")), ElementsAre(""));
  EXPECT_THAT(lines_of(directory.write("d", "x\n\xef\xbb\xbfy\n")), ElementsAre("x", "\xef\xbb\xbfy"));
  EXPECT_THAT(lines_of(directory.write("e", "\xef\xbb\xbf")), ElementsAre(""));
}

TEST(LineReader, RefusesWhatIsNotText) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("bad", "fine\nstray \xc3(\n");
  EXPECT_THAT(refusal(path), StartsWith(path + ":2: invalid UTF-8 at byte 6 (0xc3)"));
  EXPECT_THAT(refusal(directory.write("surrogate", "\xed\xa0\x80\n")), HasSubstr(":1: invalid UTF-8"));
  EXPECT_THAT(refusal(directory.write("nul", std::string("a\nb\nc\0d\n", 8))), HasSubstr(":3: NUL byte at byte 1"));
  EXPECT_THAT(refusal(directory.write("utf16", std::string("\xff\xfeh\0i\0\n\0", 8))), HasSubstr("iconv -f UTF-16"));
}

TEST(LineReader, LimitsTheLengthOfALine) {
  const TemporaryDirectory directory;
  const std::string longest(LineReader::kMaxLineBytes, 'x');
  EXPECT_EQ(lines_of(directory.write("fits", longest + "\ny\n")).at(0).size(), longest.size());
  EXPECT_THAT(refusal(directory.write("long", "y\n" + longest + "x\n")), HasSubstr("long:2: the line is longer than 16 MiB"));
  EXPECT_THAT(refusal(directory.write("bomb", test::gzip(std::string(64 << 20, 'x')))), HasSubstr("bomb:1: the line is longer"));
}

TEST(LineReader, RefusesTornArchives) {
  const TemporaryDirectory directory;
  const std::string text = test::sentences(2, 3000), gz = test::gzip(text), zst = test::zstandard(text);
  for (const size_t kept : {gz.size() - 1, gz.size() - 8, gz.size() / 2, size_t{2}})
    EXPECT_THAT(refusal(directory.write("torn.gz", gz.substr(0, kept))), HasSubstr("cut short; copy")) << kept;
  for (const size_t kept : {zst.size() - 1, zst.size() / 2, size_t{5}})
    EXPECT_THAT(refusal(directory.write("torn.zst", zst.substr(0, kept))), HasSubstr("cut short; copy")) << kept;
  std::string flipped = gz;
  flipped[flipped.size() - 6] ^= 1;
  EXPECT_THAT(refusal(directory.write("flipped.gz", flipped)), HasSubstr("damaged (incorrect data check)"));
  EXPECT_THAT(refusal(directory.write("garbage.gz", gz + "garbage")), HasSubstr("damaged"));
  EXPECT_THAT(refusal(directory.write("empty.gz", "")), HasSubstr("empty.gz:1: the name ends with .gz but"));
  EXPECT_THAT(refusal(directory.write("plain.zst", text)), HasSubstr("the name ends with .zst but"));
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

// The text "one\ntwo\n", packed by the programs themselves; of tar, whose headers are blocks, what stands at byte 257.
TEST(LineReader, NamesArchivesOfOtherKinds) {
  const TemporaryDirectory directory;
  const auto tar = [](std::string_view magic) {
    return "a" + std::string(256, '\0') + std::string(magic) + std::string(247, '\0') + "one\ntwo\n";
  };
  const std::string xz = from_hex(
      "fd377a585a000004e6d6b4460200210116000000742fe5a30100076f6e650a74776f0a0051ab9eaf5775704900012008bb19d9bb1fb6f37d010000000004595a");
  const std::string bz2 = from_hex("425a6839314159265359a7142b77000002c180001002018480200021800c0238f51b8bb9229c2848538a15bb80");
  const struct {
    std::string bytes, said;
  } archives[] = {
      {xz, "this is an xz archive"},
      {from_hex("5d00008000ffffffffffffffff00379b88ccf6c66031d91aeb0bffff68480000"), "an lzma archive"},
      {bz2, "unpack it first: bzip2 -dc "},
      {from_hex("425a683917724538509000000000"), "a bzip2 archive"},
      {from_hex("504b03041400000000000e3e7a5de60bba12080000000800000001000000616f6e650a74776f0a"), "a zip archive"},
      {from_hex("04224d186440a7080000806f6e650a74776f0a000000002701c483"), "lz4 -dc"},
      {tar(std::string_view("ustar\00000", 8)), "a tar archive"},
      {tar(std::string_view("ustar  \0", 8)), "tar -xOf"},
      {from_hex("377abcaf271c0004"), "a 7z archive"},
      {from_hex("526172211a0700"), "a rar archive"},
      {from_hex("526172211a070100"), "a rar archive"},
      {from_hex("504152311504154c"), "a Parquet file"},
      {"%PDF-1.7\n", "pdftotext -layout "},
  };
  for (const auto& [bytes, said] : archives) {
    const std::string path = directory.write("archive", bytes);
    EXPECT_THAT(refusal(path), AllOf(StartsWith(path + ":1: "), HasSubstr(said))) << said;
    // In one of ours, as tar mostly is.
    EXPECT_THAT(refusal(directory.write("inside.gz", test::gzip(bytes))), HasSubstr("inside.gz:1: the gzip archive contains ")) << said;
    EXPECT_THAT(refusal(directory.write("inside.zst", test::zstandard(bytes))), HasSubstr("unpack both first")) << said;
  }
  EXPECT_THAT(refusal(directory.write("twice", test::gzip(test::gzip("one\n")))), HasSubstr("the gzip archive contains a gzip archive"));
}

TEST(LineReader, TextThatBeginsLikeAnArchiveIsText) {
  const TemporaryDirectory directory;
  for (const std::string text : {"BZh", "BZh9 is how bzip2 begins", "PK", "PAR1", "PAR1 is a golf score", "7z", "Rar!", "LZIP", "P", "(",
                                 "]", "%PDF", "ustar", "SQLite format 3", "{", "Obj"})
    EXPECT_THAT(lines_of(directory.write("text", text + "\n")), ElementsAre(text));
}

// A frame with the longest window, written by hand from RFC 8878, and frames that cannot be read.
TEST(LineReader, ReadsZstandardWithLongWindows) {
  const TemporaryDirectory directory;
  const auto frame = [](int exponent, int mantissa, const std::string& text) {
    const auto header = static_cast<uint32_t>(text.size() << 3 | 1);  // the last block, raw
    std::string bytes = from_hex("28b52ffd00");
    bytes += static_cast<char>(exponent << 3 | mantissa);
    for (int i = 0; i < 3; ++i) bytes += static_cast<char>(header >> (8 * i));
    return bytes + text;
  };
  EXPECT_THAT(lines_of(directory.write("27", frame(17, 0, "one\ntwo\n"))), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of(directory.write("31", frame(21, 0, "one\n") + frame(10, 0, "two\n"))), ElementsAre("one", "two"));
  const std::string longer = "more than the 2048 MiB that are supported; unpack it first: zstd -dc --long=31";
  EXPECT_THAT(refusal(directory.write("32", frame(22, 0, "one\n"))), AllOf(HasSubstr("32:1: "), HasSubstr("4096 MiB"), HasSubstr(longer)));
  EXPECT_THAT(refusal(directory.write("later", frame(10, 0, "one\n") + frame(21, 1, "two\n"))), HasSubstr("2304 MiB (zstd --long), more"));
}

TEST(LineReader, SaysWhatIsWrongWithAllLineEnds) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal(directory.write("mac", "one\rtwo\rthree\r")), HasSubstr("mac:1: the lines end in carriage returns alone"));
  EXPECT_THAT(refusal(directory.write("mac.gz", test::gzip("one\rtwo"))), HasSubstr("tr '\\r' '\\n'"));
  std::string large;
  while (large.size() <= LineReader::kMaxLineBytes) large += "a sentence of some words that is not long\r";
  EXPECT_THAT(refusal(directory.write("large", large)), HasSubstr("large:1: the lines end in carriage returns alone"));
  EXPECT_THAT(lines_of(directory.write("one", "one\r")), ElementsAre("one"));
  EXPECT_THAT(lines_of(directory.write("stray", "one\rtwo\nthree\n")), ElementsAre("one\rtwo", "three"));
}

TEST(LineReader, TellsBinaryDataFromTextInAnotherEncoding) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal(directory.write("elf", from_hex("7f454c4602010100000000000000000003003e00c0fe"))), HasSubstr("this is binary data"));
  EXPECT_THAT(refusal(directory.write("latin",
                                      "Gr\xfc\xdf"
                                      "e aus K\xf6ln\n")),
              HasSubstr("iconv -f LATIN1"));
  std::string wide[2];
  for (const char c : std::string("one line of text\n")) wide[0] += std::string{c, '\0'}, wide[1] += std::string{'\0', c};
  EXPECT_THAT(refusal(directory.write("le", wide[0])), HasSubstr("iconv -f UTF-16LE"));
  EXPECT_THAT(refusal(directory.write("be", wide[1])), HasSubstr("iconv -f UTF-16BE"));
}

TEST(LineReader, MarksInvalidBytesIfAskedTo) {
  const auto marked = [](const std::string& text) {
    LineReader reader("text", std::string_view(text));
    reader.mark_invalid_bytes();
    std::vector<std::string> lines;
    for (std::string_view line; reader.next(line);) lines.emplace_back(line);
    return lines;
  };
  EXPECT_THAT(marked("Gr\xfc\xdf"
                     "e\nok\n\xC3\n\xE2\x82 5\n\xED\xA0\x80\r\n"),
              ElementsAre("Gr\uFFFD\uFFFD"
                          "e",
                          "ok", "\uFFFD", "\uFFFD\uFFFD 5", "\uFFFD\uFFFD\uFFFD"));
  EXPECT_THAT(marked(std::string("one\n\0\1\2\3\xFF\0\n", 11)), ElementsAre("one", "\uFFFD\1\2\3\uFFFD\uFFFD"));
  EXPECT_THROW(marked(std::string("\0\1\2\3\xFF\0\n", 7)), DataError) << "a first line of binary data";
  EXPECT_THROW(marked(std::string(LineReader::kMaxLineBytes + 1, 'a')), DataError);
}

TEST(LineReader, NamesTheLineAtWhichAnArchiveTears) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("a.gz", test::gzip("one\ntwo\n") + test::gzip("three").substr(0, 12));
  EXPECT_THAT(refusal(path), StartsWith(path + ":3: "));
}

TEST(LineReader, RefusesMissingFilesAndDirectories) {
  const TemporaryDirectory directory;
  EXPECT_THAT(test::message_of<IoError>([&] { LineReader reader(directory.path("none")); }),
              HasSubstr("none: cannot be opened: No such file"));
  EXPECT_THAT(test::message_of<IoError>([&] { LineReader reader(directory.path("")); }), HasSubstr("Is a directory"));
  EXPECT_THAT(test::message_of<IoError>([&] { LineReader reader(""); }), HasSubstr("no file was named"));
}

}  // namespace
}  // namespace starling
