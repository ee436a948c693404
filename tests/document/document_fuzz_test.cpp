// Thousands of seeded mutations of documents: whatever the bytes, nothing crashes, a translator that changes nothing gives the text back,
// and one that turns everything around gives all tags and placeholders back. Run it with -DSTARLING_SANITIZE=address,undefined to find the
// stray reads that stay silent otherwise. A failure prints its round.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "document/document.h"
#include "document/html.h"
#include "document/placeholders.h"
#include "document/plain_tags.h"
#include "document/sentences.h"

namespace starling {
namespace {

constexpr std::string_view kPieces[] = {"<p>",
                                        "</p>",
                                        "<b>",
                                        "</b>",
                                        "<i class='x'>",
                                        "</i>",
                                        "<a href=\"u\">",
                                        "</a>",
                                        "<br>",
                                        "<img src=x>",
                                        "<code>",
                                        "</code>",
                                        "<span translate=no>",
                                        "</span>",
                                        "<!-- c -->",
                                        "<!--",
                                        "-->",
                                        "<script>",
                                        "</script>",
                                        "<pre>",
                                        "</pre>",
                                        "<",
                                        ">",
                                        "\"",
                                        "'",
                                        "&amp;",
                                        "&lt;",
                                        "&",
                                        "&#233;",
                                        "&bogus;",
                                        ";",
                                        "{name}",
                                        "{",
                                        "}",
                                        "{{ x }}",
                                        "%s",
                                        "%(n)d",
                                        "%",
                                        "@user",
                                        "@",
                                        "#tag",
                                        "https://a.example/b",
                                        "http://",
                                        "me@b.example",
                                        "😀",
                                        ":cat:",
                                        ". ",
                                        "! ",
                                        "? ",
                                        "… ",
                                        "。",
                                        "「",
                                        "」",
                                        "“",
                                        "”",
                                        "Dr. ",
                                        "z. B. ",
                                        "3. ",
                                        "A. ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        " ",
                                        "  ",
                                        "\xC2\xA0",
                                        "word",
                                        "Word",
                                        "wörter ",
                                        "слово ",
                                        "你好",
                                        "\xFF",
                                        "\xC3",
                                        "\xE2\x80",
                                        "\xF0\x9F",
                                        std::string_view("\0", 1),
                                        ",",
                                        ":",
                                        "(",
                                        ")",
                                        "-"};

std::string random_text(Random& random) {
  std::string text;
  for (uint64_t n = random.below(60); n > 0; --n) text += kPieces[random.below(std::size(kPieces))];
  if (random.below(3) == 0 && !text.empty()) text[random.below(text.size())] = static_cast<char>(random.below(256));
  return text;
}

// Random words of the sentence and others, with links that mean nothing, and none now and then.
AlignedText nonsense(const std::string& sentence, Random& random) {
  AlignedText t;
  const int64_t size = static_cast<int64_t>(sentence.size());
  for (uint64_t n = random.below(12); n > 0; --n) {
    const int64_t at = static_cast<int64_t>(t.text.size());
    const uint64_t from = random.below(sentence.size());
    t.text += random.below(3) ? std::string(kPieces[random.below(std::size(kPieces))]) : sentence.substr(from, random.below(9));
    if (random.below(2)) t.text += ' ';
    const int64_t a = static_cast<int64_t>(random.below(sentence.size()));
    t.links.push_back({{a, std::min(size, a + 1 + static_cast<int64_t>(random.below(9)))}, {at, static_cast<int64_t>(t.text.size())}});
  }
  // A quote that is new to the document could close one that a broken tag has left open.
  std::replace_if(
      t.text.begin(), t.text.end(), [](char c) { return c == '"' || c == '\''; }, '-');
  if (random.below(4) == 0) t.links.clear();
  return t;
}

std::vector<HtmlToken> scan(const std::string& text, DocumentFormat format) {
  return format == DocumentFormat::xml ? scan_xml(text) : scan_html(text);
}

std::vector<std::string> tags_of(const std::string& text, DocumentFormat format) {
  std::vector<std::string> tags;
  for (const HtmlToken& t : scan(text, format))
    if (t.kind != HtmlToken::text) tags.push_back(text.substr(t.begin, t.end - t.begin));
  std::sort(tags.begin(), tags.end());
  return tags;
}

// Where a quote is open, what is a tag depends on what stands behind it, which may have changed places.
bool is_sure(const std::vector<std::string>& tags) {
  return std::all_of(tags.begin(), tags.end(), [](const std::string& tag) {
    return std::count(tag.begin(), tag.end(), '"') % 2 == 0 && std::count(tag.begin(), tag.end(), '\'') % 2 == 0;
  });
}

TEST(DocumentFuzz, NothingIsLostWhateverTheBytes) {
  int64_t sure = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    SCOPED_TRACE(round);
    Random random(18, round);
    const std::string text = random_text(random);
    const char* const languages[] = {"en", "de", "ja", "", "xx-yy"};
    const char* language = languages[random.below(5)];

    const Document plain(text, DocumentFormat::text, language);
    std::vector<AlignedText> same;
    for (const std::string& s : plain.sentences()) {
      EXPECT_TRUE(has_letter(s));
      EXPECT_LE(s.size(), Document::kLongestSentence);
      same.push_back({s, {}});
    }
    const std::string out = plain.assemble(same);
    const auto text_and_tags = [](const std::string& whole) {
      std::pair<std::string, std::vector<std::string>> found;  // the text without spaces
      for (const HtmlToken& t : scan_plain_tags(whole)) {
        const std::string bytes = whole.substr(t.begin, t.end - t.begin);
        if (t.kind != HtmlToken::text)
          found.second.push_back(bytes);
        else
          std::copy_if(bytes.begin(), bytes.end(), std::back_inserter(found.first), [](char c) { return c != ' '; });
      }
      std::sort(found.second.begin(), found.second.end());
      return found;
    };
    if (const auto expected = text_and_tags(text); expected.second.empty())
      EXPECT_EQ(out, text);
    else  // without links, a tag may stand elsewhere in its line
      EXPECT_EQ(text_and_tags(out), expected);

    // The end of what no tag closes is uncertain; a tag behind everything makes it certain in both documents.
    for (const DocumentFormat format : {DocumentFormat::html, DocumentFormat::xml}) {
      DocumentOptions options;
      options.ends = static_cast<SentenceEnds>(random.below(4));
      if (random.below(2)) options.tags = {{"b"}, {"i"}, {"p"}, random.below(2) == 0};
      const std::vector<std::string> tags = tags_of(text, format);
      sure += is_sure(tags);
      const Document tagged(text, format, language, options);
      std::vector<AlignedText> changed;
      changed.assign(tagged.sentences().size(), {"x", {}});
      std::string out = tagged.assemble(changed);
      if (is_sure(tags)) {
        EXPECT_EQ(tags_of(out, format), tags) << text << "\n-> " << out;
      }
      for (size_t i = 0; i < changed.size(); ++i) changed[i] = nonsense(tagged.sentences()[i], random);
      out = tagged.assemble(changed);
      if (is_sure(tags)) {
        EXPECT_EQ(tags_of(out, format), tags) << text << "\n-> " << out;
      }
    }
  }
  EXPECT_GT(sure, 20000);
}

TEST(DocumentFuzz, ScannersKeepOrder) {
  for (uint64_t round = 0; round < 20000; ++round) {
    SCOPED_TRACE(round);
    Random random(19, round);
    const std::string text = random_text(random);
    size_t at = 0;
    const auto tokens = scan(text, round % 2 ? DocumentFormat::xml : DocumentFormat::html);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(tokens[i].begin, at);
      EXPECT_GT(tokens[i].end, at);
      at = tokens[i].end;
      if (tokens[i].partner != SIZE_MAX) {
        ASSERT_LT(tokens[i].partner, tokens.size());
        EXPECT_EQ(tokens[tokens[i].partner].partner, i);
        EXPECT_EQ(tokens[tokens[i].partner].name, tokens[i].name);
      }
    }
    EXPECT_EQ(at, text.size());
    int64_t end = 0;
    for (const Range& r : find_placeholders(text)) {
      EXPECT_GE(r.begin, end);
      EXPECT_GT(r.end, r.begin);
      end = r.end;
    }
    EXPECT_LE(end, static_cast<int64_t>(text.size()));
  }
}

}  // namespace
}  // namespace starling
