// Files of one rank's state: any other division of the parameters can read them, as it can those of older versions.
#include "saving/rank_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/files/memory_files.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ShardTest : public testing::Test {
 protected:
  ShardTest() {
    store_.add("a", {3, 5}, {});   // elements 0 to 15 of the flat buffer
    store_.add("b", {20}, {});     // 16 to 36
    store_.add("c", {2, 40}, {});  // 48 to 128
    store_.allocate(std::nullopt, false);
    files_.make_directories("run");
  }

  // Element i of the flat state has the value i.
  static Tensor elements(const std::vector<Range>& ranges) {
    const Tensor all({total(ranges)}, DType::f32);
    int64_t at = 0;
    for (const Range& r : ranges)
      for (int64_t i = r.begin; i < r.end; ++i) all.data<float>()[at++] = static_cast<float>(i);
    return all;
  }
  std::vector<float> expected(const std::vector<Range>& ranges) const {
    std::vector<float> all;
    for (const Range& r : ranges)
      for (int64_t i = r.begin; i < r.end; ++i) {
        bool padding = true;
        for (const Parameter& p : store_.all()) padding = padding && (i < p.offset || i >= p.offset + p.shape.count());
        all.push_back(padding ? 0.0f : static_cast<float>(i));
      }
    return all;
  }
  Loaded saved(std::vector<Part> parts) {
    publish_directory(files_, "run/point", 1, parts);
    return verify_directory(files_, "run/point");
  }
  // The state as a run divided like this gets it; empty if not all of it is there.
  static std::vector<float> read(const RankCheckpoints& shards, const std::string& state, std::optional<int> rank,
                                 const std::vector<Range>& ranges) {
    std::vector<float> all(static_cast<size_t>(total(ranges)), 7.0f);
    const bool whole = shards.read(state, rank, ranges, std::as_writable_bytes(std::span(all)));
    return whole ? all : std::vector<float>();
  }
  template <class F>
  static std::string error(F body) {
    try {
      body();
    } catch (const DataError& e) {
      return e.what();
    }
    return "no error";
  }

  MemoryFileSystem files_;
  const std::unique_ptr<Backend> backend_ = make_backend("cpu:f32", 1);
  ParameterStore store_{*backend_};
};

TEST_F(ShardTest, AnyDivisionReadsAnyOther) {
  const std::vector<std::vector<Range>> written{{{0, 10}, {30, 60}, {100, 110}}, {}, {{10, 30}, {60, 100}, {110, 128}}};
  std::vector<Part> parts;
  std::vector<Tensor> kept;  // until the parts are written
  for (int r = 0; r < 3; ++r) {
    RankCheckpoint shard(store_);
    const std::vector<Range>& ranges = written[static_cast<size_t>(r)];
    shard.add("adam.m", kept.emplace_back(elements(ranges)), ranges);
    if (auto part = shard.part(r)) parts.push_back(std::move(*part));
  }
  ASSERT_EQ(parts.size(), 2u) << "rank 1 has nothing to save";
  const RankCheckpoints shards(files_, saved(parts), store_);
  const SafetensorsFile first(files_, "run/point/rank-0.safetensors");
  EXPECT_EQ(first.metadata().at("layout"), R"({"adam.m/a":[[0,10]],"adam.m/b":[[14,20]],"adam.m/c":[[0,12],[52,62]]})");
  EXPECT_EQ(shards.replicas(), 3);
  for (const std::vector<Range>& ranges :
       {std::vector<Range>{{0, 128}}, {{5, 40}, {50, 51}}, {{15, 16}, {36, 48}}, {{0, 64}, {64, 128}}, {{127, 128}}})
    EXPECT_EQ(read(shards, "adam.m", std::nullopt, ranges), expected(ranges));
  EXPECT_EQ(read(shards, "adam.m", 2, {{62, 90}}), expected({{62, 90}}));
  EXPECT_TRUE(read(shards, "adam.m", 0, {{62, 90}}).empty()) << "another rank has them";
  EXPECT_TRUE(read(shards, "adam.v", std::nullopt, {{0, 128}}).empty());
}

TEST_F(ShardTest, OlderCheckpointsAreRead) {
  const Tensor flat = elements({{0, 128}}), own = elements({{0, 128}}), numbers = elements({{0, 3}});
  const auto bytes = [](const Tensor& t) { return std::as_bytes(std::span(t.data<float>(), static_cast<size_t>(t.count()))); };
  const Loaded older = saved({safetensors_part("training.safetensors", {{"parameters", "F32", {128}, bytes(flat)}}),
                              safetensors_part("ranks.safetensors", {{"rank0.adam.v", "F32", {128}, bytes(flat)},
                                                                     {"rank11.adam.v", "F32", {128}, bytes(own)},
                                                                     {"rank11.outer.counters", "F32", {3}, bytes(numbers)}})});
  const RankCheckpoints shards(files_, older, store_);
  EXPECT_EQ(shards.replicas(), 12);
  EXPECT_EQ(read(shards, "parameters", std::nullopt, {{0, 128}}), expected({{0, 128}}));
  EXPECT_EQ(read(shards, "replica.adam.v", 11, {{20, 70}}), expected({{20, 70}}));
  EXPECT_TRUE(read(shards, "replica.adam.v", 1, {{20, 70}}).empty());
  ASSERT_NE(shards.find(11, "outer.counters", 12), nullptr);
  EXPECT_EQ(shards.find(11, "outer.counters", 16), nullptr);
  EXPECT_EQ(shards.find(0, "outer.counters", 12), nullptr);
}

// Such as another version may write beside the shards.
TEST_F(ShardTest, OtherFilesAreNoShards) {
  const Tensor x = elements({{0, 20}});
  const std::vector<NamedBytes> tensors{{"adam.m/b", "F32", {20}, std::as_bytes(std::span(x.data<float>(), 20))}};
  std::vector<Part> parts{safetensors_part("rank-3.safetensors", tensors)};
  for (const char* name : {"rank-x.safetensors", "rank-03.safetensors", "rank-", "rank-1.json"})
    parts.push_back(text_part(name, "no tensors"));
  const RankCheckpoints shards(files_, saved(std::move(parts)), store_);
  EXPECT_EQ(shards.replicas(), 4);
  EXPECT_TRUE(shards.has("adam.m"));
  EXPECT_EQ(error([&] { shards.require(false, "adam.m"); }),
            "run/point: its adam.m are incomplete; remove this checkpoint's directory to resume from the one before it");
}

TEST_F(ShardTest, WhatDoesNotFitIsRefused) {
  const Tensor x = elements({{0, 20}});
  const auto with = [&](const std::string& name, const std::string& layout) {
    const std::vector<NamedBytes> tensors{{name, "F32", {20}, std::as_bytes(std::span(x.data<float>(), 20))}};
    return error([&] { RankCheckpoints(files_, saved({safetensors_part("rank-0.safetensors", tensors, {{"layout", layout}})}), store_); });
  };
  EXPECT_EQ(with("adam.m/b", "{}"), "no error");
  EXPECT_EQ(with("adam.m/b", R"({"adam.m/b":[[0,12],[12,20]]})"), "no error");
  EXPECT_EQ(with("adam.m/d", "{}"),
            "run/point/rank-0.safetensors: adam.m/d belongs to no parameter of this model; to resume from another checkpoint, remove this "
            "one's directory");
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":[[0,21]]})"), HasSubstr("the layout of adam.m/b has the invalid range 0 to 21"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":[[-1,19]]})"), HasSubstr("the layout of adam.m/b has the invalid range -1 to 19"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":[[0,19]]})"), HasSubstr("adam.m/b does not fit its layout"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":{"cut":[0,1,2,2],"ranges":[[0,10]]}})"),
              HasSubstr("the layout of adam.m/b is that of a parameter of another shape"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":{"cut":[0,1,1,2],"ranges":[[0,11]]}})"),
              HasSubstr("the layout of adam.m/b has the invalid range 0 to 11"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":7})"), HasSubstr("the layout of adam.m/b is not a list of ranges"));
  EXPECT_THAT(with("adam.m/b", R"({"adam.m/b":[]})"), HasSubstr("adam.m/b does not fit its layout"));
  EXPECT_THAT(with("adam.m/b", "["), HasSubstr("run/point/rank-0.safetensors"));
}

}  // namespace
}  // namespace starling
