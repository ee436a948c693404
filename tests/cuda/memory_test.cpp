// Tensors and numbers on an emulated card.
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cuda/cuda.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernels/rows.h"
#include "base/error.h"
#include "tests/card/real_card.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

std::unique_ptr<Backend> card() { return make_backend("cuda-emulated:f32", 1); }

// Not what is free on the card: other processes of these tests may share it.
int64_t taken(const Backend& backend) {
  return on_real_card() ? bytes_taken_on_real_card(backend.memory()) : STARLING_CUDA::bytes_taken(backend.memory());
}

// More uploads than there are pinned buffers, all before anything is waited for.
TEST(CudaMemory, NumbersArriveAsTheyWereSent) {
  const auto backend = card();
  std::vector<Ints> sent;
  for (int32_t i = 0; i < 300; ++i) sent.emplace_back(std::vector<int32_t>{i, 2 * i}, backend->memory());
  for (int32_t i = 0; i < 300; ++i) {
    std::vector<int32_t> there(2);
    sent[static_cast<size_t>(i)].there().read(std::span(there));
    EXPECT_EQ(there, (std::vector<int32_t>{i, 2 * i}));
  }
}

TEST(CudaMemory, LargeTensorsGoThereAndBack) {
  const auto backend = card();
  const Tensor t({300, 400}, DType::f32, backend->memory());
  EXPECT_EQ(t.to_doubles(), std::vector<double>(120000));
  std::vector<double> values(120000);
  std::iota(values.begin(), values.end(), 0.0);
  t.from_doubles(values);
  const Tensor copy = t.clone();
  t.zero();
  EXPECT_EQ(copy.to_doubles(), values);
  EXPECT_EQ(t.to_doubles(), std::vector<double>(120000));
}

// In more pieces than there are large pinned buffers, the last of which is short.
TEST(CudaMemory, UploadsOfManyPieces) {
  const auto backend = card();
  std::vector<double> values((size_t{22} << 20) / sizeof(float) + 3);
  std::iota(values.begin(), values.end(), 1.0);
  const Tensor t({static_cast<int64_t>(values.size())}, DType::f32, backend->memory());
  t.from_doubles(values);
  EXPECT_EQ(t.to_doubles(), values);
}

// The lists of several micro-batches are sent before the host waits for the card.
TEST(CudaMemory, SixteenLongListsAreSentWithoutWaiting) {
  if (on_real_card()) GTEST_SKIP() << "a real card does not count its calls";
  const auto backend = card();
  const std::vector<int32_t> list(25000, 7);  // more than a small buffer holds
  std::vector<Ints> sent;
  const auto waits = [&](int lists) {
    const int64_t before = emulated_cuda::calls().event_waits;
    for (int i = 0; i < lists; ++i) sent.emplace_back(list, backend->memory());
    return emulated_cuda::calls().event_waits - before;
  };
  EXPECT_EQ(waits(16), 0);
  EXPECT_EQ(waits(1), 1);
  for (const Ints& there : sent) {
    std::vector<int32_t> back(list.size());
    there.there().read(std::span(back));
    EXPECT_EQ(back, list);
  }
}

TEST(CudaMemory, RunningOutIsAnErrorWithTheNumbers) {
  const auto backend = card();
  const int64_t before = taken(*backend);
  try {
    const Tensor t({int64_t{1} << 20, 1 << 20}, DType::f32, backend->memory());
    FAIL() << "4 TiB on a card";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("4194304 MiB were asked for"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("train.micro-batch-tokens"), std::string::npos) << e.what();
  }
  EXPECT_EQ(taken(*backend), before);
}

// The pool keeps what is released, and the next allocation takes it from there: it counts as free.
TEST(CudaMemory, WhatIsReleasedCanBeUsedAgain) {
  const auto backend = card();
  const int64_t before = taken(*backend), usable = on_real_card() ? 0 : backend->memory().usable().bytes;
  {
    const Tensor t({1000, 1000}, DType::f32, backend->memory());
    EXPECT_GE(taken(*backend) - before, 4000000);
    EXPECT_LE(taken(*backend) - before, on_real_card() ? 4000000 + 512 : 4000000);  // the pool of a real card rounds up
    if (!on_real_card()) {
      EXPECT_EQ(usable - backend->memory().usable().bytes, 4000000);
    }
  }
  backend->memory().download(nullptr, nullptr, 0);  // waits: blocks go back in the order of the stream
  EXPECT_EQ(taken(*backend), before);
  if (!on_real_card()) {
    EXPECT_EQ(backend->memory().usable().bytes, usable);
  }
}

// What another process takes of the card is missing from what is usable, not added to what this one has taken.
TEST(CudaMemory, WhatOthersTakeIsNotOurs) {
  if (on_real_card()) GTEST_SKIP() << "other processes are imitated";
  const auto backend = card();
  const Tensor t({1000}, DType::f32, backend->memory());
  const int64_t before = taken(*backend), usable = backend->memory().usable().bytes;
  emulated_cuda::set_card_memory(size_t{7} << 30);
  EXPECT_LT(backend->memory().usable().bytes, usable);
  EXPECT_EQ(taken(*backend), before);
  emulated_cuda::set_card_memory(size_t{8} << 30);
}

TEST(CudaBackend, AnOpRefusesTensorsOfTheHost) {
  const auto backend = card();
  const Tensor here({4, 8}, DType::f32), there({4, 8}, DType::f32, backend->memory());
  EXPECT_THROW(backend->add(here, there), Error);
  EXPECT_THROW(backend->gather_rows(there, std::vector<int32_t>{0, 1}, there, Write::overwrite), Error);
}

// A plan that was made for aligned addresses is not used for others.
TEST(CudaBackend, ProductsOfRowsThatLieAnywhere) {
  const auto backend = card(), reference = make_backend("reference");
  const int64_t in = 33, out = 17;
  std::vector<double> x(9 * in), w(in * out);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i % 5) / 4;
  const auto rows_of = [&](Backend& b, int64_t first) {
    const Tensor tx({9, in}, b.activation(), b.memory()), tw({in, out}, b.parameter(), b.memory()), y({8, out}, b.activation(), b.memory());
    tx.from_doubles(x), tw.from_doubles(w);
    b.linear(tx.rows(first, first + 8), *b.pack(tw, false, nullptr), {}, y, Activation::none, Write::overwrite);
    return y.to_doubles();
  };
  for (int64_t first : {0, 1}) EXPECT_EQ(rows_of(*backend, first), rows_of(*reference, first)) << "from row " << first;
}

// More blocks than a grid has are refused, not cut off: a number that is 1 in 32 bits too.
TEST(CudaBackend, AGridHasItsLimit) {
  STARLING_CUDA::CudaDevice device(0);
  const auto backend = make_backend("cuda-emulated:f32");
  const Tensor x({2048}, DType::f32, backend->memory());
  for (const int64_t blocks : {(int64_t{1} << 31) + 1, (int64_t{1} << 32) + 1})
    EXPECT_THROW(STARLING_CUDA::kernels::add(STARLING_CUDA::kernels::Type::f32, {x.raw(), x.raw(), 2048 * blocks}, device.stream()), Error)
        << blocks;
}

TEST(CudaBackend, ThereIsNoSuchCard) { EXPECT_THROW(STARLING_CUDA::make_cuda_backend(1, DType::f32), ConfigError); }

}  // namespace
}  // namespace starling
