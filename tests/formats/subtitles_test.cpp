// Subtitles: what is translated together, and that nothing but texts changes, whatever comes back.
#include "formats/subtitles.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/random.h"
#include "units.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kFilm =
    "1\r\n00:00:01,000 --> 00:00:03,500\r\n<i>Two men are playing\r\nguitar on a street,</i>\r\n\r\n"
    "2\r\n00:00:04,120 --> 00:00:06,000 X1:100\r\nand they sing.\r\n\r\n"
    "3\r\n00:00:07,000 --> 00:00:08,000\r\n- A dog runs.\r\n- A boy is\r\njumping!\r\n\r\n"
    "4\r\n00:00:09,000 --> 00:00:10,000\r\n{\\an8}The <b>end</b>.\r\n\r\n"
    "5\r\n00:00:11,000 --> 00:00:12,000\r\n2026\r\n";

TEST(Subtitles, AreKnownByTheirFirstBytes) {
  EXPECT_TRUE(is_subtitles(kFilm));
  EXPECT_TRUE(is_subtitles("\xEF\xBB\xBF\n1\n00:00:01,000 --> 00:00:03,500\nx"));
  EXPECT_TRUE(is_subtitles("WEBVTT - a film\n"));
  EXPECT_TRUE(is_subtitles("00:01.000 --> 00:03.500\nx"));
  for (const char* text :
       {"", "1\n2\n3\n", "WEBVTTX", "a --> b", "See 00:01 --> 00:02", "12:30\n", "1\nfilm\n00:00:01,000 --> 00:00:03,500"})
    EXPECT_FALSE(is_subtitles(text)) << text;
}

TEST(Subtitles, TextsThatBelongTogetherAreOne) {
  EXPECT_EQ(texts_of(Subtitles(kFilm)),
            "Two men are playing guitar on a street, and they sing.\n- A dog runs.\n- A boy is jumping!\nThe <b>end</b>.\n");
}

TEST(Subtitles, TranslationsAreCutLikeTheirSources) {
  EXPECT_EQ(assembled(Subtitles(kFilm),
                      "Zwei Männer spielen auf einer Straße Gitarre, und sie singen.\n- Ein Hund läuft.\n"
                      "- Ein Junge springt!\nDas <b>Ende</b>.\n"),
            "1\r\n00:00:01,000 --> 00:00:03,500\r\n<i>Zwei Männer spielen auf\r\neiner Straße Gitarre,</i>\r\n\r\n"
            "2\r\n00:00:04,120 --> 00:00:06,000 X1:100\r\nund sie singen.\r\n\r\n"
            "3\r\n00:00:07,000 --> 00:00:08,000\r\n- Ein Hund läuft.\r\n- Ein Junge springt!\r\n\r\n"
            "4\r\n00:00:09,000 --> 00:00:10,000\r\n{\\an8}Das <b>Ende</b>.\r\n\r\n"
            "5\r\n00:00:11,000 --> 00:00:12,000\r\n2026\r\n");
}

TEST(Subtitles, WhatIsNoCueOfWebVttStays) {
  const std::string film =
      "WEBVTT Kind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE drafted\non Monday\n\ncue-1\n00:01.000 --> 00:03.500 align:start "
      "position:10%\n<v Anna>Two men play.\n\n00:04.120 --> 00:06.000\n<v.loud Bob>A dog runs.</v>\n";
  Subtitles s(film);
  EXPECT_EQ(texts_of(s), "Two men play.\nA dog runs.\n");
  std::string expected = film;
  expected.replace(expected.find("Two men play."), 13, "Zwei");
  expected.replace(expected.find("A dog runs."), 11, "Ein Hund");
  EXPECT_EQ(assembled(s, "Zwei\nEin Hund\n"), expected);
}

TEST(Subtitles, TimesOfWordsAndEntitiesOfWebVttDoNotReachTheModel) {
  Subtitles s("WEBVTT\n\n00:00.000 --> 00:01.000 align:start\n \nhello<00:00:00.399><c> and</c><c.x> R&amp;D</c>&nbsp;&lt;3\n");
  EXPECT_EQ(texts_of(s), "hello and R&D\xC2\xA0<3\n");
  EXPECT_EQ(assembled(s, "HALLO & <i>UND</i> <3\n"), "WEBVTT\n\n00:00.000 --> 00:01.000 align:start\nHALLO &amp; <i>UND</i> &lt;3\n");
}

TEST(Subtitles, VoicesAreTurnsAndClassesArePartsOfTags) {
  const std::string film = "WEBVTT\n\n00:00.000 --> 00:01.000\n<v Bob>Two dogs.</v>\n<v Anna>A <i.loud>man</i>.\n";
  Subtitles s(film);
  EXPECT_EQ(texts_of(s), "Two dogs.\nA <i.loud>man</i>.\n");
  EXPECT_EQ(assembled(s, texts_of(s)), film);
  EXPECT_EQ(texts_of(Subtitles("1\n00:00:01,000 --> 00:00:02,000\nOne.\\NTwo.\n")), "One. Two.\n");
}

TEST(Subtitles, CuesNeedNoBlankLineBetweenThem) {
  const std::string film =
      "1\n00:00:01,000 --> 00:00:02,000\n2\n00:00:03,000 --> 00:00:04,000\nHello.\n3\n00:00:05,000 --> 00:00:06,000\nYou.\n";
  Subtitles s(film);
  EXPECT_EQ(texts_of(s), "Hello.\nYou.\n");
  EXPECT_EQ(assembled(s, texts_of(s)), film);
}

TEST(Subtitles, TakeLinearTime) {
  std::string tags, words;
  for (int i = 0; i < 20000; ++i) tags += "<b>", words += "word, ";
  const std::string times = "1\n00:00:01,000 --> 00:00:02,000\n";
  for (const std::string& text : {tags + "x", tags + "x" + words, words}) {  // half a minute and more where it is quadratic
    Subtitles s(times + text + "\n");
    EXPECT_GT(assembled(s, texts_of(s)).size(), text.size());
  }
}

// A pair of tags that a cut falls into is closed in front of it and opened again behind it.
TEST(Subtitles, TagsAreWholeInEachCue) {
  Subtitles s("1\n00:00:01,000 --> 00:00:02,000\nOne two three\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>four five</i> six.\n");
  EXPECT_EQ(texts_of(s), "One two three <i>four five</i> six.\n");
  EXPECT_EQ(assembled(s, "EINS <i>ZWEI DREI VIER</i> SECHS.\n"),
            "1\n00:00:01,000 --> 00:00:02,000\nEINS <i>ZWEI DREI</i>\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>VIER</i> SECHS.\n");
}

TEST(Subtitles, LongLinesAreCutInTwoAlsoWithoutSpaces) {
  Subtitles s("1\n00:00:01,000 --> 00:00:02,000\nOne.\n");
  EXPECT_EQ(assembled(s, "This is a text that is far too long for a single line.\n"),
            "1\n00:00:01,000 --> 00:00:02,000\nThis is a text that is far\ntoo long for a single line.\n");
  EXPECT_EQ(assembled(s, "这是一个对于单独一行来说实在太长的文本，需要分成两行。\n"),
            "1\n00:00:01,000 --> 00:00:02,000\n这是一个对于单独一行来说实\n在太长的文本，需要分成两行。\n");
}

TEST(Subtitles, NoCueIsEmptyWhereThereAreFewerWords) {
  Subtitles s("1\n00:00:01,000 --> 00:00:02,000\nOne two\n\n2\n00:00:03,000 --> 00:00:04,000\nthree.\n");
  EXPECT_EQ(assembled(s, "Eins.\n"), "1\n00:00:01,000 --> 00:00:02,000\nEins.\n\n2\n00:00:03,000 --> 00:00:04,000\nEins.\n");
}

TEST(Subtitles, RefusesOtherEncodings) { EXPECT_THROW(Subtitles("1\n00:00:01,000 --> 00:00:02,000\ncaf\xE9\n"), DataError); }

// Of 3,000 random files each line that is no text stays, cues keep their order, and the words that go in come out once. Where cues of a
// word or two are cut again, a word may be in the next one.
TEST(Subtitles, NothingIsLostWhateverTheFile) {
  const char* const pieces[] = {"1\n",
                                "00:00:01,000 --> 00:00:02,000\n",
                                "00:01.000 --> 00:02.000 line:1\r\n",
                                "\n",
                                "\n\n",
                                "WEBVTT\n",
                                "word ",
                                "<i>",
                                "</i>",
                                "end.\n",
                                "- turn\n",
                                "{\\an8}",
                                "<v A>",
                                "12:30\n",
                                "\t",
                                "你好",
                                "NOTE x\n",
                                "<b>b</b> "};
  const auto words = [](std::string text) {
    for (const auto& [entity, character] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}})  // which WebVTT has
      for (size_t at; (at = text.find(entity)) != std::string::npos;) text.replace(at, std::string(entity).size(), character);
    for (const char* tag : {"<i>", "</i>"})
      for (size_t at; (at = text.find(tag)) != std::string::npos;) text.erase(at, std::string(tag).size());
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }),
               text.end());
    return text;
  };
  int same = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    Random random(58, round);
    std::string text;
    for (uint64_t n = random.below(50); n > 0; --n) text += pieces[random.below(std::size(pieces))];
    Subtitles s(text);
    std::string out = words(assembled(s, texts_of(s))), in = words(text);
    same += out == in;
    std::sort(out.begin(), out.end());
    std::sort(in.begin(), in.end());
    EXPECT_EQ(out, in) << text;
  }
  EXPECT_GT(same, 2900);
}

// Neither time nor memory grows with the square of a text. (A text of this size took minutes, or gigabytes.)
TEST(Subtitles, HostileTextsTakeWhatTheirSizeTakes) {
  const std::string begin = "00:00:01,000 --> 00:00:03,500\n";
  std::string marks, breaks, tags, words, ends;
  for (int i = 0; i < 300'000; ++i) marks += "<1", breaks += "a\\N";
  for (int i = 0; i < 3000; ++i) tags += "<font color=\"" + std::to_string(i) + "\">", words += "many words ", ends += "</font>";
  EXPECT_EQ(texts_of(Subtitles("WEBVTT\n\n" + begin + "a " + marks)).size(), marks.size() + 3);
  EXPECT_EQ(texts_of(Subtitles(begin + breaks + "b")).size(), 600'002u);
  Subtitles deep(begin + "x " + tags + words + ends);
  const std::string done = assembled(deep, texts_of(deep));
  EXPECT_LT(done.size(), 20 * (tags.size() + words.size()));
  EXPECT_THAT(done, HasSubstr("<font color=\"2999\">"));
}

TEST(Subtitles, LineBreaksOfConvertersAreSpaces) {
  EXPECT_EQ(texts_of(Subtitles("00:00:01,000 --> 00:00:03,500\nA dog\\Nruns.\\N")), "A dog runs.\n");
}

}  // namespace
}  // namespace starling
