// The program as users call it: exit status and messages, dumps that read back, and fuzzed configurations and command lines, which must end
// with an exit status other than 0 and never by a signal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/random.h"
#include "base/version.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int status = -1;  // exit status; -1: ended by a signal
  std::string out, err;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/starling_cli_XXXXXX";
    ASSERT_TRUE(mkdtemp(name));
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // Runs the program in the test's directory; `out` is where standard output goes, "" = closed.
  Outcome run(std::vector<std::string> arguments, const std::string& out = "out") {
    arguments.insert(arguments.begin(), STARLING_BINARY);
    std::vector<char*> argv;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    const std::string out_path = out.starts_with('/') ? out : path(out), err_path = path("err");
    const pid_t pid = fork();
    if (pid == 0) {
      if (chdir(directory_.c_str()) != 0) _exit(99);
      dup2(open("/dev/null", O_RDONLY), 0);
      dup2(open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      if (out.empty()) {
        close(1);
      } else {
        dup2(open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      }
      execv(argv[0], argv.data());
      _exit(98);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", content(err_path)};
    if (!out.empty() && !out.starts_with('/')) outcome.out = content(out_path);
    return outcome;
  }

  std::string directory_;
};

TEST_F(CliTest, HelpAndVersion) {
  for (const std::string verb :
       {"train", "plan", "translate", "tune-search", "score", "evaluate", "average", "quantize", "bench", "demo-corpus"}) {
    const Outcome o = run({verb, "--help"});
    EXPECT_EQ(o.status, 0) << verb;
    EXPECT_THAT(o.out, HasSubstr("Usage: starling " + verb));
    EXPECT_EQ(o.err, "");
  }
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, StartsWith(fmt::format("starling {}\n", kVersion)));
  EXPECT_THAT(version.out, HasSubstr("oneDNN"));
  const Outcome help = run({"train", "--help"});
  EXPECT_THAT(help.out, HasSubstr("--train.batch-tokens"));
  EXPECT_THAT(help.out, HasSubstr("(default 4000, but a new"));
  EXPECT_EQ(run({}).status, 2);
}

TEST_F(CliTest, MistypedArgumentsAreNamed) {
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.status, 2) << message;
    EXPECT_EQ(o.out, "");
    EXPECT_THAT(o.err, StartsWith("starling: error: "));
    EXPECT_THAT(o.err, HasSubstr(message));
  };
  expect({"trian"}, "there is no verb 'trian'; did you mean 'train'?");
  expect({"xyzzy"}, "The verbs are train, ");
  expect({"--versoin"}, "did you mean '--version'?");
  expect({"translate", "--modle", "x"}, "did you mean '--model'?");
  expect({"translate"}, "--model is required");
  expect({"translate", "--model", "x", "--precision", "int9"}, "--precision");
  expect({"quantize", "--model", "x", "--source", "a", "--target", "b"}, "--output is required");
  expect({"quantize", "--model", "nowhere", "--output", "x", "--source", "a", "--target", "b"}, "neither a model directory");
  expect({"train", "--train.batch-token", "3"}, "did you mean '--train.batch-tokens'?");
  expect({"train", "--batch-tokens=3"}, "did you mean '--train.batch-tokens' or '--valid.batch-tokens'?");
  expect({"train", "--train.batch-tokens"}, "--train.batch-tokens");
  expect({"train", "--train.batch-tokens", "-1"}, "train.batch-tokens: '-1' is out of range; give a whole number from 1 to 100000000");
  expect({"train", "--train.output", "train", "stray"}, "unexpected argument 'stray'");
  expect({"train", "--data.train.0.sorce", "a"}, "did you mean 'data.train.0.source'?");
  expect({"train", "--data.train.0.source"}, "needs a value");
  expect({"train"}, "no training corpus");
  expect({"train", "--dump-config", "half"}, "choose minimal or full");
  expect({"train", "-c", write("c.yml", "train:\n  sead: 1\n")}, "c.yml:2: there is no key 'sead' in train; did you mean 'seed'?");
}

TEST_F(CliTest, FilesThatCannotBeReadAreStatus3) {
  EXPECT_EQ(run({"train", "-c", "missing.yml"}).status, 3);
  EXPECT_EQ(run({"train", "-c", "."}).status, 3);
  const Outcome o = run({"train", "--data.source", "missing.en", "--data.target", "missing.de"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.err, HasSubstr("missing.en"));
}

TEST_F(CliTest, ClosedAndFullOutput) {
  const Outcome full = run({"train", "--dump-config", "full"}, "/dev/full");
  EXPECT_EQ(full.status, 3);
  EXPECT_THAT(full.err, HasSubstr("standard output"));
  EXPECT_EQ(run({"train", "--dump-config", "full"}, "").status, 0);
  const std::string command = std::string("sh -c '{ ") + STARLING_BINARY + " train --help; echo $? >&2; } 2>" + path("err") + " | true'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(content(path("err")) == "141\n" || content(path("err")) == "0\n") << content(path("err"));
}

TEST_F(CliTest, DumpsReadBack) {
  const std::vector<std::string> arguments = {"train",
                                              "--data.source=a b.en",
                                              "--data.target",
                                              "ü.de",
                                              "--data.train.1.tsv=x.tsv",
                                              "--data.train.1.weight",
                                              "2.5",
                                              "--train.output",
                                              "train",
                                              "--train.learning-rate",
                                              "1e-4",
                                              "--model.preset",
                                              "transformer-tiny",
                                              "--precision",
                                              "f32",
                                              "--valid.metrics",
                                              "bleu,chrf",
                                              "--valid.source",
                                              "v",
                                              "--valid.target",
                                              "--w",
                                              "--train.seed=9"};
  for (const std::string kind : {"minimal", "full"}) {
    std::vector<std::string> first = arguments;
    first.insert(first.end(), {"--dump-config", kind});
    const Outcome a = run(first);
    ASSERT_EQ(a.status, 0) << a.err;
    const Outcome b = run({"train", "-c", write(kind + ".yml", a.out), "--dump-config", kind});
    ASSERT_EQ(b.status, 0) << b.err << a.out;
    EXPECT_EQ(a.out, b.out);
    EXPECT_THAT(a.out, HasSubstr("source: \"a b.en\""));
    EXPECT_THAT(a.out, HasSubstr("target: \"--w\""));
    EXPECT_THAT(a.out, HasSubstr("precision: f32"));
  }
  const Outcome whole = run({"train", "-c", path("minimal.yml"), "--dump-config", "full"});
  EXPECT_EQ(whole.out, content(path("full.yml")));
}

TEST_F(CliTest, ListsAreWrittenInBracketsOrWithout) {
  const auto metrics = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(),
                     {"--data.source", "a", "--data.target", "b", "--valid.source", "v", "--valid.target", "w", "--dump-config", "full"});
    const Outcome o = run(arguments);
    const size_t at = o.out.find("metrics: ");
    return at == std::string::npos ? o.err : o.out.substr(at, o.out.find_first_of("\n#", at) - at);
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
TEST_F(CliTest, FuzzedConfigurations) {
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
    const Outcome o = run({"train", "-c", write("c.yml", text)});
    EXPECT_EQ(o.status, 2) << o.err << text;
    EXPECT_THAT(o.err, StartsWith("starling: error: "));
  }
}

TEST_F(CliTest, FuzzedCommandLines) {
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
    const Outcome o = run(arguments);
    std::string shown;
    for (const auto& a : arguments) shown += " <" + a + ">";
    EXPECT_TRUE(o.status == 2 || o.status == 3) << o.status << shown << o.err;
    EXPECT_THAT(o.err, StartsWith("starling: error: ")) << shown;
  }
}

}  // namespace
}  // namespace starling
