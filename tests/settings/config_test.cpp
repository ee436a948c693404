// The training configuration: defaults, presets, shorthands, combinations that cannot work, dumps that read back, and that
// docs/reference/config.md says the same as the code.
#include "settings/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/text_files.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::HasSubstr;

Config parse(const std::string& text, const std::vector<Override>& overrides = {}) { return parse_config(text, "c.yml", overrides); }
std::string message(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(TrainConfig, DefaultsLoadAndLackOnlyData) {
  const Config c = load_config("");
  EXPECT_EQ(c.train.batch_tokens, 4000);
  EXPECT_EQ(c.model.width, 512);
  EXPECT_FALSE(c.valid.enabled());
  EXPECT_THROW(require_data(c), ConfigError);
}

TEST(TrainConfig, PresetComesFirstWhereverItStands) {
  const Config c = parse("model:\n  width: 128\n  preset: transformer-small\n");
  EXPECT_EQ(c.model.width, 128);
  EXPECT_EQ(c.model.encoder_layers, 3);
  const Config d = parse("model:\n  preset: transformer-small\n  width: 128\n", {{"model.preset", "transformer-big"}});
  EXPECT_EQ(d.model.preset, "transformer-big");
  EXPECT_EQ(d.model.width, 128);
  EXPECT_EQ(d.model.heads, 16);
  EXPECT_THAT(message("model:\n  preset: transformer-huge\n"), HasSubstr("c.yml:2: model.preset: there is no preset"));
  EXPECT_THAT(message("", {{"model.preset", "x"}}), HasSubstr("command line: model.preset: there is no preset"));
}

TEST(TrainConfig, PresetsBringTheSearchOfTheirFamily) {
  const auto search = [](const Config& c) {
    return std::vector<double>{c.valid.search.length_penalty, c.valid.search.coverage_penalty, c.valid.search.prune_threshold};
  };
  EXPECT_EQ(search(parse("")), (std::vector<double>{0.6, 0, 0}));
  EXPECT_EQ(search(parse("model: {preset: transformer-big}")), (std::vector<double>{0.6, 0, 0}));
  for (const std::string preset : {"gnmt", "gnmt-4", "gnmt-small"})
    EXPECT_EQ(search(parse("model: {preset: " + preset + "}")), (std::vector<double>{0.2, 0.2, 3})) << preset;
  EXPECT_EQ(search(parse("valid: {coverage-penalty: 0.4}\nmodel: {preset: gnmt}")), (std::vector<double>{0.2, 0.4, 3}));
  EXPECT_EQ(search(parse("valid: {coverage-penalty: 0.4}", {{"model.preset", "gnmt"}, {"valid.prune-threshold", "0"}})),
            (std::vector<double>{0.2, 0.4, 0}));
  EXPECT_EQ(search(parse("model: {preset: gnmt}", {{"model.preset", "transformer-base"}})), (std::vector<double>{0.6, 0, 0}));
}

TEST(TrainConfig, ShorthandsNameTheOnlyCorpus) {
  EXPECT_EQ(parse("data: {source: a, target: b}").data.train.at(0).target, "b");
  EXPECT_EQ(parse("data: {tsv: a}").data.train.at(0).tsv, "a");
  EXPECT_THAT(message("data: {source: a, target: b, train: [{tsv: c}]}"), HasSubstr("use data.train.0.source"));
  const Config c = parse("data: {source: a, target: b}", {{"data.source", "x"}, {"data.train.0.weight", "2"}});
  ASSERT_EQ(c.data.train.size(), 1u);
  EXPECT_EQ(c.data.train[0].source, "x");
  EXPECT_EQ(c.data.train[0].target, "b");
  EXPECT_EQ(c.data.train[0].weight, 2);
  const Config d = parse("data: {source: a, target: b}", {{"data.tsv", "x"}});
  EXPECT_EQ(d.data.train[0].source + d.data.train[0].target, "");
  EXPECT_EQ(d.data.train[0].tsv, "x");
  const Config e = parse("data: {tsv: a}", {{"data.source", "x"}, {"data.target", "y"}});
  EXPECT_EQ(e.data.train[0].tsv, "");
  EXPECT_EQ(parse("data: {train: [{tsv: a}, {tsv: b, weight: 0.5}]}").data.train.size(), 2u);
  EXPECT_THAT(message("data: {source: a}"), HasSubstr("lacks its other side"));
}

TEST(TrainConfig, CombinationsThatCannotWorkNameTheFix) {
  EXPECT_THAT(message("model: {width: 100, heads: 8}"), HasSubstr("set model.width to 104"));
  EXPECT_THAT(message("vocab: {joint: false}"), HasSubstr("set vocab.joint to true"));
  EXPECT_EQ(message("vocab: {joint: false}\nmodel: {tied-embeddings: decoder}"), "no error");
  EXPECT_THAT(message("vocab: {target: x}"), HasSubstr("name the one vocabulary in vocab.source"));
  EXPECT_THAT(message("train: {micro-batch-tokens: 5000}"), HasSubstr("train.batch-tokens 4000"));
  EXPECT_THAT(message("train: {output: ''}"), HasSubstr("train.output"));
  EXPECT_THAT(message("train: {sgd-after: 9, weight-decay: 0.1}"), HasSubstr("by the factor 0.95 per update; set train.weight-decay to 0"));
  EXPECT_EQ(message("train: {sgd-after: 9, sgd-halve-every: 5}"), "no error");
  EXPECT_THAT(message("train: {r-drop: 5}\nmodel: {preset: transformer-tiny, dropout: 0}"),
              HasSubstr("set model.dropout, or leave train.r-drop"));
  EXPECT_EQ(message("train: {r-drop: 5}\nmodel: {preset: transformer-tiny, dropout: 0, attention-dropout: 0.1}"), "no error");
  EXPECT_THAT(message("train: {r-drop: 5}\nmodel: {preset: gnmt-small, dropout: 0}"), HasSubstr("but there is none; set model.dropout"));
  EXPECT_THAT(message("train: {r-drop: 5, objective: mixed}"), HasSubstr("train.objective mixed uses samples"));
  EXPECT_THAT(message("train: {r-drop: 5}\nparallel: {tensor: 2}"), HasSubstr("parallel.tensor divides the output"));
  EXPECT_THAT(message("train: {r-drop: 5, r-drop-from: 0.5, max-minutes: 9}"), HasSubstr("which train.max-minutes 9 leaves open"));
  EXPECT_EQ(message("train: {r-drop: 5, max-minutes: 9}"), "no error");
  EXPECT_THAT(message("train: {r-drop: 101}"), HasSubstr("out of range"));
  EXPECT_THAT(message("valid: {source: a}"), HasSubstr("valid.target is not"));
  EXPECT_THAT(message("valid: {metrics: [bleu]}"), HasSubstr("name valid.source and valid.target"));
  EXPECT_THAT(message("valid: {early-stopping: 3}"), HasSubstr("needs a validation"));
  EXPECT_THAT(message("valid: {source: a, target: b, metrics: [bleu], early-stopping-metric: chrf}"),
              HasSubstr("not among valid.metrics bleu"));
  EXPECT_EQ(parse("valid: {source: a, target: b, metrics: [chrf, bleu]}").valid.deciding_metric(), "chrf");
  EXPECT_THAT(message("data: {tsv: a, max-ratio: 0.5}"), HasSubstr("max-ratio"));
  EXPECT_THAT(message("train: {batch-tokens: -1}"), HasSubstr("out of range"));
  EXPECT_THAT(message("train: {batch_tokens: 1}"), HasSubstr("did you mean 'batch-tokens'?"));
  EXPECT_THAT(message("", {{"train.optimiser", "adam"}}), HasSubstr("did you mean 'train.optimizer'?"));
}

TEST(TrainConfig, SeedGoverns) { EXPECT_EQ(parse("train: {seed: 7}").vocab.training.seed, 7u); }

TEST(TrainConfig, DumpsReadBack) {
  const Config configs[] = {
      load_config(""),
      parse("data: {source: a b, target: \"c#\"}\nmodel: {preset: transformer-tiny, heads: 2}\ntrain: {learning-rate: 0.1e-3}\n"
            "valid: {source: v, target: w, metrics: [bleu]}\n"),
      parse("data:\n  train: [{tsv: a}, {source: b, target: c, weight: 3.5}]\nvalid: {metrics: []}\n"),
      parse("model: {preset: gnmt-4}\n"),
      parse("model: {preset: gnmt-4}\nvalid: {length-penalty: 0.6, coverage-penalty: 0, prune-threshold: 2.5}\n"),
      parse("strategy: {name: bmuf, periodic: {outer-momentum: 0}, batch: global}\n")};  // back to the defaults of keys that the name sets
  for (const Config& c : configs) {
    for (const bool full : {false, true}) {
      const std::string text = dump_config(c, full);
      const Config back = parse(text);
      EXPECT_EQ(dump_config(back, full), text);
      EXPECT_EQ(dump_config(back, true), dump_config(c, true)) << text;
    }
  }
  EXPECT_EQ(dump_config(parse("model: {preset: transformer-small}\nvalid: {source: a, target: b}"), false),
            "model:\n  preset: transformer-small\nvalid:\n  source: a\n  target: b\n");
  EXPECT_EQ(dump_config(parse("model: {preset: gnmt}\nvalid: {prune-threshold: 0}"), false),
            "model:\n  preset: gnmt\nvalid:\n  metrics: []\n  prune-threshold: 0\n");
}

TEST(TrainConfig, AStrategysNameSetsTheKeysThatAreNotGiven) {
  const Config c = parse("strategy: {periodic: {interval: 7}, name: bmuf}");
  EXPECT_EQ(c.strategy.periodic.interval, 7);
  EXPECT_EQ(c.strategy.periodic.outer_momentum, -1);
  EXPECT_EQ(c.strategy.batch, BatchScope::per_worker);
  EXPECT_THAT(dump_config(c, false), HasSubstr("\n  periodic:\n    interval: 7\n"));
  EXPECT_THAT(dump_config(c, false), HasSubstr("\n    outer-momentum: -1\n"));
  EXPECT_EQ(parse("", {{"strategy.name", "diloco"}}).strategy.periodic.outer_rate, 0.7);
  EXPECT_THAT(message("strategy: {name: bmfu}"), HasSubstr("did you mean 'bmuf'?"));
  EXPECT_THAT(message("strategy: {name: gradient-dropping}\ntrain: {ema: 0.9}"),
              HasSubstr("train.ema is for strategies all-reduce and parameter-server; with gradient-dropping set train.ema to 0"));
}

// Every key that was in the section strategy itself before its families had sections of their own.
TEST(TrainConfig, KeysThatHaveMovedAreToldWhere) {
  int moved = 0;
  for (const std::string& name : all_config_names()) {
    const size_t last = name.rfind('.');
    if (!name.starts_with("strategy.") || last == std::string("strategy").size()) continue;
    const std::string key = name.substr(last + 1), old = "strategy." + key;
    const std::string fix = fmt::format("there is no key '{}' in strategy; {} is now {}", key, old, name);
    EXPECT_EQ(message("strategy:\n  " + key + ": 1\n"), "c.yml:2: " + fix);
    EXPECT_EQ(message("", {{old, "1"}}), fmt::format("command line: there is no key '{}'; {} is now {}", old, old, name));
    ++moved;
  }
  EXPECT_EQ(moved, 33);
  EXPECT_THAT(message("strategy: {periodic.interval: 5}"), HasSubstr("did you mean 'strategy.periodic.interval'?"));
}

// In one form only, so that a key given twice is found.
TEST(TrainConfig, ASectionWithinAnotherStandsThere) {
  EXPECT_EQ(message("strategy: {name: bmuf, periodic: {interval: 7}}\nstrategy.periodic: {interval: 5}\n"),
            "c.yml:2: 'strategy.periodic' is within another section; write strategy: {periodic: {...}}");
  EXPECT_THAT(message("strategy:\n  name: bmuf\n  periodic: 5\n"),
              HasSubstr("c.yml:3: the section 'strategy.periodic' must hold 'key: value' lines, indented by two more spaces"));
}

TEST(TrainConfig, TheRecordOfAnOlderVersionIsRead) {
  const OwnDirectory directory;
  const std::string path = directory.file("old.yml");
  std::ofstream(path) << "strategy:\n  name: streaming\n  interval: 7\n  compressor: top-k\n  keep: 0.02\n  synchronous-steps: 3\n";
  const Config c = load_record(path);
  EXPECT_EQ(c.strategy.periodic.interval, 7);
  EXPECT_EQ(c.strategy.compression.compressor, Compressor::top_k);
  EXPECT_EQ(c.strategy.compression.keep, 0.02);
  EXPECT_EQ(c.strategy.synchronous_steps, 3);
  EXPECT_THROW(load_config(path), ConfigError);  // what a user gives is to be written anew
}

// What a key needs is a key with such values, or a number.
TEST(TrainConfig, KeysNeedWhatThereIs) {
  const std::vector<std::string> names = all_config_names();
  StrategyOptions strategy;
  ModelConfig model;
  OptimizerOptions train;
  std::vector<ConfigSection> all = config_sections("strategy", "", strategy);
  all.push_back(config_section("model", "", model)), all.push_back(config_section("train", "", train));
  const auto choices = [&](const std::string& name) -> std::vector<std::string> {
    for (const ConfigSection& s : all)
      for (const ConfigField& f : s.fields)
        if (s.name + "." + f.key == name) return f.choices;
    return {};
  };
  int words = 0;
  const auto check = [&](const std::vector<ConfigNeed>& needs) {
    for (const ConfigNeed& need : needs) {
      EXPECT_THAT(names, testing::Contains(need.key));
      const std::vector<std::string> allowed = choices(need.key);
      for (const std::string& value : need.values) {
        if (need.key == "model.preset") {
          EXPECT_NO_THROW(model_preset(value));
        } else {
          EXPECT_THAT(allowed, testing::Contains(value)) << need.key;
        }
        ++words;
      }
    }
  };
  for (const ConfigSection& s : all) {
    check(s.needs);
    for (const ConfigField& f : s.fields) check(f.needs);
  }
  EXPECT_GT(words, 50);
}

TEST(TrainConfig, DocumentationIsUpToDate) {
  std::ifstream file(STARLING_SOURCE_DIR "/docs/reference/config.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string manual = text.str(), reference = config_reference_markdown();
  std::istringstream lines(reference);
  for (std::string line; std::getline(lines, line);)
    EXPECT_NE(manual.find(line), std::string::npos) << "docs/reference/config.md lacks: " << line;
  EXPECT_NE(manual.find(reference), std::string::npos) << "make the page anew: tools/reference_pages.sh BUILD_DIRECTORY";
}

TEST(TrainConfig, TheManualSaysWhatNamesOfStrategiesStandFor) {
  const std::string manual = read_text_file(std::string(STARLING_SOURCE_DIR) + "/docs/explanation/strategies.md");
  const std::vector<std::string> standard = config_lines(parse(""));
  for (const std::string& name : strategy_names()) {
    const std::vector<std::string> lines = config_lines(parse("strategy: {name: " + name + "}"));
    std::vector<std::string> keys;
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i] != standard[i] && !lines[i].starts_with("strategy.name")) keys.push_back("`" + lines[i].substr(9) + "`");
    if (keys.empty()) continue;  // all-reduce, parameter-server
    const size_t row = manual.find("\n| `" + name + "` | `");
    ASSERT_NE(row, std::string::npos) << name;
    const std::string cell = manual.substr(row + 1, manual.find('\n', row + 1) - row - 1);
    for (const std::string& key : keys) EXPECT_THAT(cell, HasSubstr(key)) << name;
    EXPECT_EQ(std::count(cell.begin(), cell.end(), '`'), 2 * (static_cast<std::ptrdiff_t>(keys.size()) + 1)) << cell;
  }
}

TEST(TrainConfig, OtherLimitsLeaveNoDefaultOfMaxSteps) {
  const auto limit = [](const std::string& text) { return step_limit(parse_config("train: {" + text + "}", "test").train); };
  EXPECT_EQ(limit(""), 100000);
  EXPECT_EQ(limit("max-steps: 7, max-tokens: 1000000"), 7);
  for (const char* other : {"max-tokens: 1000000000000", "max-epochs: 3", "max-minutes: 0.5"})
    EXPECT_EQ(limit(other), kNoStepLimit) << other;
}

// What f32 cannot hold is refused: the largest decay that is allowed keeps 1 - decay to 0.2 %, and the next power of ten does not.
TEST(TrainConfig, MomentsDecayAsF32Can) {
  const auto off = [](double decay) { return std::abs((1 - static_cast<double>(static_cast<float>(decay))) / (1 - decay) - 1); };
  EXPECT_LT(off(kMostDecay), 0.002);
  EXPECT_GT(off(0.999999), 0.01);
  for (const char* key : {"beta1", "beta2", "muon-momentum"}) {
    EXPECT_EQ(message(fmt::format("train: {{optimizer: muon, {}: {}}}", key, kMostDecay)), "no error");
    EXPECT_THAT(message(fmt::format("train: {{optimizer: muon, {}: 0.999999}}", key)),
                HasSubstr("'0.999999' is out of range; give a number from 0 to 0.99999"));
  }
}

TEST(TrainConfig, MuonGoesWhereMatricesAreWhole) {
  for (const char* whole :
       {"strategy: {sharded-optimizer: true}", "strategy: {name: parameter-server}", "strategy: {name: bmuf}", "parallel: {pipeline: 2}"})
    EXPECT_EQ(message(fmt::format("train: {{optimizer: muon}}\n{}", whole)), "no error") << whole;
  for (const char* cut : {"strategy: {name: downpour}", "parallel: {tensor: 2}"})
    EXPECT_THAT(message(fmt::format("train: {{optimizer: muon}}\n{}", cut)),
                HasSubstr("train.optimizer muon needs each weight matrix whole"))
        << cut;
}

TEST(TrainConfig, TheBoundOfStatesFallsGeometrically) {
  Config c = parse_config("model:\n  preset: gnmt-small\n  clip: 1\ntrain:\n  max-steps: 1001\n", "test");
  EXPECT_DOUBLE_EQ(state_clip(c, 1), 8);
  EXPECT_NEAR(state_clip(c, 501), std::sqrt(8.0), 1e-12);
  EXPECT_DOUBLE_EQ(state_clip(c, 1001), 1);
  c.train.clip_steps = 4;
  EXPECT_NEAR(state_clip(c, 2), 4, 1e-12);
  EXPECT_NEAR(state_clip(c, 3), 2, 1e-12);
  for (int64_t step : {4, 5, 1000}) EXPECT_DOUBLE_EQ(state_clip(c, step), 1);
  c.train.clip_steps = 1;
  EXPECT_DOUBLE_EQ(state_clip(c, 1), 1);
  c.model.clip = 0;
  EXPECT_EQ(state_clip(c, 1), 0);
}

TEST(TrainConfig, KeysOfAnotherFamilyOfModelsAreRefused) {
  for (const char* key : {"feed-forward: 64", "heads: 2", "norm: post", "attention-dropout: 0.1", "feed-forward-dropout: 0.1"}) {
    EXPECT_THAT(
        message(fmt::format("model:\n  preset: gnmt-small\n  {}\n", key)),
        HasSubstr(" does nothing without model.preset transformer-base, transformer-big, transformer-small or transformer-tiny; leave"))
        << key;
    EXPECT_EQ(message(fmt::format("model:\n  preset: transformer-tiny\n  {}\n", key)), "no error") << key;
  }
  for (const char* key : {"attention: dot", "attention-query: previous", "readout: context", "tanh-output: false", "init-bound: 0.2"}) {
    EXPECT_THAT(message(fmt::format("model:\n  preset: transformer-tiny\n  {}\n", key)),
                HasSubstr(" does nothing without model.preset gnmt, gnmt-4 or gnmt-small; leave it out"))
        << key;
    EXPECT_EQ(message(fmt::format("model:\n  preset: gnmt-small\n  {}\n", key)), "no error") << key;
  }
}

TEST(TrainConfig, KeysThatDoNothingAreNamed) {
  using testing::ElementsAre, testing::IsEmpty;
  const auto idle = [](const std::string& text) { return idle_keys(parse(text)); };
  EXPECT_THAT(idle("model: {preset: gnmt-small}\n"), IsEmpty());
  EXPECT_THAT(idle("train: {clip-start: 4}\nrefine: {samples: 3, baseline: mean}\n"),
              ElementsAre("train.clip-start does nothing without model.clip", "refine.samples does nothing without train.objective mixed",
                          "refine.baseline does nothing without train.objective mixed"));
  EXPECT_THAT(idle("train: {sgd-halve-after: 5, final-rate: 0.1, optimizer: sgd, beta1: 0.8, schedule: step, decay-every: 7}\n"),
              ElementsAre("train.final-rate does nothing without train.schedule linear, cosine or wsd",
                          "train.beta1 does nothing without train.optimizer adam, adamw or muon",
                          "train.sgd-halve-after does nothing without train.sgd-halve-every"));
  EXPECT_THAT(idle("model: {preset: gnmt-small, clip: 1}\ntrain: {clip-start: 4, objective: mixed}\nrefine: {samples: 3}\n"), IsEmpty());
}

TEST(TrainConfig, LinesNameTheirSections) {
  using testing::Contains;
  const std::vector<std::string> lines = config_lines(parse("train: {batch-tokens: 123}\n", {{"data.source", "a"}, {"data.target", "b"}}));
  EXPECT_THAT(lines, Contains("train.batch-tokens: 123"));
  EXPECT_THAT(lines, Contains("valid.beam: 4"));
  EXPECT_THAT(lines, Contains("data.train.0.source: a"));
  EXPECT_THAT(lines, Contains("data.train.0.target: b"));
  EXPECT_THAT(lines, testing::Each(testing::ContainsRegex("^[a-z]+\\.[a-z]")));
}

TEST(TrainConfig, ClippedStatesNeedARecurrentModelAndAFallingBound) {
  EXPECT_THAT(message("model:\n  preset: transformer-tiny\n  clip: 1\n"), HasSubstr("model.clip does nothing without model.preset gnmt"));
  EXPECT_THAT(message("model:\n  preset: gnmt-small\n  clip: 9\n"), HasSubstr("train.clip-start 8 is below model.clip 9"));
}

// A dump gives every key, so that emptying one must take along what was given only because of it.
TEST(TrainConfig, ADumpCanBeChangedInTheKeysThatTurnThingsOnAndOff) {
  const std::string text = "data: {source: a, target: b}\nvalid: {source: v, target: w, metrics: [bleu], early-stopping: 5}\n";
  for (const bool full : {false, true}) {
    const std::string on = dump_config(parse(text), full);
    const Config without = parse(on, {{"valid.source", ""}});
    EXPECT_FALSE(without.valid.enabled());
    EXPECT_EQ(without.valid.target, "");
    const std::string off = dump_config(without, full);
    EXPECT_FALSE(parse(off).valid.enabled());
    EXPECT_TRUE(parse(off, {{"valid.source", "v"}, {"valid.target", "w"}}).valid.enabled());
    EXPECT_THAT(message(off, {{"valid.target", "w"}}), HasSubstr("valid.target is set, but valid.source is not"));
    EXPECT_THAT(message(on, {{"valid.source", ""}, {"valid.target", "x"}}), HasSubstr("valid.target is set, but valid.source is not"));
    const std::string named = dump_config(parse("vocab: {source: s.spm, target: s.spm}\ntrain: {initial-model: m}\n"), full);
    EXPECT_EQ(parse(named, {{"vocab.source", ""}}).vocab.target, "");
    EXPECT_EQ(parse(named, {{"vocab.source", "other.spm"}}).vocab.target, "");
    EXPECT_EQ(parse(named, {{"train.initial-model", ""}}).train.initial_model, "");
  }
  EXPECT_FALSE(parse("valid: {source: '', target: w}\n").valid.enabled()) << "a dump that was emptied by hand";
  EXPECT_THAT(message("valid: {target: w}\n"), HasSubstr("valid.target is set, but valid.source is not"));
}

}  // namespace
}  // namespace starling
