// What `export --to bergamot` accepts translates in that engine as here: models of each kind, trained for a moment, whose lines are
// compared. Skipped without Node.js, or without BERGAMOT_PACKAGE: the folder in which npm has installed @browsermt/bergamot-translator.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text_files.h"
#include "tests/cli/program.h"

namespace starling {
namespace {

constexpr int kLines = 30;

struct EngineCase {
  const char *name, *keys;
};

class BergamotEngine : public ProgramTest, public testing::WithParamInterface<EngineCase> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("BERGAMOT_PACKAGE");
    if (!folder || !*folder) GTEST_SKIP() << "without BERGAMOT_PACKAGE, a folder where npm has installed @browsermt/bergamot-translator";
    if (run_shell("node --version").status != 0) GTEST_SKIP() << "without Node.js";
    package_ = folder;
  }
  // The lines that the engine makes of the test text.
  std::string engine(const std::string& model, int beam, const std::string& gemm) const {
    std::string vocabularies = path(model + "/vocab.spm");
    if (!std::filesystem::exists(vocabularies)) vocabularies = path(model + "/srcvocab.spm") + "," + path(model + "/trgvocab.spm");
    const ShellOutcome outcome = run_shell(
        fmt::format("(cd '{}' && node '{}/bench/peers/bergamot.mjs' '{}' '{}' gemm-precision={} skip-cost=false beam-size={} normalize=0 "
                    "max-length-factor=2 < '{}' > '{}')",
                    package_, STARLING_SOURCE_DIR, path(model + "/model.bin"), vocabularies, gemm, beam, path("lines"), path("theirs")));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return read_text_file(path("theirs"));
  }
  void expect_run(const std::string& arguments) const {
    const ShellOutcome outcome = run(arguments);
    ASSERT_EQ(outcome.status, 0) << arguments << "\n" << outcome.text;
  }

  std::string package_;
};

std::vector<std::string> split_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Whatever engine there is: what 8-bit integers were made of comes back, within their unit.
class EightBitExport : public ProgramTest {};

TEST_F(EightBitExport, HoldsTheModel) {
  const auto ok = [&](const std::string& arguments) {
    const ShellOutcome o = run(arguments);
    EXPECT_EQ(o.status, 0) << arguments << "\n" << o.text;
    return o.text;
  };
  ok("demo-corpus --output corpus --train 300 --valid 0 --test 10");
  ok("train --model.for bergamot --data.source corpus/train.en --data.target corpus/train.de --train.output run --model.preset "
     "transformer-tiny --model.width 64 --model.feed-forward 128 --vocab.size 200 --train.max-steps 30 --train.batch-tokens 400 "
     "--train.precision f32 --train.threads 1 --train.seed 3");
  ok("export --model run --output there --to bergamot --int8");
  ok("import there --output back");
  const auto scores = [&](const std::string& model) {
    std::istringstream in(ok("score --precision f32 --model " + model + " --source corpus/test.en --target corpus/test.de 2>/dev/null"));
    std::vector<double> all;
    for (double score; in >> score;) all.push_back(score);
    return all;
  };
  const std::vector<double> before = scores("run"), after = scores("back");
  ASSERT_EQ(before.size(), 10u);
  ASSERT_EQ(after.size(), 10u);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 0.02 * std::abs(before[i])) << i;
}

// The engine ends a translation at twice the length of its source, whatever it is told.
TEST_P(BergamotEngine, TranslatesAsStarlingDoes) {
  expect_run("demo-corpus --output corpus --train 3000 --valid 0 --test 30");
  std::filesystem::copy_file(path("corpus/test.en"), path("lines"));
  expect_run(
      fmt::format("train --model.for bergamot --data.source corpus/train.en --data.target corpus/train.de --train.output run "
                  "--model.preset transformer-tiny --model.encoder-layers 2 --model.decoder-layers 2 --model.width 64 "
                  "--model.feed-forward 128 --model.heads 4 --model.dropout 0 --vocab.size 400 --train.batch-tokens 1000 "
                  "--train.max-steps 200 --train.learning-rate 0.005 --train.warmup 40 --threads 1 {}",
                  GetParam().keys));
  expect_run("export --to bergamot -m run -o f32");
  std::string ours;
  for (const int beam : {1, 4}) {
    expect_run(
        fmt::format("translate --model run --precision f32 --threads 1 --beam {} --length-penalty 0 --max-length-factor 2 "
                    "--max-length-offset 0 --replace-ended=false --min-length 0 --quiet -i lines -o ours",
                    beam));
    ours = read_text_file(path("ours"));
    const std::vector<std::string> mine = split_lines(ours), theirs = split_lines(engine("f32", beam, "float32"));
    ASSERT_EQ(theirs.size(), static_cast<size_t>(kLines));
    int equal = 0;
    for (size_t i = 0; i < mine.size(); ++i) equal += mine[i] == theirs[i];
    EXPECT_GE(equal, kLines - 1) << "beam " << beam;  // there may be a tie
  }
  if (run("export --to bergamot --int8 -m run -o int8").status != 0) return;  // of widths that are refused
  engine("int8", 4, "int8shiftAll");
  const std::string score = run("evaluate --hypotheses theirs --references ours --metrics chrf --format json").text;
  EXPECT_GT(nlohmann::json::parse(score.substr(score.find('{')))["score"].get<double>(), 40) << "integers are rounded otherwise there";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BergamotEngine,
    testing::Values(EngineCase{"Plain", ""}, EngineCase{"Ssru", "--model.autoregression ssru --model.decoder-layers 3"},
                    EngineCase{"OutputBias", "--model.output-bias true --vocab.size 401"},
                    EngineCase{"OddVocabulary", "--vocab.size 403 --model.activation swish"},
                    EngineCase{"TwoVocabularies",
                               "--vocab.joint false --model.tied-embeddings decoder --vocab.size 333 --train.max-steps 300"},
                    EngineCase{"NothingTied", "--model.tied-embeddings none --model.activation gelu-sigmoid"},
                    EngineCase{"OddWidths", "--model.width 48 --model.feed-forward 100 --model.heads 3"},
                    EngineCase{"OurEpsilon", "--model.norm-epsilon 1e-5 --vocab.byte-fallback true --vocab.size 512"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace starling
