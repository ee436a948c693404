// Translation memories as CAT tools write them.
#include "formats/translation_memory.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kTmx =
    R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="OmegaT" srclang="EN-US" datatype="plaintext" segtype="sentence"/>
  <body>
    <tu tuid="1"><tuv xml:lang="EN-US"><seg>Hello &amp; welcome.</seg></tuv><tuv xml:lang="de-DE"><seg>Hallo &lt;3</seg></tuv>
      <tuv xml:lang="fr"><seg>Bonjour</seg></tuv></tu>
    <tu><note>no text</note>
      <tuv lang="de"><prop type="x">y</prop>
      <seg>Das <bpt i="1">&lt;b&gt;</bpt>Haus<ept i="1">&lt;/b&gt;</ept> <hi>brennt</hi><ph x="2"/>.</seg></tuv>
      <tuv lang="en"><seg>The
        <it pos="begin">&lt;i&gt;</it>house   burns.</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg>twice</seg></tuv><tuv xml:lang="de"><seg>einmal</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg>twice</seg></tuv><tuv xml:lang="de"><seg>zweimal</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg><![CDATA[a < b]]></seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg>untranslated</seg></tuv></tu>
  </body>
</tmx>)";

std::string found(const std::string& text, const std::string& sentence, const std::string& from = "en", const std::string& to = "de") {
  const auto memory = TranslationMemory::parse(text, "m.tmx", from, to);
  const std::string* translation = memory->find(sentence);
  return translation ? *translation : "-";
}
std::string refusal(const std::string& text, const std::string& from = "en", const std::string& to = "de") {
  try {
    TranslationMemory::parse(text, "m.tmx", from, to);
  } catch (const DataError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(TranslationMemory, ReadsTmx) {
  EXPECT_EQ(found(kTmx, "Hello & welcome."), "Hallo <3");
  EXPECT_EQ(found(kTmx, " The house\tburns. "), "Das Haus brennt.");
  EXPECT_EQ(found(kTmx, "twice"), "zweimal") << "the last one counts";
  EXPECT_EQ(found(kTmx, "a < b"), "b");
  EXPECT_EQ(found(kTmx, "untranslated"), "-");
  EXPECT_EQ(found(kTmx, "hello & welcome."), "-");
  EXPECT_EQ(found(kTmx, "Das Haus brennt.", "de", "en-GB"), "The house burns.");
  EXPECT_EQ(found(kTmx, "Hello & welcome.", "", "fr"), "Bonjour") << "the header says the source's language";
}

TEST(TranslationMemory, ReadsUtf16) {
  std::string wide = "\xFF\xFE";
  for (const char c : std::string(R"(<tmx><body><tu><tuv lang="en"><seg>dog</seg></tuv><tuv lang="de"><seg>K)")) wide += c, wide += '\0';
  wide += "\xF6", wide += '\0';
  for (const char c : std::string("ter</seg></tuv></tu></body></tmx>")) wide += c, wide += '\0';
  EXPECT_EQ(found(wide, "dog"), "Köter");
}

TEST(TranslationMemory, ReadsLinesWithTabs) {
  EXPECT_EQ(found("a dog\tein Hund\tnote\r\n\r\ncat\tKatze", "a  dog"), "ein Hund");
  EXPECT_EQ(found("a dog\tein Hund\tnote\r\n\r\ncat\tKatze", "cat"), "Katze");
}

TEST(TranslationMemory, ReadsTables) {
  const auto memory = TranslationMemory::parse("source;target\n\"a; b\";\"c\"\n", "m.csv", "en", "de");
  EXPECT_EQ(*memory->find("a; b"), "c");
  EXPECT_EQ(memory->size(), 1u) << "the names of the columns are no sentences";
}

TEST(TranslationMemory, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("a\tb\nno tab\n"), HasSubstr("m.tmx:2: no tab; a memory is a TMX file, a table (.csv), or lines"));
  EXPECT_THAT(refusal(""), HasSubstr("has no sentences"));
  EXPECT_THAT(refusal("a\xFF\tb"), HasSubstr("m.tmx:1: not UTF-8"));
  EXPECT_THAT(refusal(kTmx, "en", "it"), HasSubstr("no sentences from en to it; its languages are de, de-de, en, en-us, fr"));
  EXPECT_THAT(refusal(kTmx, "en", ""), HasSubstr("choose one with --target-language"));
  EXPECT_THAT(refusal("<tmx>\n<tu><tuv lang=\"en\"><seg>a"), HasSubstr("m.tmx: the unit that begins in line 2 has no end"));
}

}  // namespace
}  // namespace starling
