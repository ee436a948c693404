// Tensors of more than 2^32 elements: 32 bits for a place among them would not do. Of each grid the last blocks are run, and the last row
// is compared with that of a small tensor; memory that nobody touches does not exist.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "tests/card/real_card.h"
#include "tests/emulated/emulator.h"
#include "tests/ops/cases.h"

namespace starling {
namespace {

constexpr int64_t kColumns = 65536, kManyRows = 65600, kFewRows = 16;
static_assert(kManyRows * kColumns > int64_t{1} << 32);

class LargeTensors : public testing::Test {
 protected:
  LargeTensors() { emulated_cuda::set_card_memory(size_t{256} << 30); }
  ~LargeTensors() override { emulated_cuda::set_card_memory(size_t{8} << 30), emulated_cuda::run_last_blocks(0); }

  // Zeros but for the last row.
  Tensor tensor(int64_t rows, uint64_t stream, int64_t columns = kColumns) const {
    const Tensor t({rows, columns}, DType::f32, card->memory());
    std::vector<double> values(static_cast<size_t>(columns));
    Random random(3, stream);
    for (double& v : values) v = static_cast<float>(random.normal());
    t.rows(rows - 1, rows).from_doubles(values);
    return t;
  }
  Tensor vector(uint64_t stream) const { return tensor(1, stream).slice(0, {kColumns}); }
  Ints numbers(int64_t rows, int32_t last) const {
    std::vector<int32_t> all(static_cast<size_t>(rows), 0);
    all.back() = last;
    return {all, card->memory()};
  }
  // The last elements that an op writes, of many rows and of few.
  static void compare(const char* name, const std::function<Tensor(int64_t rows)>& op) {
    emulated_cuda::run_last_blocks(2);
    const auto last = [&](int64_t rows) {
      const Tensor y = op(rows);
      const int64_t n = std::min<int64_t>(64, y.columns());
      return y.slice(y.count() - n, {n}).to_doubles();
    };
    const std::vector<double> expected = last(kFewRows);
    try {
      EXPECT_EQ(last(kManyRows), expected) << name;
    } catch (const Error& e) {
      if (!on_real_card() || std::string_view(e.what()).find("out of memory") == std::string_view::npos) throw;
      std::cout << name << ": more than this card holds\n";
    }
    EXPECT_NE(expected, std::vector<double>(expected.size())) << name;
  }
  const std::unique_ptr<Backend> card = make_backend("cuda-emulated:f32");
};

TEST_F(LargeTensors, Elements) {
  compare("add", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    return card->add(tensor(rows, 1), y), y;
  });
  compare("relu", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    return card->relu_dropout_backward(tensor(rows, 1), 1.25, y, {}, Write::overwrite), y;
  });
  compare("clamp", [&](int64_t rows) {
    const Tensor y = tensor(rows, 1);
    return card->clamp(y, 0.5, y, {}), y;
  });
  compare("sgd", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    return card->optimizer_step(y, tensor(rows, 1), {}, SgdStep{0.1, 0, 1}), y;
  });
}

TEST_F(LargeTensors, Rows) {
  compare("layer norm", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2), statistics({rows, 2}, DType::f32, card->memory());
    return card->layer_norm(tensor(rows, 1), vector(3), vector(4), 1e-5, y, statistics), y;
  });
  compare("column sums", [&](int64_t rows) {
    const Tensor sums({1, kColumns}, DType::f32, card->memory());
    return card->column_sums(tensor(rows, 1), sums.slice(0, {kColumns}), Write::overwrite), sums;
  });
  compare("rows that are gathered", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    return card->gather_rows(tensor(rows, 1), numbers(rows, static_cast<int32_t>(rows - 1)), y, Write::overwrite), y;
  });
  compare("dropout", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    const auto key = [&] { return HostDeviceArray<uint32_t>(std::vector<uint32_t>(static_cast<size_t>(rows), 7), card->memory()); };
    return card->add_dropout(tensor(rows, 1), tensor(rows, 3), {0.25, 99, {key(), key()}}, y), y;
  });
  compare("embeddings", [&](int64_t rows) {
    const Tensor y = tensor(rows, 2);
    return card->embed(numbers(rows, 1), {}, tensor(2, 1), 3, {}, y), y;
  });
}

TEST_F(LargeTensors, Logits) {
  compare("gradients of logits", [&](int64_t rows) {
    const Tensor gradient = tensor(rows, 2), row_loss({rows, 3}, DType::f32, card->memory());
    return card->smoothed_loss(tensor(rows, 1), {numbers(rows, 5), 0.1}, row_loss, gradient), gradient;
  });
  compare("best tokens", [&](int64_t rows) {
    const Tensor values({rows, 4}, DType::f32, card->memory()), indices({rows, 4}, DType::i32, card->memory());
    const Tensor denominator({rows, 2}, DType::f64, card->memory());
    return card->top_logits(tensor(rows, 1), 4, values, indices, denominator), values;
  });
}

}  // namespace
}  // namespace starling
