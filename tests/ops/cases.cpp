#include "tests/ops/cases.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

void linear_case(CaseContext& c, int64_t N, int64_t in, int64_t out, bool transposed, bool bias, Activation a, Write w) {
  const Tensor x = c.activations({N, in}), weight = c.parameters(transposed ? Shape{out, in} : Shape{in, out}, 0.2);
  const Tensor b = bias ? c.parameters({out}) : Tensor(), y = c.activations({N, out});
  const auto packed = c.backend.pack(weight, transposed, nullptr);
  c.backend.linear(x, *packed, b, y, a, w);
  c.output(y);
}

// Without ties, that is, values exactly between two integers, which a backend may round either way: with 6 as a row's largest magnitude,
// 127 x / 6 of a bf16 number is one only for x = +-3.
void int8_case(CaseContext& c, int64_t N, int64_t in, int64_t out, bool transposed, bool bias, Activation a, Write w, double bound,
               bool wide = false) {
  const Tensor x = c.activations({N, in}), weight = c.parameters(transposed ? Shape{out, in} : Shape{in, out}, 0.2);
  const Tensor b = bias ? c.parameters({out}) : Tensor(), y = wide ? c.parameters({N, out}) : c.activations({N, out});
  std::vector<double> values = x.to_doubles();
  for (int64_t i = 0; i < N * in; ++i) values[i] = i % in == in / 2 ? 6 : std::abs(values[i]) == 3 ? 2.5 : std::clamp(values[i], -5.0, 5.0);
  for (int64_t i = 0; i < in && N > 1; ++i) values[i] = 0;  // a row of zeros
  x.from_doubles(values);
  values = weight.to_doubles();
  for (int64_t i = 0; i < in; ++i) values[transposed ? in + i : i * out + 1] = 0;  // an output without weights
  weight.from_doubles(values);
  c.backend.linear(x, *c.backend.pack_int8(weight, transposed, bound), b, y, a, w);
  c.output(y);
}

// Two workers' logits. What they exchange is computed from the elements here.
void shard_loss_case(CaseContext& c, int64_t here, int64_t there, double bound) {
  constexpr int64_t kRows = 6;
  std::vector<int32_t> some = c.integers(kRows, here + there);
  some[0] = 0, some[1] = static_cast<int32_t>(here), some[2] = -1;
  const LossRows rows{c.upload(some), 0.1, bound, c.upload<float>({0.5f, -1.25f, 3.0f, 0.0f, 2.0f, 1.0f})};
  std::vector<LogitsShard> shards;
  const Tensor group_top = c.empty_parameters({kRows});
  std::vector<double> most(kRows, -1e9), total(3 * kRows);
  for (const auto& [first, n] : {std::pair<int64_t, int64_t>{0, here}, {here, there}}) {
    shards.push_back({c.parameters({kRows, n}, 3), first, here + there, c.empty_parameters({kRows}), c.empty_parameters({kRows, 3})});
    c.backend.shard_exponentials(shards.back(), rows);
    for (const Tensor& t : {shards.back().logits.rows(0, 2), shards.back().logits.rows(3, kRows), shards.back().top, shards.back().sums})
      c.output(t);
    const std::vector<double> top = shards.back().top.to_doubles();
    for (int64_t n = 0; n < kRows; ++n) most[n] = std::max(most[n], top[n]);
  }
  group_top.from_doubles(most);
  for (const LogitsShard& s : shards) {
    c.backend.rescale_shard(s, group_top);
    c.output(s.top), c.output(s.sums);
    const std::vector<double> sums = s.sums.to_doubles();
    for (size_t i = 0; i < sums.size(); ++i) total[i] += sums[i];
  }
  for (const LogitsShard& s : shards) {
    s.sums.from_doubles(total);
    const Tensor row_loss = c.empty_parameters({kRows, 3}), dlogits = c.empty(s.logits.shape());
    c.backend.shard_loss(s, group_top, rows, row_loss, dlogits);
    c.output(row_loss), c.output(dlogits);
  }
}

// Pairs that differ much, little and not at all, and an idle one.
void paired_loss_case(CaseContext& c, int64_t V, double bound) {
  std::vector<int32_t> some = c.integers(4, V);
  some = {some[0], some[0], -1, -1, some[1], some[1], some[2], some[2], some[3], some[3]};
  const Tensor logits = c.parameters({10, V}, 3), row_loss = c.empty_parameters({10, 4}), dlogits = c.empty({10, V});
  std::vector<double> values = logits.to_doubles();
  for (int64_t v = 0; v < V; ++v) {
    values[5 * V + v] = values[4 * V + v] + values[5 * V + v] / 64;
    values[7 * V + v] = values[6 * V + v];
  }
  logits.from_doubles(values);
  const HostDeviceArray<float> weights = c.upload<float>({0.5f, 0.5f, 3.0f, 3.0f, 1.0f, 1.0f, 2.0f, 2.0f, -1.25f, -1.25f});
  const LossRows rows{c.upload(some), 0.1, bound, bound > 0 ? weights : HostDeviceArray<float>(), 5};
  c.backend.smoothed_loss(logits, rows, row_loss, dlogits);
  c.output(row_loss), c.output(dlogits);
  const Tensor sums({4}, DType::f64, c.backend.memory()), alone = c.empty_parameters({10, 4});
  c.backend.loss_sums(row_loss, rows, sums);
  c.output(sums);
  logits.from_doubles(values);
  c.backend.smoothed_loss(logits, rows, alone, {});
  c.output(alone);
}

// One step of an LSTM and a gradient: the first `past` of R sentences have a step before, the first `next` one after. The gradient gets
// gates of its own, since those of the forward pass differ by their rounding.
void lstm_case(CaseContext& c, int64_t R, int64_t H, int64_t past, int64_t next, bool tanh_output, double bound) {
  const Tensor z = c.activations({R, 4 * H}, 2), recurrent = c.parameters({past, 4 * H}), before = c.parameters({past + 1, H}, 0.7);
  const Tensor cell = c.empty_parameters({R, H}), hidden = c.empty({R, H});
  const Tensor clipped({1}, DType::f64, c.backend.memory());
  c.backend.lstm_step({z, recurrent, before, past, cell, hidden, tanh_output, bound, clipped});
  c.output(z), c.output(cell), c.output(hidden), c.output(clipped);
  const Tensor gates = c.activations({R, 4 * H}, 0.5), reached = c.parameters({R, H}, 0.7), dhidden = c.activations({R, H});
  const Tensor drecurrent = c.parameters({next, H}), dcell = c.parameters({R + 1, H});
  if (bound > 0) c.backend.clamp(reached, bound, reached, {});
  c.backend.lstm_step_backward({gates, before, past, reached, dhidden, drecurrent, dcell, next, tanh_output, bound});
  c.output(gates), c.output(dcell);
}

// Cells of 16 bits; they are compared to the unit by a test of their own.
void lstm_narrow_case(CaseContext& c, int64_t R, int64_t H) {
  const Tensor gates = c.activations({R, 4 * H}, 2), recurrent = c.parameters({R, 4 * H}), hidden = c.empty({R, H});
  const Tensor before({R, H}, DType::i16, c.backend.memory()), cell({R, H}, DType::i16, c.backend.memory());
  std::vector<double> units;
  for (int32_t u : c.integers(R * H, 65535)) units.push_back(u - 32767);
  before.from_doubles(units);
  const Tensor clipped({1}, DType::f64, c.backend.memory());
  c.backend.lstm_step({gates, recurrent, before, R, cell, hidden, false, 0.75, clipped});
  c.output(hidden), c.output(gates), c.output(clipped);
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string name, std::function<void(CaseContext&)> run) { cases.push_back({std::move(name), std::move(run)}); };

  for (auto [N, in, out] : {std::array<int64_t, 3>{1, 8, 8}, {4, 33, 17}, {64, 128, 96}, {70, 100, 259}})
    for (bool transposed : {false, true}) {
      const std::string suffix = transposed ? "_transposed" : "";
      add(case_name("linear", {N, in, out}) + suffix,
          [=](CaseContext& c) { linear_case(c, N, in, out, transposed, true, Activation::none, Write::overwrite); });
      add(case_name("linear_relu", {N, in, out}) + suffix,
          [=](CaseContext& c) { linear_case(c, N, in, out, transposed, true, Activation::relu, Write::overwrite); });
      add(case_name("linear_accumulate", {N, in, out}) + suffix,
          [=](CaseContext& c) { linear_case(c, N, in, out, transposed, false, Activation::none, Write::accumulate); });
    }
  for (auto [N, in, out] : {std::array<int64_t, 3>{1, 64, 40}, {2, 8, 8}, {4, 33, 17}, {64, 128, 96}, {70, 101, 259}})
    for (double bound : {0.0, 1.5})
      for (bool transposed : {false, true}) {
        const std::string suffix = std::string(bound > 0 ? "_bounded" : "") + (transposed ? "_transposed" : "");
        add(case_name("linear_int8", {N, in, out}) + suffix,
            [=](CaseContext& c) { int8_case(c, N, in, out, transposed, true, Activation::none, Write::overwrite, bound); });
        add(case_name("linear_int8_relu", {N, in, out}) + suffix,
            [=](CaseContext& c) { int8_case(c, N, in, out, transposed, true, Activation::relu, Write::overwrite, bound); });
        add(case_name("linear_int8_accumulate", {N, in, out}) + suffix,
            [=](CaseContext& c) { int8_case(c, N, in, out, transposed, false, Activation::none, Write::accumulate, bound); });
        add(case_name("linear_int8_wide", {N, in, out}) + suffix,
            [=](CaseContext& c) { int8_case(c, N, in, out, transposed, false, Activation::none, Write::overwrite, bound, true); });
      }
  add("linear_logits", [](CaseContext& c) {
    const Tensor x = c.activations({9, 32}), w = c.parameters({50, 32}, 0.2), y = c.empty_parameters({9, 50});
    c.backend.linear(x, *c.backend.pack(w, true, nullptr), Tensor(), y, Activation::none, Write::overwrite);
    c.output(y);
  });
  for (Write write : {Write::overwrite, Write::accumulate})
    for (auto [N, P, Q] : {std::array<int64_t, 3>{64, 32, 48}, {70, 33, 17}, {130, 3, 264}})
      add(case_name(write == Write::accumulate ? "weight_gradient_accumulate" : "weight_gradient", {N, P, Q}), [=](CaseContext& c) {
        const Tensor a = c.activations({N, P}), d = c.activations({N, Q}), dw = c.parameters({P, Q}), db = c.parameters({Q});
        c.backend.weight_gradient(a, d, dw, write);
        c.backend.column_sums(d, db, write);
        c.output(dw), c.output(db);
        const Tensor both = c.parameters({P, Q}), sums = c.parameters({Q});
        c.backend.layer_gradients(a, d, both, write, sums, write);
        c.output(both), c.output(sums);
      });
  for (double p : {0.0, 0.3})
    for (int64_t D : {16, 150, 256})
      add(case_name(p > 0 ? "embed_dropout" : "embed", {D}), [=](CaseContext& c) {
        std::vector<int32_t> some = c.integers(60, 11);
        some.resize(64, -1);
        const Ints tokens = c.upload(some), positions = c.upload(c.integers(64, 40));
        const Tensor table = c.parameters({11, D}), y = c.empty({64, D}), dy = c.activations({64, D}), dtable = c.parameters({11, D});
        const Dropout d = p > 0 ? case_dropout(c, p, 64) : Dropout{};
        c.backend.embed(tokens, positions, table, 1.5, d, y);
        c.backend.embed_backward(tokens, 1.5, d, dy, dtable);
        c.output(y), c.output(dtable);
      });
  // Frequent tokens, of which some sums are cut into pieces.
  add("embed_backward_of_frequent_tokens", [](CaseContext& c) {
    std::vector<int32_t> some = c.integers(150, 3);
    some.resize(200, 4);
    some[77] = -1;
    const Tensor dy = c.activations({200, 150}), dtable = c.parameters({6, 150});
    c.backend.embed_backward(c.upload(some), 1.5, case_dropout(c, 0.3, 200), dy, dtable);
    c.output(dtable);
  });
  add("embed_without_positions", [](CaseContext& c) {
    std::vector<int32_t> tokens = c.integers(60, 11);
    tokens.resize(64, -1);
    const Tensor table = c.parameters({11, 150}), y = c.empty({64, 150});
    c.backend.embed(c.upload(tokens), {}, table, 1.5, case_dropout(c, 0.3, 64), y);
    c.output(y);
  });
  for (Write write : {Write::overwrite, Write::accumulate})
    for (int64_t D : {8, 37, 256, 520})
      add(case_name(write == Write::accumulate ? "layer_norm_accumulate" : "layer_norm", {D}), [=](CaseContext& c) {
        const int64_t N = 67;
        const Tensor x = c.activations({N, D}, 2), gamma = c.parameters({D}), beta = c.parameters({D}), y = c.empty({N, D});
        const Tensor statistics = c.empty_parameters({N, 2}), dy = c.activations({N, D}), dx = c.activations({N, D});
        const Tensor dgamma = c.parameters({D}), dbeta = c.parameters({D});
        c.backend.layer_norm(x, gamma, beta, D > 100 ? 1e-5 : 1e-2, y, statistics);
        c.backend.layer_norm_backward(dy, x, gamma, statistics, dx, write, dgamma, dbeta, write);
        c.output(y), c.output(dx), c.output(dgamma), c.output(dbeta);
      });
  for (int64_t D : {20, 128, 300})
    add(case_name("dropout", {D}), [=](CaseContext& c) {
      const Tensor x = c.activations({64, D}), s = c.activations({64, D}), y = c.empty({64, D}), ds = c.activations({64, D}),
                   plain = c.empty({64, D});
      const Dropout d = case_dropout(c, 0.25, 64);
      c.backend.add_dropout(x, s, d, y);
      c.backend.add_dropout(Tensor(), s, d, plain);
      c.backend.dropout_backward(x, d, ds, Write::accumulate);
      c.output(y), c.output(plain), c.output(ds);
      c.backend.dropout_backward(x, d, ds, Write::overwrite);
      c.output(ds);
    });
  for (auto [first, D] : {std::array<int64_t, 2>{16, 150}, {200, 150}, {40, 160}})
    add(case_name("dropout_of_columns_from", {first, D}), [=](CaseContext& c) {
      const Tensor x = c.activations({64, D}), s = c.activations({64, D}), y = c.empty({64, D}), table = c.parameters({64, D});
      std::vector<int32_t> every(64);
      for (int32_t n = 0; n < 64; ++n) every[n] = 63 - n;
      Dropout d = case_dropout(c, 0.25, 64);
      d.first_column = first;
      c.backend.add_dropout(x, s, d, y);
      c.backend.embed_backward(c.upload(every), 1.5, d, x, table);
      c.output(y), c.output(table);
    });
  for (int64_t D : {21, 168})
    add(case_name("relu_dropout_backward", {D}), [=](CaseContext& c) {
      const Tensor h = c.activations({13, D}), dh = c.activations({13, D}), sum = c.activations({13, D});
      c.backend.relu_dropout_backward(h, 1.25, dh, {}, Write::overwrite);
      c.backend.add(h, sum);
      c.output(dh), c.output(sum);
    });
  for (Write write : {Write::overwrite, Write::accumulate})
    for (auto [N, D] : {std::array<int64_t, 2>{13, 21}, {13, 168}, {130, 264}, {600, 9}})
      add(case_name("relu_dropout_backward_with_bias", {N, D}) + (write == Write::accumulate ? "_accumulate" : ""), [=](CaseContext& c) {
        const Tensor h = c.activations({N, D}), dh = c.activations({N, D}), db = c.parameters({D});
        c.backend.relu_dropout_backward(h, 1.25, dh, db, write);
        c.output(dh), c.output(db);
      });
  for (Write write : {Write::overwrite, Write::accumulate})
    for (int64_t D : {3, 37, 300}) {
      const std::string suffix = write == Write::accumulate ? "_accumulate" : "";
      add(case_name("gather_rows", {D}) + suffix, [=](CaseContext& c) {
        std::vector<int32_t> some = c.integers(70, 50);
        some[3] = some[69] = -1;
        const Ints index = c.upload(some);
        const Tensor x = c.activations({50, D}), y = c.activations({72, D}), wide = c.parameters({50, D}), out = c.parameters({70, D});
        c.backend.gather_rows(x, index, y, write);
        c.backend.gather_rows(wide, index, out, write);
        c.output(y), c.output(out);
      });
      add(case_name("copy_columns", {D}) + suffix, [=](CaseContext& c) {
        const Tensor x = c.activations({70, D + 5}), y = c.activations({70, D + 9}), wide = c.parameters({3, D}),
                     out = c.parameters({3, D + 1});
        c.backend.copy_columns(x, 5, y, 2, D, write);
        c.backend.copy_columns(wide, 0, out, 1, D, write);
        c.output(y), c.output(out);
      });
      if (write == Write::overwrite)
        add(case_name("scatter_rows", {D}), [=](CaseContext& c) {
          const Tensor x = c.activations({70, D + 5}), y = c.activations({90, D});
          std::vector<int32_t> rows(70);
          for (int i = 0; i < 70; ++i) rows[static_cast<size_t>(i)] = (37 * i + 11) % 90;  // all different
          const Ints index = c.upload(rows);
          c.backend.scatter_rows(x, 3, index, y);
          c.output(y);
        });
      add(case_name("clamp", {D}) + suffix, [=](CaseContext& c) {
        const Tensor x = c.activations({70, D}), y = c.empty({70, D}), wide = c.parameters({70, D});
        const Tensor dy = c.activations({70, D}), dx = c.activations({70, D});
        const Tensor clipped({2}, DType::f64, c.backend.memory());
        c.backend.clamp(x, 0.75, y, clipped.rows(0, 1)), c.backend.clamp(wide, 1.5, wide, clipped.rows(1, 2));
        c.output(clipped);
        c.backend.clamp_backward(x, 0.75, dy, dx, write);
        c.output(y), c.output(wide), c.output(dx);
      });
    }
  for (auto [R, H, past, next] : {std::array<int64_t, 4>{1, 16, 0, 0}, {3, 20, 3, 2}, {5, 33, 2, 5}, {64, 130, 64, 61}, {2, 1030, 1, 0}})
    for (double bound : {0.0, 0.5})
      for (bool tanh_output : {true, false})
        add(case_name("lstm_step", {R, H, past, next}) + (bound > 0 ? "_bounded" : "") + (tanh_output ? "" : "_plain"),
            [=](CaseContext& c) { lstm_case(c, R, H, past, next, tanh_output, bound); });
  add("lstm_step_narrow", [](CaseContext& c) { lstm_narrow_case(c, 5, 37); });
  for (int64_t V : {7, 64, 1003})
    add(case_name("smoothed_loss", {V}), [=](CaseContext& c) {
      std::vector<int32_t> some = c.integers(6, V);
      some[2] = -1;
      const Ints targets = c.upload(some);
      const Tensor logits = c.parameters({6, V}, 3), row_loss = c.empty_parameters({6, 3}), dlogits = c.empty({6, V});
      c.backend.smoothed_loss(logits, {targets, 0.1}, row_loss, dlogits);
      c.output(row_loss), c.output(dlogits);
    });
  for (int64_t V : {7, 64, 1003})
    add(case_name("smoothed_loss_bounded", {V}), [=](CaseContext& c) {
      std::vector<int32_t> some = c.integers(6, V);
      some[2] = -1;
      const Ints targets = c.upload(some);
      const HostDeviceArray<float> weights = c.upload<float>({0.5f, -1.25f, 3.0f, 0.0f, 2.0f, 1.0f});
      const Tensor logits = c.parameters({6, V}, 3), row_loss = c.empty_parameters({6, 3}), dlogits = c.empty({6, V});
      c.backend.smoothed_loss(logits, {targets, 0.1, 2.5, weights}, row_loss, dlogits);
      c.output(row_loss), c.output(dlogits);
      const Tensor sums({3}, DType::f64, c.backend.memory()), unweighted({3}, DType::f64, c.backend.memory());
      c.backend.loss_sums(row_loss, {targets, 0.1, 2.5, weights}, sums), c.backend.loss_sums(row_loss, {targets}, unweighted);
      c.output(sums), c.output(unweighted);
    });
  for (int64_t V : {7, 64, 1003})
    for (double bound : {0.0, 2.5})
      add(case_name("paired_loss", {V}) + (bound > 0 ? "_bounded" : ""), [=](CaseContext& c) { paired_loss_case(c, V, bound); });
  for (auto [here, there] : {std::array<int64_t, 2>{3, 4}, {40, 64}, {1003, 700}})
    for (double bound : {0.0, 2.5})
      add(case_name("shard_loss", {here, there}) + (bound > 0 ? "_bounded" : ""),
          [=](CaseContext& c) { shard_loss_case(c, here, there, bound); });
  for (int64_t V : {7, 64, 1003})
    add(case_name("top_logits", {V}), [=](CaseContext& c) {
      const Tensor logits = c.parameters({6, V}, 3), values = c.empty_parameters({6, 5});
      const Tensor indices({6, 5}, DType::i32, c.backend.memory()), denominator({6, 2}, DType::f64, c.backend.memory());
      c.backend.top_logits(logits, 5, values, indices, denominator);
      c.output(values), c.output(indices), c.output(denominator);
    });
  for (int64_t V : {7, 64, 1003})
    for (double bound : {0.0, 1.5})
      add(case_name("linear_top_logits", {V}) + (bound > 0 ? "_bounded" : ""), [=](CaseContext& c) {
        const Tensor x = c.activations({8, 20}), w = c.parameters({V, 20}, 0.2), values = c.empty_parameters({6, 5});
        const Tensor indices({6, 5}, DType::i32, c.backend.memory()), denominator({6, 2}, DType::f64, c.backend.memory());
        const Tensor b = c.parameters({V});
        for (const auto& packed : {c.backend.pack(w, true, nullptr), c.backend.pack_constant(w, true)})
          for (const Tensor& bias : {Tensor(), b}) {
            c.backend.linear_top_logits(x, *packed, bias, bound, 5, values, indices, denominator);
            c.output(values), c.output(indices), c.output(denominator);
          }
      });
  for (int64_t V : {7, 64, 1003, 40000})
    add(case_name("sample", {V}), [=](CaseContext& c) {
      const Tensor logits = c.parameters({6, V}, 3);
      const Tensor tokens({6}, DType::i32, c.backend.memory());
      c.backend.sample(logits, c.upload<double>({0, 0.111, 0.35, 0.5, 0.87, 0.9999}), tokens);
      c.output(tokens);
    });
  for (bool decoupled : {false, true})
    add(decoupled ? "adamw" : "adam", [=](CaseContext& c) {
      const Tensor value = c.parameters({10003}), g = c.parameters({10003}), m = c.parameters({10003}, 0.1), v = c.parameters({10003}, 0.1);
      const Tensor average = c.parameters({10003});
      std::vector<double> squares = v.to_doubles();
      for (double& x : squares) x *= x;
      v.from_doubles(squares);
      c.backend.optimizer_step(value, g, {m, v}, AdamStep{1e-2, 0.9, 0.98, 1e-9, 0.01, decoupled, 0.5, 3});
      c.backend.moving_average(value, average, 0.9);
      c.output(value), c.output(m), c.output(v), c.output(average);
      const Tensor sum({1}, DType::f64, c.backend.memory());
      c.backend.sum_of_squares(g, sum);
      c.output(sum);
    });
  add("adagrad", [](CaseContext& c) {
    const Tensor value = c.parameters({10003}), g = c.parameters({10003}), v = c.parameters({10003}, 0.1);
    std::vector<double> squares = v.to_doubles();
    for (double& x : squares) x *= x;
    v.from_doubles(squares);
    c.backend.optimizer_step(value, g, {v}, AdagradStep{1e-2, 1e-9, 0.01, 0.5});
    c.output(value), c.output(v);
  });
  add("sgd", [](CaseContext& c) {
    const Tensor value = c.parameters({10003}), g = c.parameters({10003});
    c.backend.optimizer_step(value, g, {}, SgdStep{0.5, 0.01, 0.25});
    c.output(value);
  });
  add_attention_cases(cases);
  add_layer_cases(cases);
  return cases;
}

}  // namespace starling
