// Libraries that are opened at run time.
#include "base/shared_library.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace starling {
namespace {

TEST(SharedLibrary, FunctionsAreFound) {
  const SharedLibrary m("libm.so.6");
  ASSERT_TRUE(m.is_open()) << m.problem();
  EXPECT_EQ(m.problem(), "");
  EXPECT_EQ(m.find<double(double)>("sqrt")(16), 4);
  try {
    m.find<void()>("square_root");
    FAIL() << "there is no square_root";
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "libm.so.6 does not export square_root; it is another version");
  }
}

TEST(SharedLibrary, AMissingOneSaysSoWhenItIsNeeded) {
  const SharedLibrary none("libnothing.so.7");
  EXPECT_FALSE(none.is_open());
  EXPECT_NE(none.problem().find("libnothing.so.7"), std::string::npos) << none.problem();
  EXPECT_THROW(none.find<void()>("f"), ConfigError);
}

// In folders that the system does not know, the first that has it; one that is there but is no library is the problem.
TEST(SharedLibrary, FoldersAreLookedThroughInOrder) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / fmt::format("libraries-{}", getpid());
  for (const char* name : {"empty", "broken", "good"}) fs::create_directories(root / name);
  std::ofstream(root / "broken/libstarling-m.so") << "this is text";
  const std::vector<fs::path> broken{root / "absent", root / "empty", root / "broken"};
  const SharedLibrary text("libstarling-m.so", broken);
  EXPECT_FALSE(text.is_open());
  EXPECT_NE(text.problem().find("broken/libstarling-m.so"), std::string::npos) << text.problem();

  for (const char* system : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"})
    if (fs::exists(system) && !fs::exists(root / "good/libstarling-m.so")) fs::copy_file(system, root / "good/libstarling-m.so");
  if (!fs::exists(root / "good/libstarling-m.so")) GTEST_SKIP() << "libm.so.6 is in none of the folders that this test knows";
  const std::vector<fs::path> all{root / "empty", root / "broken", root / "good"};
  const SharedLibrary good("libstarling-m.so", all);
  ASSERT_TRUE(good.is_open()) << good.problem();
  EXPECT_EQ(good.problem(), "");
  EXPECT_EQ(good.find<double(double)>("floor")(1.5), 1);
  fs::remove_all(root);
}

}  // namespace
}  // namespace starling
