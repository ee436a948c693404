// Placeholders and the words around them: what stands at the ends of a sentence is not translated, and whatever a model makes of what
// stands in the middle, each of its words comes out.
#include "document/placeholders.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "demo/corpus.h"
#include "document/document.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr auto kPlainText = DocumentFormat::text, kHtmlText = DocumentFormat::html;
using Strings = std::vector<std::string>;

// Every kind, and of emoji those that Unicode's tables name and a range of blocks would miss.
const Strings kPlaceholders{"😆",
                            "👩‍💻🎉",
                            "🇩🇪",
                            "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
                            "👍🏽",
                            "#️⃣",
                            "1⃣",
                            "❤️",
                            "🅰",
                            "㊗",
                            "ℹ️",
                            "Ⓜ",
                            "⤵",
                            "〰",
                            "〽",
                            "@anna",
                            "@anna@social.example",
                            "#fun",
                            ":cat_face:",
                            "%s",
                            "%1$s",
                            "%(count)d",
                            "{name}",
                            "{{ user.name }}",
                            "${x}",
                            "$(ARG1)",
                            "%PRODUCTNAME",
                            "%PATH%",
                            "https://example.org/x",
                            "www.example.org",
                            "me@mail.example.org",
                            "%count%",
                            "%user.name%",
                            "%<name>s",
                            "%<price>.2f",
                            "[X4X]",
                            "[X12X]",
                            "__NAME__",
                            "##name##",
                            "%%name%%",
                            "[[name]]",
                            "%1",
                            "%L2",
                            "%n",
                            "%%",
                            "%[1]s",
                            "%arg",
                            "_x000D_",
                            "%#@name@",
                            "%1$#@name@",
                            "\\u00e9",
                            "$t(common.cats)",
                            "$t(cats, {\"n\": 2})",
                            "@:common.cats",
                            ":name",
                            ":D",
                            ":ref:`label`",
                            ":py:func:`os.walk <walk>`",
                            "`ls -l`",
                            "``x = 1``",
                            "{% if x %}",
                            "<%= name %>",
                            "\\n",
                            "/usr/share/doc",
                            "/etc/fstab.d/",
                            "~/notes.txt",
                            "../a/b-c.tar.gz",
                            "C:\\Users\\x",
                            "\\\\server\\share",
                            "v1.2",
                            "V2",
                            "2.10.0-rc1",
                            "192.168.0.1",
                            "2026-11-28T18:59:07Z",
                            "2026-11-28T18:59:07+01:00",
                            "d3adb33f",
                            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                            "123e4567-e89b-12d3-a456-426614174000"};

Strings plain_sentences(const std::string& text, DocumentFormat format = kPlainText) { return Document(text, format, "en").sentences(); }

// A translator that says the same for every sentence.
std::string translation_around(const std::string& text, const std::string& sentence, DocumentFormat format = kPlainText) {
  const Document document(text, format, "en");
  return document.assemble(std::vector<AlignedText>(document.sentences().size(), {sentence, {}}));
}

TEST(Placeholders, EveryEmojiOfUnicodeIsOne) {
  for (char32_t c = 0x80; c <= 0x10FFFF; c += c == 0xD7FF ? 0x801 : 1) {
    if (!is_emoji(c)) continue;
    const std::string text = "a " + encode_utf8(std::u32string_view(&c, 1)) + " b";
    EXPECT_EQ(find_placeholders(text), (std::vector<Range>{{2, static_cast<int64_t>(text.size()) - 2}})) << text;
  }
  for (const std::string& one : kPlaceholders)
    EXPECT_EQ(find_placeholders("a " + one + " b"), (std::vector<Range>{{2, 2 + static_cast<int64_t>(one.size())}})) << one;
  EXPECT_EQ(find_placeholders("so\u203C \u2049\uFE0F"), (std::vector<Range>{{2, 5}, {6, 12}}));
  for (const char* none :
       {"1",          "#",     "*",       "12",       "a\uFE0F", "\u200D", "1\uFE0F",  "# 1",          "\u20E3",   "§ 5",      "½",
        "é",          "…",     "«a»",     "20%MORE",  "%ABc",    "$(a b)", "$()",      "$(a",          "[X]",      "[4X]",     "[XX]",
        "50%count%",  "%a b%", "a__b__c", "[[a b]]",  "50%1",    "____",   "$t()",     "don`t, can`t", "` `",      "```",      "a:b",
        "a : b",      "::",    "(a):b",   "and/or",   "24/7",    "/s",     "N/A",      "./",           "...",      "1/2/3",    "a/b/c",
        "28.11.2026", "12:30", "1.2.3",   "1,234.50", "v",       "vv1",    "abcdef0",  "1234567",      "12345ABC", "deadbeef", "a\\b",
        "x-y-z",      "1st",   "2nd",     "--",       "a -- b",  "e.g.",   "COVID-19", "B2B",          "mp3",      "4x4",      "3rd"})
    EXPECT_TRUE(find_placeholders(none).empty()) << none;
}

// What follows a placeholder without a space is text in Chinese, and is never cut within a character.
TEST(Placeholders, EndWhereOtherScriptsBegin) {
  const auto found = [](const std::string& text) {
    std::string all;
    for (const Range& r : find_placeholders(text))
      all += "[" + text.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count())) + "]";
    return all;
  };
  EXPECT_EQ(found("Text here /etc/host文件并编辑文件并编辑文件并编辑文件并编辑"
                  "文件并编辑文件并编辑文件并编辑全部。谢谢。"),
            "[/etc/host]");
  EXPECT_EQ(found("“%s” «%d», ‘%1$s’ 共%d个文件 „{x}“ “`ls`”"), "[%s][%d][%1$s][%d][{x}][`ls`]");
  EXPECT_EQ(found("Remarque :voir la page, Hinweis :bitte (:voir)"), "[:voir]");
  EXPECT_EQ(found("The :attribute must be :max, not :other_value"), "[:attribute][:max][:other_value]");
  EXPECT_EQ(found("see /home/zoë/a.txt—now"), "[/home/zoë/a.txt]");
  EXPECT_EQ(found("1.234.567.890 and 1.234.567 and 10.0.0.255 and 1.2.3.4.5"), "[10.0.0.255]");
}

// emoji-data.txt of Unicode 15.0 counts 3,537 pictographs; beside them there are 26 letters of flags and 5 tones of skin.
TEST(Placeholders, TheTableOfEmojiIsWhole) {
  int all = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) all += is_emoji(c);
  EXPECT_EQ(all, 3537 + 26 + 5);
}

TEST(Placeholders, AtTheEndsOfASentenceAreNotTranslated) {
  for (const std::string& p : kPlaceholders) {
    const Strings clean{"Two dogs run."}, open{"Two dogs run"};
    EXPECT_EQ(plain_sentences(p + " Two dogs run."), clean);
    EXPECT_EQ(plain_sentences("Two dogs run " + p), open);
    EXPECT_EQ(plain_sentences("Two dogs run " + p + "."), clean);
    EXPECT_EQ(plain_sentences(p + " " + p + ": Two dogs run  " + p + " " + p + "!"), Strings{"Two dogs run!"});
    const bool has_angle = p.find('<') != std::string::npos;  // which is a tag in HTML
    if (!has_angle) {
      EXPECT_EQ(plain_sentences("<p><b>" + p + "</b> Two dogs <i>run " + p + "</i>.</p>", kHtmlText), clean);
    }
    for (const char* text : {"{} Two dogs run.", "Two dogs run {}", "Two dogs run {}."}) {
      const Document d(fmt::format(fmt::runtime(text), p), kPlainText, "en");
      EXPECT_FALSE(d.needs_links(0)) << text;
    }
    EXPECT_EQ(translation_around(p + "  Two dogs run.", "Zwei Hunde laufen."), p + "  Zwei Hunde laufen.");
    EXPECT_EQ(translation_around("Two dogs run  " + p, "Zwei Hunde laufen"), "Zwei Hunde laufen  " + p);
    EXPECT_EQ(translation_around("Two dogs run " + p + ".", "Zwei Hunde laufen."), "Zwei Hunde laufen " + p + ".");
    EXPECT_EQ(translation_around("Do dogs run " + p + "?", "Les chiens courent ?"), "Les chiens courent " + p + " ?");
    EXPECT_EQ(translation_around("Two dogs run " + p + ".", "Zwei Hunde laufen"), "Zwei Hunde laufen " + p);
    EXPECT_EQ(translation_around("Two dogs run " + p + ".", ""), p);
    EXPECT_EQ(translation_around(p + ": Two dogs run " + p + ".", ""), p + ": " + p);
    if (!has_angle) {
      EXPECT_EQ(translation_around("<p><b>" + p + "</b>: Two dogs <i>run " + p + "</i>.</p>", "ZWEI HUNDE LAUFEN.", kHtmlText),
                "<p><b>" + p + "</b>: ZWEI HUNDE <i>LAUFEN " + p + "</i>.</p>");
    }
  }
  // Not what is part of the sentence, or in brackets.
  for (const char* text :
       {"@anna's dogs run.", "Two dogs run (@anna).", "He runs Name\u2122.", "{name}'s dog", "%s-style runs", "Go to 5%s"})
    EXPECT_EQ(plain_sentences(text), Strings{text});
  EXPECT_EQ(plain_sentences("😆Two dogs run😆."), Strings{"Two dogs run."});
  EXPECT_EQ(translation_around("😆Two dogs run😆.", "Zwei Hunde laufen."), "😆Zwei Hunde laufen😆.");
  EXPECT_EQ(plain_sentences("Great! 😆"), Strings{"Great!"});
  EXPECT_EQ(translation_around("Great! 😆!", "Toll!"), "Toll! 😆!");
}

// Marks within an element that stays are no marks behind a placeholder.
TEST(Placeholders, EndsDoNotReachIntoOtherElements) {
  for (const char* kept : {"<code>. x</code>", "<code>,</code>", "<code>!</code>", "&bogus;"})
    for (const char* html : {"😆 {} two dogs", "two dogs {} 😆", "two dogs 😆 {}", "😆{} two dogs 😆{}."}) {
      const std::string text = fmt::format(fmt::runtime(html), kept, kept);
      std::string out = translation_around(text, "ZWEI HUNDE", kHtmlText);
      for (size_t at; (at = out.find(kept)) != std::string::npos;) out.replace(at, std::string_view(kept).size(), "{}");
      const std::string_view before = html;
      EXPECT_EQ(std::count(out.begin(), out.end(), '{'), std::count(before.begin(), before.end(), '{')) << text << out;
      EXPECT_NE(out.find("ZWEI"), std::string::npos) << out;
      EXPECT_EQ(out.find_first_of("x,!&"), std::string::npos) << text << out;
    }
}

TEST(Placeholders, LinksOfTheRestAreOfTheWholeText) {
  const std::string text = "😆 see {x} dogs @anna.";
  const Document d(text, kPlainText, "en");
  ASSERT_EQ(d.sentences(), Strings{"see {x} dogs."});
  const AlignedText t{"Hunde {x} sehe.", {{{8, 12}, {0, 5}}, {{4, 7}, {6, 9}}, {{0, 3}, {10, 14}}, {{12, 13}, {14, 15}}}};
  const AlignedText out = d.assemble_with_links(std::vector{t});
  EXPECT_EQ(out.text, "😆 Hunde {x} sehe @anna.");
  Strings pairs;
  for (const auto& [from, to] : out.links)
    pairs.push_back(text.substr(static_cast<size_t>(from.begin), static_cast<size_t>(from.count())) + "=" +
                    out.text.substr(static_cast<size_t>(to.begin), static_cast<size_t>(to.count())));
  EXPECT_EQ(pairs, (Strings{"😆=😆", "dogs=Hunde", "{x}={x}", "see=sehe", "@anna=@anna", ".=."}));
}

TEST(Placeholders, InTheMiddleTakeNoWordWithThem) {
  struct Case {
    const char *source, *translation, *expected;
    std::vector<AlignedText::Link> links;
  };
  const std::vector<AlignedText::Link> at_the_placeholder{{{4, 8}, {0, 1000}}};
  for (const Case& c : {
           Case{"Two 😆 dogs run.", "Zwei Hunde laufen.", "Zwei 😆 Hunde laufen.", {{{0, 3}, {0, 4}}, {{9, 13}, {5, 10}}}},
           Case{"Two 😆 dogs run.", "Zwei Hunde laufen.", "😆 Zwei Hunde laufen.", at_the_placeholder},
           Case{"Two 😆 dogs run.", "Zwei \u2047 Hunde laufen.", "Zwei 😆 Hunde laufen.", {{{0, 3}, {0, 4}}, {{4, 8}, {5, 8}}}},
           Case{"Two %s dogs run.", "Zwei % s Hunde laufen.", "Zwei %s Hunde laufen.", {}},
           Case{"Two #fun dogs.", "Zwei # Fun Hunde.", "Zwei #fun Hunde.", {}},
           Case{"Two 👩‍💻 dogs.", "Zwei 👩 Hunde.", "Zwei 👩‍💻 Hunde.", {}},
           Case{"At https://example.org/x dogs.", "Bei https: / / example. org/x Hunde.", "Bei https://example.org/x Hunde.", {}},
           Case{"At https://example.org/x dogs.", "Bei https://exanple.org/x Hunde.", "Bei https://example.org/x Hunde.", {}},
           Case{"See {{ a }} dogs.",
                "Sieh }} a {{ Hunde.",
                "Sieh {{ a }} Hunde.",
                {{{0, 3}, {0, 4}}, {{4, 11}, {5, 12}}, {{12, 16}, {13, 18}}}},
           // "a" is in the placeholder, and is a word.
           Case{"Hand {{ user.name }} a dog.",
                "Gib user . name a dog.",
                "Gib {{ user.name }} a dog.",
                {{{0, 4}, {0, 3}}, {{8, 12}, {4, 8}}, {{12, 13}, {9, 10}}, {{13, 17}, {11, 15}}, {{21, 22}, {16, 17}}}},
           Case{"At 😆 9:15 pm.", "Um 21:15 Uhr.", "Um 21:15 😆 Uhr.", {{{0, 2}, {0, 5}}, {{8, 12}, {6, 13}}}},
           // "Tag" is a word of the sentence, though it is spelled like the tag.
           Case{"Day #tag is here.", "Der Tag ist da.", "Der Tag #tag ist da.", {{{0, 3}, {0, 7}}, {{9, 11}, {8, 11}}}},
           Case{"Day #tag is here.", "Gut Tag ist da.", "Gut #tag ist da.", {{{0, 3}, {0, 3}}, {{4, 8}, {4, 7}}, {{9, 11}, {8, 11}}}},
           Case{"Name\u2122 runs.", "Name l\u00E4uft.", "Name\u2122 l\u00E4uft.", {{{0, 4}, {0, 4}}, {{8, 12}, {5, 11}}}},
       }) {
    const Document d(c.source, kPlainText, "en");
    ASSERT_EQ(d.sentences(), Strings{c.source});
    EXPECT_EQ(d.assemble(std::vector<AlignedText>{{c.translation, c.links}}), c.expected);
  }
  // Names that must stay are known to the model: their translation goes, as before.
  const Document d("buy <i translate=no>Red Bull</i> today", kHtmlText, "en");
  EXPECT_EQ(d.assemble(std::vector<AlignedText>{{"kauf heute roten Stier", {{{0, 3}, {0, 4}}, {{13, 18}, {5, 10}}, {{4, 12}, {11, 22}}}}}),
            "kauf heute <i translate=no>Red Bull</i>");
}

Strings word_texts(const std::string& text) {
  Strings words;
  for (const std::string_view w : split_on_space(std::string_view(text))) {
    std::string word(w);
    std::erase_if(word, [](char c) { return c == '.' || c == ',' || c == '!' || c == '?'; });
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// 1,000 sentences with placeholders anywhere; the model's sentence is the right one, its attention is nonsense or absent. Nothing but the
// placeholders is there beside its words, and none of these is missing.
TEST(Placeholders, NoWordOfAThousandSentencesIsMissing) {
  Random random(40, 1);
  for (uint64_t i = 0; i < 1000; ++i) {
    const SentencePair& pair = demo_corpus().test[i];
    SCOPED_TRACE(pair.source);
    Strings words;
    for (const std::string_view w : split_on_space(std::string_view(pair.source))) words.emplace_back(w);
    Strings put;
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      put.push_back(kPlaceholders[random.below(kPlaceholders.size())]);
      words.insert(words.begin() + static_cast<ptrdiff_t>(random.below(words.size() + 1)), put.back());
    }
    const std::string text = fmt::format("{}", fmt::join(words, " "));
    const Document d(text, kPlainText, "en");
    ASSERT_EQ(d.sentences().size(), 1u);
    AlignedText t{pair.target, {}};
    const auto size = static_cast<int64_t>(d.sentences()[0].size());
    for (int64_t at = 0; i % 4 != 0 && at < static_cast<int64_t>(t.text.size());) {
      const int64_t end = std::min<int64_t>(static_cast<int64_t>(t.text.size()), at + 1 + static_cast<int64_t>(random.below(6)));
      const auto from = static_cast<int64_t>(random.below(static_cast<uint64_t>(size)));
      t.links.push_back({{from, std::min(size, from + 1 + static_cast<int64_t>(random.below(4)))}, {at, end}});
      at = end;
    }
    std::string out = d.assemble(std::vector{t});
    std::sort(put.begin(), put.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });  // one may be part of another
    for (const std::string& p : put) {
      const size_t at = out.find(p);
      ASSERT_NE(at, std::string::npos) << out;
      out.replace(at, p.size(), " ");
    }
    EXPECT_EQ(word_texts(out), word_texts(pair.target)) << text;
  }
}

TEST(OwnPlaceholders, StayLikeTheOthers) {
  DocumentOptions options;
  options.own_placeholders =
      std::make_shared<OwnPlaceholders>(std::vector<std::string>{"ACME-[0-9]+", "[A-Z]{3}!", "the [0-9]x"}, "--keep");
  const Document document("See ACME-12 and ABC! now, {a}x {ABC!} on the 5x day.", DocumentFormat::text, "en", options);
  EXPECT_EQ(document.assemble(std::vector<AlignedText>(document.sentences().size(), {"word", {}})).find("ACME-12") != std::string::npos,
            true);
  std::vector<Range> found = find_placeholders("a {ABC!} ABC!");
  options.own_placeholders->add_to(found, "a {ABC!} ABC!");
  EXPECT_EQ(found, (std::vector<Range>{{2, 8}, {9, 13}}));
}

TEST(OwnPlaceholders, WrongExpressionsAreRefused) {
  const auto why = [](const std::string& expression) {
    try {
      const OwnPlaceholders own({expression}, "--keep");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(why("(a"),
            "--keep (a is not a valid regular expression (RE2): missing ): (a; put a backslash before characters that are meant literally");
  EXPECT_EQ(why("a*"), "--keep a* matches the empty text; make it match at least one character, for instance with + instead of *");
  EXPECT_NE(why("((a{1000}){1000}){10}"), "");
  EXPECT_EQ(why("(a+)+$"), "");
  const OwnPlaceholders own({"(a+)+$"}, "--keep");
  std::vector<Range> found;
  own.add_to(found, std::string(20'000, 'a') + "b");
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace starling
