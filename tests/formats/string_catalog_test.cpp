// Xcode's string catalogs. What Xcode writes was looked at in catalogs of public projects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/file_format.h"
#include "units.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::string with_catalog(const std::string& strings, const Languages& languages = kLanguages) {
  return with_sentences(
      *open_unit_file("xcstrings", "{\n  \"sourceLanguage\" : \"en\",\n  \"strings\" : {" + strings + "}\n}\n", languages));
}
// What the catalog has for the key after translation.
nlohmann::json localizations(const std::string& strings, const std::string& key, const Languages& languages = kLanguages) {
  return nlohmann::json::parse(with_catalog(strings, languages)).at("strings").at(key).value("localizations", nlohmann::json());
}
nlohmann::json unit(const char* value) { return {{"stringUnit", {{"state", "needs_review"}, {"value", value}}}}; }

TEST(StringCatalog, AKeyWithoutLocalizationsIsTheText) {
  EXPECT_EQ(with_catalog("\n    \"A dog %@\" : {\n\n    }\n  "), R"({
  "sourceLanguage" : "en",
  "strings" : {
    "A dog %@" : {
      "localizations" : {
        "de" : {
          "stringUnit" : {
            "state" : "needs_review",
            "value" : "A DOG %@"
          }
        }
      }
    }
  }
}
)");
  EXPECT_EQ(localizations(R"("A \"dog\"":{"comment":"x"})", "A \"dog\""), (nlohmann::json{{"de", unit("A \"DOG\"")}}));
  EXPECT_EQ(localizations(R"("A dog":{"localizations":{}})", "A dog"), (nlohmann::json{{"de", unit("A DOG")}}));
}

TEST(StringCatalog, TheSourcesLocalizationIsCopied) {
  const char* given = R"("dog" : {
      "localizations" : {
        "en" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "A dog"
          }
        },
        "fr" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Un chien"
          }
        }
      }
    })";
  const std::string done = with_catalog(given);
  EXPECT_THAT(done, HasSubstr(R"(            "value" : "Un chien"
          }
        },
        "de" : {
          "stringUnit" : {
            "state" : "needs_review",
            "value" : "A DOG"
          }
        }
      }
    })"));
  EXPECT_EQ(localizations(given, "dog")["fr"]["stringUnit"]["value"], "Un chien");
}

TEST(StringCatalog, WhatIsTranslatedOrShallNotBeStays) {
  for (const char* strings : {R"("A dog":{"localizations":{"de":{"stringUnit":{"state":"translated","value":"Ein Hund"}}}})",
                              R"("A dog":{"shouldTranslate":false})", R"("%@ 12:30":{})", R"("main_menu":{})", R"("":{})"})
    EXPECT_EQ(with_catalog(strings), std::string("{\n  \"sourceLanguage\" : \"en\",\n  \"strings\" : {") + strings + "}\n}\n");
}

TEST(StringCatalog, CopiesOfTheSourceThatXcodeMadeAreReplaced) {
  const char* given = R"("A dog":{"localizations":{"de":{"stringUnit":{"state":"new","value":"A dog"}},"fr":{}}})";
  EXPECT_EQ(with_catalog(given), R"({
  "sourceLanguage" : "en",
  "strings" : {"A dog":{"localizations":{"de":{"stringUnit":{"state":"needs_review","value":"A DOG"}},"fr":{}}}}
}
)");
}

TEST(StringCatalog, PluralsGetTheCategoriesOfTheTarget) {
  const char* given = R"("%lld dogs":{"localizations":{"en":{"variations":{"plural":{
    "one":{"stringUnit":{"state":"translated","value":"%lld dog"}},
    "other":{"stringUnit":{"state":"translated","value":"%lld dogs"}}}}}}})";
  const auto plural = localizations(given, "%lld dogs", {"en", "pl", {}})["pl"]["variations"]["plural"];
  EXPECT_EQ(plural, (nlohmann::json{
                        {"one", unit("%lld DOG")}, {"few", unit("%lld DOGS")}, {"many", unit("%lld DOGS")}, {"other", unit("%lld DOGS")}}));
  EXPECT_EQ(localizations(given, "%lld dogs")["de"]["variations"]["plural"].size(), 2U);
}

TEST(StringCatalog, DevicesAndSubstitutionsKeepTheirForm) {
  const char* given = R"("Tap":{"localizations":{"en":{"variations":{"device":{
    "mac":{"stringUnit":{"state":"new","value":"Click it"}},"other":{"stringUnit":{"state":"new","value":"Tap it"}}}},
    "substitutions":{"n":{"argNum":1,"formatSpecifier":"lld","variations":{"plural":{
      "other":{"stringUnit":{"state":"new","value":"%arg dogs"}}}}}}}}})";
  const auto de = localizations(given, "Tap")["de"];
  EXPECT_EQ(de["variations"]["device"], (nlohmann::json{{"mac", unit("CLICK IT")}, {"other", unit("TAP IT")}}));
  EXPECT_EQ(de["substitutions"]["n"]["argNum"], 1);
  EXPECT_EQ(de["substitutions"]["n"]["variations"]["plural"], (nlohmann::json{{"one", unit("%arg DOGS")}, {"other", unit("%arg DOGS")}}));
}

TEST(StringCatalog, BrokenFilesAreRefusedWithTheirLine) {
  EXPECT_EQ(why_refused("xcstrings", "{\n\"version\":\"1.0\"}"), "line 1: \"strings\" is missing; this is not a string catalog");
  EXPECT_EQ(why_refused("xcstrings", "{\"strings\":{\n\"a\":{}"), "line 2: the JSON ends, and \",\" or \"}\" should follow");
  EXPECT_EQ(why_refused("xcstrings", "{\"strings\":{\n\"a\":7}}"), "line 2: \"{\" should stand here in JSON, not \"7}}\"");
  EXPECT_EQ(why_refused("xcstrings", "{\"strings\":{}} x"), "line 1: the end should stand here in JSON, not \"x\"");
  EXPECT_THAT(why_refused("xcstrings", "{\"strings\":\x1b[2J"), HasSubstr("not \"\\x1b[2J\""));
  EXPECT_THAT(why_refused("xliff", "<xliff version='1.2'></a\x1b>"), HasSubstr("</a\\x1b>"));
  EXPECT_EQ(why_refused("xcstrings", "[]"), "line 1: \"{\" should stand here in JSON, not \"[]\"");
  EXPECT_THAT(why_refused("xcstrings", "{\"strings\":" + std::string(1'000'000, '{')), HasSubstr("a key in quotes"));
  std::string deep = "{\"strings\":";
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(why_refused("xcstrings", deep), "line 1: this is deeper than 1000 levels");
  EXPECT_THAT(why_refused("xcstrings", R"({"sourceLanguage":"fr","strings":{}})"),
              HasSubstr("sourceLanguage is fr, but the model's language is en"));
  EXPECT_THAT(why_refused("xcstrings", R"({"strings":{}})", {"en", "", {}}), HasSubstr("which language it translates into"));
}

}  // namespace
}  // namespace starling
