// Both models against another implementation: log-probabilities, losses, gradients, updates and n-best lists that a NumPy program,
// written from the papers and the docs, computed in double precision (tests/fixtures/models/README.md). Nothing here is computed by the
// program under test but what is compared.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/json.h"
#include "base/random.h"
#include "base/text_files.h"
#include "comm/world.h"
#include "data/tokenize.h"
#include "decode/model_directory.h"
#include "replica/replica.h"
#include "tests/card/real_card.h"

namespace starling {
namespace {

struct Tolerance {
  double nats, relative;  // of a token's log-probability; of sums and norms
};

using Case = std::tuple<const char*, const char*>;  // model, backend

class IndependentValues : public testing::TestWithParam<Case> {
 protected:
  static std::string path(const std::string& name) { return std::string(STARLING_SOURCE_DIR) + "/tests/fixtures/models/" + name; }

  IndependentValues()
      : backend_(make_backend(std::get<1>(GetParam()), 1)),
        directory_(path(std::get<0>(GetParam()))),
        expected_(nlohmann::json::parse(read_text_file(directory_ + "/expected.json"))),
        description_(describe_model(*files_, directory_ + "/model")) {
    ModelConfig config = description_.config;
    config.dropout = 0;
    model_ = make_model(config, description_.vocabularies.sizes(), *backend_, std::nullopt, true);
    load_weights(*files_, description_.directory + "/model.safetensors", model_->parameters());
  }

  bool reference() const { return std::get<1>(GetParam()) == std::string("reference"); }
  // The file has 10 to 12 digits of the sums and 9 of the gradients.
  Tolerance tolerance() const {
    if (reference()) return {1e-9, 1e-10};
    // Logits of gnmt-clip reach the bound of 25, and log-probabilities -50: two units in the last place of f32.
    const double rounding = on_real_card() ? 3 : 1;
    return {rounding * (std::get<0>(GetParam()) == std::string("gnmt-clip") ? 8e-6 : 2e-6), rounding * 1e-6};
  }
  // Of a tensor's norm. In gnmt-clip one tensor's gradient moves by 7e-6 when parameters change by half a unit of f32, in whatever order
  // sums are taken: so what such changes do to each tensor is computed in double precision, and three times that is allowed.
  double gradient_tolerance(const std::string& tensor) {
    if (reference()) return 1e-8;
    if (moved_by_rounding_.empty()) find_moved_by_rounding();
    return std::max(on_real_card() ? 5e-6 : 2e-6, 3 * moved_by_rounding_.at(tensor));
  }
  double norm_tolerance() const { return reference() ? 1e-8 : on_real_card() ? 5e-6 : 2e-6; }

  const nlohmann::json& sentences() const { return expected_["sentences"]; }
  static void append(Batch& batch, const nlohmann::json& sentence) {
    for (const auto& [side, name] : {std::pair(&batch.source, "source"), {&batch.target, "target"}}) {
      const auto tokens = sentence[name].get<std::vector<int32_t>>();
      side->append(tokens.data(), tokens.data() + tokens.size());
    }
    batch.sample_ids.push_back(batch.source.sentences() - 1);
  }
  Batch all() const {
    Batch batch;
    for (const auto& s : sentences()) append(batch, s);
    return batch;
  }
  // Of the batch's target tokens, in their order.
  std::vector<float> log_probabilities(const Batch& batch) {
    Arena arena(model_->parameters().backend().memory());
    Tape tape(model_->parameters(), arena);
    std::vector<float> result = model_->loss(tape, batch, 0).read_nll();
    for (float& x : result) x = -x;
    return result;
  }
  LossSums loss(double smoothing) { return loss(*model_, smoothing); }
  LossSums loss(Model& model, double smoothing) const {
    Arena arena(model.parameters().backend().memory());
    GradientSum gradient(model.parameters());
    Tape tape(model.parameters(), arena, gradient, 1, 1);
    const Batch batch = all();  // the backward pass reads it
    const LossSums sums = model.loss(tape, batch, smoothing).read();
    tape.backward();
    gradient.complete();
    return sums;
  }
  void find_moved_by_rounding() {
    const auto exact = make_backend("reference");
    const auto model = make_model(model_->config(), description_.vocabularies.sizes(), *exact, std::nullopt, true);
    ParameterStore& store = model->parameters();
    load_weights(*files_, description_.directory + "/model.safetensors", store);
    const std::vector<double> values = store.values().to_doubles();
    const std::vector<double> gradient = gradient_of(*model);
    for (const uint64_t seed : {1, 2, 3, 4}) {
      Random random(seed, 1);
      std::vector<double> changed = values;
      for (double& v : changed) v *= 1 + 0x1p-25 * random.normal();
      store.values().from_doubles(changed), store.changed();
      const std::vector<double> moved = gradient_of(*model);
      for (const Parameter& p : store.all()) {
        double difference = 0, norm = 0;
        for (auto i = static_cast<size_t>(p.offset); i < static_cast<size_t>(p.offset + p.shape.count()); ++i)
          difference += (moved[i] - gradient[i]) * (moved[i] - gradient[i]), norm += gradient[i] * gradient[i];
        double& most = moved_by_rounding_[p.name];
        most = std::max(most, std::sqrt(difference / norm));
      }
    }
  }
  std::vector<double> gradient_of(Model& model) const {
    loss(model, 0.1);
    return model.parameters().gradients().to_doubles();
  }
  double nll() const {
    double sum = 0;
    for (const auto& s : sentences())
      for (const auto& x : s["log_probabilities"]) sum -= x.get<double>();
    return sum;
  }
  // The loss is (1 - s) * nll + s * (the mean over all pieces), a straight line in s, of which two points are known.
  double smoothed_loss(double smoothing) const { return nll() + smoothing / 0.1 * (expected_["smoothed_loss_sum"].get<double>() - nll()); }

  const std::unique_ptr<FileSystem> files_ = real_file_system();
  const std::unique_ptr<Backend> backend_;
  const std::string directory_;
  const nlohmann::json expected_;
  const ModelDescription description_;
  std::unique_ptr<Model> model_;
  std::map<std::string, double> moved_by_rounding_;  // of each tensor's gradient, over its norm
};

INSTANTIATE_TEST_SUITE_P(Models, IndependentValues,
                         testing::Combine(testing::Values("pre", "post", "gnmt", "gnmt-clip"), testing::Values("reference", "cpu:f32")),
                         [](const auto& info) {
                           const std::string model = std::get<0>(info.param);
                           return (model == "gnmt-clip" ? "gnmt_clip" : model) +
                                  (std::string(std::get<1>(info.param)) == "reference" ? "_f64" : "_f32");
                         });

TEST_P(IndependentValues, TextBecomesTheSameTokens) {
  const Vocabularies& v = description_.vocabularies;
  const std::string source = read_text_file(path("source.en")), target = read_text_file(path("target.de"));
  for (const auto& s : sentences()) {
    const EncodedPair pair = encode_pair(v.source(), v.target(), s["source_text"].get<std::string>(), s["target_text"].get<std::string>());
    EXPECT_EQ(pair.source, s["source"].get<std::vector<int32_t>>());
    EXPECT_EQ(pair.target, s["target"].get<std::vector<int32_t>>());
    EXPECT_NE(source.find(s["source_text"].get<std::string>() + "\n"), std::string::npos);
    EXPECT_NE(target.find(s["target_text"].get<std::string>() + "\n"), std::string::npos);
  }
}

// In one batch, and each sentence alone: sentences packed together must not see each other.
TEST_P(IndependentValues, LogProbabilitiesOfTargetTokens) {
  const std::vector<float> together = log_probabilities(all());
  size_t at = 0;
  for (size_t i = 0; i < sentences().size(); ++i) {
    Batch one;
    append(one, sentences()[i]);
    const std::vector<float> alone = log_probabilities(one);
    const auto expected = sentences()[i]["log_probabilities"].get<std::vector<double>>();
    ASSERT_EQ(alone.size(), expected.size());
    for (size_t t = 0; t < expected.size(); ++t, ++at) {
      // They are handed over as f32: half a unit in the last place on top.
      const double near = std::max(tolerance().nats, std::abs(expected[t]) * 6e-8);
      ASSERT_LT(at, together.size());
      EXPECT_NEAR(together[at], expected[t], near) << "sentence " << i << " token " << t;
      EXPECT_NEAR(alone[t], expected[t], near) << "sentence " << i << " token " << t << ", alone";
    }
  }
  EXPECT_EQ(at, together.size());
}

TEST_P(IndependentValues, LossWithAndWithoutLabelSmoothing) {
  for (const double smoothing : {0.0, 0.1, 0.9}) {
    const LossSums sums = loss(smoothing);
    EXPECT_NEAR(sums.smoothed, smoothed_loss(smoothing), tolerance().relative * smoothed_loss(smoothing)) << smoothing;
    EXPECT_NEAR(sums.nll, nll(), tolerance().relative * nll()) << smoothing;
  }
}

TEST_P(IndependentValues, GradientOfEachTensor) {
  loss(0.1);
  double squares = 0;
  EXPECT_EQ(model_->parameters().all().size(), expected_["gradient"].size());
  for (const Parameter& p : model_->parameters().all()) {
    ASSERT_TRUE(expected_["gradient"].contains(p.name)) << p.name;
    const auto& expected = expected_["gradient"][p.name];
    const double norm = expected["norm"];
    const std::vector<double> gradient = p.gradient.to_doubles();
    double own = 0;
    for (const double g : gradient) own += g * g;
    squares += own;
    const double near = gradient_tolerance(p.name) * norm;
    EXPECT_NEAR(std::sqrt(own), norm, near) << p.name;
    EXPECT_NEAR(gradient.at(expected["at"].get<size_t>()), expected["value"].get<double>(), near) << p.name;
  }
  const double norm = expected_["gradient_norm"];
  EXPECT_NEAR(std::sqrt(squares), norm, norm_tolerance() * norm);
}

// One update of plain SGD by the path of training: value - rate * factor * gradient / divisor, without and with clipping.
TEST_P(IndependentValues, UpdateByEitherNormalisation) {
  double tokens = 0;
  for (const auto& s : sentences()) tokens += static_cast<double>(s["target"].size());
  for (const auto& [normalisation, divisor] : {std::pair("tokens", tokens), {"sentences", static_cast<double>(sentences().size())}})
    for (const double clip : {0.0, 0.25}) {
      load_weights(*files_, description_.directory + "/model.safetensors", model_->parameters());
      StepOptions options;
      options.optimizer.optimizer = OptimizerKind::sgd, options.optimizer.schedule = RateSchedule::constant, options.optimizer.warmup = 0;
      options.optimizer.learning_rate = 4, options.optimizer.clip_norm = clip;
      options.optimizer.loss_normalization = from_word<LossNormalization>(normalisation);
      World world = make_local_world();
      Replica replica(*model_, options, world);
      std::vector<std::vector<double>> before;
      for (const Parameter& p : model_->parameters().all()) before.push_back(p.value.to_doubles());
      const Batch batch = all();
      const StepResult result = replica.step({&batch, 1});
      const double norm = expected_["gradient_norm"].get<double>() / divisor;
      EXPECT_NEAR(result.gradient_norm, norm, norm_tolerance() * norm) << normalisation;
      const double factor = clip > 0 && norm > clip ? clip / norm : 1;
      size_t i = 0;
      for (const Parameter& p : model_->parameters().all()) {
        const auto& expected = expected_["gradient"][p.name];
        const auto at = expected["at"].get<size_t>();
        const double scale = 4 * factor / divisor, moved = scale * expected["value"].get<double>();
        const double was = before[i++].at(at), near = scale * gradient_tolerance(p.name) * expected["norm"].get<double>();
        EXPECT_NEAR(p.value.to_doubles().at(at), was - moved, near + (reference() ? 0 : std::abs(was) * 1e-7))
            << p.name << ", " << normalisation << ", clip " << clip;
      }
    }
}

TEST_P(IndependentValues, NBestListsOfBeamSearch) {
  const auto& beam = expected_["beam"];
  SearchOptions options;
  options.beam = options.n_best = beam["beam"];
  options.length_penalty = beam["length_penalty"], options.coverage_penalty = beam["coverage_penalty"];
  // The other program knows no such rules.
  options.allow_unknown = true, options.min_length = 0, options.replace_ended = false;
  options.max_length_factor = beam["max_length_factor"], options.max_length_offset = beam["max_length_offset"];
  std::vector<std::vector<int32_t>> sources;
  for (size_t i = 0; i < beam["n_best"].size(); ++i) sources.push_back(sentences()[i]["source"].get<std::vector<int32_t>>());
  const auto lists = beam_search(*model_, sources, options);
  for (size_t i = 0; i < lists.size(); ++i) {
    const auto& expected = beam["n_best"][i];
    ASSERT_EQ(lists[i].size(), expected.size());
    for (size_t n = 0; n < expected.size(); ++n) {
      auto tokens = expected[n]["tokens"].get<std::vector<int32_t>>();
      EXPECT_EQ(lists[i][n].length, static_cast<int64_t>(tokens.size()));
      if (tokens.back() == 2) tokens.pop_back();
      EXPECT_EQ(lists[i][n].tokens, tokens) << "sentence " << i << " hypothesis " << n;
      // Scores of candidates are f32 on both backends; each token adds an error.
      const double near = (on_real_card() ? 5e-6 : 2e-6) * static_cast<double>(lists[i][n].length);
      EXPECT_NEAR(lists[i][n].log_probability, expected[n]["log_probability"].get<double>(), near);
      EXPECT_NEAR(lists[i][n].score, expected[n]["score"].get<double>(), near) << "sentence " << i << " hypothesis " << n;
    }
  }
}

}  // namespace
}  // namespace starling
