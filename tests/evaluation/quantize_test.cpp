// `starling quantize` on a small trained model: the report's numbers are those of the models, a matrix that does not take integers well
// stays floats, and what cannot be quantised is refused.
#include "evaluation/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "base/text_files.h"
#include "config/config.h"
#include "data/batches.h"
#include "evaluation/validation.h"
#include "run/trainer.h"
#include "tests/elements.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(FloatsOfStep, TakesWhatIsNeededAndNeverAll) {
  const std::vector<double> costs{0.5, 0.2, 0.1, 0.05, 0.01, 0, 0, -0.1};
  EXPECT_EQ(floats_of_step(costs, 0.4), 1u);
  EXPECT_EQ(floats_of_step(costs, 0.65), 2u);
  EXPECT_EQ(floats_of_step(costs, 100), 4u);  // more than all together: half
  EXPECT_EQ(floats_of_step(std::vector<double>{0.1, 0, 0, -0.1, -0.2, -0.3}, 1), 1u);
  EXPECT_EQ(floats_of_step(std::vector<double>(16, -0.1), 1), 2u);  // none costs anything
  EXPECT_EQ(floats_of_step(std::vector<double>(16, 0.1), -1), 2u);  // only BLEU is too low
  EXPECT_EQ(floats_of_step(std::vector<double>{0.1}, 1), 1u);
  // A loop goes on only if something is taken, whatever the numbers are.
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(floats_of_step(std::vector<double>(16, 0.1), nan), 1u);
  EXPECT_EQ(floats_of_step(std::vector<double>(16, nan), 1), 1u);
  EXPECT_EQ(floats_of_step(std::vector<double>{infinite, 0.1, 0.1, 0.1}, infinite), 1u);
}

class QuantizeTest : public testing::Test {
 protected:
  // One model for all tests: words to their counterparts, in order.
  static void SetUpTestSuite() {
    directory_ = fs::temp_directory_path() / ("starling-quantize-" + std::to_string(::getpid()));
    fs::create_directories(directory_);
    write_corpus("train", 500, 1);
    write_corpus("valid", 40, 2);
    Config c = parse_config("model:\n  preset: transformer-tiny\n  width: 32\n  feed-forward: 64\n  dropout: 0\n", "test");
    c.data.train = {{path("train.a"), path("train.b"), "", 1}};
    c.vocab.training.size = 60;
    c.train.output = path("run"), c.train.batch_tokens = 400, c.train.max_steps = 250, c.train.threads = 1, c.train.precision = "f32";
    c.train.optimizer.warmup = 50, c.train.optimizer.learning_rate = 3e-3;
    c.log.progress = "never";
    c.languages = {"en", "de-AT"};
    ASSERT_EQ(run_training(c), 0);
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }

  static void write_corpus(const std::string& name, int lines, uint64_t seed) {
    const std::vector<std::string> a{"red", "blue", "green", "dog", "cat", "house", "tree", "runs", "sees", "big"};
    const std::vector<std::string> b{"rot", "blau", "gruen", "Hund", "Katze", "Haus", "Baum", "rennt", "sieht", "gross"};
    Random random(seed, 1);
    std::ofstream s(path(name + ".a")), t(path(name + ".b"));
    for (int i = 0; i < lines; ++i)
      for (int n = 4 + static_cast<int>(random.below(4)); n >= 0; --n) {
        const size_t w = random.below(a.size());
        s << a[w] << (n ? " " : "\n"), t << b[w] << (n ? " " : "\n");
      }
  }
  static std::string path(const std::string& name) { return (directory_ / name).string(); }

  QuantizeOptions options(const std::string& output) const {
    QuantizeOptions o;
    o.model = path("run"), o.output = path(output), o.source = path("valid.a"), o.target = path("valid.b");
    o.beam = 2, o.threads = 1, o.max_bleu_loss = 5, o.max_log_perplexity_loss = 0.02;
    return o;
  }
  QuantizeResult quantize_model(const QuantizeOptions& o) {
    bool reported = false;
    const QuantizeResult result = starling::quantize_model(
        *files_, o, [](const std::string&) {},
        [&](const QuantizeResult& r) { reported = !r.written && !fs::exists(o.output) && !r.scores.empty(); });
    EXPECT_TRUE(reported);
    return result;
  }
  void expect_refused(const QuantizeOptions& o, const std::string& message) {
    try {
      quantize_model(o);
      FAIL() << "not refused: " << message;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr(message));
    }
  }
  // By the lines themselves, one batch a sentence.
  double log_perplexity(const LoadedModel& loaded) const {
    std::ifstream s(path("valid.a")), t(path("valid.b"));
    double nll = 0, tokens = 0;
    Arena arena(loaded.backend->memory());
    for (std::string source, target; std::getline(s, source) && std::getline(t, target);) {
      const Vocabularies& v = loaded.description.vocabularies;
      const std::vector<EncodedPair> pair{encode_pair(v.source(), v.target(), source, target)};
      arena.release({});
      Tape tape(loaded.model->parameters(), arena);
      const LossSums sums = loaded.model->loss(tape, make_batches(pair, 100).front(), 0.3).read();
      nll += sums.nll, tokens += static_cast<double>(sums.tokens);
    }
    return nll / tokens;
  }

  // With a beam of 2, as options() has it.
  static double bleu_of_characters(const LoadedModel& loaded) {
    SearchOptions search = loaded.description.search;
    search.beam = 2;
    Translator translator(*loaded.model, loaded.description.vocabularies, search, 64);
    const ParallelSentences text = read_sentences(path("valid.a"), path("valid.b"), loaded.description.vocabularies);
    std::vector<std::string> hypotheses;
    for (auto& n_best : translator.translate(text.sources)) hypotheses.push_back(n_best.front().text);
    return corpus_bleu(hypotheses, text.references, {.tokenizer = bleu_tokenizer_from("char")}).score;
  }

  static inline fs::path directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
};

TEST_F(QuantizeTest, TheReportHoldsForTheDirectoryThatIsWritten) {
  QuantizeOptions o = options("int8");
  o.tokenize = "char";
  const QuantizeResult r = quantize_model(o);
  EXPECT_TRUE(r.within_bounds && r.written);
  EXPECT_EQ(r.sentences, 40);
  EXPECT_EQ(r.scores.front().name, "f32");
  EXPECT_EQ(r.scores.back().name, "int8");
  EXPECT_EQ(r.scores.size(), cpu_has_bf16() ? 3u : 2u);
  EXPECT_GT(r.scores.front().bleu, 20);  // it has learnt something
  for (const MatrixReport& m : r.matrices) EXPECT_TRUE(m.quantized && std::abs(m.cost) < 0.02) << m.name;
  EXPECT_LE(r.bleu_difference.low, r.scores.back().bleu - r.scores.front().bleu);
  EXPECT_GE(r.bleu_difference.high, r.scores.back().bleu - r.scores.front().bleu);

  const LoadedModel floats = load_model(*files_, path("run"), {"f32", 1}), integers = load_model(*files_, o.output, {"auto", 1});
  EXPECT_TRUE(integers.description.quantized);
  EXPECT_NEAR(log_perplexity(floats), r.scores.front().log_perplexity, 1e-5);
  EXPECT_NEAR(log_perplexity(integers), r.scores.back().log_perplexity, 1e-5);
  EXPECT_NE(r.scores.front().log_perplexity, r.scores.back().log_perplexity);
  EXPECT_EQ(r.scores.front().bleu, bleu_of_characters(floats));

  const auto json = nlohmann::json::parse(read_text_file(o.output + "/quantization.json"));
  EXPECT_EQ(json["scores"][0]["precision"], "f32");
  EXPECT_EQ(json["scores"].back()["log_perplexity"].get<double>(), r.scores.back().log_perplexity);
  EXPECT_EQ(json["matrices"].size(), r.matrices.size());
  EXPECT_EQ(json["matrices"][0]["stored"], "int8");
  EXPECT_EQ(json["sentences"], 40);
  EXPECT_TRUE(json["within_bounds"].get<bool>());
  EXPECT_EQ(json["tokenizer"], "char");
  for (const char* key : {"machine", "source", "target", "target_tokens", "beam", "bleu_difference", "matrix_sentences"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_THAT(json["model"].get<std::string>(), HasSubstr("run/"));
  EXPECT_EQ(json["step"], 250);
  EXPECT_EQ(json["truncated"], 0);
  EXPECT_EQ(integers.description.step, 250);
  EXPECT_EQ(integers.description.languages, (Languages{"en", "de-AT"}));
  EXPECT_EQ(verify_directory(*files_, o.output).step, 250);

  QuantizeOptions again = options("again");
  again.model = o.output;
  expect_refused(again, "quantised already");
  expect_refused(o, "exists already");
}

// The hidden unit that is never active gets a weight a thousand times the others, one for each output: nothing changes for floats, but
// the integers of all other weights become 0.
TEST_F(QuantizeTest, AMatrixThatCostsTooMuchStaysFloats) {
  const std::string layer = "decoder.0.feed_forward.";
  const auto damage = [&](LoadedModel& m) {
    Parameter& bias = *m.model->parameters().find(layer + "inner.bias");
    Parameter& outer = *m.model->parameters().find(layer + "outer.weight");
    set_element(bias.value, 7, -1000);
    for (int64_t c = 0; c < outer.shape[1]; ++c) set_element(outer.value, 7 * outer.shape[1] + c, 1000);
    m.model->parameters().changed();
  };
  LoadedModel m = load_model(*files_, path("run"), {"f32", 1});
  damage(m);
  const auto& d = m.description;
  publish_directory(*files_, path("damaged"), 0, model_parts(*m.model, d.config, d.languages, d.vocabularies, d.search, 0));

  QuantizeOptions o = options("chosen");
  o.model = path("damaged");
  const QuantizeResult r = quantize_model(o);
  EXPECT_TRUE(r.within_bounds && r.written);
  for (const MatrixReport& matrix : r.matrices) EXPECT_EQ(matrix.quantized, matrix.name != layer + "outer.weight") << matrix.name;
  ASSERT_GE(r.scores.size(), 3u);
  const PrecisionScores& all = r.scores[r.scores.size() - 2];
  EXPECT_EQ(all.name, "int8, all");
  EXPECT_GT(all.log_perplexity, r.scores.front().log_perplexity + o.max_log_perplexity_loss);
  const LoadedModel loaded = load_model(*files_, o.output, {"auto", 1});
  EXPECT_FALSE(loaded.model->parameters().find(layer + "outer.weight")->quantized);
  EXPECT_TRUE(loaded.model->parameters().find(layer + "inner.weight")->quantized);
  EXPECT_NEAR(log_perplexity(loaded), r.scores.back().log_perplexity, 1e-5);
}

TEST_F(QuantizeTest, BoundsThatNothingMeetsWriteNothingUnlessForced) {
  QuantizeOptions o = options("deep/never");
  o.max_bleu_loss = -1000;  // not to be had
  QuantizeResult r = quantize_model(o);
  EXPECT_FALSE(r.within_bounds || r.written);
  EXPECT_FALSE(fs::exists(path("deep"))) << "a directory is left of a model that was not written";
  o.force = true;
  r = quantize_model(o);
  EXPECT_FALSE(r.within_bounds);
  EXPECT_TRUE(r.written);
  for (const MatrixReport& m : r.matrices) EXPECT_TRUE(m.quantized) << m.name;
  EXPECT_FALSE(nlohmann::json::parse(read_text_file(o.output + "/quantization.json"))["within_bounds"].get<bool>());
}

// The bound of a GNMT's states is a static scale: how much of it the inputs use is counted.
TEST_F(QuantizeTest, InputsOfBoundedMatricesAreCounted) {
  ModelConfig config = model_preset("gnmt-small");
  config.width = 32, config.clip = 1;
  const LoadedModel like = load_model(*files_, path("run"), {"f32", 1});
  const auto model = make_model(config, like.description.vocabularies.sizes(), *like.backend, 3, false);
  publish_directory(*files_, path("gnmt"), 0,
                    model_parts(*model, config, {}, like.description.vocabularies, search_defaults(config.preset), 0));
  QuantizeOptions o = options("gnmt-int8");
  o.model = path("gnmt"), o.force = true;
  const QuantizeResult r = quantize_model(o);
  int bounded = 0;
  for (const MatrixReport& m : r.matrices) {
    if (m.input_bound == 0) continue;
    ++bounded;
    EXPECT_GT(m.utilisation, 0) << m.name;
    EXPECT_LE(m.utilisation, 1) << m.name;
    EXPECT_EQ(m.saturated, 0) << m.name;  // states are clipped there
  }
  EXPECT_GT(bounded, 3);
  EXPECT_NEAR(r.scores.back().log_perplexity, r.scores.front().log_perplexity, 0.02);
}

TEST_F(QuantizeTest, BadInputIsRefused) {
  QuantizeOptions o = options("refused");
  o.model = path("nowhere");
  expect_refused(o, "neither a model directory");
  o = options("refused");
  o.source = path("missing");
  expect_refused(o, "missing");
  o = options("refused");
  std::ofstream(path("short.b")) << "Hund\n";
  o.target = path("short.b");
  expect_refused(o, "has 1 line but");
  o = options("refused");
  o.source = o.target = path("empty");
  std::ofstream{path("empty")};
  expect_refused(o, "no sentences");
  o = options("refused");
  o.output = path("valid.a") + "/below";  // of a file
  expect_refused(o, "valid.a");
  EXPECT_FALSE(fs::exists(path("refused")));
}

TEST_F(QuantizeTest, LongSidesAreCutAndCounted) {
  const LoadedModel m = load_model(*files_, path("run"), {"f32", 1});
  const Vocabularies& v = m.description.vocabularies;
  std::ofstream s(path("long.a")), t(path("long.b"));
  for (int i = 0; i < 1200; ++i) s << "red ", t << "rot ";
  s << "\nred\n", t << "\nrot\n", s.close(), t.close();
  const ParallelSentences sentences = read_sentences(path("long.a"), path("long.b"), v);
  EXPECT_EQ(sentences.truncated, 2);
  ASSERT_EQ(sentences.pairs.size(), 2u);
  EXPECT_EQ(sentences.pairs[0].source.size(), 1000u);
  EXPECT_EQ(sentences.pairs[0].source.back(), v.source().eos());
  EXPECT_EQ(sentences.pairs[0].target.size(), 1000u);
  EXPECT_EQ(sentences.pairs[0].target.back(), v.target().eos());
  EXPECT_LT(sentences.pairs[1].source.size(), 10u);
}

// Whoever measures the wrong direction is told before anything is measured.
TEST_F(QuantizeTest, DoubtsSidesThatAreSwapped) {
  QuantizeOptions swapped = options("swapped");
  std::swap(swapped.source, swapped.target);
  for (const QuantizeOptions& o : {options("as-given"), swapped}) {
    std::string lines;
    const auto until_measuring = [&](const std::string& line) {
      if (line.starts_with("measuring")) throw ConfigError("enough");
      lines += line + "\n";
    };
    EXPECT_THROW(starling::quantize_model(*files_, o, until_measuring), ConfigError);
    if (o.source == swapped.source)
      EXPECT_THAT(lines, HasSubstr("starling: warning: --source " + o.source + " and --target " + o.target + " seem to be swapped"));
    else
      EXPECT_THAT(lines, testing::Not(HasSubstr("warning")));
  }
}

}  // namespace
}  // namespace starling
