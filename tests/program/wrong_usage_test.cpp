// What is wrong about a command line is named, and what was probably meant: verbs and options that are mistyped or another program's, paths
// without an option, values as people of other languages write them. Wrong usage has status 2, and nothing is done before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Wrong {
  std::string arguments, answer;
};

class WrongUsage : public CalledTest {
 protected:
  WrongUsage() {
    std::filesystem::create_directories(path("model")), std::filesystem::create_directories(path("run"));
    write("run/config.yml", ""), write("lines", "a\n");
  }
  std::string refused(const std::string& arguments) const {
    const ShellOutcome o = call(arguments);
    EXPECT_EQ(o.status, 2) << arguments << "\n" << o.text;
    EXPECT_THAT(o.text, StartsWith("starling: error: ")) << arguments;
    return o.text;
  }
  void expect(const std::vector<Wrong>& table) const {
    for (const Wrong& wrong : table) EXPECT_THAT(refused(wrong.arguments), HasSubstr(wrong.answer)) << wrong.arguments;
  }
};

TEST_F(WrongUsage, MistypedVerbsAndOptionsAreNamed) {
  write("c.yml", "train:\n  sead: 1\n"), write("my.yml", "train: {seed: 7}\n");
  expect({
      {"trian", "there is no verb 'trian'; did you mean 'train'?"},
      {"trian --help", "there is no verb 'trian'; did you mean 'train'?"},
      {"help trian", "did you mean 'train'?"},
      {"xyzzy", "The verbs are train, "},
      {"nonsense --help", "there is no verb 'nonsense'. The verbs are train, "},
      {"bench trian --help", "did you mean 'train'? The verbs are train, translate, distributed"},
      {"--versoin", "did you mean '--version'?"},
      {"translate --modle x", "did you mean '--model'?"},
      {"translate", "--model is required"},
      {"translate --model x --precision int9", "--precision"},
      {"translate --model x --seed 3", "--seed requires --sampling"},
      {"translate --model x --sampling --sampling-temperature 0", "--sampling-temperature: Value 0 not in range [0.001 - 1000]"},
      {"translate --model x --sampling --beam 3", "--beam searches, and --sampling draws at random"},
      {"translate --model x --sampling --document", "--sampling is for lines"},
      {"quantize --model x --source a --target b", "--output is required"},
      {"quantize --model nowhere --output x --source a --target b", "neither a model directory"},
      {"train --batch-tokens=3", "did you mean '--train.batch-tokens' or '--valid.batch-tokens'?"},
      {"train --train.batch-tokens", "--train.batch-tokens"},
      {"train --train.batch-tokens -1", "train.batch-tokens: '-1' is out of range; give a whole number from 1 to 100000000"},
      {"train --train.output train stray", "unexpected argument 'stray'"},
      {"train --data.train.0.sorce a", "did you mean 'data.train.0.source'?"},
      {"train --data.train.0.source", "needs a value"},
      {"train", "no training corpus"},
      {"train --dump-config half", "choose minimal or full"},
      {"train -c c.yml", "c.yml:2: there is no key 'sead' in train; did you mean 'seed'?"},
      {"train my.yml -c my.yml", "two configurations, 'my.yml' and 'my.yml'; give one"},
      {"train my.txt", "unexpected argument 'my.txt'"},
      {"simulate my.yml", "no training corpus"},
      // What --help leaves out is found where the message says.
      {"train --frobnicate 1", "there is no option '--frobnicate'; see 'starling help train --all'"},
      {"serve --frobnicate 1", "see 'starling help serve --all'"},
      {"evaluate --frobnicate 1", "see 'starling evaluate --help'"},
      {"train --train.batch-token 3", "; did you mean '--train.batch-tokens'? Or see 'starling help train --all'"},
      {"train --model.encoder-layer 3", "; did you mean '--model.encoder-layers'?"},
      {"train --valid.metric bleu", "; did you mean '--valid.metrics'?"},
      {"train --every 3", "; did you mean '--valid.every', '--checkpoint.every' or '--log.every'?"},
      {"train --train.preset x", "; did you mean '--model.preset'?"},
      {"train --smoothing 0.1", "; did you mean '--train.label-smoothing'?"},
      {"train --train-max-steps 3", "; did you mean '--train.max-steps'?"},
      {"train --precison f32", "; did you mean '--precision'?"},
      {"evaluate --hyp a", "; did you mean '--hypotheses'?"},
  });
  for (const char* far : {"train --train.xy 3", "train --train.foo 3", "train --zzz 3", "translate --frobnicate"})
    EXPECT_THAT(refused(far), Not(HasSubstr("did you mean"))) << far;
}

TEST_F(WrongUsage, OtherProgramsNamesAreAnsweredWithOurs) {
  expect({
      {"train --lr 1e-3", "there is no option '--lr'; fairseq's --lr is --train.learning-rate here"},
      {"train --train.lr 1e-3", "there is no option '--train.lr'; fairseq's --lr is --train.learning-rate here"},
      {"train --batch-size 64", "is --train.batch-tokens here (target tokens of a whole update"},
      {"train --epochs 10", "there is no option '--epochs'; it is --train.max-epochs here"},
      {"train --max-updates 10", "Sockeye's --max-updates is --train.max-steps here"},
      {"train --beam-size 4", "--beam-size is --valid.beam here (the same number)"},
      {"train --normalize 0.6", "Marian's --normalize is --valid.length-penalty here (another formula"},
      {"train --gpu 0", "is --train.device here (cuda, or cuda:1 for the second card"},
      {"train --devices 0 1", "Marian's --devices is --train.device here (cuda, or cuda:1"},
      {"train --workspace 9000", "Marian's --workspace has no counterpart here: what fits into memory is determined automatically"},
      {"train --train-sets a b", "Marian's --train-sets are --data.source and --data.target here (one file per side)"},
      {"train --model.dim 512", "there is no option '--model.dim'; it is --model.width here"},
      {"train --mini-batch 64", "Marian's --mini-batch is --train.batch-tokens here (target tokens, not sentences"},
      {"train --Update_Freq 4", "fairseq's --update-freq is --train.batch-tokens here"},
      {"train --n-best 4", "--n-best is --n-best of 'starling translate' here"},
      {"simulate --lr 1e-3", "fairseq's --lr is --train.learning-rate here"},
      {"translate --beam-size 4",
       "there is no option '--beam-size'; Marian's, OpenNMT-py's and Sockeye's --beam-size is --beam here (the same number)"},
      {"translate --normalize 0.6", "Marian's --normalize is --length-penalty here (another formula"},
      {"translate --batch_size 4", "--batch_size is --batch-size here (sentences)"},
      {"translate --mini-batch 4", "Marian's --mini-batch is --batch-size here (sentences)"},
      {"translate --devices 0", "Marian's --devices is --device here"},
      {"translate --gpu 0", "is --device here"},
      {"translate --lr 1", "fairseq's --lr is train.learning-rate of 'starling train' here"},
      {"train --valid.tsv dev.tsv",
       "'--valid.tsv'; it has no counterpart here: the validation text is one file per side, valid.source and valid.target"},
      {"train --src_prefix '<2de>'", "OpenNMT-py's --src_prefix has no counterpart here: a corpus has a tag: data.train.0.tag"},
      {"train --data.train.0.src_prefix '<2de>'", "OpenNMT-py's src_prefix has no counterpart here: a corpus has a tag: data.train.0.tag"},
      {"translate --prefix-size 1", "fairseq's --prefix-size is --target-prefix here (the pieces themselves, the same for all lines)"},
      {"train -T /tmp", "Marian's -T has no counterpart here: everything is in the run directory"},
      {"train -t a b", "Marian's -t are --data.source and --data.target here"},
      {"translate -c decoder.yml", "Marian's -c has no counterpart here: the model directory has the search settings (decode.yml)"},
      {"score --summary", "Marian's --summary has no counterpart here: 'starling score' prints one line per sentence"},
      {"evaluate -m bleu", "sacreBLEU's -m is --metrics here (bleu, chrf, chrf++, ter, gleu)"},
      {"evaluate -b", "sacreBLEU's -b is --format here (json; its score is the number alone)"},
      {"evaluate -w 4", "sacreBLEU's -w is --width here"},
      {"evaluate -t wmt20", "sacreBLEU's -t is --references here (the file; no test sets are fetched)"},
      {"evaluate -l en-de", "sacreBLEU's -l is --tokenize here (languages are not named"},
      {"evaluate -lc", "sacreBLEU's -lc is --lowercase here"},
      {"evaluate -tok 13a", "sacreBLEU's -tok is --tokenize here"},
      {"evaluate -i out.txt", "sacreBLEU's -i is --hypotheses here"},
      {"evaluate --confidence", "sacreBLEU's --confidence is --paired-bs here"},
      {"evaluate --smooth-method exp", "has no counterpart here: BLEU is smoothed with sacreBLEU's default, exp"},
      {"train --valid.metrics bleu-detok", "; did you mean bleu?"},
      {"train --model.preset tiny", "; did you mean transformer-tiny?"},
      {"train --valid.every 10u", "; did you mean 10?"},
      {"marian-train", "Marian's marian-train is train here."},
      {"marian-server", "Marian's marian-server is serve here (over HTTP; for a pipe use translate"},
      {"spm_train", "it is not needed here: 'train' makes the vocabulary when its file is missing."},
      {"spm_encode", "it is not needed here: raw text comes in and goes out."},
      {"score --src a", "OpenNMT-py's --src is --source here"},
      {"quantize --valid-sets a b", "Marian's --valid-sets are --source and --target here"},
      {"tune-search --beam-size 4", "is --beam here (the same number)"},
      {"decode", "there is no verb 'decode'; Marian's decode is translate here."},
      {"sockeye-train", "Sockeye's sockeye-train is train here."},
      {"preprocess", "preprocess is not needed here: 'train' reads raw text"},
      {"export --model m -o x --to firefox", "; did you mean bergamot? See 'starling export"},
      {"export --model m -o x --to CT2", "; did you mean ctranslate2? See"},
      {"export --model m -o x --to argoss", "; did you mean 'argos'? See"},
      {"export --model m -o x --to tflite", "not in {ctranslate2,argos,marian,bergamot,huggingface}; see"},
      {"translate --model m --alignment hard", "; did you mean pieces? See"},
      {"translate --model m --precision int8_float32", "; did you mean int8? See"},
  });
}

TEST_F(WrongUsage, PathsWithoutAnOptionAreAnsweredWithTheirOption) {
  expect({
      {"translate model lines", "unexpected argument 'model'; did you mean --model model? Or see 'starling help"},
      {"translate --model model lines", "unexpected argument 'lines'; did you mean --input lines?"},
      {"translate none", "unexpected argument 'none'; did you mean --model none or --input none?"},
      {"score --model model lines", "did you mean --source lines?"},
      {"evaluate lines", "did you mean --hypotheses lines?"},
      {"quantize model out", "did you mean --model model?"},
      {"serve model", "did you mean --model model?"},
      {"train lines", "did you mean --data.source lines?"},
      {"train run", "unexpected argument 'run'; to continue the run in it: starling train run/config.yml; see"},
  });
}

// A number alone is in the option's unit.
TEST_F(WrongUsage, DurationsMayHaveUnits) {
  expect({
      {"serve --deadline 90", "--model is required"},
      {"serve --deadline 1m30s", "--model is required"},
      {"serve --deadline 90s", "--model is required"},
      {"serve --deadline 1.5m", "--model is required"},
      {"serve --deadline 5x --model m", "--deadline: '5x' is neither a number of seconds nor a duration such as 90s, 12m or 1h30m"},
      {"serve --max-wait 3d --model m", "--max-wait: Value 3d not in range [0.001 - 86400]"},
      {"tune --budget 1x", "--budget '1x' is not a duration; give hours or minutes, such as 2h, 45m or 1h30m"},
  });
  EXPECT_THAT(call("train --train.max-minutes 1h30m --dump-config").text, HasSubstr("max-minutes: 90\n"));
}

TEST_F(WrongUsage, ADecimalCommaIsAnsweredWithAPoint) {
  write("flow.yml", "train: {output: run, learning-rate: 0,3, warmup: 5}\n");
  write("cluster.yml", "cluster:\n  ranks: 2\n  jitter: 0,2\n");
  const std::string sim = "bench distributed --preset transformer-tiny --cluster.ranks 2 ";
  expect({
      {"translate --model m --length-penalty 0,6",
       "--length-penalty: Value 0,6 not in range [0 - 10]; did you mean 0.6? See 'starling translate"},
      {"translate --model m --beam 1,000", "--beam: Value 1,000 not in range"},
      {"translate --model m --beam 1,000", "; did you mean 1000? See"},
      {"translate --model m --beam 1,5", "not in range 1 to 1024; see"},
      {"translate --model m --beam 4k", "not in range 1 to 1024; see"},
      {"translate --model m --length-penalty 1,250", "not in range [0 - 10]; did you mean 1.250? See"},
      {"evaluate --hypotheses a --references b --seed 12,345", "Could not convert: --seed = 12,345; did you mean 12345? See"},
      {"train -c flow.yml", "flow.yml:1: there is no key '3' in train; within braces a comma ends the value: write 0.5 with a point"},
      // Refused before anything is measured: the message comes first.
      {sim + "--cluster.jitter 0,2", "command line: cluster.jitter: '0,2' is not a number; did you mean 0.2? Give"},
      {sim + "--cluster cluster.yml", "cluster.yml:3: cluster.jitter: '0,2' is not a number; did you mean 0.2? Give"},
  });
}

TEST_F(WrongUsage, FilesThatCannotBeReadAreAnotherKindOfError) {
  for (const auto& [arguments, answer] : {std::pair("train -c missing.yml", "missing.yml"),
                                          {"train none.yml", "none.yml"},
                                          {"train -c .", "is a directory"},
                                          {"train --data.source missing.en --data.target missing.de", "missing.en"},
                                          {"race none.yml", "cannot read 'none.yml'"}}) {
    const ShellOutcome o = call(arguments);
    EXPECT_EQ(o.status, 3) << arguments;
    EXPECT_THAT(o.text, HasSubstr(answer));
  }
}

}  // namespace
}  // namespace starling
