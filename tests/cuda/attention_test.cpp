// Attention beyond the op table: sentences of many tiles, wide and odd heads, rows that no sentence has, lists of any length.
#include <cmath>
#include <numeric>

#include "backend/dropout.h"
#include "tests/cuda/same_as_reference.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

struct Sentences {
  std::vector<std::pair<int, int>> lengths;  // queries and keys of each sentence
  int64_t heads = 1, width = 8;
  bool causal = false;
  double dropout = 0;
  int64_t first_head = 0;
  int before = 0, behind = 0;  // rows that no sentence has
  bool aligned = false;        // rows and columns begin at multiples of 16 bytes: tensor cores take what is in bf16 then
};

// q, k and v do not begin at the first column, nor does anything follow from where they do.
void attention_case(CaseContext& c, const Sentences& s) {
  std::vector<int32_t> query{s.before}, key{s.before};
  for (const auto& [q, k] : s.lengths) query.push_back(query.back() + q), key.push_back(key.back() + k);
  const int64_t D = s.heads * s.width, Nq = query.back() + s.behind, Nk = key.back() + s.behind;
  const AttentionLayout layout{c.upload(query), c.upload(key), s.heads, s.causal, s.first_head};
  const int64_t begin = s.aligned ? 8 : 2;
  const Backend::AttentionInput in{c.activations({Nq, D + (s.aligned ? 16 : 3)}, 0.7),
                                   c.activations({Nk, 2 * D + (s.aligned ? 8 : 1)}, 0.7), begin, D, 0};
  const Tensor y = c.activations({Nq, D}), lse = c.empty_parameters({Nq, s.heads}), dy = c.activations({Nq, D});
  const Dropout d = s.dropout > 0 ? Dropout{s.dropout, 0xabcdef123456ull, c.keys(Nq)} : Dropout{};
  c.backend.attention(in, layout, d, y, lse);
  c.output(y.rows(s.before, Nq)), c.output(lse.rows(s.before, query.back()));
  const Tensor dq = c.activations(in.q.shape()), dkv = c.activations(in.kv.shape());
  c.backend.attention_backward(in, layout, d, lse, dy, dq, dkv);
  c.output(dq), c.output(dkv);
}

TEST(CudaAttention, SentencesOfManyTiles) {
  const std::vector<std::pair<int, int>> lengths{{64, 64}, {1, 129}, {65, 65}, {200, 63}, {128, 150}, {3, 2}};
  for (const bool causal : {false, true})
    for (const double dropout : {0.0, 0.3})
      expect_same_as_reference(causal ? "causal" : "all", [&](CaseContext& c) {
        attention_case(c, {lengths, 2, 12, causal, dropout, 3, 0, 5});
      });
}

TEST(CudaAttention, OnTensorCores) {
  const std::vector<std::pair<int, int>> lengths{{64, 64}, {1, 129}, {65, 65}, {130, 63}, {80, 150}, {3, 2}};
  for (const bool causal : {false, true})
    for (const double dropout : {0.0, 0.3})
      expect_same_as_reference(causal ? "causal" : "all", [&](CaseContext& c) {
        attention_case(c, {lengths, 2, 16, causal, dropout, 3, 0, 5, true});
      });
  for (const int64_t width : {8, 24, 32, 40, 64, 72})
    expect_same_as_reference(std::to_string(width), [&](CaseContext& c) {
      attention_case(c, {{{9, 30}, {70, 90}, {17, 16}}, 2, width, width % 16 == 0, 0.1, 0, 0, 0, true});
    });
  for (const int longest : {1, 15, 16, 17, 33, 48, 64})
    expect_same_as_reference(std::to_string(longest), [&](CaseContext& c) {
      attention_case(c, {{{longest, 1}, {1, longest}, {longest, longest}, {2, 5}}, 3, 8, false, 0.2, 0, 0, 0, true});
    });
  expect_same_as_reference("idle", [](CaseContext& c) { attention_case(c, {{{5, 7}, {3, 2}}, 2, 8, false, 0, 0, 3, 6, true}); });
  for (const int longest : {20, 40, 80})
    expect_same_as_reference("no queries", [&](CaseContext& c) {
      attention_case(c, {{{0, 7}, {3, 2}, {0, longest}}, 2, 8, false, 0, 0, 0, 2, true});
    });
}

TEST(CudaAttention, HeadsOfAnyWidth) {
  for (const int64_t width : {1, 6, 7, 33, 64, 65, 130, 192})
    expect_same_as_reference(std::to_string(width), [&](CaseContext& c) {
      attention_case(c, {{{9, 30}, {70, 90}, {17, 16}}, 2, width, width % 2 == 0, 0.1});
    });
}

// Of one tile, the usual case, in all sizes of blocks.
TEST(CudaAttention, ShortSentences) {
  for (const int longest : {1, 15, 16, 17, 33, 48, 64})
    expect_same_as_reference(std::to_string(longest), [&](CaseContext& c) {
      attention_case(c, {{{longest, 1}, {1, longest}, {longest, longest}, {2, 5}}, 3, 20, false, 0.2});
    });
}

TEST(CudaAttention, OutputsOfRowsWithoutSentenceAreZero) {
  expect_same_as_reference("idle", [](CaseContext& c) { attention_case(c, {{{5, 7}, {3, 2}}, 2, 8, false, 0, 0, 3, 6}); });
  expect_same_as_reference("no queries", [](CaseContext& c) { attention_case(c, {{{0, 7}, {3, 2}, {0, 80}}, 2, 8, false, 0, 0, 0, 2}); });
  expect_same_as_reference("no sentences", [](CaseContext& c) { attention_case(c, {{}, 2, 8, false, 0, 0, 0, 4}); });
  expect_same_as_reference("no rows", [](CaseContext& c) { attention_case(c, {{}, 2, 8}); });
}

// Without keys there is nothing to attend to: what the reference leaves open is zero here.
TEST(CudaAttention, SentencesWithoutKeys) {
  constexpr size_t kWidth = 16;  // two heads
  for (const char* spec : {"cuda-emulated:f32", "cuda-emulated:bf16"})
    for (const int32_t keys : {4, 40, 80}) {
      const auto backend = make_backend(spec);
      CaseContext c(*backend, 3);
      const AttentionLayout layout{c.upload<int32_t>({0, 2, 5}), c.upload<int32_t>({0, 0, keys}), 2};
      const Tensor kv = c.activations({keys, 2 * kWidth}), dkv = c.activations({keys, 2 * kWidth});
      const Tensor y = c.activations({5, kWidth}), lse = c.empty_parameters({5, 2}), dq = c.activations({5, kWidth});
      const Backend::AttentionInput in{c.activations({5, kWidth}), kv, 0, 0, kWidth};
      c.backend.attention(in, layout, {}, y, lse);
      c.backend.attention_backward(in, layout, {}, lse, y, dq, dkv);
      const std::vector<double> out = y.to_doubles(), gradient = dq.to_doubles();
      for (size_t i = 0; i < 2 * kWidth; ++i) EXPECT_TRUE(out[i] == 0 && gradient[i] == 0) << i;
      for (size_t i = 2 * kWidth; i < 5 * kWidth; ++i) EXPECT_TRUE(std::isfinite(out[i]) && out[i] != 0 && gradient[i] != 0) << i;
    }
}

// A large score for one key, and values that tell keys apart: the softmax must not overflow, whichever tile has it.
TEST(CudaAttention, LargeScores) {
  const auto backend = make_backend("cuda-emulated:f32");
  CaseContext c(*backend, 3);
  for (const int64_t peak : {0, 70, 199}) {
    const AttentionLayout layout{c.upload<int32_t>({0, 1}), c.upload<int32_t>({0, 200}), 1};
    std::vector<double> kv;
    for (int64_t j = 0; j < 200; ++j) kv.insert(kv.end(), {j == peak ? 300.0 : -300.0, static_cast<double>(j)});
    const Tensor q = c.empty({1, 1}), pairs = c.empty({200, 2}), y = c.empty({1, 1}), lse = c.empty_parameters({1, 1});
    q.from_doubles(std::vector<double>{2}), pairs.from_doubles(kv);
    c.backend.attention({q, pairs, 0, 0, 1}, layout, {}, y, lse);
    EXPECT_EQ(y.to_doubles()[0], peak);
    EXPECT_EQ(lse.to_doubles()[0], 600);
  }
}

// Which keys a query loses is written down in backend/dropout.h: with values that name their keys and equal scores, bit for bit.
TEST(CudaAttention, MasksAreThoseOfTheOtherBackends) {
  const auto backend = make_backend("cuda-emulated:f32");
  constexpr int64_t kQueries = 3, kKeys = 300, kFirstHead = 5;
  CaseContext c(*backend, 3);
  const RowKeys rows{c.upload<uint32_t>({7, 7, 900}), c.upload<uint32_t>({0, 12, 3})};
  const Dropout d{0.4, 0x1122334455667788ull, rows};
  for (const int64_t key : {0, 1, 15, 16, 63, 64, 100, 127, 128, 190, 255, 256, 299}) {
    std::vector<double> kv(2 * kKeys, 0.0);
    kv[static_cast<size_t>(2 * key + 1)] = 1;
    const Tensor q = c.activations({kQueries, 1}), pairs = c.empty({kKeys, 2}), y = c.empty({kQueries, 1});
    pairs.from_doubles(kv);
    c.backend.attention({q, pairs, 0, 0, 1}, {c.upload<int32_t>({0, kQueries}), c.upload<int32_t>({0, kKeys}), 1, false, kFirstHead}, d, y,
                        c.empty_parameters({kQueries, 1}));
    const std::vector<double> got = y.to_doubles();
    for (size_t i = 0; i < kQueries; ++i) {
      const uint32_t bits = dropout_bits(dropout_head_key(d.key, kFirstHead), rows.sentence[i], rows.position[i], key);
      EXPECT_NEAR(got[i], bits < d.threshold() ? 0 : d.scale() / kKeys, 1e-8) << "query " << i << ", key " << key;
    }
  }
}

TEST(CudaAttention, EqualInputsGiveEqualBits) {
  const auto run = [](const char* spec) {
    const auto backend = make_backend(spec);
    return outputs_of({"", [](CaseContext& c) { attention_case(c, {{{70, 150}, {30, 20}}, 2, 20, false, 0.2}); }}, *backend);
  };
  EXPECT_EQ(run("cuda-emulated:f32"), run("cuda-emulated:f32"));  // threads run in another order
}

void cached_case(CaseContext& c, std::vector<int32_t> lengths, int64_t heads, int64_t width, bool weighted, int64_t offset) {
  const int64_t D = heads * width, R = static_cast<int64_t>(lengths.size());
  std::vector<int32_t> offsets{0};
  for (const int32_t n : lengths) offsets.push_back(offsets.back() + n);
  const Tensor q = c.activations({R + 1, D + 5}, 0.7), kv = c.activations({40, 2 * D + 3}, 0.7), y = c.empty({R, D});
  const Tensor weights = weighted ? Tensor({std::max(offsets.back(), 1)}, DType::f32, c.backend.memory()) : Tensor();
  if (weighted) weights.zero();
  c.backend.attend_cached({q, kv, offset, offset, D}, c.upload(c.integers(offsets.back(), 40)), c.upload(offsets), heads, y, weights);
  c.output(y);
  if (weighted) c.output(weights);
}

TEST(CudaAttention, CachedListsOfAnyLength) {
  for (const bool weighted : {false, true})
    for (const int64_t offset : of_cases<int64_t>({1, 0}, 1))
      for (const auto& [heads, width] : {std::pair<int64_t, int64_t>{1, 4}, {4, 64}, {20, 5}, {3, 7}, {2, 72}, {2, 130}, {1, 300}})
        expect_same_as_reference(std::to_string(heads) + " heads of " + std::to_string(width), [&](CaseContext& c) {
          cached_case(c, {1, 31, 32, 0, 33, 200, 3}, heads, width, weighted, offset);
        });
  expect_same_as_reference("no rows", [](CaseContext& c) { cached_case(c, {}, 2, 8, true, 0); });
  expect_same_as_reference("nothing cached", [](CaseContext& c) { cached_case(c, {0, 0}, 2, 8, true, 0); });
}

// The first row is in no list, but has the largest score.
TEST(CudaAttention, CachedRowsOutsideTheListDoNotMatter) {
  const auto backend = make_backend("cuda-emulated:f32");
  CaseContext c(*backend, 3);
  const Tensor q = c.empty({1, 1}), kv = c.empty({3, 2}), y = c.empty({1, 1});
  q.from_doubles(std::vector<double>{1}), kv.from_doubles(std::vector<double>{500, 9, 0, 2, 0, 4});
  c.backend.attend_cached({q, kv, 0, 0, 1}, c.upload<int32_t>({1, 2}), c.upload<int32_t>({0, 2}), 1, y, Tensor());
  EXPECT_EQ(y.to_doubles()[0], 3);
}

}  // namespace
}  // namespace starling
