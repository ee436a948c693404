// Dumps that read back, and fuzzed configurations and command lines, which must end with an exit status other than 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text_files.h"
#include "tests/program/called.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class CommandLine : public CalledTest {
 protected:
  std::string written(const std::string& name, const std::string& text) const {
    write(name, text);
    return path(name);
  }
};

TEST_F(CommandLine, DumpsReadBack) {
  const std::string arguments =
      "train '--data.source=a b.en' --data.target ü.de --data.train.1.tsv=x.tsv --data.train.1.weight 2.5 --train.output train "
      "--train.learning-rate 1e-4 --model.preset transformer-tiny --precision f32 --valid.metrics bleu,chrf --valid.source v "
      "--valid.target --w --train.seed=9 --dump-config ";
  for (const std::string kind : {"minimal", "full"}) {
    const ShellOutcome a = call(arguments + kind);
    ASSERT_EQ(a.status, 0) << a.text;
    const ShellOutcome b = call("train -c " + written(kind + ".yml", a.text) + " --dump-config " + kind);
    ASSERT_EQ(b.status, 0) << b.text << a.text;
    EXPECT_EQ(a.text, b.text);
    EXPECT_THAT(a.text, HasSubstr("source: \"a b.en\""));
    EXPECT_THAT(a.text, HasSubstr("target: \"--w\""));
    EXPECT_THAT(a.text, HasSubstr("precision: f32"));
  }
  const ShellOutcome whole = call("train -c minimal.yml --dump-config full");
  EXPECT_EQ(whole.text, read_text_file(path("full.yml")));
}

TEST_F(CommandLine, ListsAreWrittenInBracketsOrWithout) {
  const auto metrics = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(),
                     {"--data.source", "a", "--data.target", "b", "--valid.source", "v", "--valid.target", "w", "--dump-config", "full"});
    const ShellOutcome o = call(arguments);
    const size_t at = o.text.find("metrics: ");
    return at == std::string::npos ? o.text : o.text.substr(at, o.text.find_first_of("\n#", at) - at);
  };
  for (const std::string list : {"[]", ""}) {
    EXPECT_THAT(metrics({"--valid.metrics", list}), StartsWith("metrics: []"));
    EXPECT_THAT(metrics({"--valid.metrics=" + list}), StartsWith("metrics: []"));
  }
  for (const std::string list : {"[bleu, ter]", "[bleu,ter]", "bleu,ter"}) {
    EXPECT_THAT(metrics({"--valid.metrics", list}), StartsWith("metrics: [bleu, ter]"));
    EXPECT_THAT(metrics({"--valid.metrics=" + list}), StartsWith("metrics: [bleu, ter]"));
  }
}

const std::string odd_values[] = {"",
                                  "-1",
                                  "99999999999999999999999",
                                  "1e999",
                                  "nan",
                                  "\xED\xA0\x80",
                                  "\xFF\xFE",
                                  "[",
                                  "{}",
                                  "null",
                                  "~",
                                  "0x10",
                                  "--",
                                  "-",
                                  "'",
                                  "\"",
                                  "%%",
                                  "\n",
                                  "a=b",
                                  "[a,b]",
                                  "-9223372036854775808",
                                  " 1",
                                  "\xF4\x90\x80\x80",
                                  std::string(5000, '9')};

// Each file lacks training data, so even one that survives its mutation ends with an error before anything is trained.
TEST_F(CommandLine, FuzzedConfigurations) {
  const std::string good =
      "vocab:\n  size: 8000\n  type: bpe\nmodel:\n  preset: transformer-tiny\n  width: 128\ntrain:\n  seed: 1\n  batch-tokens: 4000\n"
      "  learning-rate: 5e-4\nvalid:\n  source: a\n  target: b\n  metrics: [bleu, chrf]\nlog: {every: 5}\n";
  const std::string pieces[] = {std::string(1, '\0'),
                                "\xED\xA0\x80",
                                "\"",
                                "'",
                                "[",
                                "]",
                                "{",
                                "}",
                                ":",
                                "- ",
                                "&n ",
                                "*n",
                                "\n",
                                "  ",
                                "|\n",
                                "---\n",
                                "? ",
                                "\t",
                                "<<: *n",
                                std::string(3000, '['),
                                "99999999999999999999",
                                "-5",
                                "1e999"};
  Random random(5, 1);
  for (int round = 0; round < of_cases(150, 30); ++round) {
    std::string text = good;
    for (uint64_t k = 1 + random.below(3); k > 0; --k) {
      const uint64_t at = random.below(text.size() + 1);
      text.replace(at, std::min<size_t>(random.below(2) * random.below(20), text.size() - at), pieces[random.below(std::size(pieces))]);
    }
    const ShellOutcome o = call("train -c " + written("c.yml", text));
    EXPECT_EQ(o.status, 2) << o.text << text;
    EXPECT_THAT(o.text, StartsWith("starling: error: "));
  }
}

TEST_F(CommandLine, FuzzedCommandLines) {
  const std::vector<std::string> words = {"train",
                                          "translate",
                                          "score",
                                          "evaluate",
                                          "average",
                                          "--model",
                                          "-m",
                                          "--beam",
                                          "-c",
                                          "--train.seed",
                                          "--train.batch-tokens=",
                                          "--valid.metrics",
                                          "--data.train.0.weight",
                                          "--data.train.99999999999999999999.tsv",
                                          "--model.width",
                                          "--model.preset",
                                          "--dump-confg",
                                          "--references",
                                          "--hypotheses",
                                          "--metrics",
                                          "--n-best",
                                          "--threads",
                                          "-x",
                                          "---",
                                          "--=",
                                          "--.",
                                          "-1"};
  Random random(6, 1);
  for (int round = 0; round < of_cases(250, 40); ++round) {
    std::vector<std::string> arguments = {words[random.below(5)]};
    for (uint64_t k = 1 + random.below(5); k > 0; --k) {
      arguments.push_back(words[random.below(words.size())]);
      if (random.below(2)) arguments.push_back(odd_values[random.below(std::size(odd_values))]);
    }
    const ShellOutcome o = call(arguments);
    std::string shown;
    for (const auto& a : arguments) shown += " <" + a + ">";
    EXPECT_TRUE(o.status == 2 || o.status == 3) << o.status << shown << o.text;
    EXPECT_THAT(o.text, StartsWith("starling: error: ")) << shown;
  }
}

}  // namespace
}  // namespace starling
