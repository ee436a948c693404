// The ranks of a host validate together and share its memory: each has its part of what is free before any of them takes some.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "backend/profiled.h"
#include "evaluation/validation.h"
#include "sim/simulate.h"
#include "tests/run/word_pairs.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

// Knows whether a translation has begun, which is done on siblings.
class WatchedBackend : public ProfiledBackend {
 public:
  WatchedBackend(Backend& inner, int& searches) : ProfiledBackend(inner), searches_(searches) {}
  std::unique_ptr<Backend> sibling() const override { return ++searches_, ProfiledBackend::sibling(); }

 private:
  int& searches_;
};

TEST(ValidationMemory, OfAHostIsLookedAtByAllRanksBeforeAnySearches) {
  const fs::path directory = fs::temp_directory_path() / ("starling-validation-memory-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  ValidConfig config;
  config.source = directory / "a", config.target = directory / "b", config.metrics = {"bleu"}, config.search.beam = 2;
  write_word_pairs(config.source, config.target, 8, 8, 2, 6);
  int next = 0;
  const auto lines = [&](std::string_view& line) { return line = "red blue dog cat house tree runs sees", next++ < 200; };
  train_vocabulary(lines, {.size = 40}, directory / "spm");
  const Vocabularies vocabularies(Vocabulary::load(directory / "spm"), std::nullopt);
  const auto inner = make_backend("cpu:f32", 1);
  ModelConfig small = model_preset("transformer-tiny");
  small.width = 32, small.feed_forward = 64;

  constexpr int kRanks = 3;
  Scenario scenario;
  scenario.ranks = kRanks;
  int searches = 0, looks = 0;
  simulate(scenario, [&](World& world) {  // one rank at a time
    WatchedBackend backend(*inner, searches);
    const auto model = make_model(small, vocabularies.sizes(), backend, 1, true);
    ValidatorRank rank{.scores = world.comm->rank() == 0, .processes = kRanks};
    rank.usable = [&] {
      EXPECT_EQ(searches % kRanks, 0) << "of another rank, in look " << looks;
      return ++looks, UsableMemory{int64_t{1} << 30, ""};
    };
    Validator validator(config, vocabularies, rank);
    for (int i = 0; i < 2; ++i) validator.run(*model, *world.comm);
  });
  EXPECT_EQ(looks, 2 * kRanks) << "memory is another one at each validation";
  EXPECT_EQ(searches, kRanks) << "the second validation has the siblings of the first";
  fs::remove_all(directory);
}

}  // namespace
}  // namespace starling
