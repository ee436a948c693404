// Files are read, translated and written in groups of texts, so that they may be large; what is broken is refused before that.
#include <gmock/gmock.h>

#include "formats/file_format.h"
#include "office_files.h"
#include "units.h"

namespace starling {
namespace {

struct Large {
  std::string format, begin, text, end;  // the text has a number at its "@"
};

std::string large(const Large& file, const char* dog, int texts) {
  std::string all = file.begin;
  for (int i = 0; i < texts; ++i) {
    std::string text = file.text;
    for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) text.replace(at, 1, std::to_string(i));
    for (size_t at = text.find('#'); at != std::string::npos; at = text.find('#')) text.replace(at, 1, dog);
    all += text;
  }
  return all + file.end;
}

const Large kLarge[] = {
    {"text", "", "# @\n", ""},
    {"html", "<html><!-- </p> -->", "<p a=b># @</p>\n", "</html>"},
    {"xml", "<?xml version='1.0'?>\n<tt><body><div>", "<p>#<b x='@'/> # and <i># @</i></p>\n</div><div>", "</div></body></tt>\n"},
    {"subtitles", "WEBVTT\n\n", "00:00.000 --> 00:01.000\n# @.\n\n", ""},
    {"markdown", "", "# @\n\n", ""},
    {"json", "{", "\"k@\":\"# @\",\n", "\"id\": 1}"},
    {"json", "[", "{\"id\": \"a dog\", \"defaultMessage\": \"# @\"},\n", "1]"},
    {"yaml", "", "k@: # @\n", ""},
    {"properties", "", "k@=# @\n", ""},
    {"strings", "", "\"k@\" = \"# @\";\n", ""},
    {"android", "<resources>", "<string name='k@'># @</string>\n", "</resources>"},
    {"android", "<resources><string-array name='a'>", "<item># @</item>\n", "</string-array></resources>"},
    {"resx", "<root>", "<data name='k@'><value># @</value></data>\n", "</root>"},
};

TEST(Groups, AreTranslatedOneAfterTheOther) {
  constexpr int kTexts = 20'000;
  constexpr size_t kMost = 300'000;
  for (const Large& f : kLarge) {
    SCOPED_TRACE(f.format);
    const auto file = open_unit_file(f.format, large(f, "dog", kTexts), kLanguages);
    size_t groups = 0, bytes = 0;
    std::string out;
    const auto capitals = [&](std::span<const TextUnit> units) {
      ++groups;
      size_t group = 0;
      std::vector<std::string> translations;
      for (const TextUnit& unit : units) {
        group += unit.text.size();
        std::string& t = translations.emplace_back(unit.text);
        for (size_t at = t.find("dog"); at != std::string::npos; at = t.find("dog", at)) t.replace(at, 3, "DOG");
      }
      EXPECT_LE(group, kMost);
      bytes += group;
      return translations;
    };
    file->translate(capitals, [&](std::string_view piece) { out += piece; });
    EXPECT_EQ(bytes, file->text_bytes());
    EXPECT_GT(groups, file->text_bytes() / kMost);
    EXPECT_TRUE(out == large(f, "DOG", kTexts));
    EXPECT_LT(file->first_units().size(), 4000u);
    EXPECT_FALSE(file->first_units().empty());
  }
}

// Where a large part has text between its elements, or elements cross each other, sentences may go on anywhere.
TEST(Groups, OfXmlThatCannotBeDivided) {
  const std::string many = large({"", "", "<b>dog</b> @\n", ""}, "", 20'000);
  for (const std::string& xml : {"<a>" + many + "</a>", many, "<a><b>" + many + "</a>"})
    EXPECT_EQ(open_unit_file("xml", xml, kLanguages)->units().size(), 1u);
  EXPECT_GT(open_unit_file("xml", "<a><c>x " + many + "</c>" + large({"", "", "<b>dog</b>", ""}, "", 40'000) + "</a>", kLanguages)
                ->units()
                .size(),
            2u);
}

TEST(Groups, OfOfficeDocuments) {
  std::string body, capitals;
  for (int i = 0; i < 20'000; ++i) {
    body += "<w:p><w:r><w:t>dog " + std::to_string(i) + "</w:t></w:r></w:p>";
    capitals += "<w:p><w:r><w:t>DOG " + std::to_string(i) + "</w:t></w:r></w:p>";
  }
  EXPECT_TRUE(translated_body(body) == capitals);
}

TEST(Groups, ThatTranslateNothingLeaveEveryByte) {
  const auto same = [](const std::string& s) { return s; };
  for (const auto& [format, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"json", "{\"a\": \"a \\/ \\u0064og, caf\\u00E9\"}"},
           {"yaml", "a: >\n  a dog\n  ran\nb: 'it''s'\nc: \"\\x64og x\"\n"},
           {"properties", "a=\\u0064og x \\\n   y\n"},
           {"strings", "\"a\" = \"\\U0064og x\";"},
           {"android", "<resources><string name='a'>\"a  dog\" &#100;og \\u0064 x</string></resources>"},
           {"resx", "<root><data name='a'><value>a &#100;og <![CDATA[x]]></value></data></root>"},
           {"markdown", "A *dog*\nran \\a &copy; x  \nfar\n"},
           {"html", "<p>a\n <b>dog</b> &eacute;t&#233;</p>"},
           {"subtitles", "1\n00:00:01,000 --> 00:00:02,000\nA dog\nran on and on and on and on.\n"},
           {"text", "A dog ran.\n"}})
    for (const std::string mark : {"", "\xEF\xBB\xBF"}) {  // programs of Windows begin their files with one
      EXPECT_EQ(with_sentences(*open_unit_file(format, mark + text, kLanguages), same), mark + text);
      EXPECT_EQ(texts_of(*open_unit_file(format, mark + text, kLanguages)), texts_of(*open_unit_file(format, text, kLanguages)));
    }
  EXPECT_EQ(file_format("\xEF\xBB\xBF<!DOCTYPE html><p>A dog</p>", "-"), "html");
}

TEST(Groups, BrokenFilesAreRefusedBeforeAnythingIsTranslated) {
  for (const Large& f : kLarge) {
    const bool strict = f.format == "json" || f.format == "android" || f.format == "strings" || f.format == "yaml" || f.format == "resx";
    EXPECT_EQ(why_refused(f.format, large(f, "dog", 10'000) + "<x") != "", strict) << f.format;
  }
}

}  // namespace
}  // namespace starling
