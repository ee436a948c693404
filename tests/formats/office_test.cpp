// Office documents: which texts are sentences, where formatting goes, and that everything else stays byte for byte.
#include "formats/office.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/random.h"
#include "formats/file_format.h"
#include "office_files.h"
#include "units.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(OfficeDocx, RunsAreOneSentenceAndFormatsGoWithTheirWords) {
  const std::string body =
      "<w:p w:rsidR=\"1\"><w:pPr><w:jc w:val=\"left\"/></w:pPr><w:r><w:t>Two m</w:t></w:r><w:proofErr w:type=\"spellStart\"/>"
      "<w:r w:rsidR=\"2\"><w:rPr><w:lang w:val=\"en-US\"/></w:rPr><w:t xml:space=\"preserve\">en </w:t></w:r>"
      "<w:r><w:rPr><w:b/></w:rPr><w:t>a&amp;b</w:t></w:r><w:r><w:t>.</w:t></w:r></w:p>";
  EXPECT_EQ(texts_of(OfficeFile("docx", docx_of(body), {})), "<p>Two men <g n=\"4\">a&amp;b</g>.</p>\n");
  EXPECT_EQ(translated_body(body),
            "<w:p w:rsidR=\"1\"><w:pPr><w:jc w:val=\"left\"/></w:pPr><w:r><w:t xml:space=\"preserve\">TWO MEN </w:t></w:r>"
            "<w:r><w:rPr><w:b/></w:rPr><w:t>A&amp;B</w:t></w:r><w:r><w:t>.</w:t></w:r></w:p>");
}

TEST(OfficeDocx, TheCommonestFormatHasNoTag) {
  const std::string body =
      "<w:p><w:r><w:t>A </w:t></w:r><w:r><w:rPr><w:i/></w:rPr><w:t>dog runs through the "
      "snow</w:t></w:r></w:p><w:p><w:r><w:t>2026</w:t></w:r>"
      "</w:p>";
  EXPECT_EQ(texts_of(OfficeFile("docx", docx_of(body), {})), "<p><g n=\"2\">A</g>dog runs through the snow</p>\n");
}

TEST(OfficeDocx, WhatHasNoLettersStaysByteForByte) {
  const std::string body = "<w:p ><w:r ><w:t>12:30</w:t></w:r ><w:proofErr/></w:p ><!-- x --><w:p/>";
  EXPECT_EQ(translated_body(body), body);
}

TEST(OfficeDocx, TabsBreaksNotesAndFieldsKeepTheirPlaces) {
  const std::string run = "<w:r><w:rPr><w:b/></w:rPr>", note = run + "<w:footnoteReference w:id=\"1\"/></w:r>";
  const std::string page =
      "<w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText> PAGEREF x </w:instrText></w:r>"
      "<w:r><w:fldChar w:fldCharType=\"separate\"/></w:r><w:r><w:t>iv</w:t></w:r>"
      "<w:r><w:fldChar w:fldCharType=\"end\"/></w:r>";
  const std::string kept =
      "<w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText> PAGEREF x </w:instrText></w:r>"
      "<w:r><w:fldChar w:fldCharType=\"separate\"/></w:r><w:r><w:t xml:space=\"preserve\">iv</w:t></w:r>"
      "<w:r><w:fldChar w:fldCharType=\"end\"/></w:r>";
  EXPECT_EQ(translated_body("<w:p><w:r><w:t>name</w:t><w:tab/><w:t>value</w:t></w:r>" + note +
                            "<w:r><w:t xml:space=\"preserve\"> on page "
                            "</w:t></w:r>" +
                            page + "<w:r><w:t>.</w:t></w:r></w:p>"),
            "<w:p><w:r><w:t>NAME</w:t></w:r><w:r><w:tab/></w:r><w:r><w:t>VALUE</w:t></w:r>" + note +
                "<w:r><w:t xml:space=\"preserve\"> ON PAGE </w:t></w:r>" + kept + "<w:r><w:t>.</w:t></w:r></w:p>");
}

TEST(OfficeDocx, ResultsOfLinksAreTranslatedAndThoseOfOtherFieldsNot) {
  const auto field = [](const std::string& instruction, const std::string& result) {
    return "<w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText>" + instruction +
           "</w:instrText></w:r><w:r><w:fldChar w:fldCharType=\"separate\"/></w:r>" + result +
           "<w:r><w:fldChar w:fldCharType=\"end\"/></w:r>";
  };
  const std::string text = "<w:r><w:t>some words</w:t></w:r>";
  const std::string link = translated_body("<w:p>" + field(" HYPERLINK \"x\"", text) + "</w:p>");
  EXPECT_EQ(link, "<w:p>" + field(" HYPERLINK \"x\"", "<w:r><w:t>SOME WORDS</w:t></w:r>") + "</w:p>");
  const std::string merge = "<w:p>" + field(" MERGEFIELD x", text) + "</w:p>";
  EXPECT_EQ(translated_body(merge), merge);
  // A list of references is one field over many paragraphs; a table of contents is one too, with page numbers in it.
  const std::string many = field(" ADDIN ZOTERO_BIBL", text + "</w:p><w:p>" + text + "</w:p><w:p>" + text);
  EXPECT_EQ(translated_body("<w:p>" + many + "</w:p>"), "<w:p>" + many + "</w:p>");
  EXPECT_THAT(
      translated_body("<w:p>" + field("TOC \\o", text + field("PAGEREF x", "<w:r><w:t>x</w:t></w:r>") + "</w:p><w:p>" + text) + "</w:p>"),
      testing::AllOf(HasSubstr("SOME WORDS"), Not(HasSubstr("some words"))));
}

TEST(OfficeDocx, DeletedTextStaysAndInsertedTextIsTranslated) {
  const std::string deleted = "<w:del w:id=\"1\"><w:r><w:delText>old</w:delText></w:r></w:del>";
  EXPECT_EQ(translated_body("<w:p><w:r><w:t xml:space=\"preserve\">a </w:t></w:r>" + deleted +
                            "<w:ins w:id=\"2\"><w:r><w:t>new</w:t></w:r></w:ins><w:r><w:t xml:space=\"preserve\"> word</w:t></w:r></w:p>"),
            "<w:p><w:r><w:t xml:space=\"preserve\">A </w:t></w:r>" + deleted +
                "<w:ins w:id=\"2\"><w:r><w:t>NEW</w:t></w:r></w:ins><w:r><w:t xml:space=\"preserve\"> WORD</w:t></w:r></w:p>");
}

TEST(OfficeDocx, PropertiesStayAtTheBeginningOfTheirContainer) {
  EXPECT_EQ(
      translated_body("<w:p><w:r><w:t xml:space=\"preserve\">a </w:t></w:r><w:sdt><w:sdtPr><w:id w:val=\"1\"/></w:sdtPr><w:sdtContent>"
                      "<w:r><w:t>b</w:t></w:r></w:sdtContent></w:sdt><w:r><w:t xml:space=\"preserve\"> c</w:t></w:r></w:p>"),
      "<w:p><w:r><w:t xml:space=\"preserve\">A </w:t></w:r><w:sdt><w:sdtPr><w:id w:val=\"1\"/></w:sdtPr><w:sdtContent>"
      "<w:r><w:t>B</w:t></w:r></w:sdtContent></w:sdt><w:r><w:t xml:space=\"preserve\"> C</w:t></w:r></w:p>");
}

TEST(OfficeDocx, TextBoxesAreParagraphsOfTheirOwn) {
  const auto page = [](const std::string& box, const std::string& around) {
    return "<w:p><w:r><w:t>" + around + "</w:t></w:r><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>" + box +
           "</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>";
  };
  EXPECT_EQ(translated_body(page("in the box", "around it")), page("IN THE BOX", "AROUND IT"));
  EXPECT_EQ(translated_body(page("in the box", "1")), page("IN THE BOX", "1"));
}

TEST(OfficeDocx, PrefixesAreWhateverTheFileCallsThem) {
  const std::string xml =
      "<ns0:document xmlns:ns0=\"http://purl.oclc.org/ooxml/wordprocessingml/main\"><ns0:p><ns0:r><ns0:t>a word</ns0:t>"
      "</ns0:r></ns0:p><w:p xmlns:w=\"urn:other\"><w:r><w:t>no text</w:t></w:r></w:p></ns0:document>";
  const std::string docx =
      zip_of({{"[Content_Types].xml", content_types({{"a/b.xml", "wordprocessingml.document.main+xml"}})}, {"a/b.xml", xml}});
  std::string expected = xml;
  expected.replace(expected.find("a word"), 6, "A WORD");
  EXPECT_EQ(entry_of(translated("docx", docx), "a/b.xml"), expected);
}

TEST(OfficeDocx, HeadersNotesAndCommentsAreTranslatedAndAllElseIsPackedAsItWas) {
  const auto part = [](const std::string& text) { return "<w:x" + kWordSpace + "><w:p><w:r><w:t>" + text + "</w:t></w:r></w:p></w:x>"; };
  const std::string styles = "<w:styles" + kWordSpace + "><w:lang w:val=\"en-GB\" w:eastAsia=\"en-US\"/><w:lang w:val=\"fr\"/></w:styles>";
  const std::string docx = docx_of("<w:p/>",
                                   {{"word/h.xml", part("head")},
                                    {"word/n.xml", part("note")},
                                    {"word/c.xml", part("comment")},
                                    {"word/settings.xml", part("setting")},
                                    {"word/styles.xml", styles}},
                                   {{"word/h.xml", "wordprocessingml.header+xml"},
                                    {"word/n.xml", "wordprocessingml.footnotes+xml"},
                                    {"word/c.xml", "wordprocessingml.comments+xml"},
                                    {"word/styles.xml", "wordprocessingml.styles+xml"}});
  const std::string done = translated("docx", docx);
  EXPECT_EQ(entry_of(done, "word/h.xml"), part("HEAD"));
  EXPECT_EQ(entry_of(done, "word/n.xml"), part("NOTE"));
  EXPECT_EQ(entry_of(done, "word/c.xml"), part("COMMENT"));
  EXPECT_EQ(entry_of(done, "word/settings.xml"), part("setting"));
  EXPECT_EQ(entry_of(done, "word/styles.xml"),
            "<w:styles" + kWordSpace + "><w:lang w:val=\"de\" w:eastAsia=\"en-US\"/><w:lang w:val=\"fr\"/></w:styles>");
  const ZipArchive before(std::as_bytes(std::span(docx)), "a"), after(std::as_bytes(std::span(done)), "b");
  ASSERT_EQ(before.entries().size(), after.entries().size());
  for (size_t i = 0; i < before.entries().size(); ++i) {
    const ZipEntry &a = before.entries()[i], &b = after.entries()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.deflated, b.deflated);
  }
  EXPECT_EQ(translated("docx", docx_of("<w:p/>")), docx_of("<w:p/>"));
}

TEST(OfficeSheet, StringsAreTranslatedButNotNamesOfColumns) {
  const std::string space = " xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
  const auto strings = [&](const std::string& a, const std::string& b, const std::string& c) {
    return "<sst" + space + "><si><t>" + a + "</t></si><si><r><t xml:space=\"preserve\">" + b + " </t></r><r><rPr><b/></rPr><t>" + c +
           "</t></r></si><si><t>Name &amp; age</t></si></sst>";
  };
  const auto sheet = [&](const std::string& text) {
    return "<worksheet" + space + "><c t=\"inlineStr\"><is><t>" + text + "</t></is></c><c t=\"s\"><f>A&amp;B</f><v>0</v></c></worksheet>";
  };
  const std::string xlsx = zip_of({{"[Content_Types].xml", content_types({{"xl/workbook.xml", "spreadsheetml.sheet.main+xml"},
                                                                          {"xl/s.xml", "spreadsheetml.sharedStrings+xml"},
                                                                          {"xl/w.xml", "spreadsheetml.worksheet+xml"},
                                                                          {"xl/t.xml", "spreadsheetml.table+xml"}})},
                                   {"xl/s.xml", strings("a\nline", "red", "dogs")},
                                   {"xl/w.xml", sheet("in line")},
                                   {"xl/t.xml", "<table" + space + "><tableColumn id=\"1\" name=\"Name &amp; age\"/></table>"}});
  EXPECT_EQ(file_format(xlsx, "x"), "xlsx");
  const std::string done = translated("xlsx", xlsx);
  EXPECT_EQ(entry_of(done, "xl/s.xml"),
            strings("A\nLINE", "RED", "DOGS").replace(strings("A\nLINE", "RED", "DOGS").find("<t>A"), 3, "<t xml:space=\"preserve\">"));
  EXPECT_EQ(entry_of(done, "xl/w.xml"), sheet("IN LINE"));
}

TEST(OfficeSlides, FieldsAndBreaksStay) {
  const auto slide = [](const std::string& a, const std::string& b) {
    return "<p:sld xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\""
           " xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><a:p><a:pPr lvl=\"1\"/><a:r><a:rPr lang=\"" +
           std::string(a == "TWO" ? "de" : "en-US") + "\"/><a:t>" + a + "</a:t></a:r><a:br><a:rPr lang=\"fr\"/></a:br><a:r><a:rPr lang=\"" +
           std::string(a == "TWO" ? "de" : "en-US") + "\"/><a:t>" + b +
           " </a:t></a:r><a:fld id=\"{1}\" type=\"slidenum\"><a:t>7</a:t></a:fld><a:endParaRPr/></a:p></p:sld>";
  };
  const std::string pptx =
      zip_of({{"[Content_Types].xml",
               content_types({{"ppt/p.xml", "presentationml.presentation.main+xml"}, {"ppt/s.xml", "presentationml.slide+xml"}})},
              {"ppt/s.xml", slide("two", "dogs")}});
  EXPECT_EQ(file_format(pptx, "x"), "pptx");
  EXPECT_EQ(texts_of(OfficeFile("pptx", pptx, {})), "<p>two<br n=\"2\"/>dogs </p>\n");
  EXPECT_EQ(entry_of(translated("pptx", pptx), "ppt/s.xml"), slide("TWO", "DOGS"));
}

TEST(OfficeOpenDocument, SpansNotesAndFields) {
  const auto body = [](const std::string& a, const std::string& b, const std::string& c) {
    return "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p text:style-name=\"P1\">" + a +
           " <text:span text:style-name=\"T1\">" + b +
           "</text:span><text:note><text:note-citation>1</text:note-citation><text:note-body>"
           "<text:p>" +
           c + "</text:p></text:note-body></text:note><text:s text:c=\"2\"/><text:page-number>1</text:page-number></text:p>";
  };
  const std::string odt = open_document("text", body("two", "dogs", "note"));
  EXPECT_EQ(file_format(odt, "x"), "odt");
  EXPECT_EQ(translated("odt", odt), open_document("text", body("TWO", "DOGS", "NOTE")));
}

TEST(OfficeOpenDocument, CellsOfTextOnly) {
  const auto body = [](const std::string& text) {
    return "<table:table-cell office:value-type=\"string\"><text:p>" + text +
           "</text:p></table:table-cell><table:table-cell office:value-type=\"date\"><text:p>May</text:p></table:table-cell>"
           "<table:table-cell table:formula=\"of:=A1\" office:value-type=\"string\"><text:p>text</text:p></table:table-cell>";
  };
  const std::string ods = open_document("spreadsheet", body("a dog"));
  EXPECT_EQ(file_format(ods, "x"), "ods");
  EXPECT_EQ(translated("ods", ods), open_document("spreadsheet", body("A DOG")));
}

std::string book(const std::string& a, const std::string& language, const std::string& more = "") {
  return zip_of({{"mimetype", "application/epub+zip"},
                 {"META-INF/container.xml", "<container><rootfiles><rootfile full-path=\"O/b.opf\"/></rootfiles></container>"},
                 {"O/b.opf", "<package xmlns=\"http://www.idpf.org/2007/opf\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:language>" +
                                 language +
                                 "</dc:language><manifest><item href=\"../p%20q.xhtml\" media-type=\"application/xhtml+xml\"/>"
                                 "<item href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"/></manifest></package>"},
                 {"O/toc.ncx", "<ncx xmlns=\"http://www.daisy.org/z3986/2005/ncx/\"><navLabel><text>" + a + "</text></navLabel></ncx>"},
                 {"p q.xhtml", "<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"" + language +
                                   "\"><body><p class=\"x\">" + a + " <i>" + a + "</i>.</p></body></html>"},
                 {"other.xhtml", "<p>not listed</p>"},
                 {"META-INF/encryption.xml", "<encryption><CipherReference URI=\"" + more + "\"/></encryption>"}});
}

// The first part of a name's ending has its type by default in packages of System.IO.Packaging.
TEST(OfficeParts, TypesByDefault) {
  const std::string main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
  const std::string types = "<Types><Default Extension=\"XML\" ContentType=\"" + main +
                            "\"/><Default Extension=\"rels\" ContentType=\"x\"/>"
                            "<Override PartName=\"/other.xml\" ContentType=\"application/xml\"/></Types>";
  const std::string text = word_document("<w:p><w:r><w:t>dog</w:t></w:r></w:p>");
  const std::string docx =
      zip_of({{"[Content_Types].xml", types}, {"_rels/.rels", "<r/>"}, {"word/document.xml", text}, {"other.xml", text}});
  const std::string done = translated("docx", docx);
  EXPECT_NE(entry_of(done, "word/document.xml").find("DOG"), std::string::npos);
  EXPECT_EQ(entry_of(done, "other.xml"), text);
  EXPECT_EQ(entry_of(done, "[Content_Types].xml"), types);
}

TEST(OfficeBook, PagesAndContentsAreTranslated) {
  EXPECT_EQ(file_format(book("dog", "en"), "x"), "epub");
  EXPECT_EQ(translated("epub", book("dog", "en-US", "font.ttf")), book("DOG", "de", "font.ttf"));
}

// Large pages are divided, and no text is lost where they are.
TEST(OfficeBook, LargePages) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += "<p>dog " + std::to_string(i) + "</p>\n";
  OfficeFile file("epub", book(text, "en"), {"en", "de", {}});
  EXPECT_GT(file.units().size(), 3u);
  std::string done = entry_of(translated(file), "p q.xhtml");
  size_t dogs = 0;
  for (size_t at = done.find("DOG"); at != std::string::npos; at = done.find("DOG", at + 1)) ++dogs;
  EXPECT_EQ(dogs, 60'000u);
}

// They are not divided within what must stay whole.
TEST(OfficeBook, LargePagesWithCommentsAndScripts) {
  std::string text, many;
  for (int i = 0; i < 20'000; ++i) text += "<p>dog</p>\n", many += "</p> <br/>";
  const std::string opf = "<package><manifest><item href=\"p.xhtml\" media-type=\"text/html\"/></manifest></package>";
  using Pair = std::pair<std::string, std::string>;
  for (const auto& [open, close] :
       {Pair("<!--", "-->"), Pair("<pre>", "</pre>"), Pair("<SCRIPT a='b'>", "</SCRIPT>"), Pair("<style>", "</style>")}) {
    const std::string page = "<script/>" + text + open + many + close + text;
    OfficeFile file("epub",
                    zip_of({{"META-INF/container.xml", "<c><rootfile full-path=\"b.opf\"/></c>"}, {"b.opf", opf}, {"p.xhtml", page}}),
                    {"en", "de", {}});
    EXPECT_EQ(file.units().size(), 3u);
    std::string all;
    for (const TextUnit& unit : file.units()) {
      EXPECT_EQ(unit.text.find(open) == std::string::npos, unit.text.find(close) == std::string::npos) << open;
      all += unit.text;
    }
    EXPECT_EQ(all, page) << open;
  }
}

}  // namespace
}  // namespace starling
