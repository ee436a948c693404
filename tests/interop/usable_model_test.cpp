// Models of other programs where a model directory is expected.
#include "interop/usable_model.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "exporting/export.h"
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
  const std::string second = usable(from);
  EXPECT_NE(second, first);
  EXPECT_NE(said_, "");
  EXPECT_FALSE(fs::exists(first));  // what was imported before is removed
  EXPECT_TRUE(fs::exists(second));
}

// Several processes, or threads of one, at once: one imports, the others wait for it.
TEST_F(UsableModel, IsImportedOnceAtATime) {
  const std::string from = directory_ + "/ct2";
  fs::copy(STARLING_SOURCE_DIR "/tests/fixtures/ct2/v2-aren-transliteration-i8", from);
  std::atomic<int> imports{0};
  std::vector<std::string> found(6);
  std::vector<std::thread> threads;
  for (std::string& directory : found)
    threads.emplace_back([&] { directory = usable_model(*real_file_system(), from, [&](const std::string&) { ++imports; }); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(imports, 1);
  for (const std::string& directory : found) EXPECT_EQ(directory, found[0]);
  EXPECT_EQ(describe_model(*files_, found[0]).config.width, 32);
}

// Every file that an import reads counts, by its content if it is small.
TEST_F(UsableModel, ChangesOfAnyFileAreSeen) {
  const std::string fixture = STARLING_SOURCE_DIR "/tests/fixtures/hf/m2m", from = directory_ + "/m2m";
  fs::copy(fixture, from);
  EXPECT_EQ(describe_model(*files_, usable(from)).search.target_prefix, "__de__");
  const std::string state = foreign_state(*files_, from);
  for (const char* name : {"tokenizer_config.json", "vocab.json", "generation_config.json", "config.json", "sentencepiece.bpe.model"}) {
    const std::string before = files_->read_file(from + "/" + name);
    files_->write_file(from + "/" + name, before + " ");
    EXPECT_NE(foreign_state(*files_, from), state) << name;
    files_->write_file(from + "/" + name, before);
    EXPECT_EQ(foreign_state(*files_, from), state) << name;
  }
  change(from + "/tokenizer_config.json", "\"tgt_lang\": \"de\"", "\"tgt_lang\": \"en\"");
  EXPECT_EQ(describe_model(*files_, usable(from)).search.target_prefix, "__en__");
  files_->write_file(from + "/train.log", "no part of it");
  usable(from);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(foreign_state(*files_, STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model"), "");
}

// A vocabulary that decoder.yml names elsewhere counts too.
TEST_F(UsableModel, ARunDirectoryOfMarians) {
  const std::string marian = STARLING_SOURCE_DIR "/tests/fixtures/marian/", run = directory_ + "/run";
  fs::create_directories(run);
  fs::copy(marian + "ssru/model.npz", run + "/model.npz");
  fs::copy(marian + "ssru/model.npz", run + "/model.npz.best-chrf.npz");
  fs::copy(marian + "v.spm", directory_ + "/v.spm");
  files_->write_file(run + "/model.npz.best-chrf.npz.decoder.yml",
                     fmt::format("models: [model.npz]\nvocabs: [{0}/v.spm, {0}/v.spm]\nbeam-size: 3\n", directory_));
  const std::string first = usable(run);
  EXPECT_THAT(said_, HasSubstr("importing " + run + " (model.npz.best-chrf.npz) to "));
  EXPECT_EQ(describe_model(*files_, first).search.beam, 3);
  files_->write_file(directory_ + "/v.spm", files_->read_file(marian + "v.spm") + std::string(1, '\0'));
  EXPECT_NE(foreign_state(*files_, run), "");
  EXPECT_ANY_THROW(usable(run));  // its vocabulary is damaged now, which is not overlooked
}

// It has a config.yml too, as a model directory of ours.
TEST_F(UsableModel, AFolderForFirefoxsEngine) {
  const std::string marian = STARLING_SOURCE_DIR "/tests/fixtures/marian/", ours = directory_ + "/ours", firefox = directory_ + "/firefox";
  import_model(*files_, {marian + "ssru", ours, {.source = marian + "v.spm"}, {}});
  export_model(*files_, {.model = ours, .output = firefox, .to = Program::bergamot});
  ASSERT_TRUE(fs::exists(firefox + "/config.yml"));
  EXPECT_EQ(describe_model(*files_, usable(firefox)).config.width, 32);
}

TEST_F(UsableModel, ModelsOfOursStayAsTheyAre) {
  const std::string ours = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model";
  EXPECT_EQ(usable(ours), ours);
  EXPECT_EQ(said_, "");
  EXPECT_THAT(refusal([&] { usable(directory_ + "/nothing"); }), HasSubstr("there is no such file or directory"));
  files_->write_file(directory_ + "/x.argosmodel", "no archive");
  EXPECT_THROW(usable(directory_ + "/x.argosmodel"), DataError);
  EXPECT_THAT(refusal([&] { imported(ours); }), HasSubstr("is already a Starling model"));
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
  fs::create_directories(folder);
  EXPECT_THROW(packages_in(*files_, folder), ConfigError);
  fs::create_directories(folder + "/translate-en_de-1_9/model");
  fs::create_directories(folder + "/.cache");
  files_->write_file(folder + "/de_en.argosmodel", "");
  files_->write_file(folder + "/notes.txt", "");
  EXPECT_THAT(packages_in(*files_, folder), ElementsAre(folder + "/de_en.argosmodel", folder + "/translate-en_de-1_9"));
  EXPECT_THROW(packages_in(*files_, directory_ + "/nowhere"), ConfigError);
  files_->write_file(folder + "/metadata.json", "{}");
  EXPECT_THAT(refusal([&] { packages_in(*files_, folder); }), HasSubstr("is itself a package; give --model " + folder));
}

}  // namespace
}  // namespace starling
