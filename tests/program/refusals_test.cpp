// What each verb but train refuses, and that nothing on disk differs afterwards: no output, no directory, no changed byte. By tables: a
// line is a command, its exit status and what the message must name.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/program/called.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

// One directory for all tests: texts, a trained model `run` with a copy `model`, and damaged ones. Nobody changes it.
class Refusals : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/starling_refusals_XXXXXX";
    directory_ = mkdtemp(name);
    std::string a, b;
    for (int i = 0; i < 60; ++i) a += fmt::format("one two three {}\n", i % 7), b += fmt::format("{} three two one\n", i % 7);
    write("a", a), write("b", b), write("short", b.substr(0, b.size() / 2)), write("empty", "");
    write("broken", "\xff\xfe\n" + a);
    fs::create_hard_link(path("a"), path("hard"));
    fs::create_symlink("a", path("soft"));
    write("x.partial", a);
    fs::create_directories(path("directory")), fs::create_directories(path("corpus"));
    write("corpus/valid.en", a);
    ASSERT_EQ(shell("mkfifo pipe").status, 0);
    const ShellOutcome trained = call(
        "train --data.source a --data.target b --train.output run --vocab.size 40 --model.preset transformer-tiny --model.width 16 "
        "--model.heads 2 --model.feed-forward 16 --train.max-steps 4 --checkpoint.every 2 --train.batch-tokens 200 --train.threads 1 "
        "--valid.source a --valid.target b --valid.every 2 --valid.metrics cross-entropy");
    ASSERT_EQ(trained.status, 0) << trained.text;
    fs::copy(path("run/checkpoints/step-00000004"), path("model"), fs::copy_options::recursive);
    damage("nan", std::numeric_limits<float>::quiet_NaN()), damage("infinite", -std::numeric_limits<float>::infinity());
    for (const char* file : {"model.safetensors", "config.yml", "vocab.spm"}) {
      const std::string copy = std::string("waiting-") + file;
      fs::copy(path("model"), path(copy)), fs::remove(path(copy + "/manifest.json")), fs::remove(path(copy + "/" + file));
      ASSERT_EQ(shell("mkfifo " + copy + "/" + file).status, 0);
    }
    write("cluster.yml", kCluster);
    write("train.yml",
          "data: {source: a, target: b}\nvalid: {source: a, target: b}\nvocab: {size: 40}\n"
          "model: {preset: transformer-tiny, width: 16, feed-forward: 16, heads: 2}\ntrain: {batch-tokens: 200}\n");
    write("uneven.yml", "data: {source: a, target: short}\nvalid: {source: a, target: b}\nvocab: {size: 40}\n");
    write("recipe.yml", recipe("train.yml", "race") + kCluster);
    write("uneven-recipe.yml", recipe("uneven.yml", "new/race") + kCluster);
    write("straggling.yml", recipe("train.yml", "new/race") +
                                std::string(kCluster).insert(std::strlen(kCluster) - 2, ", stragglers: [{rank: 7, factor: 2}]"));
    write("typo.yml", recipe("train.yml", "new/race") + "  nonsense: 3\n" + kCluster);
    fs::create_directories(path("taken")), write("taken/table.md", recipe("../train.yml", "race") + kCluster);
    ASSERT_EQ(call("race recipe.yml").status, 0);
    write("a2", b), write("other.yml",
                          "data: {source: a2, target: b}\nvalid: {source: a, target: b}\nvocab: {size: 40}\n"
                          "model: {preset: transformer-tiny, width: 16, feed-forward: 16, heads: 2}\ntrain: {batch-tokens: 200}\n");
    write("other-recipe.yml", recipe("other.yml", "race") + kCluster);
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }

  // A copy of the model without its manifest, one weight of which is this.
  static void damage(const std::string& name, float weight) {
    fs::copy(path("model"), path(name), fs::copy_options::recursive);
    fs::remove(path(name + "/manifest.json"));
    std::fstream file(path(name + "/model.safetensors"), std::ios::binary | std::ios::in | std::ios::out);
    uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    file.seekp(static_cast<std::streamoff>(8 + header + 4 * 21));  // the first tensor is the embedding, rows of 16
    file.write(reinterpret_cast<const char*>(&weight), sizeof weight);
  }
  static constexpr const char* kCluster = "cluster: {forward-gflops: 1, backward-gflops: 2, update-gb-s: 3, memory-gb-s: 5}\n";
  static std::string recipe(const std::string& train, const std::string& output) {
    return "race:\n  train: " + train + "\n  output: " + output +
           "\n  workers: [2]\n  tokens: 400\n  validate-every: 400\n  learning-rates: [0.003]\n"
           "  networks:\n    - {name: net, network: 10gbe}\n  arms:\n    - name: plain\n";
  }

  static std::string path(const std::string& name) { return directory_ + "/" + name; }
  static void write(const std::string& name, const std::string& text) { std::ofstream(path(name), std::ios::binary) << text; }
  static ShellOutcome shell(const std::string& command) { return run_shell("cd '" + directory_ + "' && (" + command + ")"); }
  static ShellOutcome start(const std::string& arguments) { return shell("timeout 60 '" STARLING_BINARY "' " + arguments); }
  static ShellOutcome call(const std::string& arguments) { return call_in(directory_, words_of(arguments)); }

  static void expect_refused(const std::vector<Refusal>& table) { starling::expect_refused(directory_, "", table); }

  static inline std::string directory_;
};

TEST_F(Refusals, Translate) {
  expect_refused({
      {"translate -m run -i a -o a", 2, {"--output a is the same file as --input a"}},
      {"translate -m run -i a -o hard", 2, {"--output hard is the same file as --input a"}},
      {"translate -m run -i a -o soft", 2, {"same file"}},
      {"translate -m run -i soft -o ./directory/../a", 2, {"same file"}},
      {"translate -m run -i a -o /dev/fd/7 7<>a", 2, {"same file"}},
      {"translate -m run -i b -i a -o a", 2, {"same file as --input a"}},
      {"translate -m run -o a <a", 2, {"same file as standard input"}},
      {"translate -m run -i a >>a", 2, {"standard output is the same file as --input a"}},
      {"translate -m model -i a -o model/decode.yml", 2, {"lies in the model directory"}},
      {"translate -m run -i a -o run/best/new", 2, {"lies in"}},
      {"translate -m run -i missing -o new", 3, {"missing"}},
      {"translate -m run -i broken -o new", 3, {"broken:1"}},
      {"translate -m run -i directory -o new", 3, {"directory"}},
      {"translate -m run -i a -o nowhere/new", 3, {"nowhere/new: cannot be written: the directory nowhere does not exist; make it"}},
      {"translate -m nan -i a -o new", 3, {"nan/model.safetensors: tensor embedding: element [1, 5]", "is nan"}},
      {"translate -m infinite -i a -o new", 3, {"infinite/model.safetensors: tensor embedding", "is -inf"}},
      {"translate -m nowhere -i a -o new", 2, {"nowhere"}},
      {"translate -m a -i a -o new", 2, {"a: not a model"}},
      {"translate -m pipe -i a -o new", 2, {"pipe: is neither a file nor a directory"}},
      {"translate -m waiting-model.safetensors -i a -o new", 3, {"waiting-model.safetensors/model.safetensors: is not a regular file"}},
      {"translate -m waiting-config.yml -i a -o new", 3, {"waiting-config.yml/config.yml: is not a regular file"}},
      {"translate -m waiting-vocab.spm -i a -o new", 3, {"waiting-vocab.spm/vocab.spm: is not a regular file"}},
      {"translate -m run -i a -o new --beam 0", 2, {"--beam"}},
      {"translate -m run -i a -o new --beam 2 --n-best 5", 2, {"--n-best 5"}},
      {"translate -m run -i a -o new --threads -1", 2, {"--threads"}},
      {"translate -m run -i a -o new --length-penalty nan", 2, {"--length-penalty"}},
      {"translate -m run -i a -o new --nonsense", 2, {"--nonsense"}},
      {"translate -i a -o new", 2, {"--model"}},
  });
}

TEST_F(Refusals, ScoreAndEvaluate) {
  expect_refused({
      {"score -m run --source a", 2, {"--target"}},
      {"score -m run --source a --target b --tsv a", 2, {"--tsv"}},
      {"score -m run --source a --target short", 3, {"short"}},
      {"score -m run --source a --target missing", 3, {"missing"}},
      {"score -m run --source a --target b >>b", 2, {"standard output is the same file as --target b"}},
      {"score -m run --source a --target b -o b", 2, {"--output b is the same file as --target b"}},
      {"score -m model --source a --target b -o model/scores", 2, {"lies in --model model"}},
      {"score -m run --source a --target b -o nowhere/new", 3, {"nowhere/new: cannot be written: the directory nowhere does not exist"}},
      {"score -m nan --source a --target b", 3, {"nan/model.safetensors: tensor embedding"}},
      {"score -m infinite --source a --target b", 3, {"infinite/model.safetensors: tensor embedding"}},
      {"evaluate --hypotheses a --references short", 3, {"short"}},
      {"evaluate --hypotheses a --references missing", 3, {"missing"}},
      {"evaluate --hypotheses broken --references a", 3, {"broken:1"}},
      {"evaluate --hypotheses a --references b >>b", 2, {"standard output is the same file as --references b"}},
      {"evaluate --hypotheses a --references b --metrics blue", 2, {"blue"}},
  });
}

TEST_F(Refusals, AverageAndQuantize) {
  const std::string q = " --source a --target b --threads 1 --beam 1";
  expect_refused({
      {"average -o new", 2, {"--run"}},
      {"average --run run -o model --last 0", 2, {"--last"}},
      {"average --run run --last 9 -o new/average", 2, {"--last asks for 9"}},
      {"average --run directory -o new/average", 2, {"directory"}},
      {"average model -o model", 2, {"model: exists already"}},
      {"average run/checkpoints/step-00000002 run/checkpoints/step-00000004 -o run/checkpoints/step-00000002", 2, {"exists already"}},
      {"average run -o run/checkpoints/../best", 2, {"exists already"}},
      {"average model -o model/average", 2, {"lies in the model directory"}},
      {"average model nan -o new/average", 3, {"nan/model.safetensors: tensor embedding"}},
      {"average model infinite -o new/average", 3, {"infinite/model.safetensors: tensor embedding"}},
      {"average model -o a", 2, {"a: exists already"}},
      {"average model -o directory/../run", 2, {"exists already"}},
      {"quantize -m model -o model" + q, 2, {"exists already"}},
      {"quantize -m model -o model/small" + q, 2, {"lies in the model directory"}},
      {"quantize -m run -o run/best/small" + q, 2, {"lies in the model directory"}},
      {"quantize -m nan -o new/small" + q, 3, {"nan/model.safetensors: tensor embedding"}},
      {"quantize -m infinite -o new/small" + q, 3, {"infinite/model.safetensors: tensor embedding"}},
      {"quantize -m model -o new/small --source a --target short", 3, {"short"}},
      {"quantize -m model -o new/small --source empty --target empty", 3, {"empty"}},
      {"quantize -m model -o a/small" + q, 3, {"a"}},
  });
}

TEST_F(Refusals, TuneSearchDemoCorpusAndBench) {
  const std::string t = " --length-penalties 0.6 --coverage-penalties 0 --threads 1";
  expect_refused({
      {"tune-search -m nan --source a --target b" + t, 3, {"nan/model.safetensors: tensor embedding"}},
      {"tune-search -m model --source a --target short" + t, 3, {"short"}},
      {"tune-search -m model --source empty --target empty" + t, 3, {"empty"}},
      {"tune-search -m model --source a --target model/decode.yml" + t, 2, {"same file as --target model/decode.yml"}},
      {"tune-search -m model --source a --target b --length-penalties nan", 2, {"--length-penalties"}},
      {"demo-corpus --output a", 3, {"a"}},
      {"demo-corpus --output a/new", 3, {"a/new"}},
      {"demo-corpus --output corpus", 2, {"corpus/valid.en exists already"}},
      {"demo-corpus --output new --train -1", 2, {"--train"}},
      {"demo-corpus --output new --train 25001", 2, {"--train"}},
      {"demo-corpus --output new --valid 501", 2, {"--valid"}},
      {"demo-corpus --output new --test 1001", 2, {"--test"}},
      {"demo-corpus --output new --seed 1", 2, {"--seed"}},
      {"bench translate -m nan -i a", 3, {"nan/model.safetensors: tensor embedding"}},
      {"bench translate -i empty", 3, {"empty"}},
      {"bench translate -i missing", 3, {"missing"}},
      {"bench train --preset nonsense", 2, {"nonsense"}},
      {"bench distributed --cluster cluster.yml --write-cluster cluster.yml",
       2,
       {"--write-cluster cluster.yml is the same file as --cluster"}},
      {"bench distributed --cluster /dev/zero", 2, {"longer than 1 MiB"}},
  });
}

TEST_F(Refusals, RaceSimulateAndConfigurations) {
  const std::string s = " --cluster cluster.yml --workers 2 --train.output new/run --train.max-steps 2";
  expect_refused({
      {"race missing.yml", 3, {"missing.yml"}},
      {"race /dev/zero", 2, {"longer than 1 MiB"}},
      {"race pipe", 2, {"pipe: is a named pipe"}},
      {"race typo.yml", 2, {"nonsense"}},
      {"race uneven-recipe.yml", 3, {"short"}},
      {"race straggling.yml", 2, {"no rank 7"}},
      {"race taken/table.md -o taken", 2, {"is the same file as the recipe"}},
      {"race other-recipe.yml", 2, {"different training data"}},
      {"race recipe.yml --set race.tokens=-5", 2, {"tokens"}},
      {"simulate -c train.yml --data.source missing" + s, 3, {"missing"}},
      {"simulate -c train.yml --trace a" + s, 2, {"--trace a is the same file as "}},
      {"simulate -c train.yml --trace train.yml" + s, 2, {"is the same file as --config train.yml"}},
      {"simulate -c train.yml --cluster.timing-only true" + s, 2, {"bench distributed"}},
      {"simulate -c /dev/zero" + s, 2, {"longer than 1 MiB"}},
      {"train -c pipe --train.output new/run", 2, {"pipe: is a named pipe"}},
      {"train --data.source pipe --data.target b --train.output new/run", 2, {"data: parallel text cannot come from pipe, which is a"}},
      {"train -c train.yml --valid.source pipe --train.output new/run", 2, {"valid: parallel text cannot come from pipe, which is a pipe"}},
      {"train -c /dev/zero --train.output new/run", 2, {"longer than 1 MiB"}},
      {"train -c directory --train.output new/run", 3, {"is a directory"}},
      {"launch -n 2", 2, {"launch"}},
      {"launch --hosts :4 -- train -c train.yml", 2, {"--hosts"}},
  });
}

// What the run of a model, any run or a race goes on from is nobody's output; other names beside it are free.
TEST_F(Refusals, WhatBelongsToARun) {
  const std::string race = "race/runs/" + fs::directory_iterator(path("race/runs"))->path().filename().string();
  const std::string q = " --source a --target b --threads 1 --beam 1";
  expect_refused({
      {"translate -m run -i a -o run/vocab.spm", 2, {"--output run/vocab.spm belongs to the run in ", "choose another output"}},
      {"translate -m run -i a -o run/config.yml", 2, {"belongs to the run"}},
      {"translate -m run/best -i a -o run/events.jsonl", 2, {"belongs to the run"}},
      {"translate -m run -i a -o run/checkpoints/new", 2, {"belongs to the run"}},
      {"translate -m run -i a -o run/checkpoints/step-00000004/decode.yml", 2, {"lies in the model directory"}},
      {"translate -m model -i a -o run/train.log", 2, {"belongs to the run"}},
      {"translate -m model -i a >>run/train.log", 2, {"standard output belongs to the run"}},
      {"translate -m " + race + " -i a -o " + race + "/config.yml", 2, {"belongs to the run"}},
      {"translate -m " + race + " -i a -o race/records.json", 2, {"belongs to the race"}},
      {"score -m run --source a --target b >>run/vocab.spm", 2, {"standard output belongs to the run"}},
      {"evaluate --hypotheses a --references b >>run/config.yml", 2, {"standard output belongs to the run"}},
      {"average --run run -o run/checkpoints/step-00000009", 2, {"belongs to the run"}},
      {"quantize -m run -o run/before-restart" + q, 2, {"belongs to the run"}},
      {"simulate -c train.yml --cluster cluster.yml --workers 2 --train.output new/run --train.max-steps 2 --trace run/config.yml",
       2,
       {"--trace run/config.yml belongs to the run"}},
      {"bench distributed --cluster cluster.yml --write-cluster run/config.yml", 2, {"--write-cluster run/config.yml belongs to the run"}},
      {"demo-corpus --output run/data", 2, {"belongs to the run"}},
      {"train -c train.yml --train.output run/data", 2, {"train.output run/data belongs to the run"}},
      {"train -c train.yml --train.output race", 2, {"train.output race: this is the directory of a race"}},
      {"race recipe.yml -o run", 2, {"race.output run: this is the directory of a run"}},
      {"race recipe.yml -o run/data", 2, {"race.output run/data belongs to the run"}},
  });
  for (const char* name : {"run/test.translated", "run/test.translated", "run/checkpoints.de"}) {  // the first twice, as recipes do
    const ShellOutcome o = call(std::string("translate -m run -i a --threads 1 -o ") + name);
    EXPECT_EQ(o.status, 0) << name << "\n" << o.text;
  }
  EXPECT_EQ(call("average --run run -o run/average").status, 0);
  fs::remove(path("run/test.translated")), fs::remove(path("run/checkpoints.de")), fs::remove_all(path("run/average"));
}

// Limits of the process are told, not died of.
TEST_F(Refusals, LimitsOfTheProcess) {
  const std::string before = directory_hash(directory_);
  std::string longer;
  for (int i = 0; i < 3000; ++i) longer += "one two three\n";
  const std::string limited = "ulimit -f 1; for i in $(seq 300); do echo one two three; done | ";
  const ShellOutcome large = shell(limited + "'" STARLING_BINARY "' translate -m model --threads 1 -o new --max-length-factor 9");
  EXPECT_EQ(large.status, 3) << large.text;
  EXPECT_NE(large.text.find("ulimit -f"), std::string::npos) << large.text;
  fs::remove(path("new.partial"));  // what was translated so far
  const ShellOutcome demo = shell("ulimit -f 1; '" STARLING_BINARY "' demo-corpus --output new --train 1000 --valid 5 --test 5");
  EXPECT_EQ(demo.status, 3) << demo.text;
  EXPECT_NE(demo.text.find("ulimit -f"), std::string::npos) << demo.text;
  EXPECT_TRUE(fs::is_empty(path("new")));
  fs::remove(path("new"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // From a file: of a pipe that gives a few lines first, these are translated, and stay in new.partial when the rest is refused.
  write("many", longer);
  const std::string many = directory_hash(directory_);
  const std::string wide_beam = " --threads 1 --beam 1024 --batch-size 4096 --precision f32";
  const ShellOutcome wide = shell("ulimit -v 4000000; '" STARLING_BINARY "' translate -m model -i many -o new" + wide_beam);
  EXPECT_EQ(wide.status, 2) << wide.text;
  EXPECT_EQ(directory_hash(directory_), many);
  const ShellOutcome slow = shell(
      "ulimit -v 4000000; (echo one two three; for i in $(seq 600); do [ -s new.partial ] && break; sleep 0.1; done; cat many) | "
      "'" STARLING_BINARY "' translate -m model -o new" +
      wide_beam);
  EXPECT_EQ(slow.status, 2) << slow.text;
  // One line, or more where the machine is so busy that the next ones come in pieces too.
  std::ifstream kept(path("new.partial"));
  const auto lines = std::count(std::istreambuf_iterator<char>(kept), {}, '\n');
  EXPECT_GE(lines, 1);
  const std::string told =
      "; the translations of " + std::to_string(lines) + (lines == 1 ? " line" : " lines") + " before it are in new.partial";
  EXPECT_NE(slow.text.find(told), std::string::npos) << slow.text;
  fs::remove(path("new.partial")), fs::remove(path("many"));
  EXPECT_NE(wide.text.find("a beam of 1024 for "), std::string::npos) << wide.text;
  EXPECT_NE(wide.text.find("(ulimit -v)"), std::string::npos) << wide.text;
#endif
  EXPECT_EQ(directory_hash(directory_), before);
}

// What has the name of a file that is on its way is the user's: it stays, and so does what a link of that name leads to.
TEST_F(Refusals, PartialFilesOfTheUserStay) {
  fs::create_symlink("b", path("new.partial"));
  fs::create_symlink("nowhere", path("new.partial-2"));
  const std::string before = directory_hash(directory_);
  for (const char* verb : {"translate -m run -i a --threads 1 -o new", "score -m run --source a --target a --threads 1 -o new",
                           "translate -m run -i x.partial --threads 1 -o x"}) {
    const ShellOutcome o = call(verb);
    EXPECT_EQ(o.status, 0) << verb << "\n" << o.text;
    EXPECT_TRUE(fs::exists(path("new")) != fs::exists(path("x"))) << verb;
    fs::remove(path("new")), fs::remove(path("x"));
    EXPECT_EQ(directory_hash(directory_), before) << verb;
  }
  fs::create_directory(path("demo")), write("demo/train.en.partial", "mine\n");
  EXPECT_EQ(call("demo-corpus --output demo --train 10 --valid 5 --test 5").status, 0);
  std::ifstream mine(path("demo/train.en.partial"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(mine), {}), "mine\n");
  fs::remove_all(path("demo")), fs::remove(path("new.partial")), fs::remove(path("new.partial-2"));
}

// What must go on working: the same file as input twice, devices, pipes of the shell, more threads than cores with a warning.
TEST_F(Refusals, HarmlessThingsAreNotRefused) {
  for (const char* arguments :
       {"translate -m run -i a -o /dev/null", "translate -m run -i a -o /dev/stdout", "translate -m run -i a -i a -o -",
        "evaluate --hypotheses a --references a", "score -m run --source a --target a --threads 1"}) {
    const ShellOutcome o = call(arguments);
    EXPECT_EQ(o.status, 0) << arguments << "\n" << o.text;
  }
  EXPECT_EQ(start("translate -m run -i a | cat").status, 0);
  const ShellOutcome threads =
      shell("taskset -c $(taskset -pc $$ | sed 's/.*[ ,-]//') '" STARLING_BINARY "' translate -m run -i a --threads 3");
  EXPECT_EQ(threads.status, 0) << threads.text;
  EXPECT_NE(threads.text.find("warning: --threads: 3 threads were requested, but this process may use only core "), std::string::npos)
      << threads.text;
  const ShellOutcome piped = shell("cat train.yml | '" STARLING_BINARY "' train -c /dev/stdin --train.output /dev/null/x");
  EXPECT_NE(piped.text.find("/dev/null"), std::string::npos) << piped.text;  // the configuration was read
  EXPECT_EQ(piped.text.find("stdin"), std::string::npos) << piped.text;
}

}  // namespace
}  // namespace starling
