// Documents through translators that are easy to see through: one that shouts, one that turns the order of words around, one that breaks
// what it should keep.
#include "document/document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/random.h"
#include "document/parts.h"
#include "document/sentences.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr auto kText = DocumentFormat::text, kHtml = DocumentFormat::html;

struct Word {
  std::string text;
  Range from;
};
std::vector<Word> words_of(const std::string& sentence) {
  std::vector<Word> words;
  for (const std::string_view w : split_on_space(std::string_view(sentence))) {
    const int64_t begin = w.data() - sentence.data();
    words.push_back({std::string(w), {begin, begin + static_cast<int64_t>(w.size())}});
  }
  return words;
}
AlignedText aligned(const std::vector<Word>& words, bool links = true) {
  AlignedText t;
  for (const Word& w : words) {
    if (!t.text.empty()) t.text += ' ';
    const int64_t begin = static_cast<int64_t>(t.text.size());
    t.text += w.text;
    if (links) t.links.push_back({w.from, {begin, static_cast<int64_t>(t.text.size())}});
  }
  return t;
}

using Translate = AlignedText (*)(const std::string&);

AlignedText same(const std::string& s) { return {s, {}}; }
AlignedText shouted(const std::string& s) {
  auto words = words_of(s);
  for (Word& w : words)
    for (char& c : w.text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return aligned(words);
}
AlignedText shouted_without_links(const std::string& s) { return {shouted(s).text, {}}; }
AlignedText reversed(const std::string& s) {
  auto words = words_of(s);
  std::reverse(words.begin(), words.end());
  return aligned(words);
}
AlignedText nothing(const std::string&) { return {}; }

std::string translated(const std::string& text, DocumentFormat format, Translate translate, const char* language = "en") {
  const Document document(text, format, language);
  std::vector<AlignedText> translations;
  for (const std::string& s : document.sentences()) translations.push_back(translate(s));
  return document.assemble(translations);
}
std::vector<std::string> sentences_of(const std::string& text, DocumentFormat format, const char* language = "en") {
  return Document(text, format, language).sentences();
}
using Strings = std::vector<std::string>;

TEST(Document, KeepsLinesAndSpaces) {
  const std::string text = "  A title\n\nOne line. Another one.\r\n\tA third\n\n\n- an item\n- another\n---\n 😀\n";
  EXPECT_EQ(translated(text, kText, shouted), "  A TITLE\n\nONE LINE. ANOTHER ONE.\r\n\tA THIRD\n\n\n- AN ITEM\n- ANOTHER\n---\n 😀\n");
  EXPECT_EQ(sentences_of(text, kText), (Strings{"A title", "One line.", "Another one.", "A third", "an item", "another"}));
  EXPECT_EQ(translated("a < b & c > d", kText, shouted), "A < B & C > D");
  for (const char* odd : {"", "\n", " ", "\xFF", "\0x"}) EXPECT_EQ(translated(odd, kText, shouted), odd);
}

TEST(Document, SeparatesBlocksOfHtmlAndKeepsTheirTags) {
  const std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><title>the title</title>\n<style>p > a {color: red}</style><script>if (a<b) run('no. "
      "It');</script></head>\n"
      "<body class='x'>\n<h1 id=top>a head</h1>\n<p>one thing.\n  Two things.</p><ul><li>an item<li>another</ul>text<br/>more<hr>\n"
      "<table><tr><td>cell a</td><td>cell b</td></tr></table><!-- a comment. --><pre>as it  is</pre><textarea>and "
      "this</textarea></body></html>\n";
  EXPECT_EQ(sentences_of(html, kHtml),
            (Strings{"the title", "a head", "one thing.", "Two things.", "an item", "another", "text", "more", "cell a", "cell b"}));
  EXPECT_EQ(translated(html, kHtml, shouted),
            "<!DOCTYPE html>\n<html lang=\"en\"><head><title>THE TITLE</title>\n<style>p > a {color: red}</style><script>if (a<b) run('no. "
            "It');</script></head>\n"
            "<body class='x'>\n<h1 id=top>A HEAD</h1>\n<p>ONE THING.\n  TWO THINGS.</p><ul><li>AN ITEM<li>ANOTHER</ul>TEXT<br/>MORE<hr>\n"
            "<table><tr><td>CELL A</td><td>CELL B</td></tr></table><!-- a comment. --><pre>as it  is</pre><textarea>and "
            "this</textarea></body></html>\n");
}

TEST(Document, TagsGoAroundTheWordsOfTheirWords) {
  EXPECT_EQ(translated("<p>a <b>red house</b> stands here</p>", kHtml, reversed), "<p>here stands <b>house red</b> a</p>");
  EXPECT_EQ(translated("<b>red</b> house", kHtml, reversed), "house <b>red</b>");
  EXPECT_EQ(translated("red <b>house</b>", kHtml, reversed), "<b>house</b> red");
  EXPECT_EQ(translated("<p><i>all of it</i></p>", kHtml, reversed), "<p><i>it of all</i></p>");
  EXPECT_EQ(translated("x <a href='1'>one <b>two</b></a> <i>three</i> y", kHtml, reversed),
            "y <i>three</i> <a href='1'><b>two</b> one</a> x");
  EXPECT_EQ(translated("see <img src=a.png> the cat", kHtml, shouted), "SEE <img src=a.png> THE CAT");
  EXPECT_EQ(translated("water H<sub>2</sub>O here", kHtml, shouted), "WATER <sub>H2O</sub> HERE");
  EXPECT_EQ(translated("a <b></b>dog and<!-- c --> cat", kHtml, shouted), "A <b></b>DOG AND<!-- c --> CAT");
  EXPECT_EQ(translated("a <b>red</b> dog", kHtml, nothing), "<b></b>");
}

// Words of another order, and one that comes from nowhere, between the words of the element.
TEST(Document, TagsGoAroundTheRunThatAgreesBest) {
  const Document d("he <i>has given</i> it up", kHtml, "en");
  ASSERT_EQ(d.sentences(), Strings{"he has given it up"});
  EXPECT_TRUE(d.needs_links(0));
  const auto link = [](int64_t a, int64_t b, int64_t c, int64_t e) { return AlignedText::Link{{a, b}, {c, e}}; };
  // er hat es ja aufgegeben: "ja" is of nothing; "aufgegeben" of "given"; "es" in between is of "it".
  EXPECT_EQ(d.assemble(std::vector<AlignedText>{
                {"er hat es ja aufgegeben", {link(0, 2, 0, 2), link(2, 6, 2, 6), link(12, 15, 6, 9), link(6, 12, 12, 23)}}}),
            "er <i>hat</i> es ja aufgegeben");
  EXPECT_EQ(d.assemble(std::vector<AlignedText>{
                {"er hat ja gegeben es auf",
                 {link(0, 2, 0, 2), link(2, 6, 2, 6), link(6, 12, 9, 17), link(12, 15, 17, 20), link(15, 18, 20, 24)}}}),
            "er <i>hat ja gegeben</i> es auf");
}

TEST(Document, WithoutLinksTagsGoWhereTheyStood) {
  EXPECT_EQ(translated("a <b>red</b> dog", kHtml, shouted_without_links), "A <b>RED</b> DOG");
  EXPECT_EQ(translated("see https://a.example/x now", kText, shouted_without_links), "SEE https://a.example/x NOW");
  EXPECT_EQ(translated("it runs without a <code>and</code> old", kHtml, shouted_without_links), "IT RUNS WITHOUT A <code>and</code> OLD");
  const auto in_capitals = [](const std::string&) { return AlignedText{"IT RUNS CAFÉ NEVER", {}}; };
  EXPECT_EQ(translated("it runs <code>café</code> never", kHtml, in_capitals), "IT RUNS <code>café</code> NEVER");
  EXPECT_EQ(translated("small dog runs <code>runs.</code>", kHtml, shouted_without_links), "SMALL DOG RUNS <code>runs.</code>");
}

TEST(Document, ElementsThatSpanSentencesStayBalanced) {
  EXPECT_EQ(translated("<p>I <b>like it. You</b> do too.</p>", kHtml, shouted), "<p>I <b>LIKE IT. YOU</b> DO TOO.</p>");
  EXPECT_EQ(translated("<p><b>One. Two.</b> Three <i>and</i> four.</p>", kHtml, shouted), "<p><b>ONE. TWO.</b> THREE <i>AND</i> FOUR.</p>");
  EXPECT_EQ(translated("A <b>x <i>y. Z</i> w</b> v.", kHtml, shouted), "A <b>X <i>Y. Z</i> W</b> V.");
}

TEST(Document, ResolvesEntitiesAndWritesThemAgain) {
  const std::string html = "<p>fish &amp; chips &lt;now&gt; &eacute;t&#233; &#x1F600; &nbsp; it&rsquo;s a &bogus; b</p>";
  EXPECT_EQ(sentences_of(html, kHtml), Strings{"fish & chips <now> été 😀 \xC2\xA0 it’s a &bogus; b"});
  EXPECT_EQ(translated(html, kHtml, shouted), "<p>FISH &amp; CHIPS &lt;NOW&gt; éTé &#x1F600; IT’S A &bogus; B</p>");
  EXPECT_EQ(translated("AT&T is &#0; &#xD800; &#99999999; & &; fine", kHtml, shouted),
            "AT&amp;T IS &#0; &#xD800; &#99999999; &amp; &amp;; FINE");
  EXPECT_EQ(translated("a < b, c<3 and <> d", kHtml, shouted), "A &lt; B, C&lt;3 AND &lt;&gt; D");
}

TEST(Document, SentencesThatAreTheirOwnTranslationKeepTheirBytes) {
  for (const char* html : {"<p>fish &amp; chips &eacute;t&#233;\n and <b>m</b>ore</p>", "AT&T is a < b", "x&nbsp;&nbsp;y z"})
    EXPECT_EQ(translated(html, kHtml, same), html);
}

TEST(Document, LeavesAloneWhatIsNotToBeTranslated) {
  EXPECT_EQ(translated("run <code>ls -l</code> now", kHtml, shouted), "RUN <code>ls -l</code> NOW");
  EXPECT_EQ(translated("run <code>ls -l</code> now", kHtml, reversed), "now <code>ls -l</code> run");
  EXPECT_EQ(translated("buy <span translate=\"no\">Red <b>Bull</b></span> today", kHtml, shouted),
            "BUY <span translate=\"no\">Red <b>Bull</b></span> TODAY");
  EXPECT_EQ(translated("buy <i class='x notranslate'>Red Bull</i> today", kHtml, nothing), "<i class='x notranslate'>Red Bull</i>");
  EXPECT_EQ(sentences_of("<div translate=no><p>not this</p></div><p>but this</p><code>x</code>", kHtml), Strings{"but this"});
  const std::string long_code = "<code>" + std::string(300, 'x') + "</code>";
  EXPECT_EQ(sentences_of("run " + long_code + " now", kHtml), Strings{"run  now"});
  EXPECT_EQ(translated("run " + long_code + " now", kHtml, shouted), "RUN " + long_code + " NOW");
}

// The shape that Mastodon sends.
TEST(Document, KeepsLinksAndMentionsOfPosts) {
  const std::string html =
      "<p>hello <span class=\"h-card\"><a href=\"https://a.example/@user\" class=\"u-url mention\">@<span>user</span></a></span> look at "
      "<a href=\"https://b.example/long/way\" rel=\"nofollow\"><span class=\"invisible\">https://</span><span "
      "class=\"ellipsis\">b.example/lon</span><span class=\"invisible\">g/way</span></a> please<br>"
      "<a href=\"https://a.example/tags/cats\" class=\"mention hashtag\" rel=\"tag\">#<span>cats</span></a> :blobcat:</p><p>bye</p>";
  EXPECT_EQ(sentences_of(html, kHtml), (Strings{"hello @user look at https://b.example/long/way please", "bye"}));
  std::string expected = html;
  for (const auto& [from, to] : {std::pair("hello", "HELLO"), {"look at", "LOOK AT"}, {"please", "PLEASE"}, {"bye", "BYE"}})
    expected.replace(expected.find(from), std::string_view(from).size(), to);
  EXPECT_EQ(translated(html, kHtml, shouted), expected);
  EXPECT_EQ(translated("<p>see <a href=\"x\">@<span>user</span></a> now</p>", kHtml, reversed),
            "<p>now <a href=\"x\">@<span>user</span></a> see</p>");
}

TEST(Document, PutsPlaceholdersBackThatTheModelBreaks) {
  for (const char* kept :
       {"{name}", "{}", "{{ user.name }}", "%s", "%1$s", "%(count)d", "${x}", "%{x}", "https://a.example/b?c=d&e=f#g", "www.a.example",
        "me@mail.example.org", "@alice", "@alice@social.example", "#tag", ":cat_face:", "😀", "👩‍💻🎉"}) {
    const std::string text = fmt::format("give {} a hand", kept);
    EXPECT_EQ(translated(text, kText, shouted), fmt::format("GIVE {} A HAND", kept));
    EXPECT_EQ(translated(text, kText, reversed), fmt::format("hand a {} give", kept));
    EXPECT_EQ(translated(text, kText, nothing), kept);
    // Its characters are units of their own, and know where they come from.
    const Document d(text, kText, "en");
    AlignedText broken{"GEBT ", {{{0, 4}, {0, 4}}}};
    const int64_t size = static_cast<int64_t>(std::string_view(kept).size());
    for (int64_t i = 0, next; i < size; i = next) {
      next = i + std::max(1, decode_utf8_at(std::string_view(kept).substr(static_cast<size_t>(i))).length);
      const int64_t at = static_cast<int64_t>(broken.text.size());
      broken.text += std::string_view(kept).substr(static_cast<size_t>(i), static_cast<size_t>(next - i));
      broken.text += i == 0 && next < size ? "" : " ";
      broken.links.push_back({{5 + i, 5 + next}, {at, at + next - i}});
    }
    const auto add = [&](int64_t begin, int64_t end, const std::string& word) {
      const int64_t at = static_cast<int64_t>(broken.text.size());
      broken.text += word;
      broken.links.push_back({{begin + size, end + size}, {at, at + static_cast<int64_t>(word.size())}});
    };
    add(6, 7, "EINE ");
    add(8, 12, "HAND");
    EXPECT_EQ(d.assemble(std::vector{broken}), fmt::format("GEBT {} EINE HAND", kept)) << broken.text;
  }
}

TEST(Document, LinksAreOfTheWholeText) {
  const std::string text = "  Red dog.\n- see {x} now\n";
  const Document d(text, kText, "en");
  ASSERT_EQ(d.sentences(), (Strings{"Red dog.", "see {x} now"}));
  std::vector<AlignedText> translations;
  for (const std::string& s : d.sentences()) translations.push_back(reversed(s));
  const AlignedText out = d.assemble_with_links(translations);
  EXPECT_EQ(out.text, "  dog. Red\n- now {x} see\n");
  EXPECT_EQ(out.text, d.assemble(translations));
  size_t words = 0;
  for (const auto& [from, to] : out.links) {
    const std::string source = text.substr(static_cast<size_t>(from.begin), static_cast<size_t>(from.count()));
    const std::string target = out.text.substr(static_cast<size_t>(to.begin), static_cast<size_t>(to.count()));
    EXPECT_EQ(source, target);
    ++words;
  }
  EXPECT_EQ(words, 5u);
  for (AlignedText& t : translations) t.links.clear();
  EXPECT_TRUE(d.assemble_with_links(translations).links.empty());
}

// What a model writes for characters that its vocabulary does not have goes with the placeholder that they were part of.
TEST(Document, UnknownCharactersOfAPlaceholderGoWithIt) {
  const Document d("ask @anna now", kText, "en");
  const AlignedText t{"fragt  \u2047 anna jetzt  ", {{{0, 3}, {0, 5}}, {{10, 13}, {6, 10}}, {{5, 9}, {11, 15}}, {{10, 13}, {16, 21}}}};
  EXPECT_EQ(d.assemble(std::vector{t}), "fragt  @anna jetzt");
}

TEST(Document, PlaceholdersAreNoPartsOfWordsOrSentences) {
  for (const char* text : {"50% discount", "5%ige Lösung", "a: b: c", "at 10:30:45", "user name", "C# is", "at 5@ each", "100 % sure",
                           "R&D", "e.g. this", "A/B", "# of it", "3 @ 4 a"}) {
    const Document d(text, kText, "en");
    ASSERT_EQ(d.sentences().size(), 1u) << text;
    EXPECT_FALSE(d.needs_links(0)) << text;
  }
  for (const char* text : {"{name}", "https://a.example", "%s %d", "@alice #tag 😀", "{a. B}", "<b>{x}</b>", "12:30", "1 2 3"})
    EXPECT_TRUE(sentences_of(text, kText).empty() || text[0] == '<') << text;
  EXPECT_EQ(sentences_of("say {a. B} now. Go {x}.", kText), (Strings{"say {a. B} now.", "Go."}));
  EXPECT_EQ(sentences_of("see (https://a.example/x_(y)). Go.", kText), (Strings{"see (https://a.example/x_(y)).", "Go."}));
  EXPECT_EQ(translated("%s and %s, %s", kText, reversed), "%s %s, and %s");
  EXPECT_EQ(translated("of %s by %d now", kText, reversed), "now %d by %s of");
}

// Clients send tags in plain text too: they go with their words, a line break ends a sentence, and everything else is text.
TEST(Document, TagsInPlainTextGoWithTheirWords) {
  EXPECT_EQ(sentences_of("Two dogs run.<br />A man plays.", kText), (Strings{"Two dogs run.", "A man plays."}));
  EXPECT_EQ(sentences_of("Two dogs<BR>run", kText), (Strings{"Two dogs", "run"}));
  EXPECT_EQ(sentences_of("<i>Two dogs run.</i>", kText), (Strings{"Two dogs run."}));
  EXPECT_EQ(translated("<i>Two dogs run.</i>", kText, shouted), "<i>TWO DOGS RUN.</i>");
  EXPECT_EQ(translated("<i>Two dogs\nrun.</i> On", kText, shouted), "<i>TWO DOGS\nRUN.</i> ON");
  EXPECT_EQ(translated("a <b>red</b> & <font color=\"#ff0000\">big</font> dog", kText, reversed),
            "dog <font color=\"#ff0000\">big</font> & <b>red</b> a");
  EXPECT_EQ(translated("read <0>our <1>terms</1></0> now", kText, shouted), "READ <0>OUR <1>TERMS</1></0> NOW");
  EXPECT_EQ(translated("go <a href='x y' target=_blank>there</a>", kText, shouted), "GO <a href='x y' target=_blank>THERE</a>");
  for (const char* text : {"a <b and c> d", "x < y > z", "if a<b, c>d", "a <c> b", "a <b\nc> d", "< i > a", "<i", "<i a", "<p>one</p>",
                           "&lt;i&gt;", "<1000>"}) {
    const Document d(text, kText, "en");
    for (size_t i = 0; i < d.sentences().size(); ++i) EXPECT_FALSE(d.needs_links(i)) << text;
  }
}

// Links are between bytes of the text as it was sent, tags included.
TEST(Document, LinksOfPlainTextWithTagsAreOfTheWholeText) {
  const std::string text = "Go on. A <b>red</b> dog <i>runs</i>.";
  const Document d(text, kText, "en");
  ASSERT_EQ(d.sentences(), (Strings{"Go on.", "A red dog runs."}));
  const AlignedText first{"LOS.", {{{0, 2}, {0, 3}}}};
  const AlignedText second{"EIN ROTER HUND RENNT.", {{{0, 1}, {0, 3}}, {{2, 5}, {4, 9}}, {{6, 9}, {10, 14}}, {{10, 14}, {15, 20}}}};
  const AlignedText whole = d.assemble_with_links(std::vector{first, second});
  EXPECT_EQ(whole.text, "LOS. EIN <b>ROTER</b> HUND <i>RENNT</i>.");
  Strings pairs;
  for (const auto& [from, to] : whole.links)
    pairs.push_back(text.substr(static_cast<size_t>(from.begin), static_cast<size_t>(from.count())) + "-" +
                    whole.text.substr(static_cast<size_t>(to.begin), static_cast<size_t>(to.count())));
  EXPECT_EQ(pairs, (Strings{"Go-LOS", "A-EIN", "red-ROTER", "dog-HUND", "runs-RENNT"}));
}

// All tags, comments, attributes and other bytes of broken HTML come out again, and nothing crashes.
TEST(Document, BrokenHtmlLosesNothing) {
  for (const char* html : {"<p>one <b>two</p>",
                           "one</b> two",
                           "<b>one <i>two</b> three</i>",
                           "a <b",
                           "a <",
                           "</",
                           "<!--",
                           "<!-- x",
                           "<!",
                           "<?php echo 1 ?> text",
                           "<script>x",
                           "<a href=\"x>one</a> two",
                           "<a href='x' title=\"<b>\">one</a>",
                           "<b/>one",
                           "< b>one</b>",
                           "<p <b>one</b>",
                           "<code>x <b>y</code> z</b>",
                           "<b><code>x</b></code>",
                           "<![CDATA[ x ]]> y",
                           "&",
                           "&amp",
                           "&#;",
                           "<a\xFF>x\xFF</a>",
                           "<textarea><b></textarea>x",
                           "<b>{a</b>} x",
                           "<i>@</i>user x",
                           "<B>one</b> two"}) {
    // Tags alone, whatever their order, and the text alone.
    const std::string out = translated(html, kHtml, shouted), back = translated(html, kHtml, reversed);
    const auto sorted = [](std::string s) {
      std::erase(s, ' ');
      for (size_t at = s.find("amp;"); at != s.npos; at = s.find("amp;")) s.erase(at, 4);  // a word by itself keeps its bytes
      for (char& c : s) c = ascii_lower(c);
      std::sort(s.begin(), s.end());
      return s;
    };
    const std::string once = translated(out, kHtml, shouted);
    EXPECT_EQ(once, out) << html;  // written entities are read again
    EXPECT_EQ(sorted(back), sorted(out)) << html;
  }
  EXPECT_EQ(translated("<b>one <i>two</b> three</i>", kHtml, same), "<b>one <i>two</b> three</i>");
  EXPECT_EQ(translated("<a href=\"x>one</a> two", kHtml, same), "<a href=\"x>one</a> two");
  EXPECT_EQ(translated("<script>x", kHtml, same), "<script>x");
}

TEST(Document, CutsWhatIsNoSentenceAtClausesAndLosesNothing) {
  std::string text;
  while (text.size() < 9000) text += "some words, ";
  text += "end";
  for (const auto format : {kText, kHtml}) {
    for (const std::string& s : sentences_of(text, format)) {
      EXPECT_LE(s.size(), Document::kLongestSentence);
      EXPECT_TRUE(s.ends_with(",") || s.ends_with("end")) << s.substr(s.size() - 20);
    }
    EXPECT_EQ(translated(text, format, same), text);
  }
  const std::string word(10000, 'x'), chinese = [] {
    std::string s;
    while (s.size() < 9000) s += "你好";
    return s;
  }();
  EXPECT_EQ(translated(word, kText, same), word);
  EXPECT_EQ(sentences_of(word, kText).size(), 5u);
  EXPECT_EQ(translated(chinese, kText, same, "zh"), chinese);
  for (const std::string& s : sentences_of(chinese, kText, "zh")) EXPECT_FALSE(invalid_utf8_offset(s).has_value());
}

// What would be slow if anything were looked at again and again; a quadratic step would run into the limit of ctest.
TEST(Document, TakesTimeInProportion) {
  for (const char* unit : {"<",
                           "<b",
                           "<b>",
                           "</b>",
                           "<b>x",
                           "<b>x</b> ",
                           "<a href=\"",
                           "<a x='1' ",
                           "<!--",
                           "&",
                           "&#",
                           "&a;",
                           "{",
                           "{a. B} ",
                           "{a}",
                           "@",
                           "@a",
                           "%",
                           "%(",
                           "%s ",
                           "#a",
                           ":a",
                           "www.a ",
                           "a@",
                           "a@b.c ",
                           "http://",
                           "http://a(",
                           "😀",
                           "a. ",
                           "<p>x",
                           "<br>",
                           "<code>",
                           "<code>x</code> ",
                           "<code></b>",
                           "<b><i></b></i>",
                           "<b> ",
                           "<b></b>",
                           " ",
                           "<script>",
                           "</script>",
                           "x",
                           "<!a",
                           "<p x=\">",
                           "<span translate=no>"}) {
    std::string text;
    while (text.size() < 1 << 18) text += unit;
    for (const auto format : {kText, kHtml}) translated(text, format, reversed);
    translated("a " + text + " b. C", kHtml, reversed);
  }
}

}  // namespace
}  // namespace starling
