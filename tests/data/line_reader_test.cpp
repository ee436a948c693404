// Lines come out the same from every format, and every defect is told with file and line.
#include "data/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
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
}

}  // namespace
}  // namespace starling
