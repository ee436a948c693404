// Which device is chosen where there are cards and where there are none, in a program that was built for cards.
#include "backend/device_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

TEST(DeviceChoice, AutoSaysWhyItIsTheProcessor) {
  EXPECT_EQ(resolve({}, false).device, "cuda:0");
  EXPECT_EQ(why_no_card({}), "");
  emulated_cuda::set_cards(0);
  EXPECT_EQ(resolve({}, false).device, "cpu");
  const std::string why = why_no_card({});
  DeviceChoice asked;
  asked.device = "cpu";
  const std::string none = why_no_card(asked);
  asked.device = "cuda";
  EXPECT_THROW(make_backend(asked), ConfigError);
  emulated_cuda::set_cards(1);
  EXPECT_TRUE(why.starts_with("computing on the processor: no NVIDIA card can be used: ")) << why;
  EXPECT_EQ(none, "") << "nobody asked for a card";
}

}  // namespace
}  // namespace starling
