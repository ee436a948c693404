// Gradients of every differentiable op by central differences, in double precision on the reference backend. A case builds y from
// inputs and parameters; the scalar that is differentiated is a fixed random combination of y's elements.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autograd/ops.h"
#include "autograd/recurrent.h"
#include "base/random.h"
#include "tests/elements.h"
#include "tests/ops/cases.h"

namespace starling {
namespace {

constexpr double kStep = 1e-5, kTolerance = 1e-7;

struct GradientCase {
  std::string name;
  std::vector<Shape> inputs, parameters;
  std::function<Var(Tape&, const std::vector<Var>&, std::deque<Parameter>&)> build;
};

void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.name; }

class Harness {
 public:
  explicit Harness(const GradientCase& c) : case_(c), backend_(make_backend("reference")), store_(*backend_) {
    Random random(3, 3);
    for (size_t i = 0; i < c.parameters.size(); ++i) store_.add("p" + std::to_string(i), c.parameters[i], {Initializer::normal, 0.5});
    store_.allocate(9, true);
    for (const Shape& shape : c.inputs) {
      std::vector<double> values(shape.count());
      for (double& v : values) v = random.normal();
      inputs_.emplace_back(shape, DType::f64, backend_->memory());
      inputs_.back().from_doubles(values);
    }
  }

  // The scalar; when `gradients` is given, also those of inputs and of the flat parameters.
  double run(std::vector<std::vector<double>>* gradients = nullptr) {
    arena_.release({});
    GradientSum sum(store_);
    Tape tape(store_, arena_, sum, 5, 6);
    std::vector<Var> inputs;
    std::vector<Tensor> collected(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(tape.record(inputs_[i], [&collected, i](const Tensor& dy) { collected[i] = dy; }));
    const Var y = case_.build(tape, inputs, store_.all());
    Random random(11, 11);
    double scalar = 0;
    std::vector<double> weights(y.value.count());
    const std::vector<double> values = y.value.to_doubles();
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = random.normal(), scalar += weights[i] * values[i];
    if (gradients) {
      const Tensor dy = tape.allocate(y.value.shape(), DType::f64);
      dy.from_doubles(weights);
      tape.set_gradient(y, dy);
      tape.backward();
      sum.complete();
      for (const Tensor& t : collected) gradients->push_back(t ? t.to_doubles() : std::vector<double>{});
      gradients->push_back(store_.gradients().to_doubles());
    }
    return scalar;
  }

  void check() {
    std::vector<std::vector<double>> gradients;
    run(&gradients);
    std::vector<Tensor> places = inputs_;
    if (!case_.parameters.empty()) places.push_back(store_.values());
    for (size_t p = 0; p < places.size(); ++p) {
      const std::vector<double>& analytic = gradients[p < inputs_.size() ? p : inputs_.size()];
      ASSERT_EQ(static_cast<int64_t>(analytic.size()), places[p].count()) << case_.name << " place " << p;
      for (int64_t i = 0; i < places[p].count(); ++i) {
        const double saved = element(places[p], i);
        const auto at = [&](double x) {
          set_element(places[p], i, x);
          store_.changed();
          return run();
        };
        const double numeric = (at(saved + kStep) - at(saved - kStep)) / (2 * kStep);
        set_element(places[p], i, saved);
        store_.changed();
        ASSERT_NEAR(numeric, analytic[i], kTolerance * std::max(1.0, std::abs(analytic[i]) * 10))
            << case_.name << " place " << p << " element " << i;
      }
    }
  }

 private:
  const GradientCase& case_;
  std::unique_ptr<Backend> backend_;
  ParameterStore store_;
  std::vector<Tensor> inputs_;
  Arena arena_{backend_->memory()};
};

RowKeys keys(Tape& t) {
  std::vector<uint32_t> sentence, position;
  for (uint32_t i = 0; i < 16; ++i) sentence.push_back(i / 3), position.push_back(i % 3);
  return {t.upload(sentence), t.upload(position)};
}

const std::vector<int32_t> kQueries{0, 3, 4, 9}, kKeysOffsets{0, 2, 7, 8};
const std::vector<int32_t> kTokens{4, 0, 4, 2, 1, 4}, kPositions{0, 1, 2, 0, 1, 2};

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> cases;
  for (const auto& [name, activation] : all_activations())
    for (double p : {0.0, 0.4}) {
      if (activation == Activation::none && p > 0) continue;
      cases.push_back({"linear_" + name + (p > 0 ? "_dropout" : ""),
                       {{5, 4}},
                       {{4, 3}, {3}},
                       [=, a = activation](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
                         return linear(x[0], w[0], &w[1], a, t.dropout(p, DropoutSite("here"), keys(t)));
                       }});
    }
  cases.push_back({"linear_used_twice", {{5, 4}}, {{4, 4}}, [](Tape&, const std::vector<Var>& x, std::deque<Parameter>& w) {
                     return linear(linear(x[0], w[0], nullptr), w[0], nullptr);
                   }});
  for (double p : {0.0, 0.4})
    cases.push_back(
        {p > 0 ? "embedding_dropout" : "embedding", {}, {{5, 4}}, [=](Tape& t, const std::vector<Var>&, std::deque<Parameter>& w) {
           return embedding(t, t.upload(kTokens), t.upload(kPositions), w[0], 1.7, t.dropout(p, DropoutSite("here"), keys(t)));
         }});
  cases.push_back({"layer_norm", {{5, 6}}, {{6}, {6}}, [](Tape&, const std::vector<Var>& x, std::deque<Parameter>& w) {
                     return layer_norm(x[0], w[0], w[1], 1e-5);
                   }});
  for (double p : {0.0, 0.4})
    cases.push_back(
        {p > 0 ? "residual_dropout" : "residual", {{5, 6}, {5, 6}}, {}, [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
           return residual(x[0], x[1], t.dropout(p, DropoutSite("here"), keys(t)));
         }});
  cases.push_back({"residual_of_a_norm", {{5, 6}}, {{6}, {6}}, [](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
                     return residual(x[0], layer_norm(x[0], w[0], w[1], 1e-5), t.dropout(0.2, DropoutSite("here"), keys(t)));
                   }});
  const auto causal = [](Tape& t) { return AttentionLayout{t.upload(kQueries), t.upload(kQueries), 2, true}; };
  const auto across = [](Tape& t, int64_t heads) { return AttentionLayout{t.upload(kQueries), t.upload(kKeysOffsets), heads, false}; };
  for (double p : {0.0, 0.3}) {
    cases.push_back({p > 0 ? "self_attention_dropout" : "self_attention",
                     {{9, 12}},
                     {},
                     [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
                       return self_attention(x[0], causal(t), t.dropout(p, DropoutSite("here"), keys(t)));
                     }});
    for (const int64_t reach : {1, 3})
      cases.push_back({fmt::format("relative_attention_{}{}", reach, p > 0 ? "_dropout" : ""),
                       {{9, 12}},
                       {{2 * reach + 1, 2}, {2 * reach + 1, 2}},
                       [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
                         return self_attention(x[0], causal(t), t.dropout(p, DropoutSite("here"), keys(t)), {&w[0], &w[1]});
                       }});
    cases.push_back({p > 0 ? "cross_attention_dropout" : "cross_attention",
                     {{9, 4}, {8, 8}},
                     {},
                     [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
                       return cross_attention(x[0], x[1], across(t, 2), t.dropout(p, DropoutSite("here"), keys(t)));
                     }});
  }
  // Sentences of 2, 5 and 1 tokens and an padding row; a linear layer before the LSTM, which overwrites its input.
  PackedTokens sentences;
  for (int n : {2, 5, 1}) sentences.append(kTokens.data(), kTokens.data() + n);
  for (LstmOptions o : {LstmOptions{}, {true}, {false, false}, {false, true, 0.4}, {true, false, 0.3}})
    cases.push_back(
        {std::string("lstm") + (o.reverse ? "_reverse" : "") + (o.tanh_output ? "" : "_linear") + (o.bound > 0 ? "_bounded" : ""),
         {{9, 4}},
         {{4, 12}, {12}, {3, 12}},
         [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
           return lstm(linear(x[0], w[0], &w[1]), w[2], time_order(t, sentences, 9), o);
         }});
  cases.push_back({"lstm_in_pieces", {{9, 4}}, {{4, 12}, {12}, {3, 12}}, [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
                     const TimeOrder whole = time_order(t, sentences, 9);
                     const std::vector<TimeOrder> pieces = time_pieces(t, whole, 3, 4);
                     LstmState state;
                     std::vector<Var> parts;
                     for (const TimeOrder& piece : pieces)
                       parts.push_back(lstm(linear(take_piece(x[0], piece), w[0], &w[1]), w[2], piece, {false, true, 0.4}, {}, &state));
                     return join_pieces(parts, pieces, whole);
                   }});
  cases.push_back({"ssru", {{9, 4}, {9, 4}}, {}, [](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
                     return ssru(x[0], x[1], t.upload(std::vector<int32_t>{0, 3, 3, 8}));
                   }});
  cases.push_back({"embedding_of_nothing", {}, {{5, 4}}, [](Tape& t, const std::vector<Var>&, std::deque<Parameter>& w) {
                     const std::vector<int32_t> tokens{kZeroEmbedding, 0, kPaddingRow, kZeroEmbedding, 0, 3};
                     return embedding(t, t.upload(tokens), t.upload(kPositions), w[0], 1.7, t.dropout(0.4, DropoutSite("here"), keys(t)));
                   }});
  cases.push_back({"clamp", {{5, 6}}, {}, [](Tape&, const std::vector<Var>& x, std::deque<Parameter>&) { return clamp(x[0], 0.7); }});
  cases.push_back({"concat_of_shared_input", {{5, 6}, {5, 2}}, {}, [](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
                     return concat(concat(x[0], x[1]), dropout(x[0], t.dropout(0.3, DropoutSite("here"), keys(t))));
                   }});
  static const std::vector<int32_t> index{3, -1, 0, 4}, inverse{2, -1, -1, 0, 3};
  cases.push_back({"gather_rows", {{5, 3}}, {}, [](Tape& t, const std::vector<Var>& x, std::deque<Parameter>&) {
                     const Ints to = t.upload(index), from = t.upload(inverse);
                     return concat(gather_rows(x[0], to, from), gather_rows(x[0], to, from));
                   }});
  for (int form : {0, 1, 2})
    cases.push_back({form == 0   ? "global_attention_dot"
                     : form == 1 ? "global_attention_additive"
                                 : "global_attention_normalized",
                     {{9, 4}, {8, 4}, {8, 5}},
                     {{4}, {1}},
                     [=](Tape& t, const std::vector<Var>& x, std::deque<Parameter>& w) {
                       return global_attention(x[0], x[1], x[2], form > 0 ? &w[0] : nullptr, form > 1 ? &w[1] : nullptr, across(t, 1));
                     }});
  return cases;
}

class Gradient : public testing::TestWithParam<GradientCase> {};
TEST_P(Gradient, MatchesCentralDifferences) { Harness(GetParam()).check(); }
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(gradient_cases()), [](const auto& info) { return info.param.name; });

struct PairForm {
  double r_drop, bound;
  std::vector<float> weights;
};

class PairedLoss : public testing::Test {
 protected:
  PairedLoss() {
    table_ = &store_.add("table", {5, 4}, {Initializer::normal, 1});
    bias_ = &store_.add("bias", {5}, {Initializer::normal, 0.3});
    store_.allocate(3, true);
  }
  Tensor normal(const Shape& shape) {
    Random random(2, 2);
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& v : values) v = random.normal();
    Tensor t(shape, DType::f64, backend_->memory());
    t.from_doubles(values);
    return t;
  }
  LossSums run(const Tensor& h, const std::vector<int32_t>& targets, const PairForm& form, std::vector<double>* dh = nullptr) {
    arena_.release({});
    GradientSum sum(store_);
    Tape tape(store_, arena_, sum, 0, 0);
    const Var x = tape.record(h, [&](const Tensor& dy) {
      if (dh) *dh = dy.to_doubles();
    });
    Loss result(tape);
    projection_loss(x, *table_, bias_, {targets, 0.1, form.bound, form.weights, form.r_drop}, result);
    const LossSums sums = result.read();
    if (dh) tape.backward(), sum.complete();
    return sums;
  }
  // The probabilities of a row of logits, by their definition.
  std::vector<double> probabilities(const Tensor& h, int64_t n, double bound) {
    std::vector<double> p(5, 0);
    double sum = 0;
    for (int64_t v = 0; v < 5; ++v) {
      p[v] = element(bias_->value, v);
      for (int64_t d = 0; d < 4; ++d) p[v] += element(h, 4 * n + d) * element(table_->value, 4 * v + d);
      if (bound > 0) p[v] = std::clamp(p[v], -bound, bound);
      sum += p[v] = std::exp(p[v]);
    }
    for (double& x : p) x /= sum;
    return p;
  }
  std::unique_ptr<Backend> backend_ = make_backend("reference");
  ParameterStore store_{*backend_};
  Parameter *table_ = nullptr, *bias_ = nullptr;
  Arena arena_{backend_->memory()};
};

TEST_F(PairedLoss, MatchesItsDefinitionAndCentralDifferences) {
  const std::vector<int32_t> targets{3, 3, 0, 0, -1, -1};
  const Tensor h = normal({6, 4});
  for (const PairForm& form : {PairForm{5, 0, {}}, {0.5, 0, {0.5f, 0.5f, 2, 2, 1, 1}}, {5, 0.8, {0.5f, 0.5f, 2, 2, 1, 1}}}) {
    std::vector<double> dh;
    const LossSums sums = run(h, targets, form, &dh);
    const std::vector<double> dtable = table_->gradient.to_doubles(), dbias = bias_->gradient.to_doubles();
    double consistency = 0, nll = 0;
    for (int64_t n = 0; n < 4; n += 2) {
      const std::vector<double> p = probabilities(h, n, form.bound), q = probabilities(h, n + 1, form.bound);
      const double weight = form.weights.empty() ? 1.0 : form.weights[n];
      for (size_t v = 0; v < 5; ++v) consistency += weight * (p[v] - q[v]) * std::log(p[v] / q[v]);  // KL(p || q) + KL(q || p)
      nll -= std::log(p[targets[n]]) + std::log(q[targets[n]]);
    }
    EXPECT_NEAR(sums.consistency, consistency, 1e-12);
    EXPECT_NEAR(sums.nll, nll, 1e-12);
    EXPECT_GT(consistency, 0.1);
    const auto objective = [&] {
      store_.changed();
      const LossSums s = run(h, targets, form);
      return s.smoothed + form.r_drop / 2 * s.consistency;
    };
    for (auto [tensor, analytic] : {std::pair(h, dh), {table_->value, dtable}, {bias_->value, dbias}})
      for (int64_t i = 0; i < tensor.count(); ++i) {
        const double saved = element(tensor, i);
        set_element(tensor, i, saved + kStep);
        const double up = objective();
        set_element(tensor, i, saved - kStep);
        const double down = objective();
        set_element(tensor, i, saved);
        EXPECT_NEAR((up - down) / (2 * kStep), analytic[i], 1e-7) << i << " of alpha " << form.r_drop << " and bound " << form.bound;
      }
    store_.changed();
  }
}

// Beyond the first chunk of rows.
TEST_F(PairedLoss, PairsStayTogetherInChunks) {
  const int64_t N = 4160, first = 4100;
  const Tensor h = normal({N, 4});
  std::vector<int32_t> targets(N);
  for (int64_t n = 0; n < N; ++n) targets[n] = static_cast<int32_t>(n / 2 % 5);
  std::vector<double> all, two;
  run(h, targets, {5, 0, {}}, &all);
  run(h.rows(first, first + 2), {targets[first], targets[first]}, {5, 0, {}}, &two);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(all[4 * first + i], two[i], 1e-12) << i;
}

TEST(Gradient, ProjectionLossMatchesCentralDifferences) {
  const auto backend = make_backend("reference");
  ParameterStore store(*backend);
  Parameter& table = store.add("table", {7, 4}, {Initializer::normal, 1});
  Parameter& bias = store.add("bias", {7}, {Initializer::normal, 1});
  store.allocate(3, true);
  Tensor h({6, 4}, DType::f64, backend->memory());
  Random random(2, 2);
  std::vector<double> start(24);
  for (double& v : start) v = random.normal();
  h.from_doubles(start);
  const std::vector<int32_t> targets{3, 0, -1, 6, 2, -1};
  std::vector<double> dh;
  Arena arena(backend->memory());
  const auto loss = [&](bool collect) {
    arena.release({});
    GradientSum sum(store);
    Tape tape(store, arena, sum, 0, 0);
    const Var x = tape.record(h, [&](const Tensor& dy) { dh = dy.to_doubles(); });
    Loss result(tape);
    projection_loss(x, table, &bias, {targets, 0.1}, result);
    const LossSums sums = result.read();
    EXPECT_EQ(sums.tokens, 4);
    if (collect) tape.backward();
    return sums.smoothed;
  };
  loss(true);
  const std::vector<double> dtable = table.gradient.to_doubles(), dbias = bias.gradient.to_doubles(), dh_analytic = dh;
  for (auto [tensor, analytic] : {std::pair(h, dh_analytic), {table.value, dtable}, {bias.value, dbias}})
    for (int64_t i = 0; i < tensor.count(); ++i) {
      const double saved = element(tensor, i);
      set_element(tensor, i, saved + kStep), store.changed();
      const double up = loss(false);
      set_element(tensor, i, saved - kStep), store.changed();
      const double down = loss(false);
      set_element(tensor, i, saved), store.changed();
      EXPECT_NEAR((up - down) / (2 * kStep), analytic[i], 1e-7) << i;
    }
}

}  // namespace
}  // namespace starling
