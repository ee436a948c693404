// Folders as trainings of Marian's, Mozilla's and browsermt's leave them: which model is taken, how it searches, with which vocabularies.
#include "interop/marian_folder.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "interop/recognise.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kMarianModels = STARLING_SOURCE_DIR "/tests/fixtures/marian";

class MarianFolder : public InteropTest {
 protected:
  void weights(const std::string& name) {
    fs::create_directories(fs::path(path(name)).parent_path());
    fs::copy(kMarianModels + "/ssru/model.npz", path(name));
  }
  void vocabulary(const std::string& name) {
    fs::create_directories(fs::path(path(name)).parent_path());
    fs::copy(kMarianModels + "/v.spm", path(name));
  }
  // A model with the settings that a training writes beside it.
  void saved(const std::string& name, int beam, const std::string& source, const std::string& target, const std::string& more = "") {
    weights(name);
    settings(name + ".decoder.yml", {"/data/elsewhere/" + file_name(name)}, beam, source, target, more);
  }
  void settings(const std::string& name, const std::vector<std::string>& models, int beam, const std::string& source,
                const std::string& target, const std::string& more = "") {
    files_->write_file(path(name), fmt::format("models: [{}]\nvocabs:\n  - {}\n  - {}\nbeam-size: {}\nnormalize: 0.8\nword-penalty: 0\n{}",
                                               fmt::join(models, ", "), source, target, beam, more));
  }
  MarianFiles taken(const std::string& name) { return recognise(*files_, path(name)).marian; }
  ModelDescription described(const std::string& name) { return describe_model(*files_, imported(path(name))); }
  std::string why(const std::string& name) {
    return refusal([&] { imported(path(name)); });
  }
};

TEST_F(MarianFolder, OfATraining) {
  const std::string vocab = "/data/elsewhere/vocab.spm";
  for (const auto& [name, beam] : {std::pair("model.npz", 6), {"model.npz.best-ce-mean-words.npz", 5}, {"model.iter5000.npz", 4}})
    saved(std::string("run/") + name, beam, vocab, vocab);
  vocabulary("run/vocab.spm");
  files_->write_file(path("run/model.npz.optimizer.npz"), "x");
  files_->write_file(path("run/model.npz.progress.yml"), "epochs: 3\n");
  files_->write_file(path("run/model.npz.yml"), "model: model.npz\nvocabs: [nowhere.spm, nowhere.spm]\nbeam-size: 9\n");
  EXPECT_EQ(described("run").search.beam, 5);
  EXPECT_THAT(said_, HasSubstr("2 further models are there, such as model.iter5000.npz; name a file to take another than "
                               "model.npz.best-ce-mean-words.npz."));
  saved("run/model.npz.best-bleu-detok.npz", 7, vocab, vocab);  // a better measure
  EXPECT_EQ(described("run").search.beam, 7);
  EXPECT_EQ(described("run/model.npz").search.beam, 6);
  EXPECT_EQ(described("run/model.iter5000.npz").search.beam, 4);
  fs::remove(path("run/model.iter5000.npz.decoder.yml"));
  EXPECT_EQ(described("run/model.iter5000.npz").search.beam, 6);  // that of the same training
}

TEST_F(MarianFolder, OfMozillasPipeline) {
  const std::string worker = "/builds/worker/fetches/";
  for (const char* name : {"final.model.npz.best-chrf.npz", "model.npz", "model.npz.best-chrf.npz", "model.npz.best-bleu-detok.npz"})
    saved(std::string("teacher/") + name, name[0] == 'f' ? 3 : 2, worker + "vocab.ru.spm", worker + "vocab.en.spm");
  vocabulary("teacher/vocab.ru.spm");
  vocabulary("teacher/vocab.en.spm");
  EXPECT_EQ(taken("teacher").weights, "final.model.npz.best-chrf.npz");
  const VocabularyFiles v = marian_vocabularies(*files_, *recognise(*files_, path("teacher")).folder, taken("teacher"), {});
  EXPECT_EQ(v.source, "vocab.ru.spm");  // in the order of the settings, not of the names
  EXPECT_EQ(v.target, "vocab.en.spm");
  EXPECT_EQ(described("teacher").search.beam, 3);
  EXPECT_TRUE(described("teacher").vocabularies.joint());  // the files are equal
}

TEST_F(MarianFolder, OfBrowsermtsStudents) {
  for (const char* name : {"model.npz", "model.alphas.npz"}) weights(std::string("ende.tiny/") + name);
  vocabulary("ende.tiny/vocab.deen.spm");
  files_->write_file(path("ende.tiny/lex.s2t.bin"), "not read");
  EXPECT_EQ(taken("ende.tiny").weights, "model.npz");
  settings("ende.tiny/config.alpha.yml", {"model.alphas.npz"}, 3, "vocab.deen.spm", "vocab.deen.spm", "relative-paths: true\n");
  settings("ende.tiny/config.yml", {"model.npz"}, 2, "vocab.deen.spm", "vocab.deen.spm", "relative-paths: true\n");
  EXPECT_EQ(described("ende.tiny").search.beam, 2);
  EXPECT_EQ(described("ende.tiny/model.alphas.npz").search.beam, 3);
}

TEST_F(MarianFolder, SeveralModelsAreNamed) {
  for (const char* name : {"both/model.deen.npz", "both/model.ende.npz"}) weights(name);
  vocabulary("both/vocab.spm");
  EXPECT_THAT(why("both"), HasSubstr("there are 2 models; name one of them in its place:\n  " + path("both/model.deen.npz") + "\n  " +
                                     path("both/model.ende.npz")));
  EXPECT_EQ(described("both/model.deen.npz").languages, (Languages{"de", "en", {}}));
  settings("both/decoder.yml", {"model.deen.npz", "model.ende.npz"}, 2, "vocab.spm", "vocab.spm");
  EXPECT_THAT(why("both"), AllOf(HasSubstr("decoder.yml names an ensemble"), HasSubstr("\n  " + path("both/model.ende.npz"))));
  settings("both/decoder.yml", {"/elsewhere/model.ende.npz"}, 2, "vocab.spm", "vocab.spm");
  EXPECT_EQ(taken("both").weights, "model.ende.npz");
}

// Relative paths are those from the directory that the training ran in, or from the model's.
TEST_F(MarianFolder, VocabulariesElsewhere) {
  vocabulary("project/data/v.spm");
  weights("project/runs/1/model.npz");
  settings("project/runs/1/decoder.yml", {"runs/1/model.npz"}, 5, "data/v.spm", "data/v.spm");
  EXPECT_EQ(described("project/runs/1").search.beam, 5);
  settings("project/runs/1/decoder.yml", {"model.npz"}, 4, "../../data/v.spm", "../../data/v.spm", "relative-paths: true\n");
  EXPECT_EQ(described("project/runs/1").search.beam, 4);
  settings("project/runs/1/decoder.yml", {"model.npz"}, 3, path("project/data/v.spm"), path("project/data/v.spm"));
  EXPECT_EQ(described("project/runs/1").search.beam, 3);
  settings("project/runs/1/decoder.yml", {"model.npz"}, 3, path("project/data/v.spm"), "data/w.spm");
  EXPECT_THAT(why("project/runs/1"),
              HasSubstr("decoder.yml names the vocabulary data/w.spm, which is not there; copy it beside the model"));
}

TEST_F(MarianFolder, VocabulariesByLanguages) {
  weights("x/model.npz");
  vocabulary("x/vocab.de.spm");
  vocabulary("x/vocab.en.spm");
  EXPECT_TRUE(described("x").vocabularies.joint());  // two copies
  files_->write_file(path("x/vocab.en.spm"), "another");
  EXPECT_THAT(why("x"), HasSubstr("vocab.de.spm and vocab.en.spm are there, but nothing says which is the source's"));
  fs::rename(path("x"), path("en-de"));
  const RecognisedModel m = recognise(*files_, path("en-de"));
  EXPECT_EQ(marian_vocabularies(*files_, *m.folder, m.marian, {}).source, "vocab.en.spm");
  fs::remove(path("en-de/vocab.de.spm"));
  fs::remove(path("en-de/vocab.en.spm"));
  EXPECT_THAT(why("en-de"), HasSubstr("there is no SentencePiece model"));
}

// OPUS-MT's first models: a list of tokens, codes of subword-nmt for each side, and a script that says which of Moses's are run before.
TEST_F(MarianFolder, SubwordNmt) {
  weights("opus/model.npz");
  settings("opus/decoder.yml", {"model.npz"}, 5, "vocab.yml", "vocab.yml");
  std::string list = "</s>: 0\n<unk>: 1\n\"l@@\": 2\now: 3\n\"&quot;\": 4\n\">>de<<\": 5\n\"@-@\": 6\nl: 7\n";
  files_->write_file(path("opus/vocab.yml"), list);
  files_->write_file(path("opus/source.bpe"), "#version: 0.2\no w</w>\n& q\n&q u\n&qu o\n&quo t\n&quot ;</w>\n@ -\n@- @</w>\n");
  files_->write_file(path("opus/target.bpe"), "#version: 0.2\n");
  EXPECT_EQ(described("opus").vocabularies.source().pieces("\xe2\x80\x9clow\xe2\x80\x9d").size(), 5u);  // as it stands: a word
  EXPECT_THAT(said_, HasSubstr("nothing says how text becomes words"));
  files_->write_file(path("opus/preprocess.sh"),
                     "${TOKENIZER}/replace-unicode-punctuation.perl |\n${TOKENIZER}/remove-non-printing-char.perl |\n"
                     "${TOKENIZER}/normalize-punctuation.perl -l $1 |\n${TOKENIZER}/tokenizer.perl -a -threads ${THREADS} -l $1 |\n");
  files_->write_file(path("opus/README.md"), "* download: [x](https://a.b/OPUS-MT-models/fr-de/opus-2019-12-04.zip)\n");
  const ModelDescription d = described("opus");
  EXPECT_EQ(d.languages, (Languages{"fr", "de"}));
  EXPECT_THAT(said_, HasSubstr("Text is split as Moses's scripts and subword-nmt do it"));
  EXPECT_EQ(d.vocabularies.source().encode("\xe2\x80\x9clow-low\xe2\x80\x9d"), (std::vector<int32_t>{4, 2, 3, 6, 2, 3, 4}));
  std::string_view typed = ">>de<< low";
  EXPECT_EQ(d.vocabularies.source().take_tag(typed), 5);
  EXPECT_EQ(typed, "low");
  EXPECT_EQ(d.vocabularies.target().decode(std::vector<int32_t>{4, 2, 3, 6, 2, 3, 4, 0}), "\"low-low\"");
  EXPECT_EQ(d.vocabularies.target().pieces("low").size(), 3u);  // by codes of its own
  fs::remove(path("opus/source.bpe"));
  fs::remove(path("opus/target.bpe"));  // a list of words alone
  EXPECT_EQ(described("opus").vocabularies.source().encode("l@@ ow"), (std::vector<int32_t>{2, 3}));
  EXPECT_THAT(said_, HasSubstr("text must be tokens separated by spaces"));
  files_->write_file(path("opus/a.bpe"), "#version: 0.2\n");
  files_->write_file(path("opus/b.bpe"), "#version: 0.2\n");
  EXPECT_THAT(why("opus"), HasSubstr("nothing says which codes are the source's"));
}

}  // namespace
}  // namespace starling
