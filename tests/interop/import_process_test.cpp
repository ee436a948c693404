// Imports in a process of their own, with limits.
#include "interop/import_process.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "decode/model_directory.h"
#include "interop/import.h"
#include "interop/usable_model.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class ImportProcess : public InteropTest {
 protected:
  const std::string from_ = STARLING_SOURCE_DIR "/tests/fixtures/ct2/v2-aren-transliteration-i8", to_ = directory_ + "/model";

  std::string refusal(const std::string& from, const ImportLimits& limits) {
    try {
      import_in_process(STARLING_BINARY, from, to_, limits);
    } catch (const Error& e) {
      return e.what();
    }
    return "imported";
  }
  ImportLimits limits_of(const std::string& from) { return import_limits(bytes_of_files(*files_, from)); }
};

TEST_F(ImportProcess, MakesWhatAnImportHereMakes) {
  import_in_process(STARLING_BINARY, from_, to_, limits_of(from_));
  import_model(*files_, {from_, directory_ + "/here", {}, {}});
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(to_)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(files_->read_file(entry.path()), files_->read_file(directory_ + "/here/" + name)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 4u);
}

TEST_F(ImportProcess, PassesOnWhatIsWrong) {
  const std::string broken = directory_ + "/broken";
  fs::copy(from_, broken);
  fs::resize_file(broken + "/model.bin", 1000);
  std::string here;
  try {
    import_model(*files_, {broken, to_, {}, {}});
  } catch (const DataError& e) {
    here = e.what();
  }
  EXPECT_THAT(here, HasSubstr("model.bin"));
  EXPECT_EQ(refusal(broken, limits_of(broken)), here);
  const std::string empty = directory_ + "/empty";
  fs::create_directory(empty);
  EXPECT_THROW(import_in_process(STARLING_BINARY, empty, to_, limits_of(empty)), ConfigError);
  EXPECT_THAT(refusal("-o", {uint64_t{512} << 20, 60}), HasSubstr("-o"));
  EXPECT_THAT(refusal(directory_ + "/\033[2J", {uint64_t{512} << 20, 60}), testing::Not(HasSubstr("\033")));
}

TEST_F(ImportProcess, KeepsItsLimits) {
  EXPECT_THAT(refusal(from_, {uint64_t{512} << 20, 0}), StartsWith(from_ + ": the import took longer than 0 s"));
  EXPECT_FALSE(fs::exists(to_));
  const std::string little = refusal(from_, {1 << 20, 60});
  EXPECT_THAT(little, StartsWith(from_ + ": the import "));
  EXPECT_FALSE(fs::exists(to_));
  const ImportLimits limits = limits_of(from_);
  EXPECT_EQ(limits.memory, (uint64_t{512} << 20) + 8 * bytes_of_files(*files_, from_));
  EXPECT_GE(bytes_of_files(*files_, STARLING_SOURCE_DIR "/tests/fixtures/ct2"), bytes_of_files(*files_, from_));
  EXPECT_EQ(bytes_of_files(*files_, from_ + "/model.bin"), fs::file_size(from_ + "/model.bin"));
}

// What a process leaves that is killed goes away with the next import of the same path.
TEST_F(ImportProcess, WhatAKilledImportLeavesIsRemoved) {
  fs::create_directories(directory_ + "/cache");
  setenv("XDG_CACHE_HOME", (directory_ + "/cache").c_str(), 1);
  const std::string model = directory_ + "/ct2";
  fs::copy(from_, model);
  const auto no_word = [](const std::string&) {};
  std::string left;
  EXPECT_THROW(usable_model(*files_, model, no_word,
                            [&](const std::string&, const std::string& output) {
                              left = fs::path(output).parent_path() / (".tmp-" + fs::path(output).filename().string() + "x");
                              fs::create_directories(left);
                              throw DataError("killed");
                            }),
               DataError);
  EXPECT_TRUE(fs::exists(left));
  EXPECT_TRUE(fs::exists(usable_model(*files_, model, no_word)));
  EXPECT_FALSE(fs::exists(left));
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace starling
