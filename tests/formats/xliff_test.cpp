// XLIFF: what gets a target, with which elements and which state, and what stays.
#include "units/xliff.h"

#include <gmock/gmock.h>

#include "formats/file_format.h"
#include "units.h"

namespace starling {
namespace {

std::string version1(const std::string& units, const std::string& file = "source-language=\"en-US\" target-language=\"de\"") {
  return "<?xml version=\"1.0\"?>\n<xliff version=\"1.2\">\n<file original=\"a\" " + file + "><body>\n" + units +
         "\n</body></file></xliff>\n";
}
std::string version2(const std::string& units) {
  return "<xliff version=\"2.0\" srcLang=\"en\" trgLang=\"de\"><file id=\"f\">\n" + units + "\n</file></xliff>\n";
}
constexpr char kMark[] = " state=\"needs-review-translation\" state-qualifier=\"mt-suggestion\"";

void expect_units(const std::string& from, const std::string& to) {
  EXPECT_EQ(with_sentences(Xliff(version1(from), kLanguages)), version1(to));
}

TEST(Xliff, TargetsAreMadeBehindTheirSources) {
  const std::string mark = kMark;
  expect_units("  <trans-unit id=\"1\">\n    <source>A dog &amp; a cat.</source>\n    <note>Two dogs.</note>\n  </trans-unit>",
               "  <trans-unit id=\"1\">\n    <source>A dog &amp; a cat.</source>\n    <target" + mark +
                   ">A DOG &amp; A CAT.</target>\n    <note>Two dogs.</note>\n  </trans-unit>");
  expect_units("<trans-unit id='1'><source>A dog.</source><target/></trans-unit>",
               "<trans-unit id='1'><source>A dog.</source><target" + mark + ">A DOG.</target></trans-unit>");
  expect_units("<trans-unit id='1'><source>12:30</source></trans-unit>",
               "<trans-unit id='1'><source>12:30</source><target" + mark + ">12:30</target></trans-unit>");
  expect_units("<x:trans-unit id='1'><x:source>A dog.</x:source></x:trans-unit>",
               "<x:trans-unit id='1'><x:source>A dog.</x:source><x:target" + mark + ">A DOG.</x:target></x:trans-unit>");
}

TEST(Xliff, EntitiesOfTheFileStay) {
  Xliff file(version1("<trans-unit id='1'><source>A &app; dog.</source><target/></trans-unit>"), kLanguages);
  EXPECT_EQ(assembled(file, "<x n=\"0\"/> &amp; I\n"), version1("<trans-unit id='1'><source>A &app; dog.</source><target" +
                                                                std::string(kMark) + ">&app; &amp; I</target></trans-unit>"));
}

TEST(Xliff, WhatIsTranslatedOrNotToBeTranslatedStays) {
  for (const std::string unit : {
           "<trans-unit id='1'><source>A dog.</source><target>Ein Hund.</target></trans-unit>",
           "<trans-unit id='1'><source>A dog.</source><target state='translated'>Ein Hund.</target></trans-unit>",
           "<trans-unit id='1' translate='no'><source>A dog.</source></trans-unit>",
           "<group translate='no'><trans-unit id='1'><source>A dog.</source></trans-unit></group>",
           "<trans-unit id='1'><source/></trans-unit>",
           "<trans-unit id='1'><source>A.</source><target>B.</target><alt-trans><source>A dog.</source><target/></alt-trans></trans-unit>",
       })
    expect_units(unit, unit);
  for (const std::string state : {"new", "needs-translation"})
    expect_units("<trans-unit id='1'><source>A dog.</source><target state=\"" + state + "\">x</target></trans-unit>",
                 "<trans-unit id='1'><source>A dog.</source><target" + std::string(kMark) + ">A DOG.</target></trans-unit>");
}

TEST(Xliff, InlineElementsGoWithTheirWords) {
  Xliff file(version1("<trans-unit id='1'><source>A <g id='1'>big</g> dog<x id='2'/> and <bpt id='3'>&lt;b&gt;</bpt>one cat<ept "
                      "id='3'>&lt;/b&gt;</ept> ran<ph id='4'>{0}</ph> <mrk mtype='protected'>Foo</mrk> home.</source></trans-unit>"),
             kLanguages);
  ASSERT_EQ(file.units().size(), 1u);
  const std::vector<std::string> target = {
      "<k n=\"6\">Foo</k> <g3>EINE KATZE</g3> UND EIN <g0>GROSSER</g0> HUND<x n=\"2\"/> &amp; <x n=\"5\"/>"};
  EXPECT_THAT(
      file.assemble(target),
      testing::HasSubstr("<mrk mtype='protected'>Foo</mrk> <bpt id='3'>&lt;b&gt;</bpt>EINE KATZE<ept id='3'>&lt;/b&gt;</ept> UND EIN "
                         "<g id='1'>GROSSER</g> HUND<x id='2'/> &amp; <ph id='4'>{0}</ph></target>"));
}

TEST(Xliff, SegmentsKeepTheirMarks) {
  const std::string source =
      "<source>A dog. A cat.</source><seg-source><mrk mtype=\"seg\" mid=\"1\">A dog.</mrk> <mrk mtype=\"seg\" "
      "mid=\"2\">A cat.</mrk></seg-source>";
  expect_units("<trans-unit id='1'>" + source + "</trans-unit>",
               "<trans-unit id='1'>" + source + "<target" + kMark +
                   "><mrk mtype=\"seg\" mid=\"1\">A DOG.</mrk> <mrk mtype=\"seg\" mid=\"2\">A CAT.</mrk></target></trans-unit>");
  // Of a target of some segments the others are filled.
  expect_units("<trans-unit id='1'>" + source +
                   "<target><mrk mtype=\"seg\" mid=\"1\">Hund</mrk> <mrk mtype=\"seg\" mid=\"2\"/></target></trans-unit>",
               "<trans-unit id='1'>" + source +
                   "<target><mrk mtype=\"seg\" mid=\"1\">Hund</mrk> <mrk mtype=\"seg\" mid=\"2\">A CAT.</mrk></target></trans-unit>");
}

TEST(Xliff, SegmentsOfVersion2HaveTheirStates) {
  const std::string states = " state=\"translated\" subState=\"starling:machine-translated\"";
  EXPECT_EQ(
      with_sentences(Xliff(version2("<unit id='1'><notes><note>A dog.</note></notes><segment><source>A <pc id='1'>dog</pc> ran.</source>"
                                    "</segment><ignorable><source> </source></ignorable><segment state=\"final\"><source>A cat.</source>"
                                    "<target>x</target></segment></unit><unit id='2' translate='no'><segment><source>A</source>"
                                    "</segment></unit>"),
                           kLanguages)),
      version2("<unit id='1'><notes><note>A dog.</note></notes><segment" + states + "><source>A <pc id='1'>dog</pc> ran.</source>" +
               "<target>A <pc id='1'>DOG</pc> RAN.</target></segment><ignorable><source> </source></ignorable><segment "
               "state=\"final\"><source>A cat.</source><target>x</target></segment></unit><unit id='2' translate='no'><segment>"
               "<source>A</source></segment></unit>"));
}

TEST(Xliff, LanguagesAreSetOrMustBeThoseOfTheModel) {
  const std::string unit = "<trans-unit id='1'><source>12</source><target>12</target></trans-unit>";
  EXPECT_EQ(with_sentences(Xliff(version1(unit, "source-language=\"en\""), kLanguages)),
            version1(unit, "source-language=\"en\" target-language=\"de\""));
  EXPECT_EQ(why_refused("xliff", version1(unit, "source-language=\"en\" target-language=\"fr-FR\"")),
            "line 3: target-language is fr-FR, but the model's language is de; use another model, or give --target-language fr-FR if both "
            "are the same");
  EXPECT_EQ(why_refused("xliff", version1(unit, "source-language=\"en\" target-language=\"fr\""), {"en", "", {}}), "");
}

TEST(Xliff, TagsThatAreWrittenAsTextAreTags) {
  expect_units("<trans-unit id='1'><source>A &lt;b>big&lt;/b> dog.</source></trans-unit>",
               "<trans-unit id='1'><source>A &lt;b>big&lt;/b> dog.</source><target" + std::string(kMark) +
                   ">A &lt;b&gt;BIG&lt;/b&gt; DOG.</target></trans-unit>");
  expect_units("<trans-unit id='1'><source><![CDATA[<p class=\"a\">R&amp;D</p>]]></source></trans-unit>",
               "<trans-unit id='1'><source><![CDATA[<p class=\"a\">R&amp;D</p>]]></source><target" + std::string(kMark) +
                   ">&lt;p class=\"a\"&gt;R&amp;amp;D&lt;/p&gt;</target></trans-unit>");
}

TEST(Xliff, BrokenFilesAreRefusedWithTheirLine) {
  EXPECT_EQ(why_refused("xliff", "<xliff>\n<file>\n</xliff>"), "line 3: </xliff> comes before <file> is closed");
  EXPECT_EQ(why_refused("xliff", "<xliff>\n<file>"), "line 2: <file> is not closed");
  EXPECT_EQ(why_refused("xliff", "<xliff/>\n</file>"), "line 2: </file> has no opening tag");
  EXPECT_EQ(why_refused("xliff", "<xliff>\n\n<!-- a </xliff>"), "line 3: \"<!-- a </\" is not closed");
  EXPECT_EQ(why_refused("xliff", "<xliff>\na < b</xliff>"), "line 2: this \"<\" does not begin a tag; write &lt; for the character");
  EXPECT_EQ(why_refused("xliff", "<xliff>\n<file a=\"b></file></xliff>"), "line 2: a quote of <file> is not closed");
  EXPECT_EQ(why_refused("xliff", "<a/>"), "line 1: there is no element <xliff>, so this is not XLIFF; choose another --format");
  EXPECT_THAT(why_refused("xliff", "<xliff>\ncaf\xE9</xliff>"), testing::HasSubstr("line 2: a byte does not belong to UTF-8"));
  EXPECT_THAT(why_refused("xliff", "\xFF\xFE<\0"), testing::HasSubstr("UTF-16"));
  EXPECT_EQ(why_refused("xliff", version1("<trans-unit>\n</trans-unit>")), "line 4: this <trans-unit> has no <source>");
}

TEST(Xliff, IsKnownByNameAndByItsFirstElement) {
  for (const char* name : {"a.xlf", "a.XLIFF", "a.sdlxliff", "a.mqxliff"}) EXPECT_EQ(file_format("<?xml version='1.0'?>", name), "xliff");
  EXPECT_EQ(file_format("<?xml version='1.0'?>\n<xliff version='1.2'>", "a.xml"), "xliff");
  EXPECT_EQ(file_format("<?xml version='1.0'?>\n<a/>", "a.xml"), "xml");
}

}  // namespace
}  // namespace starling
