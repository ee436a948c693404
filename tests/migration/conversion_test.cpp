// Configurations of Marian and OpenNMT-py as they stand in their users' repositories.
#include "migration/conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "migration/marian_options.h"
#include "settings/config.h"
#include "tests/migration/mozilla.h"

namespace starling {
namespace {

using testing::_;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

// Every value is one that we accept.
Config loaded(const Conversion& c) { return load_config("", c.keys); }

TEST(Conversion, OfMozillasTeacher) {
  const Conversion c = convert_marian({{kMozilla, "teacher.yml"}});
  const Config config = loaded(c);
  EXPECT_EQ(config.data.train.at(0).source, "corpus.en.gz");
  EXPECT_EQ(config.valid.target, "devset.de");
  EXPECT_EQ(config.vocab.source, "vocab.spm");
  EXPECT_TRUE(config.vocab.joint && config.vocab.training.byte_fallback && config.vocab.training.split_digits);
  EXPECT_EQ(config.vocab.training.size, 32000);
  EXPECT_EQ(config.vocab.training.whole, (std::vector<std::string>{"__source__", "__target__"}));
  EXPECT_EQ(config.model.encoder_layers, 6);
  EXPECT_EQ(config.model.decoder_layers, 2);
  EXPECT_EQ(config.train.batch_tokens, 5000 * 2 * 2);
  EXPECT_EQ(config.train.optimizer.learning_rate, 0.0003);
  EXPECT_EQ(config.train.optimizer.clip_norm, 0);
  EXPECT_DOUBLE_EQ(config.train.optimizer.ema, 0.9999);
  EXPECT_EQ(config.train.max_epochs, 10);
  EXPECT_EQ(config.train.output, "models");
  EXPECT_EQ(config.valid.metrics, (std::vector<std::string>{"chrf", "cross-entropy", "bleu"}));
  EXPECT_EQ(config.valid.early_stopping, 20);
  EXPECT_EQ(config.valid.search.length_penalty_form, LengthPenaltyForm::power);
  EXPECT_EQ(config.checkpoint.every, 5000);
  EXPECT_EQ(config.data.train.at(0).alignment, "corpus.aln.gz");
  EXPECT_EQ(config.data.alignment_unit, AlignmentUnit::pieces);
  EXPECT_EQ(config.train.guided_alignment, 0.1);
  EXPECT_EQ(aligned_layer(config.model), 1u);  // the last of two
  EXPECT_EQ(config.model.alignment_head, 1);
  EXPECT_THAT(c.missing, Contains(HasSubstr("unheard-of")));
  EXPECT_THAT(c.not_needed, Contains(HasSubstr("keep-best")));
  EXPECT_THAT(c.approximate, Contains(HasSubstr("devices")));
}

// OPUS-MT-train's Makefile gives these.
TEST(Conversion, OfOpusMt) {
  const Conversion c = convert_marian({{R"(
task: transformer-base
train-sets: [train.src.spm.gz, train.trg.spm.gz]
vocabs: [opus.vocab.yml, opus.vocab.yml]
valid-sets: [valid.src.spm, valid.trg.spm]
mini-batch-fit: true
workspace: 13000
maxi-batch: 500
valid-mini-batch: 16
early-stopping: 15
valid-freq: 10000
valid-metrics: [perplexity, translation]
valid-script-path: ./validate.sh
after-epochs: 0
after: 1Gt
exponential-smoothing: true
)",
                                        "opus.yml"}});
  const Config config = loaded(c);
  EXPECT_EQ(config.model.encoder_layers, 6);
  EXPECT_EQ(config.train.max_tokens, 1000000000);
  EXPECT_EQ(config.valid.script, "./validate.sh");
  EXPECT_EQ(config.vocab.source, "");
  EXPECT_THAT(c.missing, Contains(HasSubstr("mini-batch-fit")));
  EXPECT_THAT(c.missing, Contains(HasSubstr("vocabs")));
}

// All that a task stands for, from Marian's own list of aliases; what the file gives wins.
TEST(Conversion, OfMariansTasks) {
  const Config base = loaded(convert_marian({{"task: transformer-base\n", "m.yml"}}));
  EXPECT_EQ(base.train.optimizer.learning_rate, 0.0003);
  EXPECT_EQ(base.train.optimizer.warmup, 16000);
  EXPECT_EQ(base.train.optimizer.schedule, RateSchedule::inverse_sqrt);
  EXPECT_EQ(base.train.label_smoothing, 0.1);
  EXPECT_EQ(base.train.optimizer.clip_norm, 0);
  EXPECT_DOUBLE_EQ(base.train.optimizer.ema, 0.9999);
  EXPECT_EQ(base.train.optimizer.beta2, 0.98);
  EXPECT_EQ(base.data.max_length, 100);
  EXPECT_EQ(base.model.encoder_layers, 6);
  EXPECT_EQ(base.model.activation, Activation::relu);
  EXPECT_EQ(base.model.tied_embeddings, TiedEmbeddings::all);
  EXPECT_EQ(base.valid.search.beam, 8);
  const Config big = loaded(convert_marian({{"task: transformer-big\nlearn-rate: 0.0005\n", "m.yml"}}));
  EXPECT_EQ(big.model.width, 1024);
  EXPECT_EQ(big.train.optimizer.warmup, 8000);
  EXPECT_EQ(big.train.optimizer.learning_rate, 0.0005);
  const Conversion pre = convert_marian({{"task: transformer-big-prenorm\n", "m.yml"}});
  EXPECT_EQ(loaded(pre).model.norm, NormPlace::pre);
  EXPECT_THAT(pre.approximate, Contains(HasSubstr("does not go back to Marian or Firefox")));
}

// The models go back to the programs that they are from.
TEST(Conversion, IsForMarianAndFirefox) {
  const Config c = loaded(convert_marian({{"type: transformer\ntransformer-ffn-activation: gelu\n", "m.yml"}}));
  EXPECT_EQ(c.model_for, (std::vector<std::string>{"marian", "bergamot"}));
  EXPECT_EQ(c.model.decoder_start, DecoderStart::zero);
  EXPECT_EQ(c.model.norm_epsilon, 1e-6);
  EXPECT_EQ(c.model.activation, Activation::gelu_sigmoid);
  EXPECT_TRUE(c.model.output_bias);
}

// As Marian's -c a.yml -c b.yml; keys of ours may be given beside them.
TEST(Conversion, LaterFilesWinAndKeysBesideThemCount) {
  const std::vector<PeerFile> files{{"type: transformer\nenc-depth: 6\nearly-stopping: 7\n", "a.yml"},
                                    {"enc-depth: 3\nbeam-size: 2\n", "b.yml"}};
  const Conversion alone = convert_marian(files);
  EXPECT_EQ(loaded(alone).model.encoder_layers, 3);
  EXPECT_EQ(loaded(alone).valid.search.beam, 2);
  EXPECT_THAT(alone.missing, Contains(HasSubstr("--valid.early-stopping 7")));
  Conversion beside = convert_marian(files, {"valid.source", "valid.target"});
  EXPECT_THAT(beside.keys, Contains(std::pair<std::string, std::string>("valid.early-stopping", "7")));
  const Conversion relative = convert_marian({{"relative-paths: true\ntrain-sets: [x.en, /y.de]\n", "some/where.yml"}});
  EXPECT_THAT(relative.keys, Contains(std::pair<std::string, std::string>("data.train.0.source", "some/x.en")));
  EXPECT_THAT(relative.keys, Contains(std::pair<std::string, std::string>("data.train.0.target", "/y.de")));
}

// Options at their defaults need no remark, others have one of their own kind.
TEST(Conversion, EveryOptionOfMariansTrainingHasAnAnswer) {
  EXPECT_EQ(marian_options().size(), 234u);  // of 1.12.43, its optional parts included
  std::string defaults;
  for (const MarianOption& o : marian_options()) {
    EXPECT_NE(text_of(o), "") << o.name;
    EXPECT_EQ(&o, marian_option(o.name)) << o.name << " occurs twice";
    if (o.standard.empty() || o.name == "type" || o.name == "model") continue;
    defaults += fmt::format("{}: [", o.name);
    std::istringstream words{std::string(o.standard)};
    for (std::string word; words >> word;) defaults += fmt::format("'{}', ", word);
    defaults += "]\n";
  }
  const Conversion c = convert_marian({{"type: transformer\n" + defaults, "defaults.yml"}});
  EXPECT_THAT(c.missing, testing::Each(HasSubstr("early-stopping: there is no text"))) << defaults;
  EXPECT_THAT(c.not_needed, IsEmpty());
  const Conversion other =
      convert_marian({{"type: transformer\nquantize-bits: 8\nmaxi-batch: 7\nlr-decay: 0.5\nunheard-of: 1\n", "m.yml"}});
  EXPECT_THAT(other.missing, Contains(HasSubstr("quantize-bits 8: no counterpart: weights are not quantised in training")));
  EXPECT_THAT(other.missing, Contains(HasSubstr("lr-decay 0.5: set by hand: train.decay-factor")));
  EXPECT_THAT(other.missing, Contains(HasSubstr("unheard-of: Marian has no such training option")));
  EXPECT_THAT(other.not_needed, Contains(HasSubstr("maxi-batch: ")));
}

TEST(Conversion, MariansDefaultsAreWrittenOut) {
  const Config config = loaded(convert_marian({{"type: transformer\n", "m.yml"}}));
  EXPECT_EQ(config.model.encoder_layers, 1);
  EXPECT_EQ(config.model.dropout, 0);
  EXPECT_EQ(config.train.label_smoothing, 0);
  EXPECT_EQ(config.train.optimizer.learning_rate, 0.0001);
  EXPECT_EQ(config.train.optimizer.beta2, 0.999);
  EXPECT_EQ(config.train.optimizer.warmup, 0);
  EXPECT_EQ(config.train.batch_tokens, 64 * 25);
  EXPECT_EQ(config.valid.search.beam, 12);
}

TEST(Conversion, OfOpenNmtsRelativePositions) {
  const auto keys = [](const std::string& options) {
    return convert_opennmt({{"encoder_type: transformer\ndecoder_type: transformer\n" + options, "c.yml"}}).keys;
  };
  const std::pair<std::string, std::string> reach("model.relative-positions", "20"), scale("model.embedding-scale", "1");
  EXPECT_THAT(keys("max_relative_positions: 20\nposition_encoding: false\n"), AllOf(Contains(reach), Contains(scale)));
  EXPECT_THAT(keys("max_relative_positions: 20\nposition_encoding: true\n"), AllOf(Contains(reach), Not(Contains(scale))));
  for (const char* none :
       {"position_encoding: true\n", "max_relative_positions: 0\nposition_encoding: true\n", "max_relative_positions: -1\n"})
    EXPECT_THAT(keys(none), Not(Contains(Pair("model.relative-positions", _)))) << none;
  EXPECT_THAT(convert_opennmt({{"decoder_type: transformer\nposition_encoding: false\n", "c.yml"}}).missing,
              Contains(HasSubstr("position_encoding false")));
}

// The example of OpenNMT-py's documentation for WMT 2014.
TEST(Conversion, OfOpenNmtsTransformer) {
  const Conversion c = convert_opennmt({{R"(
data:
  commoncrawl: {path_src: cc.en, path_tgt: cc.de, transforms: [sentencepiece, filtertoolong], weight: 23}
  europarl: {path_src: ep.en, path_tgt: ep.de, transforms: [sentencepiece, filtertoolong], weight: 19}
  valid: {path_src: valid.en, path_tgt: valid.de, transforms: [sentencepiece]}
src_subword_model: wmt.model
tgt_subword_model: wmt.model
src_seq_length: 150
tgt_seq_length: 150
share_vocab: true
save_model: run/ende
train_steps: 100000
valid_steps: 10000
save_checkpoint_steps: 5000
keep_checkpoint: 10
seed: 1234
report_every: 100
world_size: 2
gpu_ranks: [0, 1]
batch_type: tokens
batch_size: 4096
accum_count: [4]
normalization: tokens
optim: adam
adam_beta2: 0.998
learning_rate: 2.0
warmup_steps: 8000
decay_method: noam
label_smoothing: 0.1
max_grad_norm: 0
encoder_type: transformer
decoder_type: transformer
enc_layers: 6
dec_layers: 6
heads: 8
hidden_size: 512
transformer_ff: 2048
dropout: [0.1]
attention_dropout: [0.1]
share_decoder_embeddings: true
share_embeddings: true
tensorboard: true
)",
                                         "onmt.yml"}});
  const Config config = loaded(c);
  ASSERT_EQ(config.data.train.size(), 2u);
  EXPECT_EQ(config.data.train[1].target, "ep.de");
  EXPECT_EQ(config.data.train[0].weight, 23);
  EXPECT_EQ(config.train.batch_tokens, 4096 * 4 * 2);
  EXPECT_NEAR(config.train.optimizer.learning_rate, 2 / std::sqrt(512.0 * 8000), 1e-7);
  EXPECT_EQ(config.train.max_steps, 100000);
  EXPECT_EQ(config.train.optimizer.clip_norm, 0);
  EXPECT_TRUE(config.log.tensorboard);
  EXPECT_EQ(config.valid.every, 10000);
  EXPECT_THAT(c.missing, IsEmpty());
}

TEST(Conversion, MistakesAreNamed) {
  const auto message = [](const std::string& text) {
    try {
      convert_marian({{text, "m.yml"}});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("- a\n"), HasSubstr("m.yml is not a configuration"));
  EXPECT_THAT(message("a: [1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(message("a: \"\\\x1b\"\n"), AllOf(HasSubstr("\\x1b"), Not(HasSubstr("\x1b"))));  // yaml-cpp repeats the character
  EXPECT_THAT(message("type: transformer\nenc-depth: six\n"), HasSubstr("enc-depth is 'six', which is not a number"));
  EXPECT_THAT(message("type: transformer\nenc-depth: [4, 2]\n"),
              HasSubstr("m.yml: enc-depth has 2 values, but Marian takes only one; give one"));
  EXPECT_THAT(message("after: 5x\n"), HasSubstr("after is '5x'"));
  EXPECT_THAT(message("task: transformer-huge\n"), HasSubstr("task is 'transformer-huge'"));
  // Aliases, of which few bytes can stand for a text without end.
  EXPECT_THAT(message("a: &a {b: *a}\n"), HasSubstr("m.yml:1: has an alias"));
  EXPECT_THAT(message("a: " + std::string(100, '[') + std::string(100, ']')), HasSubstr("nested too deeply"));
}

// Remarks are printed as comments above the configuration, and on terminals.
TEST(Conversion, RemarksAreOneLineWhateverNamesAndValuesAre) {
  const std::string evil = R"("\e[2Jx\nlog: {every: 1}\r\x85": "\e]0;x\ay\nz")";
  for (const Conversion& c : {convert_opennmt({{evil, "o.yml"}}), convert_opennmt({{"decoder_type: \"cnn\\e[2J\\nlog: 1\"\n", "o.yml"}}),
                              convert_marian({{evil + "\nworkspace: \"\\e[2J\\n1\"\n", "m.yml"}})}) {
    std::vector<std::string> all = c.approximate;
    for (const auto* more : {&c.missing, &c.not_needed}) all.insert(all.end(), more->begin(), more->end());
    EXPECT_THAT(all, Contains(HasSubstr("\\x1b[2J")));
    for (const std::string& line : all)
      EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](unsigned char byte) { return byte < ' ' || byte == 0x85; })) << line;
  }
  EXPECT_THAT(convert_opennmt({{evil, "o.yml"}}).missing,
              testing::ElementsAre(R"(\x1b[2Jx log: {every: 1}\x0d\xc2\x85: unknown here, and left out)"));
}

TEST(Conversion, PathsAreWrittenWithoutWhatUpsetsTerminals) {
  const std::string path = "a\x1b]\n\x7f\xc2\x9b\xe2\x80\xa8\"\\\xc3\xa4";  // ESC, DEL, CSI, a line separator, ä
  Config config = loaded(convert_opennmt({{"data: {c: {path_src: a, path_tgt: b}}\n", "o.yml"}}));
  config.data.train[0].source = path;
  const std::string text = dump_config(config, false);
  EXPECT_THAT(text, HasSubstr("source: \"a\\x1b]\\x0a\\x7f\\x9b\\u2028\\\"\\\\\xc3\xa4\"\n"));
  EXPECT_EQ(parse_config(text, "run.yml").data.train[0].source, path);
}

}  // namespace
}  // namespace starling
