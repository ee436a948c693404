// The saved state comes back exactly: every bit of doubles and 64-bit integers; damaged or foreign text is an error that says where.
#include "storage/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

State again(const State& state) { return State::from_json(state.to_json(), "state.json"); }

TEST(State, KeepsEveryType) {
  State state;
  state.put("step", int64_t{1} << 62);
  state.put("seed", uint64_t{UINT64_MAX});
  state.put("small", 3);
  state.put("done", true);
  state.put("name", "Grüße \"x\"\n");
  state.put("losses", std::vector<double>{0.1, -INFINITY, 3.0});
  state.put("counts", std::vector<int64_t>{INT64_MIN, 0});
  const State read = again(state);
  EXPECT_EQ(read.integer("step"), int64_t{1} << 62);
  EXPECT_EQ(read.unsigned_integer("seed"), UINT64_MAX);
  EXPECT_EQ(read.integer("small"), 3);
  EXPECT_TRUE(read.flag("done"));
  EXPECT_EQ(read.text("name"), "Grüße \"x\"\n");
  EXPECT_EQ(read.reals("losses"), (std::vector<double>{0.1, -INFINITY, 3.0}));
  EXPECT_EQ(read.integers("counts"), (std::vector<int64_t>{INT64_MIN, 0}));
  EXPECT_FALSE(read.has("other"));
}

TEST(State, DoublesComeBackBitForBit) {
  Random random(3, 0);
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, Limits::max(), Limits::min(), 9007199254740993.0, INFINITY, -INFINITY};
  while (values.size() < 20000) values.push_back(std::bit_cast<double>(random.next()));
  for (const double value : values) {
    State state;
    state.put("x", value);
    const double read = again(state).real("x");
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(read));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(read), std::bit_cast<uint64_t>(value)) << value;
    }
  }
}

TEST(State, ErrorsNameFileAndKey) {
  const auto error_of = [](auto&& action) -> std::string {
    try {
      action();
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  const State state = State::from_json(R"({"a": "text", "b": -1, "c": 1.5, "d": [1, true], "e": 18446744073709551615})", "run/state.json");
  EXPECT_THAT(error_of([&] { state.integer("none"); }), HasSubstr("run/state.json: has no 'none'"));
  EXPECT_THAT(error_of([&] { state.integer("a"); }), HasSubstr("run/state.json: 'a' is \"text\""));
  EXPECT_THAT(error_of([&] { state.unsigned_integer("b"); }), HasSubstr("'b'"));
  EXPECT_THAT(error_of([&] { state.integer("c"); }), HasSubstr("'c'"));
  EXPECT_THAT(error_of([&] { state.integer("e"); }), HasSubstr("'e'"));
  EXPECT_THAT(error_of([&] { state.real("a"); }), HasSubstr("'a'"));
  EXPECT_THAT(error_of([&] { state.reals("d"); }), HasSubstr("'d'"));
  EXPECT_THAT(error_of([&] { state.integers("d"); }), HasSubstr("'d'"));
  EXPECT_THAT(error_of([&] { state.flag("b"); }), HasSubstr("'b'"));
  EXPECT_THAT(error_of([&] { state.text("b"); }), HasSubstr("'b'"));
  for (const char* text : {"", "[]", "{", "3", "{\"a\":1,\"a\":2}", "{\"a\":1e999}", "\xff"}) {
    EXPECT_THAT(error_of([&] { State::from_json(text, "run/state.json"); }), HasSubstr("run/state.json: ")) << text;
  }
}

}  // namespace
}  // namespace starling
