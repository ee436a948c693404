// Keys are found by their hash, files are read with complaints that name the line, and limits are minutes.
#include "http/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"

namespace starling {
namespace {

// printf %s secret | sha256sum
const std::string kSecret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const std::string kOther = "D9298A10D1B0735837DC4BD85DAC641B0F3CEF27A47E5D53A54F2F3F5B2FCFFA";  // of other

std::string complaint(const std::string& text) {
  try {
    ApiKeys::parse(text, "keys");
  } catch (const DataError& e) {
    return e.what();
  }
  return "none";
}

TEST(ApiKeys, AreFoundByTheirHash) {
  const ApiKeys keys = ApiKeys::parse("# ours\n\nann " + kSecret + "\n bob  " + kOther + "  30\r\n", "keys");
  EXPECT_EQ(keys.size(), 2u);
  ASSERT_TRUE(keys.find("secret"));
  EXPECT_EQ(keys.find("secret")->name, "ann");
  EXPECT_EQ(keys.find("secret")->per_minute, 0);
  EXPECT_EQ(keys.find("other")->per_minute, 30);
  EXPECT_FALSE(keys.find(""));
  EXPECT_FALSE(keys.find("secret "));
  EXPECT_FALSE(keys.find(kSecret));
}

TEST(ApiKeys, FilesAreReadStrictly) {
  EXPECT_EQ(complaint("ann secret"),
            "keys:1: 'secret' is not the SHA-256 of a key; write NAME HASH, with HASH from: printf %s KEY | sha256sum");
  EXPECT_EQ(complaint("#\nann"), "keys:2: '' is not the SHA-256 of a key; write NAME HASH, with HASH from: printf %s KEY | sha256sum");
  EXPECT_EQ(complaint("ann " + kSecret + " often"),
            "keys:1: 'often' is not a number of requests per minute; write NAME HASH or NAME HASH NUMBER");
  for (const char* bad : {"0", "nan", "-3", "1e99", "5 more"})
    EXPECT_THAT(complaint("ann " + kSecret + " " + bad), testing::HasSubstr("is not a number of requests")) << bad;
  EXPECT_EQ(complaint("ann " + kSecret + "\nann " + kSecret), "keys:2: the name ann occurs twice; give each key its own name");
  EXPECT_EQ(complaint("# none\n"), "keys:1: has no key, so every request would be refused; add one or leave --api-keys out");
}

// The time to read a file grows with its size, not with its square.
TEST(ApiKeys, ManyAreReadInTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "client-" + std::to_string(i) + " " + kSecret + "\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ApiKeys::parse(text, "keys").size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ApiKeys, MessagesShowNoControlCharacters) {
  EXPECT_THAT(complaint("ann \x1b[2J"), testing::HasSubstr("'\\x1b[2J' is not the SHA-256"));
  EXPECT_LT(complaint("ann " + std::string(100'000, 'x')).size(), 300u);
}

TEST(ApiKeys, AnEmptyKeyIsRefused) {
  // What sha256sum prints for nothing, and for what `echo` prints of a variable that is not set.
  for (const char* hash : {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                           "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
                           "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"})
    EXPECT_EQ(complaint("ann " + kSecret + "\nbob " + hash + " 30"),
              "keys:2: the key of bob is empty, so everybody would have access; hash a key: printf %s KEY | sha256sum");
}

TEST(RateLimits, AllowSoManyRequestsAMinute) {
  RateLimits limits;
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limits.take("six", 6, 100)) << i;
  EXPECT_NEAR(limits.take("six", 6, 100).value_or(0), 10, 1e-9);
  EXPECT_NEAR(limits.take("six", 6, 104).value_or(0), 6, 1e-9);
  EXPECT_FALSE(limits.take("six", 6, 110.001));
  EXPECT_TRUE(limits.take("six", 6, 110.002));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limits.take("six", 6, 1000)) << i;  // never more than a minute's
  EXPECT_TRUE(limits.take("six", 6, 1000));
  EXPECT_FALSE(limits.take("half", 0.5, 100));
  EXPECT_NEAR(limits.take("half", 0.5, 100).value_or(0), 120, 1e-9);
  EXPECT_FALSE(limits.take("half", 0.5, 220.001));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(limits.take("free", 0, 100));
}

TEST(RateLimits, ForgetThoseWhoHaveNotAskedForAMinute) {
  RateLimits limits;
  for (int i = 0; i < 100000; ++i) limits.take(std::to_string(i), 60, i * 0.1);  // 600 in a minute
  EXPECT_LE(limits.size(), 2000u);
  EXPECT_FALSE(limits.take("two", 2, 20000));
  EXPECT_FALSE(limits.take("two", 2, 20000));
  for (int i = 0; i < 5000; ++i) limits.take(std::to_string(i), 60, 20000);
  EXPECT_TRUE(limits.take("two", 2, 20000));  // not those that still matter
}

}  // namespace
}  // namespace starling
