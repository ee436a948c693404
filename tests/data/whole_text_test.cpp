// Documents are read whole: text as it is, archives that are office documents too, and nothing else.
#include "data/whole_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

TEST(WholeText, IsTextOrAnOfficeDocument) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(read_whole_text(directory.write("a", "a\r\n\nb")), "a\r\n\nb");
  EXPECT_EQ(read_whole_text(directory.write("a.gz", test::gzip("a\n"))), "a\n");
  EXPECT_EQ(read_whole_text(directory.write("bom", "\xEF\xBB\xBFx")), "\xEF\xBB\xBFx");
  const std::string zip("PK\x03\x04\x14\0\0\xFF", 8), old("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\xFF", 9);
  EXPECT_EQ(read_whole_text(directory.write("a.docx", zip)), zip);
  EXPECT_EQ(read_whole_text(directory.write("a.doc", old)), old);  // which the formats refuse with what to do
}

TEST(WholeText, OtherFilesAreRefusedByName) {
  const test::TemporaryDirectory directory;
  const auto why = [&](const std::string& bytes) {
    return test::message_of<DataError>([&] { read_whole_text(directory.write("x", bytes)); });
  };
  EXPECT_THAT(why("%PDF-1.7\n"), HasSubstr("x:1: this is"));
  EXPECT_THAT(why("%PDF-1.7\n"), HasSubstr("pdftotext"));
  EXPECT_THAT(why(std::string("7z\xBC\xAF\x27\x1C\0\x04", 8)), HasSubstr("a 7z archive"));
  EXPECT_THAT(why("a\n\xFF"), HasSubstr("x:2: invalid UTF-8 (0xff)"));
  EXPECT_THAT(why("\xFF\xFE\x41"), HasSubstr("x:1: the text is UTF-16"));
}

}  // namespace
}  // namespace starling
