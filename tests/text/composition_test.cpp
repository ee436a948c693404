// Normalisation form C against Unicode's own cases: an extract of NormalizationTest.txt. The whole file, where it is at hand, is tested
// with STARLING_NORMALIZATION_TEST=NormalizationTest.txt in the environment.
#include "text/composition.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/utf8.h"
#include "text/canonical_text.h"
#include "text/unicode.h"

namespace starling {
namespace {

// The columns of a case: source, NFC, NFD, NFKC, NFKD.
std::vector<std::u32string> columns_of(const std::string& line) {
  std::vector<std::u32string> columns;
  std::istringstream fields(line.substr(0, line.find('#')));
  for (std::string field; std::getline(fields, field, ';') && columns.size() < 5;) {
    std::istringstream numbers(field);
    uint32_t c = 0;
    columns.emplace_back();
    while (numbers >> std::hex >> c) columns.back().push_back(c);
  }
  return columns;
}

std::u32string composed(const std::u32string& text) { return decode_utf8(starling::composed(encode_utf8(text))); }

const char* const whole = std::getenv("STARLING_NORMALIZATION_TEST");
const char* const cases_path = whole ? whole : STARLING_SOURCE_DIR "/tests/text/normalization_test.txt";

TEST(Composition, AgreesWithUnicodesCases) {
  std::ifstream in(cases_path);
  ASSERT_TRUE(in);
  std::set<char32_t> in_part_1;
  std::string part;
  int cases = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("@")) part = line.substr(0, 6);
    if (line.empty() || line[0] == '#' || line[0] == '@') continue;
    const auto c = columns_of(line);
    ASSERT_EQ(c.size(), 5u) << line;
    if (part == "@Part1") in_part_1.insert(c[0][0]);
    for (const int from : {0, 1, 2}) EXPECT_EQ(composed(c[from]), c[1]) << line;
    for (const int from : {3, 4}) EXPECT_EQ(composed(c[from]), c[3]) << line;
    ++cases;
  }
  EXPECT_GE(cases, whole ? 19074 : 113);
  // Code points that the whole file does not list in its first part stay as they are.
  for (char32_t c = 0; whole && c <= 0x10FFFF; ++c)
    if ((c < 0xD800 || c > 0xDFFF) && !in_part_1.contains(c)) {
      EXPECT_EQ(composed(std::u32string(1, c)), std::u32string(1, c)) << std::hex << uint32_t{c};
    }
}

TEST(Composition, IsNotNeededWhereItIsSurelyThere) {
  std::u32string all;
  for (char32_t c = 0; c < 0x11000; ++c)
    if (const std::u32string one(1, c); is_surely_composed(one)) all += one;
  EXPECT_GT(all.size(), 22000u);
  EXPECT_EQ(starling::composed(encode_utf8(all)), encode_utf8(all));
  for (std::size_t i = 0, x = 1; i < 200000; ++i, x = x * 6364136223846793005u + 1442695040888963407u) {
    const std::u32string pair{all[(x >> 33) % all.size()], all[(x >> 21) % all.size()]};
    ASSERT_EQ(starling::composed(encode_utf8(pair)), encode_utf8(pair));
  }
  EXPECT_FALSE(is_surely_composed(U"e\u0301"));
  EXPECT_FALSE(is_surely_composed(U"\u212B"));
}

TEST(Composition, HangulIsArithmetic) {
  for (char32_t l = 0; l < 19; ++l)
    for (char32_t v = 0; v < 21; ++v)
      for (char32_t t = 0; t < 28; ++t) {
        std::u32string letters{0x1100 + l, 0x1161 + v};
        if (t > 0) letters.push_back(0x11A7 + t);
        EXPECT_EQ(composed(letters), std::u32string(1, 0xAC00 + (l * 21 + v) * 28 + t));
      }
}

// What is composed in groups that begin where begins_composition() says so is what is composed as a whole.
TEST(Composition, TakesLinearTimeAndLosesNothing) {
  std::string marks, sorted;
  for (int i = 0; i < 200000; ++i) marks += "\u0301\u0316";  // which are sorted by their classes, 230 and 220
  for (int i = 0; i < 200000; ++i) sorted += "\u0316";
  sorted = "á" + sorted;  // the first acute becomes part of the letter
  for (int i = 1; i < 200000; ++i) sorted += "\u0301";
  EXPECT_EQ(starling::composed("a" + marks), sorted);  // would take hours in time that grows with the square
  EXPECT_EQ(starling::composed("가\u11A7나"), "가\u11A7나");
}

TEST(Composition, GroupsCanBeComposedOneByOne) {
  std::ifstream in(cases_path);
  std::u32string all, by_groups, group;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#' && line[0] != '@')
      for (const int column : {0, 2}) all += columns_of(line)[column] + U"a\u0300 ";
  for (const char32_t c : all) {
    if (begins_composition(c)) by_groups += composed(group), group.clear();
    group.push_back(c);
  }
  by_groups += composed(group);
  EXPECT_EQ(by_groups, composed(all));
  EXPECT_GT(all.size(), by_groups.size());
}

// DerivedCoreProperties.txt of Unicode 15.0 counts 4,174 of them.
TEST(DefaultIgnorable, TheTableIsWhole) {
  int all = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) all += is_default_ignorable(c);
  EXPECT_EQ(all, 4174);
  for (const char32_t c : std::u32string_view(U"\u00AD\u034F\u061C\u200B\u200C\u200D\u200E\u200F\u202A\u202E\u2060\uFE0E\uFE0F\uFEFF"))
    EXPECT_TRUE(is_default_ignorable(c)) << std::hex << uint32_t{c};
  for (const char32_t c : U" \u00A0\u0300\u2000\u2010\u2028\u202F\uFFFC\uFFFD")
    EXPECT_FALSE(is_default_ignorable(c)) << std::hex << uint32_t{c};
}

TEST(CanonicalText, ChangesWhatIsNotKnownOnly) {
  std::string known;  // of these characters, and of ASCII's
  const auto knows = [&](std::string_view text) {
    for (const char32_t c : decode_utf8(text))
      if (c >= 0x80 && known.find(encode_utf8(std::u32string_view(&c, 1))) == std::string::npos) return false;
    return true;
  };
  const auto made = [&](const std::string& text) {
    const auto canonical = canonical_text(text, knows);
    return canonical ? canonical->text : "unchanged";
  };
  EXPECT_EQ(made("co\u00ADop\u200Ber\u2060a\uFE0Fte\u200E"), "cooperate");
  EXPECT_EQ(made("u\u0308ber A\u030A e\u0323\u0302 e\u0302\u0323"), "\u00FCber \u00C5 \u1EC7 \u1EC7");
  EXPECT_EQ(made("u\u034F\u0308"), "\u00FC");
  EXPECT_EQ(made("\u1112\u1161\u11AB\u1100\u1173\u11AF"), "\uD55C\uAE00");
  EXPECT_EQ(made("\u0958"), "\u0915\u093C");  // excluded from composition
  EXPECT_EQ(made("\u212B"), "\u00C5");
  for (const char* same : {"", "plain", "\u00FC", "\uFF21\uFB01\u00BD\u2122", "\u6F22\u5B57", "x\xFF\u0308", "\u0308", "q\u0308", "\xC2"})
    EXPECT_EQ(made(same), "unchanged") << same;
  known = "\u00AD\u200C\u200D\u0308";
  EXPECT_EQ(made("co\u00ADop \u0646\u200C\u0645 u\u0308"), "unchanged");
  EXPECT_EQ(made("co\u00ADo\u200Bp u\u0308 a\u030A"), "co\u00ADop u\u0308 \u00E5");
}

TEST(CanonicalText, BytesKnowWhereTheyComeFrom) {
  const auto nothing = [](std::string_view text) { return decode_utf8(text)[0] < 0x80 && text.size() == 1; };
  const std::string text = "\u200Ba\u00ADbu\u0308\u200Bc\u2060";
  const auto canonical = canonical_text(text, nothing);
  ASSERT_TRUE(canonical);
  EXPECT_EQ(canonical->text, "ab\u00FCc");
  EXPECT_EQ(canonical->source, (std::vector<int64_t>{0, 6, 7, 7, 13, 17}));
}

}  // namespace
}  // namespace starling
