// Recurrent ops beyond the op table: cells of 16 bits, long sentences, rows that no sentence has, numbers that are none.
#include <cmath>
#include <limits>

#include "tests/cuda/same_as_reference.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

// They may round to either side where the sum lies between two units.
TEST(CudaRecurrent, NarrowCellsMatchReferenceToOneUnit) {
  const auto cells = [](const char* spec) {
    const auto backend = make_backend(spec);
    CaseContext c(*backend, 5);
    const int64_t R = 7, H = 37;
    const Tensor gates = c.activations({R, 4 * H}), recurrent = c.parameters({R, 4 * H}), hidden = c.empty({R, H});
    const Tensor before({R, H}, DType::i16, backend->memory()), cell({R, H}, DType::i16, backend->memory());
    std::vector<double> units;
    for (int32_t u : c.integers(R * H, 65535)) units.push_back(u - 32767);
    before.from_doubles(units);
    c.backend.lstm_step({gates, recurrent, before, 4, cell, hidden, false, 0.75});
    return cell.to_doubles();
  };
  const std::vector<double> expected = cells("reference");
  EXPECT_EQ(*std::max_element(expected.begin(), expected.end()), 32767);  // some are clipped, and to the very bound
  for (const char* spec : {"cuda-emulated:f32", "cuda-emulated:bf16"}) {
    const std::vector<double> actual = cells(spec);
    int64_t different = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1) << i;
      different += actual[i] != expected[i];
    }
    EXPECT_LE(different, 5) << spec;
  }
}

// The count of clipped cells is added to what is there; without a bound, or anybody to tell, nothing is counted.
TEST(CudaRecurrent, ClippedCellsAreCounted) {
  const auto backend = make_backend("cuda-emulated:f32");
  CaseContext c(*backend, 5);
  const int64_t R = 9, H = 100;
  const Tensor clipped({1}, DType::f64, backend->memory()), cell = c.empty_parameters({R, H}), hidden = c.empty({R, H});
  clipped.from_doubles(std::vector<double>{5});
  const auto step = [&](double bound, const Tensor& count) {
    c.backend.lstm_step({c.activations({R, 4 * H}, 2), Tensor(), Tensor(), 0, cell, hidden, true, bound, count});
  };
  step(0, clipped), step(0.1, Tensor());
  EXPECT_EQ(clipped.to_doubles()[0], 5);
  step(0.25, clipped);
  int64_t expected = 5;
  for (const double x : cell.to_doubles()) expected += std::abs(x) == 0.25;
  EXPECT_EQ(clipped.to_doubles()[0], expected);
  EXPECT_GT(expected, 100);
}

TEST(CudaRecurrent, NotANumberSurvives) {
  const auto backend = make_backend("cuda-emulated:f32");
  const int64_t H = 5;
  for (int64_t gate = 0; gate < 4; ++gate) {
    CaseContext c(*backend, 5);
    std::vector<double> values(4 * H, 0.5);
    values[static_cast<size_t>(gate * H + 2)] = std::numeric_limits<double>::quiet_NaN();
    const Tensor gates = c.empty({1, 4 * H}), before = c.parameters({1, H}), cell = c.empty_parameters({1, H}), hidden = c.empty({1, H});
    gates.from_doubles(values);
    LstmStep step{gates, c.parameters({1, 4 * H}), before, 1, cell, hidden};
    step.bound = 1;
    c.backend.lstm_step(step);
    const std::vector<double> out = hidden.to_doubles();
    for (size_t i = 0; i < H; ++i) EXPECT_EQ(std::isnan(out[i]), i == 2) << gate << " " << i;
  }
}

TEST(CudaRecurrent, StepsOfNoRows) {
  const auto backend = make_backend("cuda-emulated:f32");
  CaseContext c(*backend, 5);
  const Tensor clipped({1}, DType::f64, backend->memory()), none({0, 8}, DType::f32, backend->memory());
  clipped.zero();
  const Tensor gates({0, 32}, DType::f32, backend->memory());
  c.backend.lstm_step({gates, Tensor(), Tensor(), 0, none, none, true, 0.5, clipped});
  c.backend.lstm_step_backward({gates, Tensor(), 0, none, none, Tensor(), none, 0, true, 0.5});
  EXPECT_EQ(clipped.to_doubles()[0], 0);
}

struct AttendedSentences {
  std::vector<std::pair<int, int>> lengths;  // queries and keys
  int before = 0, behind = 0;                // rows that no sentence has
};
void global_case(CaseContext& c, const AttendedSentences& s, int64_t A, int64_t D, bool additive, Write write, bool guided = false) {
  std::vector<int32_t> query{s.before}, key{s.before};
  int64_t pairs = 0;
  for (const auto& [q, k] : s.lengths) query.push_back(query.back() + q), key.push_back(key.back() + k), pairs += q * k;
  const int64_t Nq = query.back() + s.behind, Nk = key.back() + s.behind;
  const AttentionLayout layout{c.upload(query), c.upload(key)};
  const Tensor v = additive ? c.parameters({A}) : Tensor();
  const Backend::GlobalAttention in{c.activations({Nq, A}), c.activations({Nk, A}), v, c.activations({Nk, D})};
  // A weight more than there are pairs, since a tensor has one.
  const Tensor y = c.activations({Nq, D}), weights = c.parameters({pairs + 1}), dy = c.activations({Nq, D});
  c.backend.global_attention(in, layout, y, weights);
  c.output(y), c.output(weights);
  const Tensor dweights = guided ? c.parameters({pairs + 1}) : Tensor();
  const Tensor dq = c.activations({Nq, A}), dk = c.activations({Nk, A}), dmemory = c.activations({Nk, D});
  const Tensor dv = additive ? c.parameters({A}) : Tensor();
  c.backend.global_attention_backward(in, layout, weights, dy, dweights, dq, dk, dmemory, write, dv, write);
  c.output(dq), c.output(dk), c.output(dmemory);
  if (additive) c.output(dv);
}

TEST(CudaRecurrent, GlobalAttentionOfAnySentences) {
  for (const bool additive : {true, false})
    for (const Write write : of_cases<Write>({Write::accumulate, Write::overwrite}, 1))
      for (const AttendedSentences& s : {AttendedSentences{{{9, 300}, {8, 31}, {0, 2}, {4, 0}, {100, 33}}, 2, 3},
                                         AttendedSentences{{}, 0, 4}, AttendedSentences{{{0, 3}}}})
        expect_same_as_reference(std::to_string(s.lengths.size()) + (additive ? " additive" : " dot"),
                                 [&](CaseContext& c) { global_case(c, s, 37, 260, additive, write, !additive); });
}

// So many that each block adds up the pairs of others with all its threads.
TEST(CudaRecurrent, GlobalAttentionOfManySentences) {
  AttendedSentences s;
  for (int b = 0; b < 300; ++b) s.lengths.emplace_back(b % 3, 1 + b % 4);
  expect_same_as_reference("many", [&](CaseContext& c) { global_case(c, s, 5, 6, true, Write::accumulate); });
}

TEST(CudaRecurrent, EqualInputsGiveEqualBits) {
  const auto run = [] {
    const auto backend = make_backend("cuda-emulated:f32");
    return outputs_of({"", [](CaseContext& c) { global_case(c, {{{20, 40}, {30, 20}}}, 40, 50, true, Write::overwrite); }}, *backend);
  };
  EXPECT_EQ(run(), run());  // threads run in another order
}

}  // namespace
}  // namespace starling
