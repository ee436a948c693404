// `starling score --tokens`: the pieces spell the translation, and their log-probabilities sum up to the sentence's. And the examples in
// docs/reference/formats.md have the form of what the program prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "base/text_files.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

class ScoreTest : public CalledTest {
 protected:
  void SetUp() override {
    write("a", seeing(200, true)), write("b", seeing(200, false));
    ASSERT_EQ(call("train --data.source a --data.target b --train.output run --vocab.size 60 --model.preset transformer-tiny "
                   "--model.width 32 --model.feed-forward 64 --model.heads 2 --train.batch-tokens 400 --train.threads 1 "
                   "--train.precision f32 --train.warmup 5 --train.learning-rate 3e-3 --train.max-steps 20")
                  .status,
              0);
    write("source", "see ab now\nsee xy now\n\nsee zz now\n"), write("target", "siehe ba jetzt\nsiehe 漢 jetzt\n\n\n");
  }
  std::vector<std::string> score(const std::string& options) const {
    const ShellOutcome o = call("score --model run --source source --target target --threads 1 " + options);
    EXPECT_EQ(o.status, 0) << o.text;
    return parts(o.text, '\n');
  }
};

// Of two models of the same kind here, one of which reads the translations as sources.
TEST_F(ScoreTest, BothDirectionsTogether) {
  const std::vector<std::string> forward = score("--per-token"), both = score("--reverse run");
  const std::vector<std::string> backward =
      parts(call("score --model run --source target --target source --threads 1 --per-token").text, '\n');
  ASSERT_EQ(both.size(), forward.size());
  for (size_t i = 0; i < both.size(); ++i) {
    const double h = -std::stod(forward[i]), other = -std::stod(backward[i]);
    EXPECT_NEAR(std::stod(both[i]), std::exp(-(std::abs(h - other) + (h + other) / 2)), 1e-5) << i;
  }
  EXPECT_THAT(call("score --model run --reverse run --source source --target target --tokens").text,
              HasSubstr("--reverse gives one score a pair"));
}

// The scores of a model of the same direction would mean nothing.
TEST_F(ScoreTest, TheReverseModelMustTranslateTheOtherWay) {
  const auto train = [&](const std::string& text, const std::string& run) {
    ASSERT_EQ(call("train " + text + " --train.output " + run +
                   " --vocab.size 60 --model.preset transformer-tiny --model.width 32 --model.feed-forward 64 --model.heads 2 "
                   "--train.batch-tokens 400 --train.threads 1 --train.max-steps 1")
                  .status,
              0);
  };
  train("--data.source a --data.target b --data.source-language en --data.target-language de", "ende");
  train("--data.source b --data.target a --data.source-language de --data.target-language en", "deen");
  const std::string pairs = " --source source --target target --threads 1";
  EXPECT_EQ(call("score --model ende --reverse deen" + pairs).status, 0);
  const ShellOutcome same = call("score --model ende --reverse ende" + pairs);
  EXPECT_EQ(same.status, 2);
  EXPECT_THAT(same.text, HasSubstr("translates en into de, but the other direction of --model is de into en; name that model"));
}

// A table is another form of the same pairs; a memory is read in the model's languages, which this one does not say.
TEST_F(ScoreTest, PairsMayBeInATable) {
  write("pairs.csv", "source,target\nsee ab now,siehe ba jetzt\n\"see xy now\",\"siehe 漢 jetzt\"\n,\nsee zz now,\n");
  const std::string lines = call("score --model run --source source --target target --threads 1").text;
  EXPECT_EQ(parts(lines, '\n').size(), 4u);
  EXPECT_EQ(call("score --model run --tsv pairs.csv --threads 1").text, lines);
  const ShellOutcome memory = call("score --model run --tsv pairs.tmx --threads 1");
  EXPECT_EQ(memory.status, 2);
  EXPECT_THAT(memory.text, testing::HasSubstr("pairs.tmx: a translation memory has several languages"));
}

// One line that is too long costs neither the others their scores nor them their places.
TEST_F(ScoreTest, GoesOnPastPairsThatAreTooLong) {
  const std::vector<std::string> all = score("");
  std::string words;
  for (int i = 0; i < 60; ++i) words += "see ab now ";
  write("source", "see ab now\n" + words + "\nsee xy now\n\nsee zz now\n");
  write("target", "siehe ba jetzt\nsiehe\nsiehe 漢 jetzt\n\n\n");
  const ShellOutcome o = call("score --model run --source source --target target --threads 1 --max-length 40 -o scores");
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.text,
            "warning: source: 1 pair with more than 40 tokens on a side, the first in line 2, got nan in place of a score; split such "
            "sentences, or raise --max-length as far as the model has positions\n");
  EXPECT_EQ(parts(read_text_file(path("scores")), '\n'), (std::vector<std::string>{all[0], "nan", all[1], all[2], all[3]}));
  // A list with a hole could not be sorted by its scores.
  write("list", "0 ||| siehe ba jetzt ||| ||| -1\n1 ||| siehe ||| ||| -1\n");
  const ShellOutcome list = call("score --model run --source source --n-best list --threads 1 --max-length 40");
  EXPECT_EQ(list.status, 3);
  EXPECT_THAT(list.text, testing::HasSubstr("list:2: a sentence of "));
}

TEST_F(ScoreTest, AFileTakesTheScores) {
  const std::string text = call("score --model run --source source --target target --threads 1").text;
  EXPECT_EQ(call("score --model run --source source --target target --threads 1 -o scores").text, "");
  EXPECT_EQ(read_text_file(path("scores")), text);
  EXPECT_FALSE(std::filesystem::exists(path("scores.partial")));
  const ShellOutcome o = call("score --model run --source - --target target");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, testing::HasSubstr("parallel text cannot come from standard input (-)"));
}

TEST_F(ScoreTest, TokensSumUpToTheSentence) {
  const auto plain = score(""), lines = score("--tokens"), means = score("--tokens --per-token");
  ASSERT_EQ(plain.size(), 4u);
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto columns = parts(lines[i], '\t');
    ASSERT_EQ(columns.size(), 3u) << lines[i];
    EXPECT_EQ(columns[0], plain[i]);
    const auto pieces = parts(columns[1], ' '), numbers = parts(columns[2], ' ');
    ASSERT_EQ(pieces.size(), numbers.size());
    double sum = 0;
    for (const std::string& number : numbers) {
      EXPECT_LT(std::stod(number), 0);
      sum += std::stod(number);
    }
    EXPECT_NEAR(sum, std::stod(plain[i]), 1e-6 * static_cast<double>(numbers.size() + 1));  // six decimals each
    EXPECT_NEAR(std::stod(parts(means[i], '\t')[0]), sum / static_cast<double>(numbers.size()), 2e-6);
    EXPECT_EQ(pieces.back(), "</s>");
  }
  std::string text;
  for (const std::string& piece : parts(parts(lines[0], '\t')[1], ' ')) text += piece;
  EXPECT_EQ(text, "▁siehe▁ba▁jetzt</s>");
  EXPECT_THAT(parts(lines[1], '\t')[1], testing::HasSubstr(" <unk> "));
  EXPECT_EQ(parts(lines[2], '\t')[1], "</s>");  // a blank line has an end only
}

// The lines of the fenced block of docs/reference/formats.md that is called so.
std::vector<std::string> documented(const std::string& block) {
  std::ifstream file(STARLING_SOURCE_DIR "/docs/reference/formats.md");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (inside && line == "```") break;
    if (inside) lines.push_back(line);
    inside = inside || line == "```" + block;
  }
  EXPECT_FALSE(lines.empty()) << block;
  return lines;
}

TEST_F(ScoreTest, LinesHaveTheDocumentedForm) {
  const std::regex list(R"(\d+ \|\|\| .* \|\|\| -?\d+\.\d{6} \|\|\| -?\d+\.\d{6})");
  const std::regex tokens("-\\d+\\.\\d{6}\t([^ \t]+ )*</s>\t(-\\d+\\.\\d{6} ?)+");
  const ShellOutcome o = call("translate --model run --input source --n-best 2 --threads 1 --quiet");
  ASSERT_EQ(o.status, 0) << o.text;
  for (const std::string& line : parts(o.text, '\n')) EXPECT_TRUE(std::regex_match(line, list)) << line;
  EXPECT_THAT(o.text, testing::HasSubstr("\n2 |||  ||| 0.000000 ||| 0.000000\n3 ||| "));  // the blank line's only entry
  for (const std::string& line : documented("n-best")) EXPECT_TRUE(std::regex_match(line, list)) << line;
  for (const std::string& line : score("--tokens")) EXPECT_TRUE(std::regex_match(line, tokens)) << line;
  for (const std::string& line : documented("tokens")) EXPECT_TRUE(std::regex_match(line, tokens)) << line;
}

// An imported model whose translations begin with a prefix: what follows has the scores that it has in the whole translation.
class ScoreWithPrefix : public CalledTest {};
TEST_F(ScoreWithPrefix, CountsWhatFollowsIt) {
  const std::string fixtures = STARLING_SOURCE_DIR "/tests/fixtures/marian";
  ASSERT_EQ(call("import " + fixtures + "/post --vocab " + fixtures + "/v.spm -o model").status, 0);
  write("source", "A man in a hat.\n"), write("whole", "Ein Mann in einem Hut.\n"), write("rest", "in einem Hut.\n");
  const auto scores = [&](const std::string& target) {
    const ShellOutcome o = call("score --model model --source source --tokens --precision f32 --threads 1 --target " + target);
    EXPECT_EQ(o.status, 0) << o.text;
    const std::vector<std::string> columns = parts(o.text.substr(0, o.text.find('\n')), '\t');
    return std::pair(parts(columns.at(1), ' '), parts(columns.at(2), ' '));
  };
  const auto [pieces, numbers] = scores("whole");
  std::string settings = read_text_file(path("model/decode.yml"));
  const std::string none = "target-prefix: \"\"";
  ASSERT_NE(settings.find(none), std::string::npos) << settings;
  write("model/decode.yml", settings.replace(settings.find(none), none.size(), "target-prefix: \"▁Ein ▁Mann\""));
  std::filesystem::remove(path("model/manifest.json"));
  const auto [following, after] = scores("rest");
  EXPECT_EQ(following, std::vector<std::string>(pieces.begin() + 2, pieces.end()));
  ASSERT_EQ(after.size() + 2, numbers.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(std::stod(after[i]), std::stod(numbers[i + 2]), 1e-5);
}

}  // namespace
}  // namespace starling
