#include <gtest/gtest.h>

#include "strategies/embedding_exchange.h"

namespace starling {
namespace {

constexpr int64_t V = 6, D = 4;

Tensor table(float first) {
  const Tensor t({V, D}, DType::f32);
  for (int64_t i = 0; i < V * D; ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

TEST(SharedRows, TakeRowsOfTheGradientAndPutThemInItsPlace) {
  const auto flat = make_host_flat_ops(1);
  const Tensor gradient = table(1);
  SharedRows rows(*flat, gradient, {1, 4});
  rows.take();
  for (int64_t c = 0; c < D; ++c) {
    EXPECT_EQ(rows.values().data<float>()[c], gradient.data<float>()[D + c]);
    EXPECT_EQ(rows.values().data<float>()[D + c], gradient.data<float>()[4 * D + c]);
  }
  for (int64_t i = 0; i < 2 * D; ++i) rows.values().data<float>()[i] *= 10;
  rows.put();
  for (int64_t r = 0; r < V; ++r)
    for (int64_t c = 0; c < D; ++c)
      EXPECT_EQ(gradient.data<float>()[r * D + c], r == 1 || r == 4 ? 10 * static_cast<float>(1 + r * D + c) : 0) << r;
}

// Row 2 is looked up twice, row 5 once, row 0 by another rank alone.
TEST(SharedRows, AddUpLookUpsOnTopOfTheGradient) {
  const auto flat = make_host_flat_ops(1);
  const Tensor gradient = table(0), before = gradient.clone(), looked_up({3, D}, DType::f32);
  for (int64_t i = 0; i < 3 * D; ++i) looked_up.data<float>()[i] = static_cast<float>(100 * (i / D + 1));
  TokenGradients tokens;
  tokens.tokens = {2, 5, 2}, tokens.rows = {looked_up.rows(0, 1), looked_up.rows(1, 3)};
  SharedRows rows(*flat, gradient, {0, 2, 5});
  rows.take(tokens);
  rows.add();
  const float added[V] = {0, 0, 100 + 300, 0, 0, 200};
  for (int64_t i = 0; i < V * D; ++i) EXPECT_EQ(gradient.data<float>()[i], before.data<float>()[i] + added[i / D]) << i;

  tokens.tokens = {2, 5, 1};
  EXPECT_ANY_THROW(rows.take(tokens)) << "row 1 was not announced";
}

// Every element of the rows belongs to the rank whose part of the table it lies in, also where a part ends within a row.
TEST(SharedRows, BelongToWhoOwnsThemInTheTable) {
  const auto flat = make_host_flat_ops(1);
  const std::vector<int32_t> rows = {1, 2, 5};
  const std::vector<std::vector<Owned>> cases = {{{{0, 10}, 0}, {{10, 11}, 1}, {{11, 24}, 2}},
                                                 {{{0, 4}, 0}, {{4, 8}, 1}, {{8, 20}, 2}, {{20, 24}, 0}},
                                                 {{{0, 24}, 3}},
                                                 {{{0, 12}, 0}, {{12, 20}, 1}, {{20, 23}, 2}, {{23, 24}, 3}}};
  for (const std::vector<Owned>& table_parts : cases) {
    const std::vector<Owned> parts = SharedRows(*flat, table(0), rows).parts(table_parts);
    int64_t at = 0;
    for (const Owned& part : parts) {
      EXPECT_EQ(part.range.begin, at);
      for (; at < part.range.end; ++at) {
        const int64_t element = rows[static_cast<size_t>(at / D)] * D + at % D;
        for (const Owned& o : table_parts)
          if (o.range.begin <= element && element < o.range.end) {
            EXPECT_EQ(part.rank, o.rank) << element;
          }
      }
    }
    EXPECT_EQ(at, 3 * D);
  }
}

}  // namespace
}  // namespace starling
