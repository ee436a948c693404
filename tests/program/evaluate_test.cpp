// `starling evaluate` with several systems: the table, the JSON and the tests' figures where they are known without computing them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/called.h"
#include "text/unicode.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

class EvaluateTest : public CalledTest {
 protected:
  // The reference, a system that is wrong in each line, the same under another name, and one without a fault.
  void SetUp() override {
    std::string reference, wrong;
    for (int i = 0; i < 30; ++i) {
      reference += fmt::format("this is line number {} of the text\n", i);
      wrong += fmt::format("this is row number {} of text\n", i % 5);
    }
    write("reference", reference), write("base", wrong), write("same", wrong), write("right", reference);
  }
};

TEST_F(EvaluateTest, TableWithBootstrap) {
  const ShellOutcome o =
      call("evaluate --hypotheses base --hypotheses same right --references reference --metrics bleu,ter --paired-bs --paired-bs-n 99");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("│         System │   BLEU (μ ± 95% CI)    │   TER (μ ± 95% CI)   │\n"));
  EXPECT_THAT(o.text, HasSubstr("│ Baseline: base │"));
  EXPECT_THAT(o.text, HasSubstr("│           same │"));
  EXPECT_THAT(o.text, HasSubstr("(p = 1.0000) "));                                                         // nothing differs
  EXPECT_THAT(o.text, HasSubstr("│          right │ 100.00 (100.00 ± 0.00) │  0.00 (0.00 ± 0.00)  │\n"));  // each sample is right
  EXPECT_THAT(o.text, HasSubstr("(p = 0.0100)*"));                                                         // 1 / (99 + 1)
  EXPECT_THAT(o.text, HasSubstr("Paired bootstrap resampling, 99 resamples, seed 12345."));
  EXPECT_THAT(o.text, HasSubstr("\nBLEU       nrefs:1|bs:99|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:starling-0.1.0\n"
                                "TER        nrefs:1|bs:99|seed:12345|case:lc|tok:tercom|"));
  // All lines of the table end in the same column.
  std::size_t begin = 0, lines = 0;
  for (std::size_t end; (end = o.text.find('\n', begin)) != std::string::npos && end > begin; begin = end + 1, ++lines)
    EXPECT_EQ(decode_utf8(o.text.substr(begin, end - begin)).size(), decode_utf8(o.text.substr(0, o.text.find('\n'))).size());
  EXPECT_EQ(lines, 11u);
}

TEST_F(EvaluateTest, TheReferencesChooseTheTokenizer) {
  write("zh.ref", "今天天气很好，我们去公园。\n他在家里看书。\n");
  write("zh.hyp", "今天天气不好，我们去公园。\n他在家看书。\n");
  const ShellOutcome chosen = call("evaluate --hypotheses zh.hyp --references zh.ref --metrics bleu,gleu");
  EXPECT_EQ(chosen.status, 0);
  EXPECT_THAT(chosen.text, HasSubstr("starling: tokenizer of BLEU and GLEU: zh, since the references are Chinese (100 % of their letters"));
  EXPECT_THAT(chosen.text, HasSubstr("BLEU|nrefs:1|case:mixed|eff:no|tok:zh|"));
  EXPECT_THAT(chosen.text, HasSubstr("GLEU|nrefs:1|case:mixed|tok:zh|"));
  EXPECT_THAT(chosen.text, Not(HasSubstr("= 0.00")));
  const ShellOutcome named = call("evaluate --hypotheses zh.hyp --references zh.ref --tokenize 13a");
  EXPECT_THAT(named.text, HasSubstr("starling: warning: the references are Chinese (100 % of their letters are Han characters), but the "
                                    "tokenizer 13a relies on spaces between words; choose auto or zh\n"));
  EXPECT_THAT(named.text, HasSubstr("|tok:13a|"));
  EXPECT_THAT(call("evaluate --hypotheses zh.hyp --references zh.ref --tokenize zh").text, Not(HasSubstr("starling: ")));
  EXPECT_THAT(call("evaluate --hypotheses base --references reference").text, Not(HasSubstr("starling: ")));  // 13a needs no word
  EXPECT_THAT(call("evaluate --hypotheses zh.hyp --references zh.ref --metrics chrf").text, Not(HasSubstr("starling: ")));
  const ShellOutcome wrong = call("evaluate --hypotheses zh.hyp --references zh.ref --tokenize chinese");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.text, HasSubstr("choose auto, 13a, intl, char, zh, ja-mecab, none, or spm:FILE"));
}

TEST_F(EvaluateTest, TerWithAsianSupport) {
  write("zh.ref", "猫在家。\n"), write("zh.hyp", "狗在家。\n");
  const ShellOutcome o = call("evaluate --hypotheses zh.hyp --references zh.ref --metrics ter --ter-normalized --ter-asian-support");
  EXPECT_THAT(o.text, HasSubstr("TER|nrefs:1|case:lc|tok:tercom|norm:yes|punct:yes|asian:yes|version:starling-0.1.0 = 25.00"));
}

TEST_F(EvaluateTest, JsonHasSacreBleusKeys) {
  const std::string command = "evaluate --hypotheses base same right --references reference --metrics bleu,chrf++ --format json ";
  const ShellOutcome o = call(command + "--paired-ar --paired-ar-n 199 --seed 7");
  ASSERT_EQ(o.status, 0) << o.text;
  const auto json = nlohmann::json::parse(o.text);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["system"], "Baseline: base");
  EXPECT_EQ(json[0]["BLEU"]["p_value"], nullptr);
  EXPECT_EQ(json[1]["BLEU"]["p_value"], 1.0);
  EXPECT_EQ(json[1]["BLEU"]["score"], json[0]["BLEU"]["score"]);
  EXPECT_EQ(json[2]["system"], "right");
  EXPECT_EQ(json[2]["chrF2++"]["p_value"], 1 / 200.0);
  EXPECT_EQ(json[2]["chrF2++"]["score"], 100.0);
  EXPECT_EQ(json[2]["chrF2++"]["mean"], nullptr);
  EXPECT_THAT(std::string(json[2]["BLEU"]["signature"]), HasSubstr("nrefs:1|ar:199|seed:7|case:mixed|"));

  const auto bootstrap = nlohmann::json::parse(call(command + "--paired-bs").text);
  EXPECT_NEAR(bootstrap[2]["BLEU"]["mean"], 100, 1e-9);
  EXPECT_GT(bootstrap[0]["BLEU"]["ci"], 0);

  const auto untested = nlohmann::json::parse(call(command).text);
  EXPECT_EQ(untested[2]["BLEU"]["score"], json[2]["BLEU"]["score"]);
  EXPECT_EQ(untested[2]["BLEU"]["p_value"], nullptr);
  EXPECT_THAT(std::string(untested[0]["BLEU"]["signature"]), testing::StartsWith("nrefs:1|case:mixed|"));
}

TEST_F(EvaluateTest, OneSystemIsPrintedAsEver) {
  const std::string one = call("evaluate --hypotheses base --references reference").text;
  EXPECT_THAT(one, testing::StartsWith("BLEU|nrefs:1|case:mixed|"));
  EXPECT_EQ(call("evaluate --hypotheses base base --references reference").text,
            "starling: --hypotheses names base again, which counts as one system\n" + one);
  EXPECT_THAT(call("evaluate --hypotheses base same --references reference").text, Not(HasSubstr("p =")));
}

TEST_F(EvaluateTest, MetricsAreNamedAsPeopleWriteThem) {
  const std::string both = call("evaluate --hypotheses base --references reference --metrics bleu,chrf++").text;
  for (const char* metrics : {"--metrics bleu chrf++", "--metrics BLEU chrF++", "--metrics BLEU,chrF++"})
    EXPECT_EQ(call(std::string("evaluate ") + metrics + " --hypotheses base --references reference").text, both) << metrics;
}

TEST_F(EvaluateTest, TerWarnsWhereWordsHaveNoSpaces) {
  write("ja", "これはテストです\n新しい行はここにあります\n");
  const std::string ter = "evaluate --hypotheses ja --references ja --metrics ter";
  EXPECT_THAT(call(ter).text, HasSubstr("starling: warning: the references are Japanese"));
  EXPECT_THAT(call(ter).text, HasSubstr("but TER relies on spaces between words; choose chrf, or for Chinese "
                                        "--ter-normalized --ter-asian-support\n"));
  EXPECT_THAT(call(ter + " --ter-normalized --ter-asian-support").text, Not(HasSubstr("warning")));
  EXPECT_THAT(call("evaluate --hypotheses ja --references ja --metrics chrf").text, Not(HasSubstr("warning")));
  EXPECT_THAT(call("evaluate --hypotheses base --references reference --metrics ter").text, Not(HasSubstr("warning")));
}

TEST_F(EvaluateTest, FilesMayBeCompressedOrHaveWindowsLineEnds) {
  ASSERT_EQ(run_shell("cd " + directory_ + " && gzip --keep base && sed 's/$/\\r/' reference > windows").status, 0);
  const std::string plain = call("evaluate --hypotheses base --references reference --metrics bleu,chrf,ter").text;
  EXPECT_EQ(call("evaluate --hypotheses base.gz --references windows --metrics bleu,chrf,ter").text, plain);
  write("latin1", "gr\xFC\xDF dich\n");
  EXPECT_THAT(call("evaluate --hypotheses latin1 --references reference").text, HasSubstr("latin1:1: invalid UTF-8 at byte 2"));
}

TEST_F(EvaluateTest, WhatCannotBeTestedIsRefused) {
  const ShellOutcome alone = call("evaluate --hypotheses base base --references reference --paired-bs");
  EXPECT_EQ(alone.status, 2);
  EXPECT_EQ(alone.text,
            "starling: --hypotheses names base again, which counts as one system\n"
            "starling: error: a paired test compares systems, but --hypotheses names only base; give the baseline first, "
            "then the others\n");
  EXPECT_EQ(call("evaluate --hypotheses base same --references reference --paired-bs --paired-ar").status, 2);
  EXPECT_EQ(call("evaluate --hypotheses base same --references reference --paired-bs --paired-bs-n 0").status, 2);
  const ShellOutcome idle = call("evaluate --hypotheses base same --references reference --paired-bs --paired-ar-n 5");
  EXPECT_EQ(idle.status, 2);  // it would have no effect
  EXPECT_EQ(idle.text, "starling: error: --paired-ar-n requires --paired-ar; see 'starling evaluate --help'\n");
  write("short", "one line\n");
  const ShellOutcome unequal = call("evaluate --hypotheses base short --references reference --paired-bs");
  EXPECT_EQ(unequal.status, 3);
  EXPECT_THAT(unequal.text, HasSubstr("short has 1 line, but reference has 30"));
}

}  // namespace
}  // namespace starling
