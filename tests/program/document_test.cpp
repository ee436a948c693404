// `starling translate --document`: the structure of a document stays, its sentences are those that `translate` gives line by line, and tags
// go with their words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/random.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

// A model that translates word by word; it is trained once for all tests.
class DocumentProgram : public CalledTest {
 protected:
  void SetUp() override {
    if (model_.empty()) {
      char name[] = "/tmp/starling_document_XXXXXX";
      ASSERT_NE(mkdtemp(name), nullptr);
      model_ = name;
      const std::vector<std::string> a{"red", "blue", "green", "dog", "cat", "house", "tree", "runs", "sees", "big", "Red", "Dog", "Cat"};
      const std::vector<std::string> b{"rot",   "blau",  "gruen", "Hund", "Katze", "Haus", "Baum",
                                       "rennt", "sieht", "gross", "Rot",  "Hund",  "Katze"};
      Random random(1, 1);
      std::string source, target;
      for (int i = 0; i < 600; ++i)
        for (int n = 2 + static_cast<int>(random.below(4)); n >= 0; --n) {
          const size_t w = random.below(a.size());
          source += a[w] + (n ? " " : ".\n"), target += b[w] + (n ? " " : ".\n");
        }
      write("a", source), write("b", target);
      const ShellOutcome o =
          call("train --data.source a --data.target b --data.source-language en --train.output " + model_ +
               "/run --vocab.size 80 --model.preset transformer-tiny --model.width 32 --model.feed-forward 64 --model.dropout 0 "
               "--train.batch-tokens 400 --train.max-steps 400 --train.threads 1 --train.precision f32 --train.warmup 50 "
               "--train.learning-rate 3e-3 --train.schedule inverse-sqrt");
      ASSERT_EQ(o.status, 0) << o.text;
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(model_); }

  ShellOutcome translate(const std::string& arguments) const {
    return call("translate --quiet --threads 1 --model " + model_ + "/run " + arguments);
  }
  std::string line(const std::string& text) const {
    write("line", text + "\n");
    std::string out = translate("--input line").text;
    if (!out.empty()) out.pop_back();
    return out;
  }
  std::string read(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(path(name), std::ios::binary).rdbuf();
    return out.str();
  }

  static inline std::string model_;
};

TEST_F(DocumentProgram, KeepsEverythingButTheSentences) {
  write("text", "\n  red dog runs.\r\n\r\nRed cat sees tree. Dog sees house.  Cat runs\n* green tree runs.\n---");
  const ShellOutcome o = translate("--document --input text --output out");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_EQ(read("out"), "\n  " + line("red dog runs.") + "\r\n\r\n" + line("Red cat sees tree.") + " " + line("Dog sees house.") + "  " +
                             line("Cat runs") + "\n* " + line("green tree runs.") + "\n---");
  EXPECT_EQ(line("red dog runs."), "rot Hund rennt.");  // it has learnt something

  // The same through a pipe, and of two documents.
  EXPECT_EQ(run_shell("(cd " + directory_ + " && cat text | " STARLING_BINARY " translate --quiet --threads 1 --document --model " +
                      model_ + "/run)")
                .text,
            read("out"));
  EXPECT_EQ(translate("--document --input text text").text, read("out") + read("out"));
  write("empty", "");
  EXPECT_EQ(translate("--document --input empty --output nothing").status, 0);
  EXPECT_EQ(read("nothing"), "");
}

TEST_F(DocumentProgram, MovesTagsWithTheirWordsAndKeepsThem) {
  write("page",
        "<html><body class=\"x\"><h1>big tree.</h1><!-- c -->\n<p>red <b>dog</b> sees <a href='u?a=b&amp;c'>blue house</a>.<br>Cat sees "
        "<i>house</i>.</p><pre>red  dog</pre>\n");
  const ShellOutcome o = translate("--document --format html --input page");
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.text,
            "<html><body class=\"x\"><h1>gross Baum.</h1><!-- c -->\n<p>rot <b>Hund</b> sieht <a href='u?a=b&amp;c'>blau "
            "Haus</a>.<br>Katze sieht <i>Haus</i>.</p><pre>red  dog</pre>\n");
}

// What is longer than the model takes comes in parts: as many words as there were, where translate alone would cut.
TEST_F(DocumentProgram, LosesNothingOfLongSentences) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += i ? " dog" : "red";
  write("long", words);
  const ShellOutcome o = translate("--document --max-source-tokens 6 --input long");
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.text, HasSubstr("note: 1 long sentence were translated in parts of at most 6 source tokens"));
  const std::string text = o.text.substr(0, o.text.find("note:"));
  EXPECT_NEAR(static_cast<double>(std::count(text.begin(), text.end(), ' ')), 199, 20);
}

TEST_F(DocumentProgram, KnowsFormatsByTheirNamesAndFirstBytes) {
  const std::string dog = line("Red dog."), cat = line("Blue cat.");
  write("film.srt", "1\n00:00:01,000 --> 00:00:02,000\nRed\ndog.\n\n2\n00:00:03,000 --> 00:00:04,000\nBlue cat.\n");
  EXPECT_EQ(translate("--document -i film.srt").text,
            "1\n00:00:01,000 --> 00:00:02,000\n" + dog + "\n\n2\n00:00:03,000 --> 00:00:04,000\n" + cat + "\n");
  write("page", "<!DOCTYPE html><p>Red dog.<p>Blue cat.");
  EXPECT_EQ(translate("--document -i page").text, "<!DOCTYPE html><p>" + dog + "<p>" + cat);
  EXPECT_THAT(call("translate --threads 1 --model " + model_ + "/run --document -i page").text, HasSubstr("2 sentences, "));
  write("part.html", "<p title='Red dog.'>Red dog.</p>");
  EXPECT_EQ(translate("--document -i part.html").text, "<p title='Red dog.'>" + dog + "</p>");
  EXPECT_EQ(translate("--document --format text -i part.html").text.find(dog + "</p>"), std::string::npos);
  write("a.xml", "<?xml version='1.0'?><a><b>Red dog.</b><b>Blue cat.</b></a>");
  EXPECT_EQ(translate("--document -i a.xml").text, "<?xml version='1.0'?><a><b>" + dog + "</b><b>" + cat + "</b></a>");
  write("b", "<?xml version='1.0'?>\n<xliff version='1.2'/>"), write("a.md", "# Red dog.\n");
  EXPECT_EQ(translate("--document -i b").text, "<?xml version='1.0'?>\n<xliff version='1.2'/>");
  EXPECT_EQ(translate("--document -i a.md").text, "# " + dog + "\n");
  write("a.rst", "Red dog.\n"), write("c", "\\documentclass{article}");
  write("a.stringsdict", "<plist><dict/></plist>"), write("d", "{ \"a\" :\n\"Red dog.\"}");
  EXPECT_EQ(translate("--document -i d").text, "{ \"a\" :\n\"" + dog + "\"}");
  for (const auto& [file, name] : {std::pair("a.rst", "reStructuredText"), {"c", "LaTeX"}, {"a.stringsdict", "property list"}}) {
    const ShellOutcome o = translate(std::string("--document -i ") + file);
    EXPECT_EQ(o.status, 2);
    EXPECT_THAT(o.text, HasSubstr(std::string(file) + ": " + name + " format is not supported yet; --format text"));
  }
  EXPECT_EQ(translate("--document --format text -i a.rst").text, dog + "\n");
}

TEST_F(DocumentProgram, WrongTextIsNamedWithItsPlace) {
  const auto refused = [&](const std::string& arguments) { return translate(arguments).text; };
  write("bad", "red\ndog \xFF\n");
  EXPECT_EQ(refused("--document --input bad"),
            "starling: error: bad:2: invalid UTF-8 (0xff); convert the file, e.g. with: iconv -f LATIN1 -t UTF-8 bad\n");
  write("torn.gz", "red");
  EXPECT_THAT(refused("--document --input torn.gz"), HasSubstr("torn.gz:1: the name ends with .gz but the content is not such an archive"));
  EXPECT_THAT(refused("--document --input absent"), HasSubstr("absent: cannot be opened: No such file or directory"));
}

}  // namespace
}  // namespace starling
