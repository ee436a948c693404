// What a path is: folders, archives and files as other programs leave them, and what stands in for them.
#include "interop/recognise.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "formats/zip.h"
#include "tests/interop/archives.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kFixturesOfAll = STARLING_SOURCE_DIR "/tests/fixtures";

class Recognise : public InteropTest {
 protected:
  // A file of the test's directory.
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(path(name)).parent_path());
    files_->write_file(path(name), content);
  }
  void copy(const std::string& fixture, const std::string& name) {
    fs::create_directories(fs::path(path(name)).parent_path());
    fs::copy(kFixturesOfAll + "/" + fixture, path(name), fs::copy_options::recursive);
  }
  RecognisedModel of(const std::string& name) { return recognise(*files_, path(name)); }
  std::string why(const std::string& name) {
    return refusal([&] { of(name); });
  }
};

TEST_F(Recognise, EachKindOfFolder) {
  EXPECT_EQ(recognise(*files_, kFixturesOfAll + "/models/pre/model").kind, ModelKind::ours);
  EXPECT_EQ(recognise(*files_, kFixturesOfAll + "/ct2/v2-aren-transliteration-i8").weights, "model.bin");
  EXPECT_EQ(recognise(*files_, kFixturesOfAll + "/hf/m2m").kind, ModelKind::hf);
  EXPECT_EQ(recognise(*files_, kFixturesOfAll + "/marian/ssru").weights, "model.npz");
  // Of a run whose first checkpoint is not there yet, the readers of runs say so.
  put("run/config.yml", "");
  put("run/events.jsonl", "");
  EXPECT_EQ(of("run").kind, ModelKind::ours);
  // Both in one folder: an upper one goes before one below, and CTranslate2's before Hugging Face's.
  copy("hf/marian", "both");
  copy("ct2/v2-aren-transliteration-i8", "both/ct2");
  EXPECT_EQ(of("both").kind, ModelKind::hf);
  copy("ct2/v2-aren-transliteration-i8/model.bin", "both/model.bin");
  EXPECT_EQ(of("both").kind, ModelKind::ct2);
}

TEST_F(Recognise, FilesByTheirNames) {
  copy("ct2/v2-aren-transliteration-i8", "ct2");
  EXPECT_EQ(of("ct2/model.bin").kind, ModelKind::ct2);
  copy("hf/marian", "hf");
  EXPECT_EQ(of("hf/model.safetensors").kind, ModelKind::hf);
  copy("marian/ssru", "marian");
  EXPECT_EQ(of("marian/model.npz").kind, ModelKind::marian);
  EXPECT_EQ(of("marian/model.npz").marian.settings, "model.npz.decoder.yml");
  EXPECT_THAT(why("marian/scores.txt"), HasSubstr("scores.txt: not a model"));
  EXPECT_THAT(refusal([&] { recognise(*files_, kFixturesOfAll + "/models/pre/model/model.safetensors"); }),
              HasSubstr("name the model directory: " + kFixturesOfAll + "/models/pre/model"));
  EXPECT_THAT(why("nothing"), HasSubstr("there is no such file or directory"));
  EXPECT_EQ(refusal([&] { recognise(*files_, ""); }), "no model was named: its path is empty; give a file or a directory");
  EXPECT_THAT(refusal([&] { recognise(*files_, "/dev/null"); }), HasSubstr("neither a file nor a directory"));
}

// An archive is one by its content, as `export --to argos -o NAME` writes it under any name, and has what macOS adds.
TEST_F(Recognise, Archives) {
  const auto content = [&](const std::string& name) { return files_->read_file(kFixturesOfAll + "/hf/marian/" + name); };
  put("hf", zip_of({{"opus-mt/config.json", content("config.json")},
                    {"__MACOSX/opus-mt/._config.json", "x"},
                    {"opus-mt/model.safetensors", content("model.safetensors")}},
                   true));
  EXPECT_EQ(of("hf").kind, ModelKind::hf);
  EXPECT_EQ(of("hf").folder->directory(), "");
  const std::string ct2 = files_->read_file(kFixturesOfAll + "/ct2/v2-aren-transliteration-i8/model.bin");
  put("argos", zip_of({{"ar_en/metadata.json", R"({"from_code": "ar", "to_code": "en"})"}, {"ar_en/model/model.bin", ct2}}, true));
  const RecognisedModel argos = of("argos");
  EXPECT_EQ(argos.weights, "model/model.bin");
  EXPECT_EQ(argos.folder->peek(argos.weights, 6), ct2.substr(0, 6));
  EXPECT_EQ(languages_beside(*argos.folder, argos.weights), (Languages{"ar", "en", {}}));
  put("cut.argosmodel", files_->read_file(path("argos")).substr(0, 100'000));
  EXPECT_THAT(why("cut.argosmodel"), HasSubstr("was it cut short?"));
}

// What is kept beside a model is short, and has names that a disk and a terminal can take.
TEST_F(Recognise, OddNamesAndHugeLicences) {
  const std::string ct2 = kFixturesOfAll + "/ct2/v2-aren-transliteration-i8/", big(size_t{2} << 20, 'x');
  std::vector<std::pair<std::string, std::string>> files{
      {"LICENSE", "free"}, {"LICENSE\xff", "x"}, {std::string("LICENSE\0x", 9), "x"}, {"LICENSE\x1b[31m", "x"}, {"README.md", big}};
  for (const char* name : {"model.bin", "source_vocabulary.txt", "target_vocabulary.txt"})
    files.emplace_back(name, files_->read_file(ct2 + name));
  for (int i = 0; i < 100; ++i) files.emplace_back("LICENSE" + std::to_string(i), "x");
  put("odd.zip", zip_of(files, true));
  const std::string output = imported(path("odd.zip"));
  EXPECT_EQ(files_->read_file(output + "/original-LICENSE"), "free");
  EXPECT_FALSE(fs::exists(output + "/original-README.md"));
  int kept = 0;
  for (const std::string& name : files_->list(output)) kept += name.starts_with("original-");
  EXPECT_EQ(kept, 1);
}

TEST_F(Recognise, SaysWhatIsMissingAndWhatToName) {
  put("empty/notes.txt", "");
  EXPECT_THAT(why("empty"), AllOf(HasSubstr("CTranslate2"), HasSubstr("Hugging Face"), HasSubstr("Marian"), HasSubstr("Starling")));
  put("argos/metadata.json", R"({"from_code": "de", "to_code": "en"})");
  EXPECT_THAT(why("argos"), HasSubstr("not a whole model: metadata.json is that of an Argos package, but its model/model.bin is missing"));
  put("hf/config.json", "{}");
  EXPECT_THAT(why("hf"), HasSubstr("not a whole model: config.json is that of a Hugging Face model, but there is no *.safetensors"));
  put("hub/snapshots/0123/config.json", "{}");
  EXPECT_THAT(why("hub"), HasSubstr("name a folder in it: " + path("hub/snapshots/0123")));
  put("students/ende.tiny.tar.gz", "x");
  EXPECT_THAT(why("students"), HasSubstr("unpack ende.tiny.tar.gz"));
  EXPECT_THAT(why("students/ende.tiny.tar.gz"), HasSubstr("unpack it"));
  copy("ct2/v2-aren-transliteration-i8", "two/a");
  EXPECT_EQ(of("two").weights, "a/model.bin");
  copy("ct2/v2-aren-transliteration-i8", "two/b");
  EXPECT_THAT(why("two"), HasSubstr("there are 2 models in it; name the folder of one, such as " + path("two/a")));
}

TEST_F(Recognise, PointersPagesAndBrokenDownloads) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 17140899\n";
  put("firefox/model.ende.intgemm.alphas.bin.gz", pointer);
  EXPECT_THAT(why("firefox"), HasSubstr("model.ende.intgemm.alphas.bin.gz: a pointer of Git LFS"));
  put("argos/model/model.bin", pointer);
  EXPECT_THAT(why("argos"), HasSubstr("git lfs pull"));
  put("hf/config.json", files_->read_file(kFixturesOfAll + "/hf/marian/config.json"));
  put("hf/model.safetensors", pointer);
  EXPECT_THAT(refusal([&] { imported(path("hf")); }), HasSubstr("hf/model.safetensors: a pointer of Git LFS"));
  put("hf/model.safetensors", "Entry not found");
  EXPECT_THAT(refusal([&] { imported(path("hf")); }), HasSubstr("the server had no such file"));
  for (const char* page : {"\n<!DOCTYPE html>\n<html>", "<html lang=\"en\"><head>", "\xef\xbb\xbf<!doctype HTML>"}) {
    put("opus.zip", page);
    EXPECT_THAT(why("opus.zip"), HasSubstr("opus.zip: a web page")) << page;
  }
  put("opus.zip", "not an archive");
  EXPECT_THAT(why("opus.zip"), HasSubstr("not a zip archive"));
  put("opus.zip", "");
  EXPECT_THAT(why("opus.zip"), HasSubstr("not a zip archive"));
  put("ct2/model.bin", "");
  EXPECT_THAT(why("ct2"), HasSubstr("ct2/model.bin: is empty; fetch it again"));
  put("packed/metadata.json", R"({"sourceLanguage": "en", "targetLanguage": "de"})");
  const std::string packed = "\x1f\x8b\x08" + std::string(20, '\1');
  put("packed/model.ende.bin.gz", packed);
  EXPECT_THAT(why("packed"), HasSubstr("packed/model.ende.bin.gz: the gzip archive is"));
  copy("marian/ssru/model.npz", "marian/model.npz");
  put("marian/vocab.spm", pointer);
  EXPECT_THAT(refusal([&] { imported(path("marian")); }), HasSubstr("marian/vocab.spm: a pointer of Git LFS"));
}

TEST_F(Recognise, LanguagesThatFilesName) {
  const auto languages = [&](const std::string& name) { return named_languages(*files_, path(name)); };
  put("argos/metadata.json", R"({"from_code": "zt", "to_code": "en"})");
  EXPECT_EQ(languages("argos"), (Languages{"zt", "en", {}}));
  put("argos/metadata.json", R"({"from_code": "p b", "to_code": 5})");
  EXPECT_EQ(languages("argos"), (Languages{}));
  put("argos/metadata.json", "[]");
  EXPECT_THROW(languages("argos"), DataError);
  put("argos/metadata.json", "{\"a\": \"" + std::string(size_t{2} << 20, 'x') + "\"}");
  EXPECT_THAT(refusal([&] { languages("argos"); }), HasSubstr("1 MiB"));
  put("mozilla/metadata.json", R"({"architecture": "tiny", "sourceLanguage": "et", "targetLanguage": "en"})");
  put("mozilla/model.eten.intgemm.alphas.bin", "x");
  EXPECT_EQ(languages("mozilla"), (Languages{"et", "en", {}}));
  fs::remove(path("mozilla/metadata.json"));
  EXPECT_EQ(languages("mozilla"), (Languages{"et", "en", {}}));
  EXPECT_EQ(languages("mozilla/model.eten.intgemm.alphas.bin"), (Languages{"et", "en", {}}));
  EXPECT_EQ(languages("nothing"), (Languages{}));
  EXPECT_EQ(named_languages(*files_, kFixturesOfAll + "/models/pre/model"), (Languages{}));
}

}  // namespace
}  // namespace starling
