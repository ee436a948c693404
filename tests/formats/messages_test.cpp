// Messages of programs in JSON, properties, .strings, XML and YAML: values in their syntax, variables, tags, choices by number.
#include "units/messages.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/random.h"
#include "formats/file_format.h"
#include "units.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::string changed(const std::string& format, const std::string& text) {
  return with_sentences(*open_unit_file(format, text, kLanguages));
}

std::string json_value(const std::string& value) {
  const std::string all = changed("json", "{\"a\": \"" + value + "\"}");
  return all.substr(7, all.size() - 9);
}

TEST(JsonMessages, ValuesAreTranslatedAndTheRestStays) {
  EXPECT_EQ(changed("json", "{ \"a_b\" : \"A dog\", \"n\": [1.5e3, true, null,\n \"one \\\"two\\\"\\n\\u00e9\"],\"x\":{} }\n"),
            "{ \"a_b\" : \"A DOG\", \"n\": [1.5e3, true, null,\n \"ONE \\\"TWO\\\"\\n\\u00c9\"],\"x\":{} }\n");
  EXPECT_EQ(json_value("a \\ud83d\\ude00 b"), "A \\ud83d\\ude00 B");
  EXPECT_EQ(json_value("Grüße"), "GRÜßE");
}

TEST(JsonMessages, WhatProgramsReadStays) {
  for (const char* value : {"main_menu", "mainMenu", "/a/b", "a/b/c", ":year", "@string/x", "#ff00aa", "12:30", "%Y-%m-%d", "{{name}}"})
    EXPECT_EQ(json_value(value), value);
  EXPECT_EQ(json_value("Yes/No"), "YES/NO");
  EXPECT_EQ(json_value("Hi {{name}}, $t(a.b) <1>big</1> {x}!"), "HI {{name}}, $t(a.b) <1>BIG</1> {x}!");
}

TEST(JsonMessages, DescriptionsOfMessagesStay) {
  EXPECT_EQ(
      changed("json", R"({"a":{"message":"A $X$ dog","description":"the dog","placeholders":{"x":{"content":"$1","example":"big"}}}})"),
      R"({"a":{"message":"A $X$ DOG","description":"the dog","placeholders":{"x":{"content":"$1","example":"big"}}}})");
  EXPECT_EQ(changed("json", R"({"a":{"id":"dog","defaultMessage":"A dog","description":"it"},"message":"one","title":"two"})"),
            R"({"a":{"id":"dog","defaultMessage":"A DOG","description":"it"},"message":"ONE","title":"TWO"})");
  EXPECT_EQ(changed("json", R"({"@@locale":"en","a":"A dog","@a":{"description":"the dog","type":"text"},"@@x":"y z"})"),
            R"({"@@locale":"de","a":"A DOG","@a":{"description":"the dog","type":"text"},"@@x":"y z"})");
}

TEST(Messages, BranchesOfChoicesAreTranslated) {
  EXPECT_EQ(json_value("{n, plural, =0 {no dogs} one {# dog} other {# dogs}}"), "{n, plural, =0 {NO DOGS} one {# DOG} other {# DOGS}}");
  EXPECT_EQ(json_value("You have {n, plural, one{one dog} other{{n} dogs}} in {city}."),
            "YOU HAVE  {n, plural, one{ONE DOG} other{{n} DOGS}} IN {city}.");
  EXPECT_EQ(json_value("{g, select, male {He has {n, plural, one {# cat} other {# cats}}} other {They}}"),
            "{g, select, male {HE HAS {n, plural, one {# CAT} other {# CATS}}} other {THEY}}");
  EXPECT_EQ(json_value("{n, plural, one {broken"), "{N, PLURAL, ONE {BROKEN");
  EXPECT_EQ(json_value("It is {d, date, short} now"), "IT IS {d, date, short} NOW");
  std::string deep = "a dog";
  for (int i = 0; i < 500; ++i) deep = "{n, plural, other {" + deep + "}}";
  EXPECT_EQ(json_value(deep).size(), deep.size());
}

TEST(Messages, ApostrophesOfTranslationsQuoteNothing) {
  const auto file = open_unit_file("json", R"({"a":"{n, plural, one {# dog} other {x '{a}' y}} {b}"})", kLanguages);
  ASSERT_EQ(texts_of(*file), "<k n=\"0\">2</k> dog\nx <x n=\"0\"/> y\n<x n=\"0\"/> {b}\n");
  EXPECT_EQ(assembled(*file, "l'<k n=\"0\">2</k> d'un chien'\nl'<x n=\"0\"/>'s\n<x n=\"0\"/> d'{b} l''{b, date, yyyy'x'}\n"),
            "{\"a\":\"{n, plural, one {l’# d'un chien’} other {l’'{a}'’s}} d’{b} l''{b, date, yyyy'x'}\"}");
}

TEST(JsonMessages, BrokenFilesAreRefusedWithTheirLine) {
  EXPECT_EQ(why_refused("json", "{\n\"a\": 1\n\"b\"}"), "line 3: \",\" or \"}\" should stand here in JSON, not \"\"b\"}\"");
  EXPECT_EQ(why_refused("json", "{\"a\":\n\"b"), "line 2: this string of JSON is not closed");
  EXPECT_EQ(why_refused("json", "{\"a\": [1,\n"), "line 2: the JSON ends, and a value should follow");
  EXPECT_EQ(why_refused("json", "{\"a\": // x\n1}"), "line 1: a value should stand here in JSON, not \"// x\"");
  EXPECT_EQ(why_refused("json", "{a: 1}"), "line 1: a key in quotes should stand here in JSON, not \"a: 1}\"");
  EXPECT_EQ(why_refused("json", "\"\\x\""), "line 1: an escape such as \\n or \\u00e9 should stand here in JSON, not \"\\x\"\"");
  EXPECT_EQ(why_refused("json", "[1] 2"), "line 1: the end should stand here in JSON, not \"2\"");
  EXPECT_EQ(why_refused("json", ""), "line 1: the JSON ends, and a value should follow");
  EXPECT_EQ(why_refused("json", std::string(1'000, '[')), "line 1: the JSON ends, and a value should follow");
  EXPECT_EQ(why_refused("json", std::string(1'000'000, '[')), "line 1: this is deeper than 1000 levels");
}

TEST(Properties, ValuesKeepTheirSyntax) {
  EXPECT_EQ(
      changed("properties", "# the dog\n! a\nk.1 = A dog \\\n   ran\\u00e9 \\: x\nb:two\\twords\nc three\nempty=\nkey\\ x=y {0} isn''t\n"),
      "# the dog\n! a\nk.1 = A DOG RAN\\u00c9 : X\nb:TWO\\tWORDS\nc THREE\nempty=\nkey\\ x=Y {0} ISN''T\n");
  EXPECT_EQ(changed("properties", "a=caf\xE9 x\r\nb=\xB9\r\n"), "a=CAF\\u00c9 X\r\nb=\xB9\r\n");
  EXPECT_EQ(changed("properties", "a=Größe\nb=it's"), "a=GRÖßE\nb=IT'S");
  EXPECT_EQ(changed("properties", "a=\\"), "a=\\");
}

TEST(Properties, QuotedBracesStay) {
  for (const char* line : {"m=Type '{'x'}' in {0}", "m=The word '{0}' is in {1}", "m=It''s 'the {0}' of {1}"})
    EXPECT_EQ(changed("properties", line), line);
  EXPECT_EQ(changed("properties", "m=don't run {0}\nn='a' dog {0}\no=it''s {0}''s"), "m=DON''T RUN {0}\nn=''A'' DOG {0}\no=IT''S {0}''S");
}

TEST(AppleStrings, ValuesKeepTheirSyntax) {
  EXPECT_EQ(changed("strings", "/* the dog */\n\"a b\" = \"A \\\"dog\\\" %@\\n%1$d\";\nkey=\"two\"; // x\n\"alone\";\n"),
            "/* the dog */\n\"a b\" = \"A \\\"DOG\\\" %@\\n%1$d\";\nkey=\"TWO\"; // x\n\"alone\";\n");
  EXPECT_EQ(why_refused("strings", "\"a\" = \"b\";\n\"c\" \"d\";"), "line 2: expected \"=\" after the key");
  EXPECT_EQ(why_refused("strings", "\"a\" = \"b\"\n\"c\" = \"d\";"), "line 2: expected \";\" after the value");
  EXPECT_EQ(why_refused("strings", "/* a"), "line 1: this comment is not closed");
  EXPECT_EQ(why_refused("strings", "\"a\" = \"b"), "line 1: this text is not closed");
}

TEST(AndroidStrings, EscapesAndTagsStay) {
  const auto content = [](const std::string& text) {
    const std::string all = changed("android", "<resources><string name=\"a\">" + text + "</string></resources>");
    return all.substr(28, all.size() - 28 - 21);
  };
  EXPECT_EQ(content("Don\\'t <b>run</b>, %1$s"), "DON\\'T <b>RUN</b>, %1$s");
  EXPECT_EQ(content("One\\nTwo &amp; \\u0020"), "ONE\\nTWO &amp; \\u0020");
  EXPECT_EQ(content("\"A dog's\""), "\"A DOG\\'S\"");
  EXPECT_EQ(content("A <xliff:g id=\"x\">%s</xliff:g> dog"), "A <xliff:g id=\"x\">%s</xliff:g> DOG");
  EXPECT_EQ(content("<![CDATA[<p class=\"x\">A <b>dog</b></p>]]>"), "<![CDATA[<p class=\"x\">A <b>DOG</b></p>]]>");
  EXPECT_EQ(content("A &lt;b>dog&lt;/b>"), "A &lt;b&gt;DOG&lt;/b&gt;");
  EXPECT_EQ(content("@string/other"), "@string/other");
  EXPECT_EQ(content("A dog.\n    A cat\\tb \\u0009."), "A DOG.\n    A CAT\\tB \\u0009.");
  EXPECT_EQ(content("A &lt;a href=\\\"x y\\\">dog&lt;/a> isn\\'t"), "A &lt;a href=\\\"x y\\\"&gt;DOG&lt;/a&gt; ISN\\'T");
  EXPECT_EQ(content("<![CDATA[A <a href=\\\"x\\\">dog</a>]]>"), "<![CDATA[A <a href=\\\"x\\\">DOG</a>]]>");
  EXPECT_EQ(content("<![CDATA[<!-- it\\'s -->A dog]]>"), "<![CDATA[<!-- it\\'s -->A DOG]]>");
  EXPECT_EQ(content("a &lt;b and it\\'s"), "A &lt;B AND IT\\'S");
  EXPECT_EQ(content("a &lt; b, it\\'s"), "A &lt; B, IT\\'S");
  EXPECT_EQ(changed("android",
                    "<resources>\n<!-- a dog --><string name=\"a\" translatable=\"false\">A dog</string>\n<plurals name=\"p\"><item "
                    "quantity=\"one\">%d dog</item></plurals><string-array name=\"x\"><item>one</item></string-array>\n</resources>"),
            "<resources>\n<!-- a dog --><string name=\"a\" translatable=\"false\">A dog</string>\n<plurals name=\"p\"><item "
            "quantity=\"one\">%d DOG</item></plurals><string-array name=\"x\"><item>ONE</item></string-array>\n</resources>");
}

TEST(AndroidStrings, ItemsOfStylesStay) {
  const auto items = [](const std::string& word) {
    return "<resources><style name=\"s\"><item name=\"a\">sans</item></style><array name=\"x\"><item>" + word +
           "</item></array><item type=\"string\" name=\"b\">" + word + "</item><item type=\"id\" name=\"c\">one</item></resources>";
  };
  EXPECT_EQ(changed("android", items("dog")), items("DOG"));
}

TEST(XmlMessages, EntitiesOfTheFileStay) {
  const std::string head = "<!DOCTYPE resources [<!ENTITY app_name \"Sun\"><!ENTITY phone \"12\"><!ENTITY nbsp \"&#160;\">]>";
  const auto file = open_unit_file(
      "android", head + "<resources><string name=\"a\">Run &app_name; &phone;&nbsp;&amp; go</string></resources>", kLanguages);
  ASSERT_EQ(texts_of(*file), "Run <x n=\"0\"/> <x n=\"1\"/>\u00a0&amp; go\n");
  EXPECT_EQ(assembled(*file, "<x n=\"1\"/> &amp; <x n=\"0\"/>\n"),
            head + "<resources><string name=\"a\">&phone; &amp; &app_name;</string></resources>");
  const std::string resx = "<root><data name=\"a\"><value>Run &app;</value></data></root>";
  EXPECT_EQ(changed("resx", resx), resx);
  const std::string qt = "<TS language=\"de\"><message><source>Run &app;</source><translation type=\"unfinished\"/></message></TS>";
  EXPECT_EQ(changed("qt", qt), qt);
}

TEST(Resx, TextsAreTranslated) {
  EXPECT_EQ(
      changed(
          "resx",
          "<root><data name=\"a\" xml:space=\"preserve\"><value>&amp;Open a &lt;b&gt;dog&lt;/b&gt;</value><comment>a dog</comment></data>"
          "<data name=\"i\" type=\"System.Drawing.Bitmap\"><value>a dog</value></data><resheader name=\"r\"><value>a "
          "dog</value></resheader></root>"),
      "<root><data name=\"a\" xml:space=\"preserve\"><value>&amp;OPEN A &lt;b&gt;DOG&lt;/b&gt;</value><comment>a dog</comment></data>"
      "<data name=\"i\" type=\"System.Drawing.Bitmap\"><value>a dog</value></data><resheader name=\"r\"><value>a "
      "dog</value></resheader></root>");
}

TEST(QtLinguist, UnfinishedMessagesGetTranslations) {
  EXPECT_EQ(
      changed("qt",
              "<!DOCTYPE TS>\n<TS version=\"2.1\">\n<message><source>&amp;File %1</source><translation "
              "type=\"unfinished\"></translation></message>"
              "<message numerus=\"yes\"><source>%n dog(s)</source><translation type=\"unfinished\"><numerusform></numerusform>"
              "<numerusform/></translation></message><message><source>A cat</source><translation>x</translation></message><message>"
              "<source>A cat</source><translation type=\"vanished\"></translation></message><message><source>B c</source></message></TS>"),
      "<!DOCTYPE TS>\n<TS version=\"2.1\" language=\"de\">\n<message><source>&amp;File %1</source><translation "
      "type=\"unfinished\">&amp;FILE %1</translation></message><message numerus=\"yes\"><source>%n dog(s)</source><translation "
      "type=\"unfinished\"><numerusform>%n DOG(S)</numerusform><numerusform>%n "
      "DOG(S)</numerusform></translation></message><message><source>A "
      "cat</source><translation>x</translation></message><message><source>A cat</source><translation "
      "type=\"vanished\"></translation></message>"
      "<message><source>B c</source><translation type=\"unfinished\">B C</translation></message></TS>");
  EXPECT_THAT(why_refused("qt", "<TS version='1' language='fr_FR'/>\n"), HasSubstr("there is no element <TS>"));
  EXPECT_THAT(why_refused("qt", "\n<TS version='1' language='fr_FR'></TS>"), HasSubstr("line 2: language is fr_FR"));
}

TEST(YamlMessages, ValuesKeepTheirStyle) {
  EXPECT_EQ(
      changed("yaml",
              "# a dog\nen:\n  a: A dog # x\n  b: 'it''s \"x\"'\n  c: \"one\\ntwo\"\n  \"yes\": yes\n  n: 12\n  d: |\n    One dog.\n\n    "
              "Two: dogs.\n"
              "  e: >-\n    long text\n    goes on\n  f: [one, \"two\", *x]\n  g: &x wrapped\n    text é\n  date: \"%d. %B\"\n  order: "
              "[year_x, "
              "\":month\"]\n"),
      "# a dog\nde:\n  a: A DOG # x\n  b: 'IT''S \"X\"'\n  c: \"ONE\\nTWO\"\n  \"yes\": yes\n  n: 12\n  d: |\n    ONE DOG.\n\n    TWO: "
      "DOGS.\n"
      "  e: >-\n    LONG TEXT GOES ON\n  f: [ONE, \"TWO\", *x]\n  g: &x WRAPPED TEXT É\n  date: \"%d. %B\"\n  order: [year_x, "
      "\":month\"]\n");
  const auto file = open_unit_file("yaml", "a: word\n", kLanguages);
  for (const auto& [said, written] :
       {std::pair("it: is", "\"it: is\""), {"- a", "\"- a\""}, {"no", "\"no\""}, {"a \"b\"", "\"a \\\"b\\\"\""}, {"it's", "it's"}})
    EXPECT_EQ(file->assemble(std::vector<std::string>{said}), std::string("a: ") + written + "\n");
  EXPECT_THAT(why_refused("yaml", "a: b\n c: [d\n"), HasSubstr("line "));
  EXPECT_THAT(why_refused("yaml", std::string(100'000, '[')), HasSubstr("deeper than"));
}

TEST(YamlMessages, AByteOrderMarkMovesNothing) {
  EXPECT_EQ(changed("yaml",
                    "\xEF\xBB\xBF"
                    "en:\n  a: 'A dog'\n  b: é cat\n"),
            "\xEF\xBB\xBF"
            "de:\n  a: 'A DOG'\n  b: É CAT\n");
  EXPECT_EQ(changed("yaml", "\xEF\xBB\xBF"), "\xEF\xBB\xBF");
}

TEST(Messages, FormatsAreKnown) {
  const std::pair<const char*, const char*> cases[] = {
      {"en.json", "json"},      {"a.arb", "json"},  {"a.po", "po"},    {"a.pot", "po"}, {"m_en.properties", "properties"},
      {"L.strings", "strings"}, {"en.yml", "yaml"}, {"R.resx", "resx"}};
  for (const auto& [name, format] : cases) EXPECT_EQ(file_format("a", name), format);
  EXPECT_EQ(file_format("<?xml version='1.0'?>\n<!-- x -->\n<resources>", "strings.xml"), "android");
  EXPECT_EQ(file_format("<?xml version='1.0'?>\n<!DOCTYPE TS><TS>", "a.ts"), "qt");
  EXPECT_THROW(file_format("let a;", "a.ts"), std::exception);
}

// Random files are refused, or translated to files that can be read again.
TEST(Messages, NothingIsLostWhateverTheFile) {
  const std::pair<const char*, std::vector<const char*>> formats[] = {
      {"json", {"{", "}", "[", "]", "\"a b\"", ":", ",", "1", "\"x\\n", "\\u00e9", "\"", "{n, plural, one {a}", " ", "\n"}},
      {"properties", {"a", "=", ":", " ", "\\", "\n", "\r\n", "word", "\\u00e9", "#", "{0}", "''"}},
      {"strings", {"\"a\"", " = ", "\"b c\"", ";", "/*", "*/", "//", "\n", "\\", "key"}},
      {"po", {"msgid ", "msgstr ", "msgstr[0] ", "msgid_plural ", "\"a b\"", "\"\"", "\n", "#, fuzzy\n", "# x\n", "\\", "msgctxt "}},
      {"yaml", {"a: ", "b c", "\n", "  ", "- ", "|\n", ">\n", "'", "\"", "[", "]", "{", "}", "&x ", "*x", "# x", "é"}},
      {"android",
       {"<resources>", "</resources>", "<string name='a'>", "</string>", "a b", "\\n", "\"", "<b>", "</b>", "<![CDATA[", "]]>", "&lt;",
        "<br/>", "&gt;", "&app;", "\\t", "\\\"", "\n"}},
      {"qt",
       {"<TS version='1'>", "</TS>", "<message>", "</message>", "<source>a b", "</source>", "<translation/>", "<numerusform/>", "&amp;"}},
      {"resx", {"<root>", "</root>", "<data name='a'>", "</data>", "<value>", "</value>", "a b", "<comment/>"}},
      {"xliff", {"<xliff>",           "</xliff>",  "<file>", "</file>", "<trans-unit>", "</trans-unit>", "<source>", "</source>",
                 "<target>",          "</target>", "a b",    "<g>",     "</g>",         "<bpt id='1'>",  "</bpt>",   "<x/>",
                 "<mrk mtype='seg'>", "</mrk>",    "<unit>", "</unit>", "<segment>",    "</segment>"}},
  };
  for (const auto& [format, pieces] : formats) {
    int read = 0;
    for (uint64_t round = 0; round < 2000; ++round) {
      Random random(60, round);
      std::string text;
      std::vector<std::string> open;  // elements, which are closed in their order
      for (uint64_t n = random.below(20); n > 0; --n) {
        const std::string piece = pieces[random.below(pieces.size())];
        const bool closes = piece.starts_with("</");
        if (closes && open.empty()) continue;
        text += closes ? open.back() : piece;
        if (closes) open.pop_back();
        if (piece[0] == '<' && !closes && piece[1] != '!' && !piece.ends_with("/>"))
          open.push_back("</" + piece.substr(1, piece.find_first_of(" >") - 1) + ">");
      }
      for (; !open.empty(); open.pop_back()) text += open.back();
      SCOPED_TRACE(format + (": " + text));
      try {
        const auto file = open_unit_file(format, text, {});
        EXPECT_EQ(why_refused(format, with_sentences(*file), {}), "");
        ++read;
      } catch (const DataError&) {
      }
    }
    EXPECT_GT(read, 0) << format;
  }
}

}  // namespace
}  // namespace starling
