// What a language needs for numbers is added to files that lack it. The categories are those that ICU 78 (CLDR 48) gives.
#include "units/plural_categories.h"

#include <gmock/gmock.h>

#include <sstream>

#include "units.h"

namespace starling {
namespace {

std::string into(const std::string& language, const std::string& format, const std::string& text) {
  return with_sentences(*open_unit_file(format, text, {"en", language, {}}));
}

// The languages are those that ICU gives these categories for cardinal numbers.
TEST(PluralCategories, AreThoseOfTheLanguage) {
  const std::pair<const char*, std::vector<std::string_view>> kAll[] = {
      {"id in ja jbo kea ko lo ms my su th to vi wo yo yue zh", {"other"}},
      {"af am az bg bn da de el en eo et eu fa fi gl gu hi hu hy is ka kk mk mn nb nl no sq sv sw ta tr ur uz xx zu", {"one", "other"}},
      {"ca es fr it pt pt-PT pt_BR", {"one", "many", "other"}},
      {"bs cnr hr ro sh sr", {"one", "few", "other"}},
      {"be cs lt pl pl_PL PL ru sk uk", {"one", "few", "many", "other"}},
      {"he iw iu se", {"one", "two", "other"}},
      {"dsb gd hsb sl", {"one", "two", "few", "other"}},
      {"br ga gv mt sgs", {"one", "two", "few", "many", "other"}},
      {"cv ksh lag lv prg", {"zero", "one", "other"}},
      {"ar cy kw", {"zero", "one", "two", "few", "many", "other"}},
      // Codes of three letters, as many models name languages.
      {"jpn cmn zho zsm", {"other"}},
      {"deu eng swe", {"one", "other"}},
      {"fra spa por", {"one", "many", "other"}},
      {"pol ces pol_Latn rus-Cyrl", {"one", "few", "many", "other"}},
      {"arb ara cym", {"zero", "one", "two", "few", "many", "other"}},
      {"lvs lav", {"zero", "one", "other"}},
      {"heb", {"one", "two", "other"}},
  };
  for (const auto& [languages, categories] : kAll) {
    std::istringstream codes(languages);
    for (std::string code; codes >> code;) EXPECT_THAT(plural_categories_of(code), testing::ElementsAreArray(categories)) << code;
  }
  EXPECT_TRUE(plural_categories_of("").empty());
}

TEST(PluralCategories, OfIcuAreAddedBehindTheBranches) {
  const std::string dogs = R"({"a":"{n, plural, one {# dog} other {# dogs}}"})";
  EXPECT_EQ(into("pl", "json", dogs), R"({"a":"{n, plural, one {# DOG} other {# DOGS} few {# DOGS} many {# DOGS}}"})");
  EXPECT_EQ(into("ja", "json", dogs), R"({"a":"{n, plural, one {# DOG} other {# DOGS}}"})");
  EXPECT_EQ(into("", "json", dogs), R"({"a":"{n, plural, one {# DOG} other {# DOGS}}"})");
  EXPECT_EQ(into("he", "properties", "a={n,plural,offset:1 =0{no dogs}\tone{a dog}\tother{# dogs}} ran\n"),
            "a={n,plural,offset:1 =0{NO DOGS}\\tone{A DOG}\\tother{# DOGS}\\ttwo {# DOGS}} RAN\n");
  EXPECT_EQ(into("pl", "json", R"({"a":"{n, selectordinal, one {dog #} other {dogs #}} {g, select, x {a dog} other {the dog}}"})"),
            R"({"a":"{n, selectordinal, one {DOG #} other {DOGS #}} {g, select, x {A DOG} other {THE DOG}}"})");
  EXPECT_EQ(into("he", "json", R"({"a":"{g, select, x {{n, plural, one {a dog} other {{m} dogs}}} other {it}}"})"),
            R"({"a":"{g, select, x {{n, plural, one {A DOG} other {{m} DOGS} two {{m} DOGS}}} other {IT}}"})");
}

TEST(PluralCategories, OfAndroidAreAddedBehindTheItems) {
  EXPECT_EQ(into("pl", "android",
                 "<resources>\n  <plurals name=\"a\">\n    <item quantity=\"one\">a dog</item>\n    <item a='b' quantity='other'>%d "
                 "<b>dogs</b></item>\n  </plurals>\n  <string name=\"b\">dog</string>\n</resources>\n"),
            "<resources>\n  <plurals name=\"a\">\n    <item quantity=\"one\">A DOG</item>\n    <item a='b' quantity='other'>%d "
            "<b>DOGS</b></item>\n    <item a='b' quantity='few'>%d <b>DOGS</b></item>\n    <item a='b' quantity='many'>%d "
            "<b>DOGS</b></item>\n  </plurals>\n  <string name=\"b\">DOG</string>\n</resources>\n");
  EXPECT_EQ(into("he", "android", "<resources><plurals name='a'><item quantity='other'>12</item></plurals></resources>"),
            "<resources><plurals name='a'><item quantity='other'>12</item><item quantity='one'>12</item><item "
            "quantity='two'>12</item></plurals></resources>");
}

TEST(PluralCategories, OfRailsAreAddedBehindOther) {
  EXPECT_EQ(into("pl", "yaml", "en:\n  a:\n    one: a dog\n    other: \"%{count} dogs\"  # 2\n  b: dog\n"),
            "pl:\n  a:\n    one: A DOG\n    other: \"%{count} DOGS\"  # 2\n    few: \"%{count} DOGS\"\n    many: \"%{count} DOGS\"\n  b: "
            "DOG\n");
  EXPECT_EQ(into("he", "yaml", "a: {one: dog, other: 'dogs'}\r\n"), "a: {one: DOG, other: 'DOGS', two: 'DOGS'}\r\n");
  EXPECT_EQ(into("he", "yaml", "a:\r\n  other: |\r\n    big\r\n    dogs\r\n  one: 12\r\nb: dog\r\n"),
            "a:\r\n  other: |\r\n    BIG\r\n    DOGS\r\n  two: |\r\n    BIG\r\n    DOGS\r\n  one: 12\r\nb: DOG\r\n");
  for (const char* other : {"a:\n  one: DOG\n  other: DOGS\n  more: IT\n", "a:\n  other: DOGS\n", "a:\n  one: [DOG]\n  other: DOGS\n"})
    EXPECT_EQ(into("he", "yaml", other), other);
}

TEST(PluralCategories, OfI18nextAreAddedBehindTheLast) {
  EXPECT_EQ(into("pl", "json", "{\n  \"dog_one\": \"a dog\",\n  \"dog_other\" : \"{{count}} dogs\",\n  \"b\": \"dog\"\n}\n"),
            "{\n  \"dog_one\": \"A DOG\",\n  \"dog_other\" : \"{{count}} DOGS\",\n  \"dog_few\" : \"{{count}} DOGS\",\n  \"dog_many\" : "
            "\"{{count}} DOGS\",\n  \"b\": \"DOG\"\n}\n");
  EXPECT_EQ(into("he", "json", R"({"x":{"a_other":"dogs","a_one":"dog"},"b_one":"dog","b_other":"dogs"})"),
            R"({"x":{"a_other":"DOGS","a_one":"DOG","a_two":"DOGS"},"b_one":"DOG","b_other":"DOGS","b_two":"DOGS"})");
  for (const char* other : {R"({"a_other":"DOG","b_one":"CAT"})", R"({"a_ordinal_one":"DOG","a_ordinal_other":"CAT"})",
                            R"({"a_one":"DOG","x":{"a_other":"CAT"}})", R"(["DOG","CAT"])"})
    EXPECT_EQ(into("he", "json", other), other);
}

}  // namespace
}  // namespace starling
