// XML, whose elements are the document's own, and where sentences end by the options of a request.
#include <gtest/gtest.h>

#include "document/document.h"

namespace starling {
namespace {

using Strings = std::vector<std::string>;

Strings xml(const std::string& text, const DocumentOptions& options = {}) {
  return Document(text, DocumentFormat::xml, "en", options).sentences();
}

// With small letters of each sentence made large.
std::string shouted(const std::string& text, DocumentFormat format, const DocumentOptions& options = {}) {
  const Document document(text, format, "en", options);
  std::vector<AlignedText> translations;
  for (std::string sentence : document.sentences()) {
    for (char& c : sentence) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    translations.push_back({sentence, {}});
  }
  return document.assemble(translations);
}

TEST(XmlDocument, NamesOfHtmlMeanNothing) {
  for (const char* name : {"code", "style", "script", "title", "link", "var",    "textarea", "object",      "pre", "svg", "source",
                           "br",   "meta",  "math",   "kbd",   "samp", "iframe", "input",    "Überschrift", "_a",  "ns:p"}) {
    const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
    EXPECT_EQ(shouted(open + "two dogs run." + close, DocumentFormat::xml), open + "TWO DOGS RUN." + close);
    EXPECT_EQ(shouted("<doc>" + open + "two dogs" + close + open + "a cat" + close + "</doc>", DocumentFormat::xml),
              "<doc>" + open + "TWO DOGS" + close + open + "A CAT" + close + "</doc>");
  }
  EXPECT_EQ(shouted("<source>two dogs run.</source><target/>", DocumentFormat::xml), "<source>TWO DOGS RUN.</source><target/>");
  // Names have small and large letters, and the attributes of HTML are attributes like others.
  EXPECT_EQ(shouted("<p translate=\"no\" class=\"notranslate\">a</p>", DocumentFormat::xml),
            "<p translate=\"no\" class=\"notranslate\">A</p>");
  EXPECT_EQ(xml("<A>one <a>two</a> three</A>"), (Strings{"one two three"}));
}

TEST(XmlDocument, KeepsWhatIsNoText) {
  const std::string file =
      "<?xml version=\"1.0\" encoding='UTF-8'?>\n<!DOCTYPE note [ <!ENTITY me \"a > b\"> <!ELEMENT note (#PCDATA)> ] >\n"
      "<!-- a comment -->\n<note when=\"a > b\">a &lt;b&gt; &me; &amp; more</note>\n<?a target > here ?>";
  EXPECT_EQ(shouted(file, DocumentFormat::xml),
            "<?xml version=\"1.0\" encoding='UTF-8'?>\n<!DOCTYPE note [ <!ENTITY me \"a > b\"> <!ELEMENT note (#PCDATA)> ] >\n"
            "<!-- a comment -->\n<note when=\"a > b\">A &lt;B&gt; &me; &amp; MORE</note>\n<?a target > here ?>");
  EXPECT_EQ(shouted("<a><![CDATA[x < y]]></a>", DocumentFormat::xml), "<a><![CDATA[x < y]]></a>");
  for (const char* odd : {"", "<", "<a", "</a>", "<a><b></a></b>", "<!DOCTYPE a [", "<?", "a < b", "<a/><b/>", "<!DOCTYPE a [ ] ] x>"})
    EXPECT_EQ(
        Document(odd, DocumentFormat::xml, "en").assemble(std::vector<AlignedText>(xml(odd).size(), AlignedText{"a &lt; b", {}})).empty(),
        std::string(odd).empty());
}

TEST(XmlDocument, ElementsWithoutTextAroundThemSeparate) {
  const std::string document =
      "<doc><meta><title>the title</title><by>ann</by></meta>\n<par>the <b>first</b> paragraph<br/> goes on</par><par>the "
      "second</par></doc>";
  EXPECT_EQ(xml(document), (Strings{"the title", "ann", "the first paragraph goes on", "the second"}));
  // Text at the top makes elements there part of its sentence.
  EXPECT_EQ(xml("A man is riding a <x>red bike</x> on the street."), (Strings{"A man is riding a red bike on the street."}));
  EXPECT_EQ(xml("<a>one</a><b>two</b>"), (Strings{"one", "two"}));
  EXPECT_EQ(xml("<a>one <b>two <c>three</c></b> four</a>"), (Strings{"one two three four"}));
  // Where elements cross or nothing closes them, text belongs to the one around.
  EXPECT_EQ(xml("<d><a>one<b>two</a>three</b></d>"), (Strings{"onetwothree"}));
  EXPECT_EQ(xml("<d><a>one</a><b>two</d>"), (Strings{"onetwo"}));
}

TEST(XmlDocument, TagsOfTheRequest) {
  DocumentOptions options;
  options.tags.ignored = {"x"};
  EXPECT_EQ(shouted("<x>Save changes</x> a woman. <x>Cancel</x>", DocumentFormat::xml, options),
            "<x>Save changes</x> A WOMAN. <x>Cancel</x>");
  EXPECT_EQ(shouted("<d><x>one <y>two</y></x><X>three</X></d>", DocumentFormat::xml, options), "<d><x>one <y>two</y></x><X>THREE</X></d>");
  options = {};
  options.tags.separating = {"cut"};
  EXPECT_EQ(xml("one <cut/>two <cut>three</cut> four", options), (Strings{"one", "two", "three", "four"}));
  options.tags.within = {"b"};
  EXPECT_EQ(xml("<p><b>one</b> <b>two</b></p>", options), (Strings{"one two"}));
  EXPECT_EQ(xml("<p><b>one</b> <b>two</b></p>"), (Strings{"one", "two"}));
  options = {};
  options.tags.outline = false;
  options.tags.separating = {"par"};
  EXPECT_EQ(xml("<par>one <i>two</i></par><par><i>three</i><i> four</i></par>", options), (Strings{"one two", "three four"}));
}

TEST(XmlDocument, TagsOfTheRequestInHtml) {
  DocumentOptions options;
  options.tags.ignored = {"em"};
  EXPECT_EQ(shouted("<p>a <EM>name</EM> is kept</p>", DocumentFormat::html, options), "<p>A <EM>name</EM> IS KEPT</p>");
  options.tags.separating = {"span"};
  options.tags.within = {"br"};
  EXPECT_EQ(Document("one<br>two<span>three</span>", DocumentFormat::html, "en", options).sentences(), (Strings{"onetwo", "three"}));
}

TEST(DocumentOptions, SayWhereSentencesEnd) {
  const std::string text = "A woman is\nplaying. The guitar\r\nin the park.";
  const auto sentences = [&](DocumentFormat format, SentenceEnds ends) { return Document(text, format, "en", {ends, {}}).sentences(); };
  const Strings lines{"A woman is", "playing.", "The guitar", "in the park."}, marks{"A woman is playing.", "The guitar  in the park."};
  for (const DocumentFormat format : {DocumentFormat::text, DocumentFormat::xml, DocumentFormat::html}) {
    EXPECT_EQ(sentences(format, SentenceEnds::usual), format == DocumentFormat::html ? marks : lines);
    EXPECT_EQ(sentences(format, SentenceEnds::marks_and_lines), lines);
    EXPECT_EQ(sentences(format, SentenceEnds::marks), marks);
    EXPECT_EQ(sentences(format, SentenceEnds::none), (Strings{"A woman is playing. The guitar  in the park."}));
  }
  EXPECT_EQ(shouted("  one\ntwo. three \n", DocumentFormat::text, {SentenceEnds::none, {}}), "  ONE TWO. THREE \n");
  EXPECT_EQ(shouted("<a>\n  one\n  <b>two</b>\n</a>", DocumentFormat::xml), "<a>\n  ONE\n  <b>TWO</b>\n</a>");
  EXPECT_TRUE(Document("--- \n", DocumentFormat::text, "en", {SentenceEnds::none, {}}).sentences().empty());
}

// Scanning takes time in proportion to the text, also of what is not XML.
TEST(XmlDocument, LongTextsOfOneThing) {
  for (const char* unit :
       {"<a>", "</a>", "<a><b></a></b>", "<!DOCTYPE x ", "<!DOCTYPE x [", "<?x ", "<![CDATA[", "]  ", "<a b='", "<a>x</a>", "<"}) {
    std::string text;
    while (text.size() < 1 << 18) text += unit;
    EXPECT_LE(xml(text).size(), text.size()) << unit;
  }
}

}  // namespace
}  // namespace starling
