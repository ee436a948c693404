// Pieces of time: how steps are cut, and that LSTM layers which run piece by piece, as a wavefront through a stack, compute what they
// compute of whole sentences: values, gradients of everything, counts of clipped cells. Also with a tape and an arena for each piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "autograd/ops.h"
#include "autograd/recurrent.h"
#include "backend/cpu/product_times.h"
#include "backend/meta.h"
#include "backend/profiled.h"
#include "base/random.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kMultiple = 8;

PackedTokens sentences_of(const std::vector<int32_t>& lengths) {
  PackedTokens sentences;
  for (int32_t n : lengths) {
    const std::vector<int32_t> tokens(static_cast<size_t>(n), 1);
    sentences.append(tokens.data(), tokens.data() + n);
  }
  return sentences;
}

std::vector<double> normal_numbers(int64_t n, uint64_t seed) {
  Random random(seed, seed);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = random.normal();
  return values;
}

class Pieces : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("reference");
  ParameterStore store_{*backend_};
  Arena arena_{backend_->memory()};
  GradientSum sum_{store_};
  Tape tape_{store_, arena_, sum_, 5, 6};
};

// Sentences of 1, 4 and 3 tokens: steps of 3, 2, 2 and 1 rows.
TEST_F(Pieces, AreOrdersOfTheirOwn) {
  const TimeOrder whole = time_order(tape_, sentences_of({1, 4, 3}), 12);
  ASSERT_THAT(whole.step, ElementsAre(0, 3, 5, 7, 8));
  EXPECT_THAT(whole.packed, ElementsAre(1, 5, 0, 2, 6, 3, 7, 4, -1, -1, -1, -1));
  const std::vector<TimeOrder> two = time_pieces(tape_, whole, 2, 4);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(two[0].step, ElementsAre(0, 3, 5));
  EXPECT_THAT(two[0].packed, ElementsAre(1, 5, 0, 2, 6, -1, -1, -1));
  EXPECT_THAT(two[0].row_of, ElementsAre(2, 0, 3, -1, -1, 1, 4, -1, -1, -1, -1, -1));
  EXPECT_THAT(two[0].earlier, ElementsAre(-1, -1, -1, 0, 1, -1, -1, -1));
  EXPECT_THAT(two[0].later, ElementsAre(3, 4, -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(two[1].step, ElementsAre(0, 2, 3));
  EXPECT_THAT(two[1].packed, ElementsAre(3, 7, 4, -1));
  EXPECT_THAT(two[1].row_of, ElementsAre(-1, -1, -1, 0, 2, -1, -1, 1, -1, -1, -1, -1));
  EXPECT_THAT(two[1].earlier, ElementsAre(-1, -1, 0, -1));
  EXPECT_THAT(two[1].later, ElementsAre(2, -1, -1, -1));
  EXPECT_THAT((std::vector{two[0].first_row, two[0].before, two[0].after}), ElementsAre(0, 0, 2));
  EXPECT_THAT((std::vector{two[1].first_row, two[1].before, two[1].after}), ElementsAre(5, 2, 0));

  const HostDeviceArray<uint32_t> numbers = tape_.upload(std::vector<uint32_t>{10, 11, 12, 13, 14, 15, 16, 17, 9, 9, 9, 9});
  EXPECT_THAT(piece_numbers(tape_, two[1], numbers, 99), ElementsAre(15, 16, 17, 99));
  const RowKeys keys = piece_keys(tape_, two[1], {numbers, numbers});
  EXPECT_THAT(keys.sentence, ElementsAre(15, 16, 17, 0xffffffffu));
  EXPECT_THAT(keys.position, ElementsAre(15, 16, 17, 0));
}

TEST_F(Pieces, HaveAboutEqualRowsAndNoneIsEmpty) {
  const auto rows = [&](const std::vector<int32_t>& lengths, int64_t pieces) {
    std::vector<int64_t> rows;
    for (const TimeOrder& piece : time_pieces(tape_, time_order(tape_, sentences_of(lengths), 1), pieces, 1))
      rows.push_back(piece.tokens());
    return rows;
  };
  EXPECT_THAT(rows({6, 6, 6}, 3), ElementsAre(6, 6, 6));
  EXPECT_THAT(rows({9, 3, 3}, 3), ElementsAre(6, 4, 5));  // steps of 3, 3, 3, 1, 1, 1, 1, 1, 1
  EXPECT_THAT(rows({3, 1, 1, 1, 1, 1, 1, 1}, 3), ElementsAre(8, 1, 1));
  EXPECT_THAT(rows({2, 2}, 5), ElementsAre(2, 2));
  EXPECT_THAT(rows({4}, 1), ElementsAre(4));
  EXPECT_THAT(rows({}, 3), ElementsAre());
}

// How a stack of LSTM layers is run.
struct Run {
  int64_t pieces = 0;  // 0: of whole sentences
  bool tape_a_piece = false;
};
struct Results {
  std::vector<double> y, dx, gradients;
  double clipped = 0;
};

class Stack {
 public:
  static constexpr int64_t kWidth = 24;

  Stack(const std::string& spec, int64_t layers, const LstmOptions& options)
      : backend_(make_backend(spec, 1)), store_(*backend_), options_(options) {
    for (int64_t i = 0; i < layers; ++i) {
      const auto add = [&](const char* kind, const Shape& shape) {
        return &store_.add(kind + std::to_string(i), shape, {Initializer::normal, 0.4});
      };
      layers_.push_back({add("input", {kWidth, 4 * kWidth}), add("recurrent", {kWidth, 4 * kWidth}), add("bias", {4 * kWidth}),
                         DropoutSite("layer " + std::to_string(i))});
    }
    store_.allocate(9, true);
  }

  Results run(const Run& run) {
    const auto K = static_cast<size_t>(run.pieces);
    // The tape before the layers, those of the pieces in the order in which they run, and the one behind them; or one for all.
    const size_t tapes = run.tape_a_piece ? K + 2 : 1;
    GradientSum sum(store_);
    std::deque<Arena> arenas;
    std::deque<Tape> all;
    for (size_t i = 0; i < tapes; ++i) arenas.emplace_back(backend_->memory()), all.emplace_back(store_, arenas[i], sum, 5, 6);
    Tape& before = all.front();
    Tape& behind = all.back();

    const TimeOrder whole = time_order(before, sentences_, kMultiple);
    Tensor input({whole.rows(), kWidth}, backend_->activation(), backend_->memory());
    input.rows(0, whole.tokens()).from_doubles(normal_numbers(whole.tokens() * kWidth, 7));
    clipped_ = Tensor({1}, DType::f64, backend_->memory());
    Results results;
    const Var x = before.record(input, [&](const Tensor& dx) { results.dx = dx.to_doubles(); });
    const RowKeys keys = keys_of(before, whole);

    std::vector<TimeOrder> pieces{whole};
    std::vector<Var> parts{x};
    std::vector<RowKeys> piece_rows{keys};
    if (K > 0) pieces = time_pieces(before, whole, run.pieces, kMultiple), parts.clear(), piece_rows.clear();
    const auto n = static_cast<int64_t>(pieces.size());
    const auto turn = [&](int64_t q) { return options_.reverse ? n - 1 - q : q; };  // the piece that comes as the q-th
    const auto tape_of = [&](int64_t q) -> Tape& { return run.tape_a_piece ? all[static_cast<size_t>(q) + 1] : before; };
    if (K > 0)
      for (int64_t c = 0; c < n; ++c) {
        parts.push_back(move_to(tape_of(turn(c)), take_piece(x, pieces[c])));
        piece_rows.push_back(piece_keys(tape_of(turn(c)), pieces[c], keys));
      }
    std::vector<Dropout> dropouts;  // of a whole layer
    for (const Layer& layer : layers_) dropouts.push_back(before.dropout(kDropout, layer.site, keys));

    // Wavefronts: piece q of layer i after piece q of the layer below and piece q - 1 of its own.
    std::vector<LstmState> states(layers_.size());
    for (int64_t front = 0; front < n + static_cast<int64_t>(layers_.size()) - 1; ++front)
      for (size_t i = 0; i < layers_.size(); ++i) {
        const int64_t q = front - static_cast<int64_t>(i);
        if (q < 0 || q >= n) continue;
        Dropout dropout = dropouts[i];
        dropout.rows = piece_rows[turn(q)];
        if (run.tape_a_piece) dropout = tape_of(q).dropout(kDropout, layers_[i].site, piece_rows[turn(q)]);
        parts[turn(q)] = layer(layers_[i], parts[turn(q)], pieces[turn(q)], dropout, K > 0 ? &states[i] : nullptr);
      }
    for (Var& part : parts) part = move_to(behind, part);
    const Var y = K > 0 ? join_pieces(parts, pieces, whole) : parts[0];
    results.y = y.value.to_doubles();
    results.clipped = clipped_.to_doubles()[0];

    const Tensor dy = behind.allocate_like(y.value);
    dy.zero();
    dy.rows(0, whole.tokens()).from_doubles(normal_numbers(whole.tokens() * kWidth, 8));
    behind.set_gradient(y, dy);
    for (size_t i = all.size(); i-- > 0;) all[i].backward(), arenas[i].release({});
    sum.complete();
    results.gradients = store_.gradients().to_doubles();
    return results;
  }

 private:
  static constexpr double kDropout = 0.3;
  struct Layer {
    Parameter *input, *recurrent, *bias;
    DropoutSite site;
  };

  static RowKeys keys_of(Tape& tape, const TimeOrder& order) {
    std::vector<uint32_t> sentence, position;
    for (int32_t packed : order.packed) {
      sentence.push_back(packed < 0 ? 0xffffffffu : static_cast<uint32_t>(packed) / 3);
      position.push_back(packed < 0 ? 0 : static_cast<uint32_t>(packed) % 3);
    }
    return {tape.upload(sentence), tape.upload(position)};
  }

  Var layer(const Layer& layer, const Var& x, const TimeOrder& order, const Dropout& mask, LstmState* state) {
    const Var gates = linear(dropout(x, mask), *layer.input, layer.bias);
    const Var y = residual(x, lstm(gates, *layer.recurrent, order, options_, clipped_, state), {});
    return options_.bound > 0 ? clamp(y, options_.bound, clipped_) : y;
  }

  std::unique_ptr<Backend> backend_;
  ParameterStore store_;
  LstmOptions options_;
  std::vector<Layer> layers_;
  Tensor clipped_;
  PackedTokens sentences_ = sentences_of({7, 3, 12, 1, 5, 9, 9, 2, 11, 12, 4, 6, 3, 3, 8, 10, 12, 6});
};

void expect_equal(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i])), difference = std::max(difference, std::abs(actual[i] - expected[i]));
    ASSERT_FALSE(std::isnan(actual[i])) << what << " " << i;
  }
  EXPECT_GT(largest, 0.01) << what;
  EXPECT_LE(difference, tolerance * largest) << what;
}

void expect_pieces_equal_the_whole(const std::string& spec, int64_t layers, const LstmOptions& options, const std::vector<Run>& runs) {
  SCOPED_TRACE(fmt::format("{}, {} layers{}{}, bound {}", spec, layers, options.reverse ? ", reverse" : "",
                           options.tanh_output ? "" : ", linear", options.bound));
  Stack stack(spec, layers, options);
  const Results whole = stack.run({});
  EXPECT_EQ(whole.clipped > 0, options.bound > 0);
  for (const Run& run : runs) {
    SCOPED_TRACE(fmt::format("{} pieces{}", run.pieces, run.tape_a_piece ? ", a tape each" : ""));
    const Results pieces = stack.run(run);
    const double tolerance = spec == "reference" ? 1e-12 : 1e-5;
    expect_equal(pieces.y, whole.y, tolerance, "values");
    expect_equal(pieces.dx, whole.dx, tolerance, "gradient of the input");
    expect_equal(pieces.gradients, whole.gradients, tolerance, "gradients of the parameters");
    EXPECT_EQ(pieces.clipped, whole.clipped);
  }
}

const std::vector<LstmOptions> kOptions{{}, {true}, {false, false, 0.4}, {true, true, 0.3}};

TEST_F(Pieces, OfOneLayerEqualTheWhole) {
  for (const char* spec : {"reference", "cpu:f32"})
    for (const LstmOptions& options : kOptions) expect_pieces_equal_the_whole(spec, 1, options, {{1}, {2}, {3}, {50}});
}

TEST_F(Pieces, OfThreeLayersAsAWavefrontEqualTheWhole) {
  for (const char* spec : {"reference", "cpu:f32"})
    for (const LstmOptions& options : kOptions) expect_pieces_equal_the_whole(spec, 3, options, {{1}, {2}, {3}, {50}});
}

// Backwards through one piece after the other, each giving its memory back before the next begins.
TEST_F(Pieces, OnATapeEachEqualTheWhole) {
  for (const char* spec : {"reference", "cpu:f32"})
    for (const LstmOptions& options : kOptions) expect_pieces_equal_the_whole(spec, 3, options, {{1, true}, {2, true}, {4, true}});
}

// Two pieces of one layer of which only one is used: the other gets its gradient through the state alone, or none.
TEST_F(Pieces, WhoseOutputNobodyUsesPassOnWhatFlowsThroughTheirState) {
  Parameter& w = store_.add("recurrent", {3, 12}, {Initializer::normal, 0.5});
  store_.allocate(9, true);
  const PackedTokens sentences = sentences_of({2, 5, 1, 4});
  for (bool reverse : {false, true})
    for (int64_t used : {0, 1}) {
      std::vector<std::vector<double>> dx, dw;
      for (bool whole : {true, false}) {
        arena_.release({});
        arena_.allocate({4096}, DType::f64).from_doubles(std::vector<double>(4096, NAN));  // what a pass does not write shows
        arena_.release({});
        GradientSum sum(store_);
        Tape tape(store_, arena_, sum, 5, 6);
        const TimeOrder order = time_order(tape, sentences, 12);
        const std::vector<TimeOrder> pieces = time_pieces(tape, order, 2, 4);
        const Tensor input({12, 12}, DType::f64, backend_->memory());
        input.from_doubles(normal_numbers(input.count(), 3));
        const Var x = tape.record(input, [&](const Tensor& d) { dx.push_back(d.rows(0, order.tokens()).to_doubles()); });
        const Tensor dy = tape.allocate({pieces[used].rows(), 3}, DType::f64);
        dy.from_doubles(normal_numbers(dy.count(), 4));
        Var y;
        if (whole) {
          y = take_piece(lstm(take_piece(x, order), w, order, {reverse}), pieces[used]);
        } else {
          LstmState state;
          std::vector<Var> outputs(2);
          for (int64_t q : {0, 1}) {
            const int64_t c = reverse ? 1 - q : q;
            outputs[c] = lstm(take_piece(x, pieces[c]), w, pieces[c], {reverse}, {}, &state);
          }
          EXPECT_FALSE(state.hidden.value);  // nothing goes on behind the last one
          y = outputs[used];
        }
        tape.set_gradient(y, dy);
        tape.backward();
        sum.complete();
        dw.push_back(w.gradient.to_doubles());
      }
      SCOPED_TRACE(fmt::format("{} piece {}", reverse ? "reverse" : "forwards", used));
      expect_equal(dx[1], dx[0], 1e-12, "gradient of the input");
      expect_equal(dw[1], dw[0], 1e-12, "gradient of the weight");
    }
}

TEST_F(Pieces, NeedTheStateBeforeThem) {
  Parameter& w = store_.add("recurrent", {3, 12}, {Initializer::normal, 0.5});
  store_.allocate(9, true);
  const TimeOrder whole = time_order(tape_, sentences_of({2, 5}), 12);
  const std::vector<TimeOrder> pieces = time_pieces(tape_, whole, 2, 12);
  const Var gates = tape_.record(tape_.allocate({12, 12}, DType::f64), [](const Tensor&) {});
  LstmState none;
  EXPECT_THAT([&] { lstm(gates, w, pieces[0], {}); }, ThrowsMessage<Error>(HasSubstr("a piece of time without a state")));
  EXPECT_THAT([&] { lstm(gates, w, pieces[1], {}, {}, &none); }, ThrowsMessage<Error>(HasSubstr("no state of the 1 sentences")));
}

// Of 8-bit recurrent weights in inference, whose cells have 16 bits: bit for bit.
TEST_F(Pieces, OfNarrowCellsEqualTheWhole) {
  const auto backend = make_backend("cpu:f32", 1);
  ParameterStore store(*backend);
  Parameter& w = store.add("recurrent", {24, 96}, {Initializer::normal, 0.5});
  store.allocate(9, false);
  w.quantized = true, w.input_bound = 0.5;
  const LstmOptions options{false, true, 0.5};
  Arena arena(backend->memory());
  Tape tape(store, arena);
  const TimeOrder whole = time_order(tape, sentences_of({7, 3, 12, 1, 5, 9}), kMultiple);
  const auto gates = [&] {
    const Tensor x = tape.allocate({whole.rows(), 96}, DType::f32);
    x.from_doubles(normal_numbers(x.count(), 3));
    return Var{&tape, -1, x};
  };
  const Tensor count({1}, DType::f64, backend->memory()), count_of_pieces({1}, DType::f64, backend->memory());
  const std::vector<double> expected = lstm(gates(), w, whole, options, count).value.to_doubles();
  const std::vector<TimeOrder> pieces = time_pieces(tape, whole, 3, kMultiple);
  std::vector<Var> parts;
  LstmState state;
  for (const TimeOrder& piece : pieces) {
    parts.push_back(lstm(take_piece(gates(), piece), w, piece, options, count_of_pieces, &state));
    EXPECT_TRUE(!state.cell.value || state.cell.value.dtype() == DType::i16);
  }
  EXPECT_EQ(join_pieces(parts, pieces, whole).value.to_doubles(), expected);
  EXPECT_GT(count.to_doubles()[0], 0);
  EXPECT_EQ(count.to_doubles(), count_of_pieces.to_doubles());
}

// As in timed runs, where nothing is computed: 64 sentences of 30 tokens, whose pieces need no padding rows.
TEST_F(Pieces, HaveTheProductsOfTheWhole) {
  MetaBackend idle(DType::f32, DType::f32);
  ProfiledBackend profiled(idle);
  ParameterStore store(profiled);
  Parameter &w = store.add("input", {16, 64}, {}), &recurrent = store.add("recurrent", {16, 64}, {});
  store.allocate(9, true);
  const auto products = [&](int64_t count) {
    profiled.clear();
    Arena arena(profiled.memory());
    GradientSum sum(store);
    Tape tape(store, arena, sum, 5, 6);
    const TimeOrder whole = time_order(tape, sentences_of(std::vector<int32_t>(64, 30)), 64);
    const std::vector<TimeOrder> pieces = time_pieces(tape, whole, count, 64);
    EXPECT_EQ(static_cast<int64_t>(pieces.size()), count);
    const Var x = tape.record(tape.allocate({whole.rows(), 16}, DType::f32), [](const Tensor&) {});
    std::vector<Var> parts;
    LstmState state;
    for (const TimeOrder& piece : pieces) parts.push_back(lstm(linear(take_piece(x, piece), w, nullptr), recurrent, piece, {}, {}, &state));
    const Var y = join_pieces(parts, pieces, whole);
    tape.set_gradient(y, tape.allocate_like(y.value));
    tape.backward();
    double flops = 0;
    for (const auto& [shape, calls] : profiled.products) flops += product_flops(shape) * static_cast<double>(calls);
    return flops;
  };
  // Of the input's weight and of the recurrent one, each forwards, for its input and for its own gradient; the first step has no product
  // with the recurrent weight, but rows in its gradient.
  const double row = 2.0 * 16 * 64, steps = 30, B = 64;
  const double expected = row * B * (steps * 3 + (steps - 1) * 2 + steps);
  for (int64_t count : {1, 2, 5, 30}) EXPECT_EQ(products(count), expected) << count;
}

}  // namespace
}  // namespace starling
