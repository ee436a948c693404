// Office documents that are broken, hostile or made at random: refused or whole, and no text is lost.
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/random.h"
#include "formats/file_format.h"
#include "formats/office.h"
#include "office_files.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::string why(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string why_not(const std::string& body) {
  return why([&] { OfficeFile("docx", docx_of(body), {}); });
}

TEST(OfficeRefuses, WhatIsNoDocument) {
  EXPECT_THAT(why([] { file_format(zip_of({{"a.txt", "text"}}), "a.zip"); }), HasSubstr("a.zip: an archive, but not a docx, odt"));
  EXPECT_THAT(why([] { file_format("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 old", "a.doc"); }), HasSubstr("save it as docx"));
  std::string encrypted = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
  for (const char c : std::string("EncryptedPackage")) encrypted += c, encrypted += '\0';
  EXPECT_THAT(why([&] { file_format(encrypted, "a.docx"); }), HasSubstr("save it without a password"));
  EXPECT_THAT(why([] { file_format(zip_of({{"a", "b"}}).substr(0, 60), "a.docx"); }), HasSubstr("was it cut short?"));
  const std::string odt = open_document("text", "", {{"META-INF/manifest.xml", "<manifest:encryption-data/>"}});
  EXPECT_THAT(why([&] { OfficeFile("odt", odt, {}); }), HasSubstr("encrypted"));
}

TEST(OfficeRefuses, WhatIsNotWellFormed) {
  EXPECT_THAT(why_not("<w:p>"), HasSubstr("word/document.xml: </w:body> has no opening tag"));
  EXPECT_THAT(why_not("<w:p></w:q>"), HasSubstr("has no opening tag"));
  EXPECT_THAT(why_not("</w:body></w:document><a>"), HasSubstr("has no opening tag"));
  EXPECT_THAT(why_not("<!-- "), HasSubstr("is not closed"));
  EXPECT_THAT(why_not("<w:p a=\"<b/>"), HasSubstr("is not closed"));
  EXPECT_THAT(why_not("\xff"), HasSubstr("UTF-8"));
  std::string deep, nested;
  for (int i = 0; i < 3000; ++i) deep += "<w:x>";
  EXPECT_THAT(why_not(deep), HasSubstr("elements are nested more than"));
  for (int i = 0; i < 60; ++i) nested += "<w:p><w:pict>";
  EXPECT_THAT(why_not(nested), HasSubstr("paragraphs are nested too deeply"));
}

TEST(OfficeRefuses, Bombs) {
  const std::string zeros(130 << 20, ' ');
  EXPECT_THAT(why_not(zeros), HasSubstr("far more than in any real document"));
  const std::string docx = docx_of("<w:p>" + std::string(5000, ' ') + "</w:p>");
  EXPECT_THAT(why([&] { OfficeFile("docx", docx, {}, 4000); }), HasSubstr("more than 4000 bytes"));
}

TEST(OfficeRefuses, PropertiesThatAreRepeatedWithoutEnd) {
  const std::string long_format = "<w:rPr><w:lang w:val=\"" + std::string(100'000, 'x') + "\"/></w:rPr>";
  std::string symbols, runs;
  for (int i = 0; i < 1000; ++i) symbols += "<w:sym/>", runs += "<w:r><w:t>dog</w:t></w:r><w:bookmarkEnd/>";
  EXPECT_THAT(why_not("<w:p><w:r>" + long_format + symbols + "<w:t>dog</w:t></w:r></w:p>"), HasSubstr("properties that are too long"));
  // Runs that look the same get the properties of the first: these texts become one.
  const std::string done = translated_body("<w:p><w:r>" + long_format + "<w:t>dog</w:t></w:r>" + runs + "</w:p>");
  EXPECT_LT(done.size(), 2'000'000u);
  EXPECT_THAT(done, HasSubstr("DOGDOGDOG"));
}

// Parts that are named again and again are read once, and parts that are read for their names count as those with text do.
TEST(OfficeRefuses, PartsThatAreUnpackedWithoutEnd) {
  const std::string table = "<table><tableColumn name=\"a\"/>" + std::string(2 << 20, ' ') + "</table>";
  std::vector<std::pair<std::string, std::string>> types(20'000, {"t.xml", "spreadsheetml.table+xml"});
  EXPECT_EQ(why([&] { OfficeFile("docx", docx_of("", {{"t.xml", table}}, types), {}); }), "");
  types = {{"t.xml", "spreadsheetml.table+xml"}, {"u.xml", "spreadsheetml.table+xml"}};
  const std::string two = docx_of("", {{"t.xml", table}, {"u.xml", table}}, types);
  EXPECT_THAT(why([&] { OfficeFile("docx", two, {}, 3 << 20); }), HasSubstr("more than 3145728 bytes"));
  std::string packages;
  for (int i = 0; i < 20'000; ++i) packages += "<rootfile full-path=\"b.opf\"/>";
  const std::string book = zip_of({{"META-INF/container.xml", "<c>" + packages + "</c>"}, {"b.opf", table}});
  EXPECT_EQ(why([&] { OfficeFile("epub", book, {}); }), "");
}

TEST(OfficeRefuses, FieldsAndNamespacesWithoutEnd) {
  std::string fields, spaces, formats;
  for (int i = 0; i < 300; ++i) {
    fields += "<w:p><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r></w:p>";
    spaces += " xmlns:a" + std::to_string(i) + kWordSpace.substr(8);
  }
  EXPECT_THAT(why_not(fields), HasSubstr("more than 100 fields are open"));
  EXPECT_THAT(why_not("<w:p" + spaces + "/>"), HasSubstr("too many namespaces"));
  for (int i = 0; i < 20'000; ++i) formats += "<w:r><w:rPr><w:sz w:val=\"" + std::to_string(i) + "\"/></w:rPr><w:t>dog</w:t></w:r>";
  EXPECT_EQ(why_not("<w:p>" + formats + "</w:p>"), "");  // each format is found at once
}

// Runs of random formats, links, notes and breaks: whatever the model makes of the sentences, each text comes back once, each tag too, and
// the result is well-formed.
std::string random_paragraphs(Random& random, int& words) {
  std::string body;
  const auto run = [&](const std::string& content) {
    const char* const formats[] = {"", "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>", "<w:rPr><w:lang w:val=\"en\"/></w:rPr>"};
    return "<w:r>" + std::string(formats[random.below(4)]) + content + "</w:r>";
  };
  for (uint64_t p = 1 + random.below(4); p > 0; --p) {
    std::string open;
    body += "<w:p>";
    for (uint64_t n = random.below(25); n > 0; --n) switch (random.below(9)) {
        case 0:
          body += run(random.below(2) ? "<w:tab/>" : "<w:br/>");
          break;
        case 1:
          body += run("<w:footnoteReference w:id=\"" + std::to_string(random.below(100)) + "\"/>");
          break;
        case 2:
          body += open.empty() ? "<w:hyperlink w:id=\"x\">" : "</w:hyperlink>";
          open = open.empty() ? "</w:hyperlink>" : "";
          break;
        case 3:
          body += "<w:bookmarkStart w:id=\"1\"/>";
          break;
        case 4:
          body += run("<w:t>12 &amp; 5. </w:t>");
          break;
        default:
          body += run("<w:t xml:space=\"preserve\">word" + std::to_string(words++) + (random.below(3) ? " " : ". ") + "</w:t>");
      }
    body += open + "</w:p>";
  }
  return body;
}

// The words of a sentence in another order, linked to themselves; some lost, as models do.
AlignedText in_disorder(const std::string& sentence) {
  const AlignedText whole = in_capitals(sentence);
  AlignedText t;
  for (size_t i = whole.links.size(); i > 0; --i) {
    const auto& [from, to] = whole.links[i - 1];
    const int64_t begin = std::ssize(t.text) + (t.text.empty() ? 0 : 1);
    t.text += (t.text.empty() ? "" : " ") + whole.text.substr(static_cast<size_t>(to.begin), static_cast<size_t>(to.count()));
    t.links.push_back({from, {begin, std::ssize(t.text)}});
  }
  return t;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

TEST(OfficeRandom, EachTextAndTagComesBackOnce) {
  Random random(58, 1);
  for (int i = 0; i < 1000; ++i) {
    int words = 0;
    const std::string body = random_paragraphs(random, words);
    const std::string docx = docx_of(body);
    OfficeFile file("docx", docx, {"en", "de", {}});
    const std::string done = translated(file, i % 2 ? in_disorder : in_capitals);
    const std::string xml = entry_of(done, "word/document.xml");
    for (int w = 0; w < words; ++w)
      ASSERT_EQ(count(xml + " ", "WORD" + std::to_string(w)) - count(xml, "WORD" + std::to_string(w) + "0") > 0, true) << body << "\n"
                                                                                                                       << xml;
    for (const char* tag :
         {"<w:footnoteReference ", "<w:tab/>", "<w:br/>", "<w:hyperlink ", "</w:hyperlink>", "<w:bookmarkStart ", "<w:p>"})
      ASSERT_EQ(count(xml, tag), count(body, tag)) << tag << "\n" << body << "\n" << xml;
    EXPECT_EQ(why([&] { OfficeFile("docx", done, {}); }), "");  // well-formed
  }
}

TEST(OfficeRandom, DamagedDocumentsAreReadOrRefused) {
  Random random(58, 2);
  int words = 0, refused = 0;
  std::string body = random_paragraphs(random, words);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = body;
    for (uint64_t k = 1 + random.below(3); k > 0; --k) {
      const size_t at = random.below(damaged.size());
      if (random.below(2))
        damaged[at] = static_cast<char>(random.below(256));
      else
        damaged.erase(at, 1 + random.below(30));
    }
    refused += !why([&] { translated("docx", docx_of(damaged)); }).empty();
    if (i % 50 == 0) body = random_paragraphs(random, words);
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace starling
