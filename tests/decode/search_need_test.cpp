// What a search is said to need is what a process takes for it, and more than there is is refused with the numbers before it is taken.
#include "decode/search_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "decode/sampling.h"
#include "models/model.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

struct Case {
  std::string name;
  ModelConfig config;
  int64_t vocabulary, sentences, source_tokens;
  SearchOptions options;
};

int64_t status_line(const std::string& key) {  // KiB
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size()));
  return 0;
}

// Returns the bytes that `body` takes in a process of its own, whose peak is that of `body`; `first` goes before it, in the same process.
template <class Body>
int64_t taken_by(const Case& c, Body body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto backend = make_backend("cpu:f32", 1);
    const auto model = make_model(c.config, {c.vocabulary, c.vocabulary}, *backend, 1, false);
    body(*model, true);  // packs the weights, makes code
    const int64_t before = status_line("VmRSS:");
    body(*model, false);
    const int64_t taken = (status_line("VmHWM:") - before) * 1024;
    _exit(write(ends[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
  }
  int64_t taken = 0;
  EXPECT_EQ(read(ends[0], &taken, sizeof taken), static_cast<ssize_t>(sizeof taken));
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]), close(ends[1]);
  EXPECT_EQ(status, 0);
  return taken;
}

void expect_near(const SearchNeed& need, int64_t taken) {
  testing::Test::RecordProperty("taken_mib", static_cast<int>(taken / kMiB));
  EXPECT_GT(taken, 40 * kMiB) << "too small to tell";
  EXPECT_GT(need.total(), taken * 2 / 3) << taken / kMiB << " MiB taken";
  EXPECT_LT(need.total(), taken * 8 / 5) << taken / kMiB << " MiB taken";
}

class SearchNeedIs : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  }
};

TEST_P(SearchNeedIs, WhatAProcessTakes) {
  const Case& c = GetParam();
  std::vector<int32_t> source(static_cast<size_t>(c.source_tokens), 5);
  source.back() = 2;
  const std::vector<std::vector<int32_t>> sources(static_cast<size_t>(c.sentences), source);
  const int64_t taken = taken_by(c, [&](Model& model, bool first) {
    SearchOptions small = c.options;
    small.beam = 2;
    beam_search(model, std::span(sources).first(first ? 1 : sources.size()), first ? small : c.options);
  });
  expect_near(search_need(c.config, {c.vocabulary, c.vocabulary}, c.options, c.sentences, c.sentences * c.source_tokens, 4), taken);
}

// Sampling, as many samples of each source as a search has hypotheses, of the same length.
TEST_P(SearchNeedIs, WhatDrawingSamplesTakes) {
  const Case& c = GetParam();
  PackedTokens sources;
  std::vector<int32_t> source(static_cast<size_t>(c.source_tokens), 5);
  source.back() = 2;
  for (int64_t b = 0; b < c.sentences; ++b) sources.append(source.data(), source.data() + source.size());
  const std::vector<int64_t> ids(static_cast<size_t>(c.sentences), 1);
  SamplingOptions options;
  options.samples = c.options.beam;
  options.max_length_factor = 0;
  options.max_length_offset = c.options.max_length_offset;
  const std::vector<std::vector<int32_t>> end{{2}};
  options.forbidden = ForbiddenTokens(end, 0);  // none ends before the limit
  const int64_t taken = taken_by(c, [&](Model& model, bool first) {
    SamplingOptions now = options;
    if (first) now.samples = 1, now.max_length_offset = 1;
    sample_translations(model, model.vocabulary(), sources, ids, now);
  });
  expect_near(sampling_need(c.config, {c.vocabulary, c.vocabulary}, c.sentences * options.samples, options.samples,
                            options.max_length_offset, sources.count(), 4),
              taken);
}

ModelConfig with_recurrent_units(ModelConfig c) {
  c.autoregression = Autoregression::ssru;
  return c;
}

ModelConfig small_model(const std::string& preset, int64_t width, int64_t layers) {
  ModelConfig c = model_preset(preset);
  c.width = width, c.feed_forward = 2 * width, c.heads = 4, c.encoder_layers = c.decoder_layers = layers;
  return c;
}

const Case kCases[] = {
    {"WideBeams",  // whose scores of all pieces would be 262 MB
     small_model("transformer-tiny", 64, 2),
     16000,
     8,
     12,
     {.beam = 512, .max_length_factor = 0, .max_length_offset = 3, .fixed_length = true}},
    {"LongTargets",  // of one hypothesis each: those of a beam share prefixes, how many depends on the model
     small_model("transformer-tiny", 64, 4),
     300,
     512,
     12,
     {.beam = 1, .max_length_factor = 0, .max_length_offset = 70, .fixed_length = true}},
    {"RecurrentUnits",  // whose cells take half of what keys and values would
     with_recurrent_units(small_model("transformer-tiny", 64, 4)),
     300,
     512,
     12,
     {.beam = 1, .max_length_factor = 0, .max_length_offset = 120, .fixed_length = true}},
    {"ManyActivations",
     small_model("transformer-tiny", 256, 4),
     500,
     8,
     12,
     {.beam = 128, .max_length_factor = 0, .max_length_offset = 4, .fixed_length = true}},
    {"Recurrent",
     small_model("gnmt-small", 256, 4),
     16000,
     8,
     12,
     {.beam = 128, .max_length_factor = 0, .max_length_offset = 3, .fixed_length = true}},
};
INSTANTIATE_TEST_SUITE_P(All, SearchNeedIs, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(SearchNeed, IsRefusedWithItsNumbers) {
  const ModelConfig base = model_preset("transformer-base");
  const SearchOptions options{.beam = 1024};
  const SearchNeed one = search_need(base, {32000, 32000}, options, 64, 64 * 30, 2);
  EXPECT_EQ(one.rows, 65536);
  EXPECT_EQ(one.scores, 64ll * 32000 * 4 + 65536ll * 1025 * 24);
  EXPECT_GT(one.total(), int64_t{8} << 30);
  const std::vector<SearchNeed> two{one, one};
  EXPECT_NO_THROW(require_memory(two, options, 64, {2 * one.total(), ""}));
  try {
    require_memory(two, options, 64, {12000 * kMiB, "the cgroup's limit of 16000 MiB (/x/memory.max)"});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("a beam of 1024 for 64 sentences at a time on 2 threads"), HasSubstr("131072 hypotheses"),
                                HasSubstr(fmt::format("about {} MiB", 2 * one.total() / kMiB)), HasSubstr("usable is 12000 MiB"),
                                HasSubstr("/x/memory.max"), HasSubstr("--beam"), HasSubstr("--batch-size")));
  }
}

// Each given token of a translation lengthens all hypotheses by one: its keys and values in each decoder layer, or its cell of a recurrent
// unit, and what the search notes of a token.
TEST(SearchNeed, CountsWhatTranslationsAreMadeToBeginWith) {
  SearchOptions with;
  with.target_prefix_ids = {7, 8, 9};
  const int64_t rows = 5 * with.beam;
  ModelConfig c = model_preset("transformer-base");
  const auto more = [&] { return search_need(c, {100, 100}, with, 5, 100, 2).total() - search_need(c, {100, 100}, {}, 5, 100, 2).total(); };
  EXPECT_EQ(more(), 3 * rows * (c.decoder_layers * 2 * c.width * 2 + 12 + 24));
  c.autoregression = Autoregression::ssru;
  EXPECT_EQ(more(), 3 * rows * (c.decoder_layers * c.width * 4 + 12 + 24));
}

// Ordinary settings must never be refused on an ordinary machine: 4 of 16 GiB for a base model, beam 4, batches of 64 on 8 threads.
TEST(SearchNeed, OrdinarySearchesFit) {
  const std::vector<SearchNeed> needs(8, search_need(model_preset("transformer-base"), {32000, 32000}, {}, 64, 64 * 40, 4));
  EXPECT_NO_THROW(require_memory(needs, {}, 64, {4096 * kMiB, ""}));
}

}  // namespace
}  // namespace starling
