// The chunks in which rows of logits are computed: on a device whose chunks are equal, and on one where they are as large as they may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "backend/meta.h"

namespace starling {
namespace {

using testing::ElementsAre;

class Counting : public MetaBackend {
 public:
  explicit Counting(bool equal) : MetaBackend(DType::bf16, DType::f32), equal_(equal) {}
  int64_t logits_bytes() const override { return int64_t{512} << 20; }
  bool equal_chunks() const override { return equal_; }
  void smoothed_loss(const Tensor& logits, const LossRows&, const Tensor&, const Tensor&) override { chunks.push_back(logits.rows()); }
  std::vector<int64_t> chunks;

 private:
  bool equal_;
};

std::vector<int64_t> chunks_of(int64_t rows, bool equal) {
  Counting backend(equal);
  ParameterStore store(backend);
  Parameter& table = store.add("table", {32000, 8}, {Initializer::normal, 1});
  store.allocate(3, true);
  Arena arena(backend.memory());
  GradientSum sum(store);
  Tape tape(store, arena, sum, 5, 6);
  const Var h = tape.record(tape.allocate({rows, 8}, DType::bf16), [](const Tensor&) {});
  Loss loss(tape);
  projection_loss(h, table, nullptr, {tape.upload(std::vector<int32_t>(static_cast<size_t>(rows), 7)), 0.1}, loss);
  return backend.chunks;
}

// 512 MiB are 4,194 rows of 32,000 logits, so a chunk has at most 4,160.
TEST(LossChunks, AreEqualWhereShortOnesAreDear) {
  EXPECT_THAT(chunks_of(25024, true), ElementsAre(3584, 3584, 3584, 3584, 3584, 3584, 3520));
  EXPECT_THAT(chunks_of(4224, true), ElementsAre(2112, 2112));
  for (const int64_t rows : {64, 4096, 4160}) EXPECT_THAT(chunks_of(rows, true), ElementsAre(rows));
  EXPECT_THAT(chunks_of(8320, true), ElementsAre(4160, 4160));
  EXPECT_THAT(chunks_of(0, true), ElementsAre());
}

TEST(LossChunks, AreAsLargeAsTheyMayBeElsewhere) {
  EXPECT_THAT(chunks_of(25024, false), ElementsAre(4160, 4160, 4160, 4160, 4160, 4160, 64));
  EXPECT_THAT(chunks_of(4160, false), ElementsAre(4160));
}

}  // namespace
}  // namespace starling
