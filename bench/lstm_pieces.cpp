// What it costs to run an LSTM layer in pieces of time (autograd/time_order.h): forward and backward pass with one thread, whole and in
// pieces, interleaved; the fastest of the rounds. Usage: bench_lstm_pieces [width=512] [sentences=64] [tokens=30] [rounds=15]
// [backend=cpu:f32]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include "autograd/ops.h"
#include "autograd/recurrent.h"

namespace starling {
namespace {

struct Seconds {
  double forward = 1e9, backward = 1e9;
};

// Of the processor, so that others who use it disturb less.
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void measure(int64_t D, int64_t sentences, int64_t tokens, int rounds, const char* spec) {
  const auto backend = make_backend(spec, 1);
  ParameterStore store(*backend);
  const Initializer uniform{Initializer::uniform, 0.1};
  Parameter &w = store.add("input", {D, 4 * D}, uniform), &b = store.add("bias", {4 * D}, {});
  Parameter& recurrent = store.add("recurrent", {D, 4 * D}, uniform);
  store.allocate(1, true);
  PackedTokens batch;
  const std::vector<int32_t> sentence(static_cast<size_t>(tokens), 1);
  for (int64_t i = 0; i < sentences; ++i) batch.append(sentence.data(), sentence.data() + tokens);
  const Tensor input({(sentences * tokens + 63) / 64 * 64, D}, backend->activation(), backend->memory());
  input.from_doubles(std::vector<double>(static_cast<size_t>(input.count()), 0.25));
  Arena arena(backend->memory());
  const auto pass = [&](int64_t count, Seconds& fastest) {
    arena.release({});
    GradientSum sum(store);
    Tape tape(store, arena, sum, 1, 1);
    const TimeOrder whole = time_order(tape, batch, 64);
    const std::vector<TimeOrder> pieces = count > 0 ? time_pieces(tape, whole, count, 64) : std::vector{whole};
    LstmState state;
    std::vector<Var> y;
    const double start = now();
    for (const TimeOrder& piece : pieces) {
      const Var x = tape.record(input.rows(piece.first_row, piece.first_row + piece.rows()), [](const Tensor&) {});
      y.push_back(lstm(linear(x, w, &b), recurrent, piece, {}, {}, &state));
    }
    const double middle = now();
    for (const Var& part : y) {
      const Tensor dy = tape.allocate_like(part.value);
      dy.copy_from(part.value);
      tape.set_gradient(part, dy);
    }
    tape.backward();
    fastest.forward = std::min(fastest.forward, middle - start), fastest.backward = std::min(fastest.backward, now() - middle);
  };
  std::map<int64_t, Seconds> seconds;
  for (int round = 0; round < rounds; ++round)
    for (int64_t count : {0, 1, 2, 4, 8, 15, 30}) pass(count, seconds[count]);
  const Seconds whole = seconds[0];
  fmt::print("width {}, {} sentences of {} tokens, {}\n{:>6} {:>6} {:>11} {:>12} {:>6}\n", D, sentences, tokens, backend->describe(),
             "pieces", "rows", "forward ms", "backward ms", "ratio");
  for (const auto& [count, s] : seconds)
    fmt::print("{:6} {:6} {:11.2f} {:12.2f} {:6.3f}\n", count > 0 ? std::to_string(count) : "whole",
               sentences * tokens / std::max<int64_t>(count, 1), s.forward * 1e3, s.backward * 1e3,
               (s.forward + s.backward) / (whole.forward + whole.backward));
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::strtoll(argv[i], nullptr, 10) : otherwise; };
  starling::measure(number(1, 512), number(2, 64), number(3, 30), static_cast<int>(number(4, 15)), argc > 5 ? argv[5] : "cpu:f32");
}
