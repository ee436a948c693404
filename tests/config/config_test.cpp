// The configuration machinery on a small made-up configuration: what it accepts, what its messages say, and that no
// file, however broken, does anything but throw ConfigError.
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Corpus {
  std::string source, target;
  double weight = 1;
};
template <class Visitor>
void visit(Visitor& v, Corpus& c) {
  v.field("source", c.source, "source file");
  v.field("target", c.target, "target file");
  v.field("weight", c.weight, "weight", 0.0, 1e6);
}

struct Sample {
  std::string name = "run", type = "unigram", alias;
  int64_t size = 8000;
  uint64_t seed = 1;
  int threads = 0;
  double rate = 5e-4;
  bool joint = true;
  std::vector<std::string> metrics = {"bleu"};
  std::vector<Corpus> corpora;
};
template <class Visitor>
void visit(Visitor& v, Sample& s) {
  v.field("name", s.name, "name of the run");
  v.choice("type", s.type, {"unigram", "bpe"}, "kind");
  v.field("size", s.size, "pieces", 10, 1000000);
  v.field("seed", s.seed, "seed");
  v.field("threads", s.threads, "threads; 0 = all", 0, 1024);
  v.field("rate", s.rate, "learning rate", 0.0, 1.0);
  v.field("joint", s.joint, "one vocabulary");
  v.choice("metrics", s.metrics, {"bleu", "chrf"}, "metrics");
  v.records("corpora", s.corpora, "corpora");
  v.shorthand("alias", s.alias, "stands for corpora.0.source");
}
struct Other {
  int64_t every = 100;
};
template <class Visitor>
void visit(Visitor& v, Other& o) {
  v.field("every", o.every, "updates", 1, 1000);
}

struct Whole {
  Sample main;
  Other log;
  std::vector<ConfigSection> sections() { return {config_section("main", "Main things", main), config_section("log", "Logging", log)}; }
};

Whole load(const std::string& text) {
  Whole w;
  ConfigDocument(text, "c.yml").read(w.sections());
  return w;
}
std::string message(const std::string& text) {
  try {
    load(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}
std::string override_message(const std::string& name, const std::string& value) {
  Whole w;
  try {
    apply_override(w.sections(), name, value);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Config, ReadsEveryKind) {
  const Whole w = load(
      "main:\n  name: no\n  type: bpe\n  size: 16000\n  seed: 18446744073709551615\n  threads: 2\n  rate: 1e-3\n  joint: false\n"
      "  metrics: [chrf, bleu]\n  corpora:\n    - {source: a, target: b}\n    - source: c\n      weight: 2.5\nlog: {every: 5}\n");
  EXPECT_EQ(w.main.name, "no");
  EXPECT_EQ(w.main.type, "bpe");
  EXPECT_EQ(w.main.size, 16000);
  EXPECT_EQ(w.main.seed, ~uint64_t{0});
  EXPECT_EQ(w.main.threads, 2);
  EXPECT_DOUBLE_EQ(w.main.rate, 1e-3);
  EXPECT_FALSE(w.main.joint);
  EXPECT_EQ(w.main.metrics, (std::vector<std::string>{"chrf", "bleu"}));
  ASSERT_EQ(w.main.corpora.size(), 2u);
  EXPECT_EQ(w.main.corpora[0].target, "b");
  EXPECT_DOUBLE_EQ(w.main.corpora[1].weight, 2.5);
  EXPECT_EQ(w.log.every, 5);
}

TEST(Config, EmptyFilesAndSectionsAreFine) {
  EXPECT_EQ(load("").main.size, 8000);
  EXPECT_EQ(load("# nothing\n").main.size, 8000);
  EXPECT_EQ(load("main:\nlog:\n").main.size, 8000);
  EXPECT_EQ(load("\xEF\xBB\xBFmain: {size: 20}\n").main.size, 20);
}

TEST(Config, UnknownKeysSayWhatWasMeant) {
  EXPECT_EQ(message("main:\n  # x\n  szie: 3\n"), "c.yml:3: there is no key 'szie' in main; did you mean 'size'?");
  EXPECT_THAT(message("mian:\n  size: 3\n"), HasSubstr("c.yml:1: there is no section 'mian'; did you mean 'main'?"));
  EXPECT_THAT(message("main:\n  every: 3\n"), HasSubstr("did you mean 'log.every'?"));
  EXPECT_THAT(message("every: 3\n"), HasSubstr("did you mean 'log.every'?"));
  EXPECT_THAT(message("main:\n  corpora:\n    - sorce: a\n"),
              HasSubstr("c.yml:3: there is no key 'sorce' in main.corpora.0; did you mean 'source'?"));
  EXPECT_THAT(message("main:\n  zzzzzzzz: 3\n"), HasSubstr("use one of name, type"));
}

TEST(Config, WrongValuesNameKeyPlaceRangeAndFix) {
  EXPECT_EQ(message("main:\n  size: 3\n"), "c.yml:2: main.size: '3' is out of range; give a whole number from 10 to 1000000");
  EXPECT_EQ(message("main:\n  size: many\n"), "c.yml:2: main.size: 'many' is not a whole number; give a whole number from 10 to 1000000");
  EXPECT_THAT(message("main: {size: 99999999999999999999999}\n"), HasSubstr("out of range"));
  EXPECT_THAT(message("main: {size: 1.5}\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(message("main: {size: [1]}\n"), HasSubstr("single value"));
  EXPECT_THAT(message("main: {size: }\n"), HasSubstr("has no value"));
  EXPECT_THAT(message("main: {seed: -1}\n"), HasSubstr("out of range"));
  EXPECT_THAT(message("main: {rate: .nan}\n"), HasSubstr("not a number"));
  EXPECT_THAT(message("main: {rate: nan}\n"), HasSubstr("out of range"));
  EXPECT_THAT(message("main: {rate: inf}\n"), HasSubstr("out of range"));
  EXPECT_THAT(message("main: {rate: 1e999}\n"), HasSubstr("out of range"));
  EXPECT_THAT(message("main: {joint: maybe}\n"), HasSubstr("neither true nor false"));
  EXPECT_THAT(message("main: {type: unigrm}\n"), HasSubstr("'unigrm' is not allowed; did you mean 'unigram'? choose one of unigram, bpe"));
  EXPECT_THAT(message("main: {metrics: [bleu, ter]}\n"), HasSubstr("'ter' is not allowed; choose one of bleu, chrf"));
  EXPECT_THAT(message("main: {corpora: a}\n"), HasSubstr("list of maps"));
  EXPECT_THAT(message("main: {corpora: [a]}\n"), HasSubstr("must be a map"));
  EXPECT_THAT(message("main: {size: 20, size: 30}\n"), HasSubstr("given twice"));
  EXPECT_THAT(message("main: 3\n"), HasSubstr("must hold"));
  EXPECT_THAT(message("- a\n"), HasSubstr("map of sections"));
  EXPECT_THAT(message("? [a]\n: b\n"), HasSubstr("plain name"));
}

TEST(Config, BrokenTextIsAnErrorWithItsLine) {
  EXPECT_THAT(message("main:\n  name: \"abc\n"), HasSubstr("c.yml:2: a quote opened at or above this line is never closed"));
  EXPECT_THAT(message("main:\n  name: [a\nlog: b"), HasSubstr("not valid YAML"));
  EXPECT_THAT(message("main:\n  name: \"\\\x1b[2J\"\n"), AllOf(HasSubstr("\\x1b"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(message(std::string("main:\n  name: a\0b\n", 18)), HasSubstr("c.yml:2: byte 0x00 is a NUL"));
  EXPECT_THAT(message("main:\n\n  name: \xED\xA0\x80\n"), HasSubstr("c.yml:3: byte 0xed is not valid UTF-8"));
  EXPECT_THAT(message("main:\n  name: \"\\0\"\n"), HasSubstr("NUL"));
  EXPECT_THAT(message("main: {size: 20}\n---\nmain: {size: 30}\n"), HasSubstr("second YAML document"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("c.yml:1"));
  EXPECT_THAT(message("main: " + std::string(100000, '{')), HasSubstr("c.yml:1"));
  EXPECT_THAT(message(std::string(2 << 20, '#')), HasSubstr("too many"));
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 60; ++i) bomb += fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  EXPECT_THAT(message(bomb + "main: *a59\n"), HasSubstr("c.yml:1"));
  EXPECT_THAT(message("main: &m\n  name: *m\n"), HasSubstr("c.yml:"));
  EXPECT_THAT(message("main: {corpora: &c [*c]}\n"), HasSubstr("c.yml:"));
  std::string stairs;
  for (int i = 0; i < 1000; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(message(stairs), HasSubstr("c.yml:"));
}

TEST(Config, Overrides) {
  Whole w;
  const auto set = [&](const std::string& name, const std::string& value) { apply_override(w.sections(), name, value); };
  set("main.size", "500");
  set("main.name", "a b");
  set("main.metrics", "bleu, chrf");
  set("main.corpora.0.source", "x");
  set("main.corpora.0.weight", "3");
  set("main.corpora.1.source", "y");
  EXPECT_EQ(w.main.size, 500);
  EXPECT_EQ(w.main.name, "a b");
  EXPECT_EQ(w.main.metrics.size(), 2u);
  ASSERT_EQ(w.main.corpora.size(), 2u);
  EXPECT_EQ(w.main.corpora[0].weight, 3);
  EXPECT_EQ(override_message("main.sise", "1"), "command line: there is no key 'main.sise'; did you mean 'main.size'?");
  EXPECT_THAT(override_message("size", "20"), HasSubstr("did you mean 'main.size'?"));
  EXPECT_THAT(override_message("main.size", "1"), HasSubstr("command line: main.size: '1' is out of range"));
  EXPECT_THAT(override_message("main.corpora.5.source", "1"), HasSubstr("from 0 to 0"));
  EXPECT_THAT(override_message("main.corpora.0.sourc", "1"), HasSubstr("did you mean 'main.corpora.0.source'?"));
  EXPECT_THAT(override_message("main.corpora", "1"), HasSubstr("not a list"));
  EXPECT_THAT(override_message("main.size.0.x", "1"), HasSubstr("no key"));
  EXPECT_THAT(override_message("main.name", "\xFF"), HasSubstr("invalid UTF-8"));
  EXPECT_THAT(override_message("", "1"), HasSubstr("no key"));
  EXPECT_THAT(override_message("...", "1"), HasSubstr("no key"));
}

TEST(Config, WhatIsWrittenReadsBack) {
  Whole w;
  w.main.name = "it's \"odd\": \\ #\n\ttab";
  w.main.rate = 0.1 + 0.2;
  w.main.seed = ~uint64_t{0};
  w.main.metrics = {};
  w.main.alias = "never written";
  w.main.corpora = {{"a", "b", 1}, {"-c", "null", 0.5}, {}};
  for (const bool comments : {false, true}) {
    const std::string text = write_config(w.sections(), {.comments = comments});
    Whole back = load(text);
    EXPECT_EQ(write_config(back.sections(), {.comments = comments}), text);
    EXPECT_EQ(back.main.name, w.main.name);
    EXPECT_EQ(back.main.rate, w.main.rate);
    EXPECT_EQ(back.main.corpora[1].target, "null");
    EXPECT_EQ(back.main.alias, "");
  }
}

TEST(Config, MinimalDumpHoldsOnlyWhatDiffers) {
  Whole w, standard;
  w.main.size = 77;
  EXPECT_EQ(write_config(w.sections(), {.defaults = standard.sections()}), "main:\n  size: 77\n");
}

TEST(Config, HelpAndMarkdownNameEveryKey) {
  Whole w;
  const std::string help = config_help(w.sections()), markdown = config_markdown(w.sections());
  for (const auto& name : config_names(w.sections())) {
    EXPECT_THAT(help, HasSubstr("--" + name));
    EXPECT_THAT(markdown, HasSubstr("`" + name.substr(name.find('.') + 1) + "`"));
  }
  EXPECT_THAT(help, HasSubstr("(default 8000)"));
  EXPECT_TRUE(w.main.corpora.empty());
}

TEST(Config, SaysWhatIsBehindADefault) {
  Whole w;
  const auto remark = [](const std::string& name) { return name == "main.size" ? ", or less" : ""; };
  EXPECT_THAT(config_help(w.sections(), remark), HasSubstr("(default 8000, or less)"));
  EXPECT_THAT(config_help(w.sections(), remark), HasSubstr("(default 0)"));
  EXPECT_THAT(config_markdown(w.sections(), remark), HasSubstr("| `8000`, or less |"));
}

struct Times {
  double max_minutes = 0, deadline_seconds = 600, latency_us = 1, memory_gb_s = 1;
};
template <class Visitor>
void visit(Visitor& v, Times& t) {
  v.field("max-minutes", t.max_minutes, "minutes", 0.0, 1e6);
  v.field("deadline-seconds", t.deadline_seconds, "seconds", 0.01, 1e9);
  v.field("latency-us", t.latency_us, "microseconds", 0.0, 1e9);
  v.field("memory-gb-s", t.memory_gb_s, "a rate", 0.0, 1e9);
}

// Of a key that ends with a unit of time; a number alone is in that unit, as ever.
TEST(Config, DurationsMayHaveUnits) {
  Times t;
  const std::vector<ConfigSection> sections{config_section("times", "", t)};
  ConfigDocument("times: {max-minutes: 1h30m, deadline-seconds: 5m, latency-us: 2 ms}\n", "c.yml").read(sections);
  EXPECT_EQ(t.max_minutes, 90);
  EXPECT_EQ(t.deadline_seconds, 300);
  EXPECT_EQ(t.latency_us, 2000);
  apply_override(sections, "times.max-minutes", "90s");
  EXPECT_EQ(t.max_minutes, 1.5);
  apply_override(sections, "times.max-minutes", "12");
  EXPECT_EQ(t.max_minutes, 12);
  const auto refused = [&](const std::string& key, const std::string& value) {
    try {
      apply_override(sections, key, value);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return "'" + value + "' was taken";
  };
  EXPECT_EQ(
      refused("times.max-minutes", "12x"),
      "command line: times.max-minutes: '12x' is not a number; give a number from 0 to 1000000, or a duration such as 90s, 12m or 1h30m");
  EXPECT_EQ(refused("times.deadline-seconds", "1ms"),
            "command line: times.deadline-seconds: '1ms' is out of range; give a number from 0.01 to 1000000000");
  EXPECT_EQ(refused("times.memory-gb-s", "12m"),
            "command line: times.memory-gb-s: '12m' is not a number; give a number from 0 to 1000000000");
}

// The program's own list of keys is long; others are short.
TEST(Config, AnUnknownKeyOfTheCommandLineIsAnsweredWithAListThatHasThem) {
  Times t;
  std::vector<ConfigSection> sections{config_section("times", "", t)};
  const auto refused = [&] {
    try {
      apply_override(sections, sections.front().name + ".zzz", "1");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(),
            "command line: there is no key 'times.zzz'; use one of times.max-minutes, times.deadline-seconds, times.latency-us, "
            "times.memory-gb-s");
  sections.front().name = "train";
  EXPECT_EQ(refused(), "command line: there is no key 'train.zzz'; 'starling help train --all' lists all keys");
}

TEST(Config, ScalarLooksAhead) {
  const ConfigDocument d("main:\n  type: bpe\n", "c.yml");
  ASSERT_TRUE(d.scalar("main", "type"));
  EXPECT_EQ(d.scalar("main", "type")->text, "bpe");
  EXPECT_EQ(d.scalar("main", "type")->where, "c.yml:2");
  EXPECT_FALSE(d.scalar("main", "size"));
  EXPECT_FALSE(d.scalar("none", "size"));
}

// Mutates a good file at random: it either loads or throws ConfigError; nothing else may happen.
TEST(Config, FuzzedFilesThrowOrLoad) {
  const std::string good =
      "main:\n  name: &n a\n  type: bpe\n  size: 16000\n  rate: 1e-3\n  joint: false\n  metrics: [chrf, bleu]\n"
      "  corpora:\n    - {source: a, target: *n}\n    - source: c\n      weight: 2.5\nlog: {every: 5}\n";
  const std::string pieces[] = {
      std::string(1, '\0'),   "\xED\xA0\x80", "\"",        "'",   "[", "]", "{", "}",     ":",  "- ", "&n ",   "*n",     "\n", "  ",
      "99999999999999999999", "-1",           "!!binary ", "|\n", ">", "%", "@", "---\n", "? ", "\t", "1e400", "<<: *n", "\\", "#"};
  Random random(11, 0);
  int failures = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (uint64_t k = 1 + random.below(4); k > 0; --k) {
      const uint64_t at = random.below(text.size() + 1);
      const uint64_t cut = random.below(3) == 0 ? random.below(20) : 0;
      text.replace(at, std::min<size_t>(cut, text.size() - at), pieces[random.below(std::size(pieces))]);
    }
    try {
      load(text);
    } catch (const ConfigError& e) {
      ++failures;
      EXPECT_THAT(e.what(), HasSubstr("c.yml:")) << text;
    }
  }
  EXPECT_GT(failures, 1000);
}

}  // namespace
}  // namespace starling
