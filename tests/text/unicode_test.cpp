// UTF-8 at the boundaries of its definition, lower case and white space against facts of the Unicode character database.
#include "text/unicode.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace starling {
namespace {

std::u32string scalar_values() {
  std::u32string all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  }
  return all;
}

TEST(Utf8, EveryCodePointSurvivesTheRoundTrip) {
  const std::u32string all = scalar_values();
  const std::string bytes = encode_utf8(all);
  EXPECT_EQ(bytes.size(), 0x80u + 2 * (0x800 - 0x80) + 3 * (0x10000 - 0x800 - 0x800) + 4 * 0x100000u);
  EXPECT_EQ(invalid_utf8_offset(bytes), std::nullopt);
  EXPECT_TRUE(decode_utf8(bytes) == all);
}

TEST(Utf8, RejectsEachKindOfMalformedBytes) {
  const std::string_view malformed[] = {
      "\x80",              // continuation without a beginning
      "\xBF",              //
      "\xC0\x80",          // overlong in two bytes
      "\xC1\xBF",          //
      "\xC3",              // truncated
      "\xC3(",             // continuation missing
      "\xE0\x9F\xBF",      // overlong in three
      "\xE2\x82",          // truncated
      "\xE2(\xA1",         //
      "\xE2\x82(",         //
      "\xED\xA0\x80",      // first surrogate
      "\xED\xBF\xBF",      // last surrogate
      "\xF0\x8F\xBF\xBF",  // overlong in four
      "\xF0\x9F\x98",      // truncated
      "\xF0(\x98\x80",     //
      "\xF0\x9F(\x80",     //
      "\xF0\x9F\x98(",     //
      "\xF4\x90\x80\x80",  // above U+10FFFF
      "\xF5\x80\x80\x80",  //
      "\xFE",              //
      "\xFF",
  };
  for (const std::string_view bytes : malformed) {
    EXPECT_EQ(invalid_utf8_offset(bytes), 0u) << testing::PrintToString(bytes);
    EXPECT_EQ(decode_utf8_at(bytes).length, 0) << testing::PrintToString(bytes);
    EXPECT_THROW(decode_utf8(bytes), DataError) << testing::PrintToString(bytes);
  }
}

TEST(Utf8, AcceptsTheNeighboursOfTheMalformed) {
  for (const std::string_view bytes : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF",
                                       "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(invalid_utf8_offset(bytes), std::nullopt) << testing::PrintToString(bytes);
  }
}

// The validator skips ASCII in blocks; the fault must be found wherever it lies relative to a block.
TEST(Utf8, FindsTheOffsetAtEveryDistance) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (const std::size_t after : {0, 3, 20}) {
      EXPECT_EQ(invalid_utf8_offset(std::string(before, 'a') + "\xFF" + std::string(after, 'b')), before);
      EXPECT_EQ(invalid_utf8_offset(std::string(before, 'a') + "\xC3\xA9\xC3" + std::string(after, 'b')), before + 2);
    }
  }
  EXPECT_EQ(invalid_utf8_offset(""), std::nullopt);
}

TEST(Utf8, EncodingSomethingElseIsADefect) {
  std::string out;
  EXPECT_THROW(append_utf8(out, 0xD800), InternalError);
  EXPECT_THROW(append_utf8(out, 0xDFFF), InternalError);
  EXPECT_THROW(append_utf8(out, 0x110000), InternalError);
}

TEST(LowerCase, EuropeanScripts) {
  EXPECT_EQ(to_lower_utf8("Hello ÄÖÜß ẞ ŸŽĐŁ ǅ"), "hello äöüß ß ÿžđł ǆ");
  EXPECT_EQ(to_lower_utf8("ЁЖИК Ѐ Ӏ Ԑ"), "ёжик ѐ ӏ ԑ");
  EXPECT_EQ(to_lower_utf8("Ἀθῆναι ᾼ Ώ"), "ἀθῆναι ᾳ ώ");
  EXPECT_EQ(to_lower_utf8("ՀԱՅ Ა Ⴀ"), "հայ ა ⴀ");
  EXPECT_EQ(to_lower_utf8("already lower 123 日本 😀"), "already lower 123 日本 😀");
}

TEST(LowerCase, DottedCapitalIBecomesTwoCodePoints) { EXPECT_EQ(to_lower(U"İI"), U"i\u0307i"); }

TEST(LowerCase, SigmaHasAFinalForm) {
  EXPECT_EQ(to_lower_utf8("ΟΔΥΣΣΕΥΣ ΣΑΣ"), "οδυσσευς σας");
  EXPECT_EQ(to_lower_utf8("ΑΣ."), "ας.");    // a period does not end the word, but no letter follows
  EXPECT_EQ(to_lower_utf8("ΑΣ'Α"), "ασ'α");  // here one does
  EXPECT_EQ(to_lower_utf8("Σ"), "σ");        // no letter before
  EXPECT_EQ(to_lower_utf8("1Σ"), "1σ");
}

// DerivedCoreProperties.txt of Unicode 15.0 counts 1,433 code points that lower case changes; the sum over their lower cases was taken from
// Python 3.11.
TEST(LowerCase, WholeTableAgreesWithTheCharacterDatabase) {
  std::size_t changed = 0;
  std::uint64_t sum = 0;
  for (const char32_t c : scalar_values()) {
    const std::u32string lower = to_lower(std::u32string_view(&c, 1));
    if (lower == std::u32string_view(&c, 1)) continue;
    ++changed;
    for (const char32_t l : lower) sum += l;
    EXPECT_EQ(to_lower(lower), lower) << "U+" << std::hex << static_cast<std::uint32_t>(c);
  }
  EXPECT_EQ(changed, 1433u);
  EXPECT_EQ(sum, 34914946u);
}

TEST(Space, ExactlyPythonsSpaces) {
  std::u32string spaces;
  for (const char32_t c : scalar_values()) {
    if (is_unicode_space(c)) spaces.push_back(c);
  }
  EXPECT_EQ(spaces,
            U"\t\n\v\f\r\x1C\x1D\x1E\x1F \x85\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A"
            U"\u2028\u2029\u202F\u205F\u3000");
}

TEST(Space, SplitDropsEmptyWords) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(split_on_space(std::string_view("  a\u00A0\u3000bc\t\u200Bd\n")), (Words{"a", "bc", "\u200Bd"}));
  EXPECT_EQ(split_on_space(std::string_view("é")), (Words{"é"}));
  EXPECT_TRUE(split_on_space(std::string_view(" \u2003 ")).empty());
  EXPECT_TRUE(split_on_space(std::string_view("")).empty());
  EXPECT_EQ(split_on_space(std::u32string_view(U" ä  b\u2009")), (std::vector<std::u32string_view>{U"ä", U"b"}));
}

TEST(Space, TrailingSpaceIsCutAtTheEndOnly) {
  EXPECT_EQ(without_trailing_space(" a b \u3000\r\n"), " a b");
  EXPECT_EQ(without_trailing_space("é"), "é");
  EXPECT_EQ(without_trailing_space(" \t"), "");
  EXPECT_EQ(without_trailing_space("a\xFF "), "a\xFF");
}

}  // namespace
}  // namespace starling
