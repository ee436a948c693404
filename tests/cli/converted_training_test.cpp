// Configurations of other programs, converted and trained with: the text is small, the options are those that people have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/text_files.h"
#include "tests/cli/program.h"
#include "tests/migration/mozilla.h"

namespace starling {
namespace {

using testing::HasSubstr;

class ConvertedTraining : public ProgramTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(run("demo-corpus --output text --train 500 --valid 40 --test 10").status, 0);
    std::string links;
    for (int i = 0; i < 500; ++i) links += "0-0\n";  // of the first pieces, which every line has
    write("links", links);
  }
  void convert_and_train(const std::string& option, const std::string& configuration, const std::string& smaller) const {
    write("theirs.yml", configuration);
    const ShellOutcome converted = run("train " + option + " theirs.yml >ours.yml");
    ASSERT_EQ(converted.status, 0) << converted.text;
    const ShellOutcome trained = run("train -c ours.yml --train.threads 1 --train.max-steps 6 --log.every 2 --valid.every 3 " + smaller);
    EXPECT_EQ(trained.status, 0) << trained.text << read_text_file(path("ours.yml"));
    EXPECT_THAT(trained.text, HasSubstr("complete: train.max-steps 6"));
    EXPECT_THAT(trained.text, HasSubstr("[valid] step 6"));
  }
};

// Its options as they are, with other files and a smaller model.
TEST_F(ConvertedTraining, OfMozillasPipeline) {
  std::string configuration = kMozilla;
  for (const auto& [theirs, here] : std::initializer_list<std::pair<const char*, const char*>>{
           {"corpus.en.gz, corpus.de.gz", "text/train.en, text/train.de"},
           {"devset.en, devset.de", "text/valid.en, text/valid.de"},
           {"corpus.aln.gz", "links"},
           {"[32000, 32000]", "[600, 600]"},
           {"enc-depth: 6", "enc-depth: 2"},
           {"dim-emb: 1024", "dim-emb: 32"},
           {"transformer-dim-ffn: 4096", "transformer-dim-ffn: 64"},
           {"transformer-heads: 16", "transformer-heads: 2"},
           {"mini-batch-words: 5000", "mini-batch-words: 250"},
           {"sentencepiece-options: --character_coverage=1.0 --byte_fallback --split_digits", "sentencepiece-options: --split_digits"}}) {
    const size_t at = configuration.find(theirs);
    ASSERT_NE(at, std::string::npos) << theirs;
    configuration.replace(at, std::strlen(theirs), here);
  }
  convert_and_train("--from-marian", configuration, "");
  EXPECT_THAT(read_text_file(path("models/train.log")), HasSubstr("alignment "));
}

// What a user's file says is called as it is there.
TEST_F(ConvertedTraining, MistakesNameTheOption) {
  write("m.yml", "type: transformer\nenc-depth: 0\n");
  EXPECT_THAT(run("train --from-marian m.yml").text,
              HasSubstr("m.yml: enc-depth: '0' is out of range; give a whole number from 1 to 1000; it is model.encoder-layers here"));
  EXPECT_THAT(run("train --from-marian m.yml --model.encoder-layers -3").text, HasSubstr("model.encoder-layers"));
}

// OPUS-MT-train's options for its base Transformer, whose dimensions are made smaller here.
TEST_F(ConvertedTraining, OfOpusMtTrain) {
  convert_and_train("--from-marian", R"(
task: transformer-base
model: opus/model.npz
train-sets: [text/train.en, text/train.de]
vocabs: [opus.vocab.yml, opus.vocab.yml]
valid-sets: [text/valid.en, text/valid.de]
mini-batch-fit: true
workspace: 13000
maxi-batch: 500
valid-mini-batch: 16
early-stopping: 15
valid-freq: 10000
save-freq: 10000
disp-freq: 10000
valid-metrics: [perplexity, bleu-detok]
beam-size: 6
normalize: 1
exponential-smoothing: true
)",
                    "--model.encoder-layers 1 --model.decoder-layers 1 --model.width 32 --model.feed-forward 64 --model.heads 2 "
                    "--vocab.size 600 --train.batch-tokens 300");
}

TEST_F(ConvertedTraining, OfOpenNmt) {
  convert_and_train("--from-opennmt", R"(
data:
  corpus_1: {path_src: text/train.en, path_tgt: text/train.de, transforms: [sentencepiece, filtertoolong]}
  valid: {path_src: text/valid.en, path_tgt: text/valid.de, transforms: [sentencepiece]}
share_vocab: true
src_vocab_size: 600
save_model: onmt/ende
train_steps: 100
valid_steps: 50
encoder_type: transformer
decoder_type: transformer
enc_layers: 1
dec_layers: 1
heads: 2
hidden_size: 32
word_vec_size: 32
transformer_ff: 64
dropout: [0.1]
batch_size: 300
batch_type: tokens
optim: adam
adam_beta2: 0.998
decay_method: noam
warmup_steps: 8000
learning_rate: 2
label_smoothing: 0.1
)",
                    "");
}

}  // namespace
}  // namespace starling
