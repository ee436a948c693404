// The queued backend itself: that it would find what it is there to find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/reference/reference.h"
#include "tests/queued/queued_backend.h"

namespace starling {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Queued : public testing::Test {
 protected:
  Tensor tensor(const Shape& shape, const std::vector<double>& values) {
    Tensor t(shape, DType::f64, backend_.memory());
    t.from_doubles(values);
    return t;
  }
  QueuedBackend backend_{make_reference_backend()};
};

TEST_F(Queued, OpsRunInOrderWithTheArgumentsOfTheCall) {
  const Tensor x = tensor({2, 1}, {3, 5}), y = tensor({3, 1}, {0, 0, 0});
  backend_.gather_rows(x, {std::vector<int32_t>{1, 0, -1}, backend_.memory()}, y, Write::overwrite);
  backend_.add(y, y);
  x.zero();
  EXPECT_THAT(y.to_doubles(), ElementsAre(10, 6, 0));
}

TEST_F(Queued, TheHostIsRefusedItsElementsAndTheBackendTheHosts) {
  const Tensor x = tensor({1}, {1}), here({1}, DType::f64);
  EXPECT_THAT([&] { x.data<double>(); }, ThrowsMessage<Error>(HasSubstr("lies elsewhere")));
  EXPECT_THAT([&] { backend_.add(here, x); }, ThrowsMessage<Error>(HasSubstr("does not lie in its backend's memory")));
  QueuedBackend other(make_reference_backend());
  EXPECT_THAT([&] { other.add(x, x); }, ThrowsMessage<Error>(HasSubstr("does not lie in its backend's memory")));
  backend_.sibling()->add(x, x);
  EXPECT_THAT(x.to_doubles(), ElementsAre(2));
}

TEST_F(Queued, OpsReadTheUploadedNumbersAndNotTheHosts) {
  const Tensor x = tensor({2, 1}, {3, 5}), y = tensor({2, 1}, {0, 0});
  const std::vector<int32_t> numbers{1, 0, 1};
  EXPECT_THAT([&] { backend_.gather_rows(x, numbers, y, Write::overwrite); }, ThrowsMessage<Error>(HasSubstr("nobody has uploaded")));
  const Ints index = Ints(numbers, backend_.memory()).part(1, 2);
  index.there().from_doubles(std::vector<double>{1, 0});  // the host's are 0 and 1
  backend_.gather_rows(x, index, y, Write::overwrite);
  EXPECT_THAT(y.to_doubles(), ElementsAre(5, 3));
}

TEST_F(Queued, WhatAnOpThrowsComesOutWhenSomebodyWaitsAndNothingRunsBehindIt) {
  const Tensor x = tensor({2, 1}, {1, 2}), y = tensor({1, 1}, {7});
  backend_.flat().scale(x, 1, y, Write::overwrite);  // of unlike sizes
  backend_.add(y, y);
  EXPECT_THROW(y.to_doubles(), Error);
  EXPECT_THAT(y.to_doubles(), ElementsAre(7));
}

TEST_F(Queued, MemoryOfAnArenaIsNeverWhatItWas) {
  Arena arena(backend_.memory());
  const auto not_a_number = testing::Truly([](double v) { return std::isnan(v); });
  for (int step = 0; step < 2; ++step) {
    const Tensor kept = arena.allocate({4}, DType::f64);
    EXPECT_THAT(kept.to_doubles(), Each(not_a_number)) << "fresh";
    kept.zero();
    const Arena::Mark mark = arena.mark();
    const Tensor x = arena.allocate({1000}, DType::f64);
    x.zero();
    arena.release(mark);
    EXPECT_THAT(x.to_doubles(), Each(not_a_number)) << "released";
    EXPECT_THAT(kept.to_doubles(), Each(0));
    arena.release({});
  }
}

}  // namespace
}  // namespace starling
