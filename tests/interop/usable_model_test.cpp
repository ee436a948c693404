// Models of other programs where a model directory is expected.
#include "interop/usable_model.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "interop/export.h"
#include "interop/import.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class UsableModel : public InteropTest {
 protected:
  UsableModel() {
    fs::create_directories(directory_ + "/cache");
    setenv("XDG_CACHE_HOME", (directory_ + "/cache").c_str(), 1);
  }
  ~UsableModel() override { unsetenv("XDG_CACHE_HOME"); }
  std::string usable(const std::string& path) {
    said_.clear();
    return usable_model(*files_, path, [&](const std::string& line) { said_ = line; });
  }
};

TEST_F(UsableModel, ForeignModelsAreImportedOnceAndAgainWhenTheyChange) {
  const std::string from = directory_ + "/ct2";
  fs::copy(STARLING_SOURCE_DIR "/tests/fixtures/ct2/v2-aren-transliteration-i8", from);
  const std::string first = usable(from);
  EXPECT_THAT(said_, HasSubstr("importing " + from + " to " + directory_ + "/cache/starling/imported/ct2-"));
  EXPECT_EQ(describe_model(*files_, first).config.width, 32);
  EXPECT_EQ(usable(from), first);
  EXPECT_EQ(said_, "");
  fs::last_write_time(from + "/model.bin", fs::last_write_time(from + "/model.bin") + std::chrono::seconds(5));
  EXPECT_NE(usable(from), first);
  EXPECT_NE(said_, "");
}

// It has a config.yml too, as a model directory of ours.
TEST_F(UsableModel, AFolderForFirefoxsEngine) {
  const std::string marian = STARLING_SOURCE_DIR "/tests/fixtures/marian/", ours = directory_ + "/ours", firefox = directory_ + "/firefox";
  import_model(*files_, {marian + "ssru", ours, {.source = marian + "v.spm"}, {}});
  export_model(*files_, {.model = ours, .output = firefox, .to = ExportFormat::bergamot});
  ASSERT_TRUE(fs::exists(firefox + "/config.yml"));
  EXPECT_EQ(describe_model(*files_, usable(firefox)).config.width, 32);
}

TEST_F(UsableModel, ModelsOfOursAndMissingOnesStayAsTheyAre) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model";
  EXPECT_EQ(usable(ours), ours);
  EXPECT_EQ(usable(directory_ + "/nothing"), directory_ + "/nothing");
  EXPECT_EQ(said_, "");
  files_->write_file(directory_ + "/x.argosmodel", "no archive");
  EXPECT_THROW(usable(directory_ + "/x.argosmodel"), ConfigError);
}

TEST_F(UsableModel, FoldersOfHuggingFace) {
  const std::string fixture = STARLING_SOURCE_DIR "/tests/fixtures/hf/";
  EXPECT_EQ(describe_model(*files_, usable(fixture + "nllb")).search.target_prefix, "deu_Latn");
  EXPECT_EQ(describe_model(*files_, usable(fixture + "m2m")).config.first_position, 2);
  fs::copy(fixture + "marian", directory_ + "/pickle");
  fs::rename(directory_ + "/pickle/model.safetensors", directory_ + "/pickle/pytorch_model.bin");
  EXPECT_THAT(refusal([&] { usable(directory_ + "/pickle"); }), HasSubstr("safe_serialization"));
}

TEST_F(UsableModel, PackagesOfAFolder) {
  const std::string folder = directory_ + "/packages";
  fs::create_directories(folder + "/translate-en_de-1_9/model");
  EXPECT_THROW(packages_in(*files_, folder), ConfigError);
  files_->write_file(folder + "/translate-en_de-1_9/metadata.json", "{}");
  files_->write_file(folder + "/translate-en_de-1_9/model/model.bin", "");
  files_->write_file(folder + "/de_en.argosmodel", "");
  files_->write_file(folder + "/notes.txt", "");
  EXPECT_THAT(packages_in(*files_, folder), ElementsAre(folder + "/de_en.argosmodel", folder + "/translate-en_de-1_9"));
  EXPECT_THROW(packages_in(*files_, directory_ + "/nowhere"), ConfigError);
}

}  // namespace
}  // namespace starling
