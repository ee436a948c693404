// NaN wins nothing and passes nowhere: not in the search, not among the trials of a sweep, not in a file of weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/ordering.h"
#include "decode/tune_search.h"
#include "storage/safetensors.h"
#include "tests/decode/fake_model.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(LessNanLowest, OrdersNumbersAboveNaN) {
  EXPECT_TRUE(less_nan_lowest(1, 2) && less_nan_lowest(kNaN, -INFINITY));
  EXPECT_FALSE(less_nan_lowest(2, 1) || less_nan_lowest(1, 1) || less_nan_lowest(-INFINITY, kNaN) || less_nan_lowest(kNaN, kNaN));
}

TEST(BestTrial, IsNeverOneWithoutAScore) {
  std::vector<SearchTrial> trials(3);
  trials[0].bleu = kNaN, trials[1].bleu = 3, trials[2].bleu = 2;
  EXPECT_EQ(&best_trial(trials, "bleu"), &trials[1]);
  std::swap(trials[0], trials[1]);
  EXPECT_EQ(&best_trial(trials, "bleu"), &trials[0]);
}

TEST(BeamSearch, ScoresThatAreNoNumbersAreAnErrorNotAnEmptyTranslation) {
  FakeModel model(4);
  model.logits = [](int32_t sentence, const FakeModel::Prefix& prefix) {
    return std::vector<double>(4, sentence == 1 && prefix.size() == 1 ? kNaN : 0.0);
  };
  const std::vector<std::vector<int32_t>> sources{{3, 2}, {3, 2}};
  try {
    beam_search(model, sources, {.beam = 2});
    FAIL();
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("sentence 2, target token 2"), HasSubstr("NaN")));
  }
}

TEST(LoadWeights, AnElementThatIsNoNumberIsNamed) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const auto backend = make_backend("cpu:f32", 1);
    ParameterStore store(*backend);
    store.add("first", {2, 16}, {});
    store.add("second", {3, 16}, {});
    store.allocate(1, false);
    MemoryFileSystem files;
    files.make_directories("/m");
    const auto write = [&](int64_t place) {
      std::vector<float> a(32, 1), b(48, 2);
      if (place >= 0) b[static_cast<size_t>(place)] = bad;
      const std::vector<NamedBytes> tensors{{"first", "F32", {2, 16}, std::as_bytes(std::span(a))},
                                            {"second", "F32", {3, 16}, std::as_bytes(std::span(b))}};
      const auto file = files.create("/m/model.safetensors");
      write_safetensors(*file, tensors);
      file->close();
    };
    write(-1);
    EXPECT_NO_THROW(load_weights(files, "/m/model.safetensors", store));
    write(16 + 5);
    try {
      load_weights(files, "/m/model.safetensors", store);
      FAIL();
    } catch (const DataError& e) {
      EXPECT_THAT(e.what(), HasSubstr(fmt::format("/m/model.safetensors: tensor second: element [1, 5] of [3, 16] is {}", bad)));
    }
  }
}

}  // namespace
}  // namespace starling
