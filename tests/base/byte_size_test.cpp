#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(ByteSize, ReadsWhatPeopleWrite) {
  EXPECT_EQ(byte_size("4G"), 4294967296);
  EXPECT_EQ(byte_size("500M"), 524288000);
  EXPECT_EQ(byte_size("1.5g"), 1610612736);
  EXPECT_EQ(byte_size("2 GiB"), 2147483648);
  EXPECT_EQ(byte_size("10kB"), 10240);
  EXPECT_EQ(byte_size("1T"), 1099511627776);
}

TEST(ByteSize, RefusesTheRest) {
  for (const char* text : {"", "4", "G", "-4G", "4X", "4GG", "4iB", "4Gb 1", "0G", "nan G", "inf G", "1e3G", "9999999999T", "4G 1"})
    EXPECT_FALSE(byte_size(text)) << text;
}

}  // namespace
}  // namespace starling
