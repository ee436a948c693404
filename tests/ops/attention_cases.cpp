// Cases of attention: with heads, with relative positions, over cached keys, and that of recurrent models.
#include "tests/ops/cases.h"

namespace starling {
namespace {

struct CaseSentences {
  std::vector<int32_t> query{0}, key{0};
};
CaseSentences sentences(std::initializer_list<std::pair<int, int>> lengths) {
  CaseSentences s;
  for (auto [q, k] : lengths) s.query.push_back(s.query.back() + q), s.key.push_back(s.key.back() + k);
  return s;
}

void attention_case(CaseContext& c, int64_t heads, int64_t width, bool self, bool causal, double p, int64_t first_head = 0) {
  const CaseSentences s =
      self ? sentences({{1, 1}, {5, 5}, {17, 17}, {33, 33}, {2, 2}}) : sentences({{1, 3}, {5, 1}, {17, 40}, {33, 16}, {2, 7}});
  const int64_t D = heads * width, Nq = 64, Nk = self ? 64 : 80;
  const AttentionLayout layout{c.upload(s.query), c.upload(s.key), heads, causal, first_head};
  const Tensor q = c.activations({Nq, self ? 3 * D : D}, 0.7), kv = self ? q : c.activations({Nk, 2 * D}, 0.7);
  const Backend::AttentionInput in{q, kv, 0, self ? D : 0, self ? 2 * D : D};
  const Tensor y = c.empty({Nq, D}), lse = c.empty_parameters({Nq, heads}), dy = c.activations({Nq, D});
  const Dropout d = p > 0 ? case_dropout(c, p, Nq) : Dropout{};
  c.backend.attention(in, layout, d, y, lse);
  c.output(y), c.output(lse.rows(0, s.query.back()));
  const Tensor dq = c.empty(q.shape()), dkv = self ? dq : c.empty(kv.shape());
  c.backend.attention_backward(in, layout, d, lse, dy, dq, dkv);
  c.output(dq), c.output(dkv);
}

// Attention with relative positions: sentences shorter and longer than their reach, and than a tile of a device's.
void relative_case(CaseContext& c, int64_t heads, int64_t width, bool causal, double p, int64_t reach) {
  const CaseSentences s = sentences({{1, 1}, {5, 5}, {17, 17}, {70, 70}, {2, 2}});
  const int64_t D = heads * width, N = 128, first_head = 3;
  const AttentionLayout layout{c.upload(s.query), c.upload(s.key), heads, causal, first_head};
  const Tensor qkv = c.activations({N, 3 * D}, 0.7), y = c.empty({N, D}), lse = c.empty_parameters({N, heads}), dy = c.activations({N, D});
  RelativeBins relative{.reach = reach};
  const Shape bins{N, heads * relative.bins()};
  relative.scores = c.parameters(bins, 2 * std::sqrt(static_cast<double>(width))), relative.mass = c.empty(bins);
  relative.dmass = c.parameters(bins), relative.dscores = c.empty(bins);
  const Dropout d = p > 0 ? case_dropout(c, p, N) : Dropout{};
  c.backend.attention({qkv, qkv, 0, D, 2 * D, relative}, layout, d, y, lse);
  c.output(y), c.output(lse.rows(0, s.query.back())), c.output(relative.mass);
  const Tensor dqkv = c.empty(qkv.shape());
  c.backend.attention_backward({qkv, qkv, 0, D, 2 * D, relative}, layout, d, lse, dy, dqkv, dqkv);
  c.output(dqkv), c.output(relative.dscores);
}

// The same over cached keys; the last row has none.
void relative_cached_case(CaseContext& c, int64_t heads, int64_t width, int64_t reach) {
  const int64_t D = heads * width;
  const Tensor q = c.activations({4, 3 * D}, 0.7), kv = c.activations({50, 2 * D}, 0.7), y = c.empty({4, D});
  RelativeBins relative{.reach = reach};
  const Shape bins{4, heads * relative.bins()};
  relative.scores = c.parameters(bins, 2 * std::sqrt(static_cast<double>(width))), relative.mass = c.empty(bins);
  const Ints index = c.upload(c.integers(1 + 18 + 40, 50)), offsets = c.upload<int32_t>({0, 1, 19, 59, 59});
  const Tensor weights({static_cast<int64_t>(index.size())}, DType::f32, c.backend.memory());
  c.backend.attend_cached({q, kv, D, 0, D, relative}, index, offsets, heads, y, weights);
  c.output(y), c.output(weights), c.output(relative.mass);
}

void global_attention_case(CaseContext& c, int64_t A, int64_t D, bool additive, Write write, bool guided) {
  const CaseSentences s = sentences({{1, 3}, {5, 1}, {0, 4}, {17, 40}, {33, 17}, {3, 0}, {2, 7}});
  const int64_t Nq = 64, Nk = 80;
  const AttentionLayout layout{c.upload(s.query), c.upload(s.key)};
  int64_t pairs = 0;
  for (size_t b = 0; b + 1 < s.key.size(); ++b) pairs += (s.query[b + 1] - s.query[b]) * (s.key[b + 1] - s.key[b]);
  const Tensor v = additive ? c.parameters({A}, 2 / std::sqrt(static_cast<double>(A))) : Tensor();
  const Backend::GlobalAttention in{c.activations({Nq, A}, 1.2), c.activations({Nk, A}, 1.2), v, c.activations({Nk, D})};
  const Tensor y = c.activations({Nq, D}), weights = c.empty_parameters({pairs}), dy = c.activations({Nq, D});
  c.backend.global_attention(in, layout, y, weights);
  c.output(y), c.output(weights);
  const Tensor dweights = guided ? c.parameters({pairs}) : Tensor();
  const Tensor dq = c.activations({Nq, A}), dk = c.activations({Nk, A}), dmemory = c.activations({Nk, D});
  const Tensor dv = additive ? c.parameters({A}) : Tensor();
  c.backend.global_attention_backward(in, layout, weights, dy, dweights, dq, dk, dmemory, write, dv, write);
  c.output(dq), c.output(dk), c.output(dmemory);
  if (dv) c.output(dv);
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, std::function<void(CaseContext&)> run) { cases.push_back({std::move(name), std::move(run)}); };
  for (auto [A, D] : {std::array<int64_t, 2>{64, 128}, {20, 37}, {300, 32}})
    for (bool additive : {true, false})
      for (Write write : {Write::overwrite, Write::accumulate}) {
        const bool guided = write == Write::overwrite && A == 20;
        add(case_name("global_attention", {A, D}) + (additive ? "" : "_dot") + (write == Write::accumulate ? "_accumulate" : "") +
                (guided ? "_guided" : ""),
            [=](CaseContext& c) { global_attention_case(c, A, D, additive, write, guided); });
      }
  for (auto [heads, width] : {std::array<int64_t, 2>{4, 64}, {2, 32}, {3, 20}, {2, 7}})
    for (double p : {0.0, 0.2}) {
      const std::string suffix = p > 0 ? "_dropout" : "";
      add(case_name("self_attention", {heads, width}) + suffix, [=](CaseContext& c) { attention_case(c, heads, width, true, false, p); });
      add(case_name("causal_attention", {heads, width}) + suffix, [=](CaseContext& c) { attention_case(c, heads, width, true, true, p); });
      add(case_name("cross_attention", {heads, width}) + suffix, [=](CaseContext& c) { attention_case(c, heads, width, false, false, p); });
    }
  add("self_attention_of_later_heads", [](CaseContext& c) { attention_case(c, 2, 32, true, true, 0.2, 6); });
  for (auto [heads, width, reach] : {std::array<int64_t, 3>{4, 64, 20}, {2, 32, 4}, {3, 20, 1}, {2, 80, 100}}) {
    for (double p : {0.0, 0.2}) {
      const std::string suffix = p > 0 ? "_dropout" : "";
      add(case_name("relative_attention", {heads, width, reach}) + suffix,
          [=](CaseContext& c) { relative_case(c, heads, width, false, p, reach); });
      add(case_name("causal_relative_attention", {heads, width, reach}) + suffix,
          [=](CaseContext& c) { relative_case(c, heads, width, true, p, reach); });
    }
    add(case_name("relative_attend_cached", {heads, width, reach}), [=](CaseContext& c) { relative_cached_case(c, heads, width, reach); });
  }
  for (auto [heads, width] : {std::array<int64_t, 2>{4, 64}, {3, 20}})
    add(case_name("attend_cached", {heads, width}), [=](CaseContext& c) {
      const int64_t D = heads * width;
      const Tensor q = c.activations({3, 3 * D}, 0.7), kv = c.activations({50, 2 * D}, 0.7), y = c.empty({3, D});
      const Ints index = c.upload(c.integers(1 + 18 + 40, 50)), offsets = c.upload<int32_t>({0, 1, 19, 59});
      const Tensor weights({static_cast<int64_t>(index.size())}, DType::f32, c.backend.memory());
      weights.from_doubles(std::vector<double>(index.size(), 7));
      c.backend.attend_cached({q, kv, D, 0, D}, index, offsets, heads, y, weights);
      c.output(y), c.output(weights);
    });
  // Rows that attend to nothing, as padding rows do.
  for (auto [heads, width] : {std::array<int64_t, 2>{4, 64}, {3, 20}})
    add(case_name("attend_cached_nothing", {heads, width}), [=](CaseContext& c) {
      const int64_t D = heads * width;
      const Tensor q = c.activations({4, D}, 0.7), kv = c.activations({50, 2 * D}, 0.7), y = c.empty({4, D});
      c.backend.attend_cached({q, kv, 0, 0, D}, c.upload(c.integers(12, 50)), c.upload<int32_t>({0, 0, 12, 12, 12}), heads, y, Tensor());
      c.output(y);
    });
}

}  // namespace starling
