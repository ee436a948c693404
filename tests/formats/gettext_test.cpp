// Catalogues of gettext. That msgfmt -c accepts what is written for files of other programs was tried by hand.
#include "units/gettext.h"

#include <gmock/gmock.h>

#include "units.h"

namespace starling {
namespace {

std::string catalogue(const std::string& text, const std::string& target = "de") {
  return with_sentences(Gettext(text, {"en", target, {}}));
}

TEST(Gettext, MessagesWithoutATranslationGetOneThatIsFuzzy) {
  EXPECT_EQ(catalogue("# a dog\n#: a.c:1\nmsgid \"A \\\"dog\\\"\"\nmsgstr \"\"\n\n#, c-format\n#| msgid \"Cat\"\nmsgctxt \"a menu\"\nmsgid "
                      "\"\"\n\"One %s\\n\"\n\"two\\n\"\n"
                      "msgstr \"\"\n"),
            "# a dog\n#: a.c:1\n#, fuzzy\nmsgid \"A \\\"dog\\\"\"\nmsgstr \"A \\\"DOG\\\"\"\n\n#, c-format, fuzzy\n#| msgid "
            "\"Cat\"\nmsgctxt \"a menu\"\nmsgid "
            "\"\"\n\"One %s\\n\"\n\"two\\n\"\nmsgstr \"\"\n\"ONE %s\\n\"\n\"TWO\\n\"\n");
  EXPECT_EQ(catalogue("#| msgid \"Old\"\nmsgid \"_File\"\nmsgstr \"\"\n"),
            "#, fuzzy\n#| msgid \"Old\"\nmsgid \"_File\"\nmsgstr \"_FILE\"\n");
}

TEST(Gettext, EachFlagIsReadByItself) {
  const auto written = [](const std::string& flags) {
    Gettext file(flags + "msgid \"%d dogs\"\nmsgstr \"\"\n", kLanguages);
    return assembled(file, "Hunde\n").find("\"Hunde\"") != std::string::npos;
  };
  EXPECT_FALSE(written("#, c-format, no-wrap\n"));
  EXPECT_FALSE(written("#, no-wrap\n#, c-format\n"));
  EXPECT_TRUE(written("#, no-c-format\n"));
  EXPECT_TRUE(written("#, no-wrap\n"));
}

TEST(Gettext, TranslationsStay) {
  for (const std::string text : {"msgid \"a dog\"\nmsgstr \"ein Hund\"\n", "#, fuzzy\nmsgid \"a dog\"\nmsgstr \"ein Hund\"\n",
                                 "#~ msgid \"a dog\"\n#~ msgstr \"\"\n", "msgid \"12\"\nmsgstr \"\"\n",
                                 "msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"\"\nmsgstr[1] \"x\"\n"})
    EXPECT_EQ(catalogue(text), text);
}

TEST(Gettext, PluralsHaveTheFormsOfTheLanguage) {
  const std::string head = "msgid \"%d dog\"\nmsgid_plural \"%d dogs\"\n", text = head + "msgstr[0] \"\"\nmsgstr[1] \"\"\n";
  EXPECT_EQ(catalogue(text), "#, fuzzy\n" + head + "msgstr[0] \"%d DOG\"\nmsgstr[1] \"%d DOGS\"\n");
  EXPECT_EQ(catalogue(text, "ja"), "#, fuzzy\n" + head + "msgstr[0] \"%d DOG\"\n");
  EXPECT_EQ(catalogue(text, "pl"), "#, fuzzy\n" + head + "msgstr[0] \"%d DOG\"\nmsgstr[1] \"%d DOGS\"\nmsgstr[2] \"%d DOGS\"\n");
  EXPECT_EQ(catalogue(text, "ar"),
            "#, fuzzy\n" + head +
                "msgstr[0] \"%d DOGS\"\nmsgstr[1] \"%d DOG\"\nmsgstr[2] \"%d DOGS\"\nmsgstr[3] \"%d DOGS\"\nmsgstr[4] \"%d "
                "DOGS\"\nmsgstr[5] \"%d DOGS\"\n");
  // Of Russian, the form of 1 is that of 21.
  const std::string one = "msgid \"one dog\"\nmsgid_plural \"%d dogs\"\n";
  EXPECT_EQ(catalogue(one + "msgstr[0] \"\"\n", "ru"),
            "#, fuzzy\n" + one + "msgstr[0] \"%d DOGS\"\nmsgstr[1] \"%d DOGS\"\nmsgstr[2] \"%d DOGS\"\n");
  EXPECT_EQ(catalogue(one + "msgstr[0] \"\"\n", "de"), "#, fuzzy\n" + one + "msgstr[0] \"ONE DOG\"\nmsgstr[1] \"%d DOGS\"\n");
}

TEST(Gettext, TheHeaderOfATemplateIsFilledIn) {
  const std::string template_header =
      "#, fuzzy\nmsgid \"\"\nmsgstr \"\"\n\"Language: \\n\"\n\"Content-Type: text/plain; charset=CHARSET\\n\"\n\"Plural-Forms: "
      "nplurals=INTEGER; "
      "plural=EXPRESSION;\\n\"\n";
  EXPECT_EQ(catalogue(template_header, "pt-BR"),
            "#, fuzzy\nmsgid \"\"\nmsgstr \"\"\n\"Language: pt_BR\\n\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\"Plural-Forms: "
            "nplurals=2; "
            "plural=(n > 1);\\n\"\n");
  EXPECT_EQ(catalogue("msgid \"\"\nmsgstr \"\"\n\"Language: de\\n\"\n"),
            "msgid \"\"\nmsgstr \"\"\n\"Language: de\\n\"\n\"Plural-Forms: nplurals=2; plural=(n != 1);\\n\"\n");
}

// A translation that a program would crash on is none.
TEST(Gettext, ConversionsAreThoseOfTheMessage) {
  Gettext file("#, c-format\nmsgid \"%s ran %d miles\"\nmsgstr \"\"\n", {});
  EXPECT_THAT(assembled(file, "%s lief %d Meilen\n"), testing::HasSubstr("msgstr \"%s lief %d Meilen\""));
  EXPECT_THAT(assembled(file, "%s lief 5% Meilen\n"), testing::HasSubstr("msgstr \"\""));
}

TEST(Gettext, BrokenCataloguesAreRefusedWithTheirLine) {
  EXPECT_EQ(why_refused("po", "msgid \"a\"\nmsgstr \"b\" x\n"), "line 2: expected a text in quotes here, as in every gettext catalogue");
  EXPECT_EQ(why_refused("po", "msgid \"a\"b\"\nmsgstr \"\"\n"),
            "line 1: this quote ends the text before the end of its line; write \\\" for the character");
  EXPECT_EQ(why_refused("po", "\nhello\n"), "line 2: \"hello\" is not allowed here in a gettext catalogue");
  EXPECT_EQ(why_refused("po", "msgid \"a\"\n\nmsgid \"b\"\n"), "line 3: \"msgid \"b\"\" is not allowed here in a gettext catalogue");
  EXPECT_EQ(why_refused("po", "msgid \"a\"\n"), "line 1: there is no msgstr for this msgid");
  EXPECT_EQ(why_refused("po", "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=KOI8-R\\n\"\n"),
            "line 2: the catalogue is in koi8-r; convert it with msgconv -t UTF-8");
}

TEST(PluralForms, ExpressionsAreEvaluated) {
  const PluralForms polish(plural_forms_of("pl"));
  EXPECT_EQ(polish.count(), 3u);
  for (const auto& [n, form] : {std::pair(1, 0), {2, 1}, {5, 2}, {12, 2}, {22, 1}, {25, 2}, {0, 2}})
    EXPECT_EQ(polish.form_of(static_cast<uint64_t>(n)), static_cast<size_t>(form)) << n;
  EXPECT_TRUE(polish.is_one_alone(0));
  EXPECT_FALSE(PluralForms(plural_forms_of("fr_FR")).is_one_alone(0));
  EXPECT_EQ(plural_forms_of("pol_Latn"), plural_forms_of("pl"));
  EXPECT_EQ(plural_forms_of("cmn"), plural_forms_of("zh"));
  for (const char* broken : {"", "nplurals=9; plural=n", "nplurals=2; plural=n/0;", "nplurals=2; plural=(n", "nplurals=2; plural=n n"})
    EXPECT_EQ(PluralForms(broken).form_of(1), 0u) << broken;
  EXPECT_EQ(PluralForms("nplurals=2; plural=" + std::string(900, '(') + "n").count(), 2u);
}

}  // namespace
}  // namespace starling
