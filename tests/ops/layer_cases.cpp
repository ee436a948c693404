// Cases of activations, of recurrent units without a product in their recurrence, and of embeddings that have no token.
#include "tests/ops/cases.h"

namespace starling {
namespace {

// Sentences with padding rows behind them; the gradient's cells are given, since those of the forward pass differ by their rounding.
void ssru_case(CaseContext& c, int64_t H, bool continued) {
  const Ints offsets = c.upload<int32_t>({0, 1, 6, 6, 23, 57});
  const Tensor candidate = c.activations({64, H}, 2), forget = c.activations({64, H}, 2), before = c.parameters({6, H});
  const Tensor cell = c.empty_parameters({64, H}), hidden = c.empty({64, H});
  c.backend.ssru({candidate, forget, offsets, continued ? before : Tensor(), cell, hidden});
  c.output(cell), c.output(hidden);
  const Tensor reached = c.parameters({64, H}), dhidden = c.activations({64, H});
  const Tensor dcandidate = c.empty({64, H}), dforget = c.empty({64, H});
  c.backend.ssru_backward({candidate, forget, offsets, reached, dhidden, dcandidate, dforget});
  c.output(dcandidate), c.output(dforget);
}

}  // namespace

void add_layer_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, std::function<void(CaseContext&)> run) { cases.push_back({std::move(name), std::move(run)}); };
  // A decoder's first rows, which have no token.
  for (double p : {0.0, 0.3})
    add(p > 0 ? "embed_nothing_dropout" : "embed_nothing", [=](CaseContext& c) {
      const Ints tokens = c.upload<int32_t>({2, kZeroEmbedding, 0, kPaddingRow, kZeroEmbedding}), positions = c.upload(c.integers(5, 40));
      const Tensor table = c.parameters({3, 150}), y = c.empty({5, 150}), plain = c.empty({5, 150}), dtable = c.parameters({3, 150});
      const Dropout d = p > 0 ? case_dropout(c, p, 5) : Dropout{};
      c.backend.embed(tokens, positions, table, 1.5, d, y), c.backend.embed(tokens, {}, table, 1.5, d, plain);
      c.backend.embed_backward(tokens, 1.5, d, c.activations({5, 150}), dtable);
      c.output(y), c.output(plain), c.output(dtable);
    });
  for (const auto& [name, activation] : all_activations())
    for (int64_t D : {21, 168})
      add(case_name("activate", {D}) + "_" + name, [=, a = activation](CaseContext& c) {
        const Tensor x = c.activations({13, D}, 3), y = c.empty({13, D}), dy = c.activations({13, D});
        c.backend.activate(x, a, y);
        c.backend.activate_backward(x, a, dy);
        c.output(y), c.output(dy);
        c.backend.activate(x, a, x);
        c.output(x);
      });
  for (int64_t H : {8, 37, 300})
    for (bool continued : {false, true})
      add(case_name(continued ? "ssru_continued" : "ssru", {H}), [=](CaseContext& c) { ssru_case(c, H, continued); });
}

}  // namespace starling
