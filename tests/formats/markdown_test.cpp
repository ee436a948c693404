// Markdown: what is text, what moves with its words, and that everything else stays. That files of other programs are rendered with the
// same structure was compared with cmark-gfm (docs/guides/documents.md).
#include "units/markdown.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "formats/file_format.h"
#include "units.h"

namespace starling {
namespace {

void expect_markdown(const std::string& from, const std::string& to) { EXPECT_EQ(with_sentences(Markdown(from)), to); }
void expect_kept(const std::string& text) { expect_markdown(text, text); }

TEST(Markdown, BlocksOfTextAreTranslated) {
  expect_markdown(
      "# A dog #\n\nTwo men\nplay. They\nsing!\n\n- one\n- [ ] two\n  1. three\n\n> A quote.\n> It goes on.\n\nA title\n=======\n",
      "# A DOG #\n\nTWO MEN PLAY. THEY SING!\n\n- ONE\n- [ ] TWO\n  1. THREE\n\n> A QUOTE.\n> IT GOES ON.\n\nA TITLE\n=======\n");
}

TEST(Markdown, CodeAddressesAndFrontMatterStay) {
  expect_kept(
      "---\ntitle: a dog\n---\n\n```js\nlet dog = \"two dogs\";\n\nexport x = {\n```\n\n    indented code\n\n[dog]: https://a.b \"A "
      "dog\"\n");
  expect_kept("+++\ntitle = 'a dog'\n+++\n");
  expect_markdown("Use `the code` and ``a ` b``, see <https://a.b/x> or https://a.b/c_d.",
                  "USE `the code` AND ``a ` b``, SEE <https://a.b/x> OR https://a.b/c_d.");
  expect_markdown("It is $x^2 + y$ and costs 5$ or 6$.", "IT IS $x^2 + y$ AND COSTS 5$ OR 6$.");
}

TEST(Markdown, EmphasisAndLinksGoWithTheirWords) {
  Markdown file("A **big** [brown *dog*](http://a.b/c_(d) \"A title\") ran ~~away~~.\n");
  EXPECT_EQ(texts_of(file), "A <g0>big</g0> <g2>brown <g4>dog</g4></g2> ran <g6>away</g6>.\n");
  EXPECT_EQ(assembled(file, "<g6>WEG</g6> <g2><g4>HUND</g4> BRAUNER</g2> EIN <g0></g0>.\n"),
            "~~WEG~~ [*HUND* BRAUNER](http://a.b/c_(d) \"A title\") EIN .\n");  // what emphasises nothing is left out
  expect_markdown("See [a dog], [a dog][] and [that][a dog].\n\n[a dog]: http://a\n",
                  "SEE [A DOG][a dog], [A DOG][a dog] AND [THAT][a dog].\n\n[a dog]: http://a\n");
}

TEST(Markdown, ImagesHaveDescriptions) {
  expect_markdown("A ![small *cat*](cat.png) here.\n", "A  ![SMALL *CAT*](cat.png) HERE.\n");
  expect_markdown("[![](a.svg)](http://a) ![A dog](dog.png)\n", "[![](a.svg)](http://a) ![A DOG](dog.png)\n");
}

TEST(Markdown, CellsOfTablesAreTexts) {
  expect_markdown("| Name | What |\n|-|:-:|\n| a \\| b | `x|y` the code |\n| 12 | |\n",
                  "| NAME | WHAT |\n|-|:-:|\n| A \\| B | `x|y` THE CODE |\n| 12 | |\n");
}

TEST(Markdown, HtmlIsHtml) {
  expect_markdown(
      "<div align=\"center\">\n  <b>A dog</b> &amp; cat\n</div>\n\nAn <b\nclass=\"x\">old</b> man<br>sings <kbd>Ctrl</kbd><!-- so\nit is "
      "--> on.\n",
      "<div align=\"center\">\n  <b>A DOG</b> &amp; CAT\n</div>\n\nAN <b\nclass=\"x\">OLD</b> MAN<br>SINGS <kbd>Ctrl</kbd><!-- so\nit is "
      "--> ON.\n");
  expect_kept("<!-- a\n\ncomment -->\n\n<script>\nlet dog;\n</script>\n");
}

TEST(Markdown, WhatGeneratorsOfSitesReadStays) {
  expect_markdown(
      "{{< figure src=\"a_b\" title=\"the dog\" >}}\n\nA dog {{< ref \"x\" >}} ran {#an-id}\n\n{% note %}\nA cat.\n{% endnote %}\n",
      "{{< figure src=\"a_b\" title=\"the dog\" >}}\n\nA DOG {{< ref \"x\" >}} RAN {#an-id}\n\n{% note %}\nA CAT.\n{% endnote %}\n");
  expect_markdown("import Tabs from '@theme/Tabs';\n\n:::tip The title\nA dog.\n:::\n\n<Tab value={x}>one</Tab>\n",
                  "import Tabs from '@theme/Tabs';\n\n:::tip The title\nA DOG.\n:::\n\n<Tab value={x}>ONE</Tab>\n");
  expect_markdown("> [!NOTE]\n> A dog[^1] ran.\n\n[^1]: The note.\n\n    More of it.\n",
                  "> [!NOTE]\n> A DOG[^1] RAN.\n\n[^1]: THE NOTE.\n\n    MORE OF IT.\n");
}

TEST(Markdown, BreaksOfLinesStayBetweenSentences) {
  expect_markdown("Roses are red,\\\nviolets blue.  \nSo it\nis.\n", "ROSES ARE RED,\\\nVIOLETS BLUE.  \nSO IT IS.\n");
  expect_markdown("- A dog.\r\n  A cat.\r\n", "- A DOG.\r\n  A CAT.\r\n");
}

// Whatever the translator says is text.
TEST(Markdown, TranslationsGetNoMeaning) {
  const std::pair<const char*, const char*> cases[] = {
      {"# a", "\\# a"},
      {"- a", "\\- a"},
      {"1. Mai", "1\\. Mai"},
      {"1.5 a", "1.5 a"},
      {"> a", "\\> a"},
      {"*a*", "\\*a\\*"},
      {"a * b", "a * b"},
      {"snake_case", "snake_case"},
      {"_a_", "\\_a\\_"},
      {"`a`", "\\`a\\`"},
      {"[a](b)", "\\[a\\](b)"},
      {"a < b", "a < b"},
      {"<b>", "\\<b>"},
      {"&amp; &", "\\&amp; &"},
      {"R&D", "R&D"},
      {"C:\\new", "C:\\new"},
      {"a\\*", "a\\\\\\*"},
      {"~~a~~", "\\~\\~a\\~\\~"},
      {"+", "\\+"},
      {"===", "\\==="},
      {"a|b", "a|b"},
      {"#1", "#1"},
      {"a!", "a!"},
  };
  Markdown file("word\n");
  for (const auto& [said, written] : cases) {
    std::string xml;
    append_escaped(xml, said);
    EXPECT_EQ(file.assemble(std::vector<std::string>{xml}), std::string(written) + "\n");
  }
  EXPECT_EQ(Markdown("A [b](c)\n").assemble(std::vector<std::string>{"Oh!<g0>b</g0>!"}), "Oh\\![b](c)!\n");
}

// Of random files all comes out once, but for breaks of lines and backslashes.
TEST(Markdown, NothingIsLostWhateverTheFile) {
  const char* const pieces[] = {"word ",  "*",    "**",       "_",     "`",     "``",           "[",       "](a)",
                                "![",     "]",    "\n",       "\n\n",  "- ",    "> ",           "# ",      "| a | b |\n|---|---|\n| ",
                                "<b>",    "</b>", "<!--",     "-->",   "{{",    "}}",           "{% x %}", "[^1]",
                                "[^1]: ", "    ", "\\",       "&amp;", "&",     "<http://a.b>", "~~",      "$",
                                "```\n",  ":::",  "\xC3\xA9", "1. ",   "<div>", "\r\n",         "\t",      "---\n"};
  const auto letters = [](std::string text) {
    std::string all;
    for (size_t at; (at = text.find("&amp;")) != std::string::npos;) text.erase(at + 1, 4);
    for (const char c : text)
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\\' && c != '>') all += c;
    std::sort(all.begin(), all.end());
    return all;
  };
  int same = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    Random random(59, round);
    std::string text;
    for (uint64_t n = random.below(40); n > 0; --n) text += pieces[random.below(std::size(pieces))];
    SCOPED_TRACE(text);
    Markdown file(text);
    same += letters(with_sentences(file, [](const std::string& s) { return s; })) == letters(text);
  }
  EXPECT_GT(same, 2900);  // elsewhere emphasis has no words left
}

TEST(Markdown, TakesLinearTime) {
  for (const std::string piece :
       {"*a ", "[", "![", "`", "<b>", "{", "{{", "[a](b) ", "> ", "**a** _b_ ", "a\n", "<!--", "- a\n", "\\", "[^"}) {
    std::string text;
    while (text.size() < 200'000) text += piece;
    EXPECT_GT(with_sentences(Markdown(text), [](const std::string& s) { return s; }).size(), 50'000u) << piece;
  }
}

TEST(Markdown, IsKnownByName) {
  for (const char* name : {"a.md", "README.markdown", "a.mdx"}) EXPECT_EQ(file_format("# A dog", name), "markdown");
  EXPECT_THAT(why_refused("markdown", "a\ncaf\xE9"), testing::HasSubstr("line 2: a byte does not belong to UTF-8"));
}

}  // namespace
}  // namespace starling
