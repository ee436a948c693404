// Whole cleanings of files: what is written, counted and said.
#include "cleaning/cleaner.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cleaning/seen_keys.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Cleaning : public testing::Test {
 protected:
  void write(const std::string& name, const std::vector<std::string>& lines) {
    std::ofstream file(path(name));
    for (const std::string& line : lines) file << line << "\n";
  }
  std::string path(const std::string& name) const { return own_.file(name); }
  std::vector<std::string> lines(const std::string& name) {
    LineReader reader(path(name));
    std::vector<std::string> all;
    for (std::string_view line; reader.next(line);) all.emplace_back(line);
    return all;
  }
  CleanJob job(const std::vector<CorpusFiles>& corpora) {
    CleanJob job;
    job.data.train = corpora;
    job.languages = {"en", "de", {}};
    job.output = path("out");
    return job;
  }
  CorpusFiles tsv(const std::string& name) const {
    CorpusFiles files;
    files.tsv = path(name);
    return files;
  }
  CleanReport clean(const CleanJob& job) { return starling::clean(job, *real_file_system(), {}); }

  const OwnDirectory own_;
};

TEST_F(Cleaning, KeepsInOrderAndSaysWhyNot) {
  write("a.tsv", {"The cafÃ© is closed.\tDas Café ist zu.", "Good morning\tGuten Morgen", "In 1492 he sailed.\tIm Jahre 1776 segelte er.",
                  "good  morning!\tGuten Morgen.", "\tleer"});
  write("b.en", {"Thank you", "Good Morning"});
  write("b.de", {"Danke", "Guten Morgen"});
  write("b.weights", {"0.5", "2"});
  CorpusFiles b;
  b.source = path("b.en");
  b.target = path("b.de");
  b.sentence_weights = path("b.weights");
  const CleanReport report = clean(job({tsv("a.tsv"), b}));
  EXPECT_THAT(lines("out/kept-1.tsv.zst"), ElementsAre("The café is closed.\tDas Café ist zu.", "Good morning\tGuten Morgen"));
  EXPECT_THAT(lines("out/kept-2.tsv.zst"), ElementsAre("Thank you\tDanke"));
  EXPECT_THAT(lines("out/kept-2.weights.zst"), ElementsAre("0.5"));
  EXPECT_THAT(lines("out/dropped.tsv.zst"), ElementsAre("1\t3\tdigits\t\tIn 1492 he sailed.\tIm Jahre 1776 segelte er.",
                                                        "1\t4\tduplicate\t1:2\tgood morning!\tGuten Morgen.", "1\t5\tempty\t\t\tleer",
                                                        "2\t2\tduplicate\t1:2\tGood Morning\tGuten Morgen"));
  ASSERT_EQ(report.corpora.size(), 2u);
  EXPECT_EQ(report.corpora[0].pairs, 5);
  EXPECT_EQ(report.corpora[0].kept, 2);
  EXPECT_EQ(report.corpora[0].alone[static_cast<size_t>(Rule::digits)], 1);
  EXPECT_EQ(report.corpora[0].repaired[static_cast<size_t>(Repair::encoding)], 1);
  EXPECT_THAT(clean_text(report), HasSubstr("2 of 5 pairs kept (40.0 %)"));
  const auto json = nlohmann::json::parse(real_file_system()->read_file(path("out/clean.json")));
  EXPECT_EQ(json["corpora"][0]["rules"]["digits"]["examples"][0]["line"], 3);
  EXPECT_EQ(json["corpora"][1]["kept"], 1);
}

TEST_F(Cleaning, IsTheSameWithAnyNumberOfThreads) {
  std::vector<std::string> text;
  for (int i = 0; i < 5000; ++i)
    text.push_back(i % 7 == 0 ? fmt::format("Number {} of many things\tNummer {} von vielen Dingen", i / 14, i / 14)
                              : fmt::format("The {}th house is red.\tDas {}. Haus ist {}.", i, i % 11 == 0 ? 100000 + i : i,
                                            i % 5 ? "rot" : "rot rot rot"));
  write("a.tsv", text);
  std::vector<std::vector<std::string>> results;
  for (const int threads : {1, 4}) {
    CleanJob one = job({tsv("a.tsv")});
    one.threads = threads;
    one.output = path("out" + std::to_string(threads));
    clean(one);
    results.push_back(lines(fmt::format("out{}/kept.tsv.zst", threads)));
    results.push_back(lines(fmt::format("out{}/dropped.tsv.zst", threads)));
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
  EXPECT_EQ(results[0].size() + results[1].size(), 5000u);
  EXPECT_GT(results[1].size(), 1000u);
}

TEST_F(Cleaning, WhatIsUsualIsFoundInTheText) {
  std::vector<std::string> text;
  for (int i = 0; i < 150; ++i)
    text.push_back(fmt::format("Number {0} it is\tDies ist hier und heute auch noch die sehr lange Nummer {0}, und mehr", i));
  text.push_back("Number 1000 it is\tNummer 1000, und mehr");
  write("a.tsv", text);
  const CleanReport report = clean(job({tsv("a.tsv")}));
  EXPECT_NEAR(report.corpora[0].usual_ratio, 68. / 15, 1e-12);                // characters of most, which have two digits
  EXPECT_EQ(report.corpora[0].dropped[static_cast<size_t>(Rule::ratio)], 1);  // the one that is short here
  write("few.tsv", {text[0], "Hello there, my friend\tHallo, mein Freund"});
  CleanJob few = job({tsv("few.tsv")});
  few.output = path("few");
  EXPECT_EQ(clean(few).corpora[0].dropped[static_cast<size_t>(Rule::ratio)], 1);  // the long one: they are too few to tell
}

TEST_F(Cleaning, WhatIsHeldOutGoes) {
  write("a.tsv", {"Good morning\tGuten Morgen", "The harbour master closed the gate early.\tDer Hafenmeister schloss das Tor.",
                  "The harbour master closed the gate early!\tAnders übersetzt: er machte das Tor früh zu.", "Good evening\tGuten Morgen"});
  write("valid.en", {"Good morning.", "The harbour master closed the gate early."});
  write("valid.de", {"Guten Morgen.", "Der Hafenmeister hat das Tor zu früh geschlossen."});
  CleanJob held = job({tsv("a.tsv")});
  held.held_out.emplace_back();
  held.held_out.back().source = path("valid.en");
  held.held_out.back().target = path("valid.de");
  const CleanReport report = clean(held);
  EXPECT_EQ(report.corpora[0].dropped[static_cast<size_t>(Rule::held_out)], 3);
  EXPECT_THAT(lines("out/kept.tsv.zst"), ElementsAre("Good evening\tGuten Morgen"));
}

TEST_F(Cleaning, WritesBesideItsOutputAndTakesNoOtherDirectory) {
  write("a.tsv", {"Good morning\tGuten Morgen"});
  real_file_system()->make_directories(path("out.partial"));
  CleanJob slash = job({tsv("a.tsv")});
  slash.output += "/";
  slash.configuration = [](const CleanReport& report) { return fmt::format("{} kept", report.corpora[0].kept); };
  clean(slash);
  EXPECT_TRUE(real_file_system()->exists(path("out.partial")));
  EXPECT_EQ(real_file_system()->read_file(path("out/train.yml")), "1 kept");
}

TEST_F(Cleaning, CopiesByTarget) {
  write("a.tsv", {"Good morning\tGuten Morgen", "Morning!\tGuten Morgen", "Morning!\tMorgen!"});
  CleanJob by_target = job({tsv("a.tsv")});
  by_target.options.copies = CopyRule::targets;
  EXPECT_EQ(clean(by_target).corpora[0].kept, 2);
  by_target.options.copies = CopyRule::pairs;
  by_target.output = path("pairs");
  EXPECT_EQ(clean(by_target).corpora[0].kept, 3);
}

TEST_F(Cleaning, LeavesNothingBehindWhenItFails) {
  write("a.tsv", {"Good morning\tGuten Morgen", "no tab"});
  EXPECT_THROW(clean(job({tsv("a.tsv")})), DataError);
  EXPECT_FALSE(real_file_system()->exists(path("out")));
  EXPECT_FALSE(real_file_system()->exists(path(".tmp-out")));
  write("b.tsv", {"Good morning\tGuten Morgen\t0-0 1-1"});
  CorpusFiles aligned = tsv("b.tsv");
  aligned.alignment = kAlignmentColumn;
  EXPECT_THROW(clean(job({aligned})), ConfigError);
  real_file_system()->make_directories(path("out"));
  EXPECT_THROW(clean(job({tsv("b.tsv")})), ConfigError);
}

TEST(SeenKeys, RemembersTheFirstLine) {
  SeenKeys keys;
  for (uint32_t i = 0; i < 100000; ++i) EXPECT_FALSE(keys.add(uint64_t{i} * 0x9e3779b97f4a7c15u, i).has_value());
  for (uint32_t i = 0; i < 100000; i += 997) EXPECT_EQ(keys.add(uint64_t{i} * 0x9e3779b97f4a7c15u, 7), i);
  EXPECT_EQ(keys.size(), 100000u);
  EXPECT_TRUE(keys.has(0));
  EXPECT_FALSE(keys.has(12345));
}

}  // namespace
}  // namespace starling
