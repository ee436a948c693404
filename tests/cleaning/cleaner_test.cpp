// Whole cleanings of files: what is written, counted and said.
#include "cleaning/cleaner.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

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

TEST_F(Cleaning, TheBestOfCopiesStaysAndTheBestPairs) {
  write("a.tsv", {"Good morning\tGuten Morgen", "Thank you\tDanke", "good morning!\tGuten Morgen!", "Good night\tGute Nacht"});
  write("a.scores", {"-3", "-1.5", "-2", "-9"});
  CorpusFiles scored = tsv("a.tsv");
  scored.scores = path("a.scores");
  clean(job({scored}));
  EXPECT_THAT(lines("out/kept.tsv.zst"), ElementsAre("Thank you\tDanke", "good morning!\tGuten Morgen!", "Good night\tGute Nacht"));
  EXPECT_THAT(lines("out/dropped.tsv.zst"), ElementsAre("1\t1\tduplicate\t1:3\tGood morning\tGuten Morgen"));
  EXPECT_THAT(lines("out/scores.tsv.zst")[1], testing::StartsWith("1\t1\tduplicate\t-3\t2\t12\t"));
  CleanJob best = job({scored});
  best.output = path("best");
  best.options.best_share = 0.67;  // of the three that are no copies
  EXPECT_EQ(clean(best).corpora[0].kept, 2);
  EXPECT_THAT(lines("best/dropped.tsv.zst")[1], testing::StartsWith("1\t4\tscore\t\t"));
  best.output = path("words");
  best.options.best_share = 1;
  best.options.best_words = 2;
  EXPECT_EQ(clean(best).corpora[0].kept, 2);  // one word is not enough, the next pair has two
  best.output = path("limit");
  best.options.best_words = 0;
  best.options.min_score = -1.5;
  EXPECT_EQ(clean(best).corpora[0].kept, 1);
  write("a.scores", {"-3", "nan", "1e-400", "-9"});
  best.output = path("nan");
  best.options.min_score = -1;
  EXPECT_EQ(clean(best).corpora[0].kept, 1);
  write("a.scores", {"-3", "-1.5", "x", "-9"});
  best.output = path("bad");
  EXPECT_THROW(clean(best), DataError);
  write("a.scores", {"-3", "-1.5", "-2"});
  EXPECT_THROW(clean(best), DataError);
}

// Both sides must be near; of those that are, the first or the best stays, and each that goes names the one that it is near.
TEST_F(Cleaning, NearCopiesOfPairsThatStayGo) {
  const std::string en = "You are looking at page {} of {} of our new catalogue", de = "Sie sehen Seite {} von {} unseres neuen Katalogs";
  const auto pair = [](const std::string& s, const std::string& t, int a, int b) {
    return fmt::format(fmt::runtime(s + "\t" + t), a, b, a, b);
  };
  write("a.tsv", {pair(en, de, 1, 20), "Page 3\tSeite 3", "Page 4\tSeite 4", pair(en, "Auf Seite {} von {} ist nichts zu finden", 9, 90),
                  pair(en, de, 12, 345)});
  write("b.tsv", {pair(en + ", sir", de + ", Herr", 7, 8)});
  CleanJob near = job({tsv("a.tsv"), tsv("b.tsv")});
  EXPECT_EQ(clean(near).corpora[0].kept, 5) << "unless asked for";
  const std::string facts = facts_of(near);
  near.options.near_copies = 0.8;
  EXPECT_NE(facts_of(near), facts) << "what was judged without has no shingles";
  near.output = path("near");
  const CleanReport report = clean(near);
  constexpr auto kNear = static_cast<size_t>(Rule::near_copy);
  EXPECT_EQ(report.corpora[0].alone[kNear], 1);
  EXPECT_EQ(report.corpora[1].alone[kNear], 1);
  EXPECT_EQ(report.corpora[1].kept, 0);
  const std::vector<std::string> dropped = lines("near/dropped.tsv.zst");
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0], "1\t5\tnear-copy\t1:1\t" + pair(en, de, 12, 345));
  EXPECT_THAT(dropped[1], testing::StartsWith("2\t1\tnear-copy\t1:1\t"));
  EXPECT_THAT(clean_text(report), HasSubstr("dropped  near-copy              1 pair, 20.00 %, of which 1 by this rule alone"));
  const auto json = nlohmann::json::parse(real_file_system()->read_file(path("near/clean.json")));
  EXPECT_EQ(json["corpora"][1]["rules"]["near-copy"]["examples"][0]["of"], "1:1");
  near.options.copies = CopyRule::targets;
  near.output = path("targets");
  write("a.tsv", {pair(en, de, 1, 20), pair("Something quite different it says here: {}, {}", de, 12, 345)});
  EXPECT_EQ(clean(near).corpora[0].kept, 1);
  near.options.copies = CopyRule::pairs;
  near.output = path("pairs");
  EXPECT_EQ(clean(near).corpora[0].kept, 2);
  write("a.scores", {"-3", "-1"});
  write("a.tsv", {pair(en, de, 1, 20), pair(en, de, 12, 345)});
  near.data.train[0].scores = path("a.scores");
  near.output = path("best");
  clean(near);
  EXPECT_THAT(lines("best/dropped.tsv.zst")[0], testing::StartsWith("1\t1\tnear-copy\t2:1\t")) << "what has no score counts as best";
}

TEST_F(Cleaning, NearCopiesAreTheSameHoweverTheyAreFound) {
  std::vector<std::string> text;
  for (int i = 0; i < 3000; ++i)
    text.push_back(
        fmt::format("The {0} of the house number {1} is very {2} and the garden is {3} too\t"
                    "Die {0} des Hauses Nummer {1} ist sehr {2} und der Garten ist auch {3}",
                    i % 37 + 'x', i, std::string(i % 5 + 3, 'o'), std::string(1 + i % 23, static_cast<char>('a' + i % 23))));
  write("a.tsv", text);
  std::vector<std::vector<std::string>> results;
  for (const int threads : {1, 4}) {
    CleanJob one = job({tsv("a.tsv")});
    one.options.near_copies = 0.7;
    one.threads = threads;
    one.output = path("out" + std::to_string(threads));
    clean(one);
    results.push_back(lines(fmt::format("out{}/dropped.tsv.zst", threads)));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_GT(results[0].size(), 1000u);
}

TEST_F(Cleaning, TextsThatComeTooOften) {
  write("a.tsv", {"Yes\tJa", "Yes\tJawohl", "Yes\tGenau", "Sure\tJa", "Right\tJa"});
  CleanJob often = job({tsv("a.tsv")});
  often.options.max_same_source = 2;
  often.options.max_same_target = 2;
  const CleanReport report = clean(often);
  EXPECT_THAT(lines("out/kept.tsv.zst"), ElementsAre("Yes\tJa", "Yes\tJawohl", "Sure\tJa"));
  EXPECT_THAT(lines("out/dropped.tsv.zst")[0], testing::StartsWith("1\t3\tfrequent\t"));
  ASSERT_EQ(report.frequent_sources.size(), 1u);
  EXPECT_EQ(report.frequent_sources[0].pairs, 3u);
  EXPECT_EQ(report.frequent_sources[0].text, "Yes");
  EXPECT_EQ(report.frequent_targets[0].text, "Ja");
}

TEST_F(Cleaning, CorporaHaveOptionsOfTheirOwn) {
  write("a.tsv", {"In 1492 he sailed.\tIm Jahre 1776 segelte er."});
  write("b.tsv", {"In 1493 he sailed.\tIm Jahre 1776 segelte er auch."});
  CorpusFiles b = tsv("b.tsv");
  b.clean = {"min-digits=0", "repair: false"};
  const CleanReport report = clean(job({tsv("a.tsv"), b}));
  EXPECT_EQ(report.corpora[0].kept, 0);
  EXPECT_EQ(report.corpora[1].kept, 1);
  for (const char* wrong : {"copies=off", "near-copies=0.8", "min-digitz=0", "min-digits", "min-digits=x"}) {
    b.clean = {wrong};
    CleanJob bad = job({b});
    bad.output = path("bad");
    EXPECT_THROW(clean(bad), ConfigError) << wrong;
  }
}

// What an earlier start judged is taken as it is, if nothing has changed: here it says something else than the text.
TEST_F(Cleaning, GoesOnWhereItWasEnded) {
  write("a.tsv", {"Good morning\tGuten Morgen", "Thank you\tDanke"});
  const CleanJob one = job({tsv("a.tsv")});
  const std::string judged = path(".tmp-out/judged");
  const auto files = real_file_system();
  clean(one);
  const std::string kept = files->read_file(path("out/kept.tsv.zst"));
  for (const bool same : {true, false}) {
    files->remove_all(path("out"));
    files->make_directories(judged);
    if (same) files->write_file(judged + "/job", facts_of(one));
    Segments segments(*files, judged);
    JudgedWriter writer(*files, segments);
    JudgedPair pair{.corpus = 0, .line = 1, .source = "From before", .target = "Von vorher"};
    writer.add(pair, CopyKeys());
    writer.close();
    const CleanReport report = clean(one);
    EXPECT_EQ(report.pairs_judged_before, same);
    EXPECT_EQ(report.corpora[0].kept, 2);
    EXPECT_EQ(lines("out/kept.tsv.zst")[0], same ? "From before\tVon vorher" : "Good morning\tGuten Morgen");
    EXPECT_EQ(files->read_file(path("out/kept.tsv.zst")) == kept, !same);
    EXPECT_FALSE(files->exists(path(".tmp-out.lock")));
  }
}

TEST_F(Cleaning, TextOfOneLanguageHasNoTargets) {
  write("a", {"This is the first line of the text.", "And this is another one of them.", "and this is another one of them"});
  CleanJob lines_only = job({});
  lines_only.monolingual = true;
  lines_only.languages = {};
  lines_only.data.train.emplace_back().source = path("a");
  lines_only.options.copies = CopyRule::targets;
  lines_only.options.max_same_target = 1;
  lines_only.options.near_copies = 0.5;
  const CleanReport report = clean(lines_only);
  EXPECT_EQ(report.corpora[0].name, path("a"));
  EXPECT_EQ(report.corpora[0].kept, 2);
  EXPECT_EQ(report.corpora[0].dropped[static_cast<size_t>(Rule::duplicate)], 1);
  EXPECT_TRUE(report.frequent_targets.empty());
  EXPECT_THAT(lines("out/kept.txt.zst"), ElementsAre("This is the first line of the text.", "And this is another one of them."));
}

TEST_F(Cleaning, NearCopiesAreAtLeastHalfAlike) {
  write("a.tsv", {"Good morning\tGuten Morgen"});
  CleanJob wrong = job({tsv("a.tsv")});
  wrong.options.near_copies = 0.49;
  try {
    clean(wrong);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("clean.near-copies"));
    EXPECT_THAT(e.what(), HasSubstr("0.5 to 1"));
  }
  CleanJob alike = job({});
  alike.monolingual = true;
  write("a", {"This is page 1 of the new book", "This is page 2 of the new book", "This is page 2 of another book", "Page 1", "Page 2"});
  alike.data.train.emplace_back().source = path("a");
  alike.options.near_copies = 0.5;
  clean(alike);
  EXPECT_THAT(lines("out/kept.txt.zst"),
              ElementsAre("This is page 1 of the new book", "This is page 2 of another book", "Page 1", "Page 2"));
}

TEST_F(Cleaning, LeavesTheDirectoriesOfOthersAlone) {
  write("a.tsv", {"Good morning\tGuten Morgen"});
  const auto files = real_file_system();
  files->make_directories(path(".tmp-out"));
  write(".tmp-out/thesis", {"mine"});
  EXPECT_THROW(clean(job({tsv("a.tsv")})), ConfigError);
  EXPECT_TRUE(files->exists(path(".tmp-out/thesis")));
  EXPECT_FALSE(files->exists(path(".tmp-out.lock")));
  CleanJob nowhere = job({tsv("a.tsv")});
  nowhere.output = path("missing/out");
  EXPECT_THROW(clean(nowhere), ConfigError);
}

// Marks of a start that was ended while it tidied up are not taken for this one's.
TEST_F(Cleaning, LeavingsOfAnEndedStartDoNoHarm) {
  write("a.tsv", {"Good morning\tGuten Morgen"});
  const auto files = real_file_system();
  files->make_directories(path(".tmp-out/judged"));
  files->write_file(path(".tmp-out/judged/00000.marks"), std::string("\x10\0\0\0\0", 5));
  EXPECT_EQ(clean(job({tsv("a.tsv")})).corpora[0].kept, 1);
  EXPECT_FALSE(files->exists(path("out/judged")));
  files->make_directories(path("out/judged"));  // it was ended after the result had come into its place
  EXPECT_THROW(clean(job({tsv("a.tsv")})), ConfigError);
  EXPECT_FALSE(files->exists(path("out/judged")));
  EXPECT_TRUE(files->exists(path("out/clean.json")));
}

TEST_F(Cleaning, LongLinesBreakOneRule) {
  write("a.tsv", {std::string(20000, 'a') + "\tkurz", "Good morning\tGuten Morgen"});
  const CleanReport report = clean(job({tsv("a.tsv")}));
  EXPECT_EQ(report.corpora[0].alone[static_cast<size_t>(Rule::length)], 1);
  EXPECT_EQ(report.corpora[0].sample.at(0).source.size(), 2000u + 3);  // an ellipsis has three bytes
}

// Crawled text has lines that are no text, or too few columns; a text of 16-bit characters has only those.
TEST_F(Cleaning, DamagedLinesAreDroppedAndCounted) {
  write("a.tsv", {"Good morning\tGuten Morgen", "Good evening everybody", "A caf\xE9 in town\tEin Caf\xE9 in der Stadt",
                  "one\tmore\tcolumn", std::string("A \0 in it\tEine \0 darin", 22), "Thank you\tDanke"});
  const CleanReport report = clean(job({tsv("a.tsv")}));
  EXPECT_THAT(lines("out/kept.tsv.zst"), ElementsAre("Good morning\tGuten Morgen", "Thank you\tDanke"));
  EXPECT_THAT(lines("out/dropped.tsv.zst"),
              ElementsAre("1\t2\tempty\t\tGood evening everybody\t", "1\t3\tencoding\t\tA caf\uFFFD in town\tEin Caf\uFFFD in der Stadt",
                          "1\t4\tempty\t\tone more column\t", "1\t5\tencoding\t\tA \uFFFD in it\tEine \uFFFD darin"));
  write("b.tsv", {std::string("\xFF\xFEG\0o\0\n\0", 8)});
  std::filesystem::remove_all(path("out"));
  EXPECT_THROW(clean(job({tsv("b.tsv")})), DataError);
  CleanJob one = job({});
  one.monolingual = true;
  one.data.train.emplace_back().source = path("c");
  write("c", {"Gr\xFC\xDF"
              "e an alle, die hier sind",
              "Das ist ein ganzer Satz."});
  EXPECT_EQ(clean(one).corpora[0].kept, 1) << "the first line too";
}

TEST_F(Cleaning, TextFromAPipeIsStored) {
  const std::vector<std::string> text = {"Good morning\tGuten Morgen", "A caf\xE9\tEin Caf\xE9", "Thank you\tDanke"};
  write("a.tsv", text);
  clean(job({tsv("a.tsv")}));
  const auto kept = lines("out/kept.tsv.zst"), dropped = lines("out/dropped.tsv.zst");
  std::filesystem::remove_all(path("out"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(facts_of(job({tsv("a.tsv")})), facts_of(job({tsv("a.tsv")})));
  EXPECT_NE(facts_of(job({tsv("pipe")})), facts_of(job({tsv("pipe")}))) << "no start goes on with what came from another pipe";
  for (const bool monolingual : {false, true}) {
    std::thread writer([&] { write("pipe", text); });
    CleanJob piped = job({tsv("pipe")});
    if (monolingual) piped.data.train[0].tsv.swap(piped.data.train[0].source);
    piped.monolingual = monolingual;
    const CleanReport report = clean(piped);
    writer.join();
    EXPECT_EQ(report.corpora[0].name, path("pipe"));
    EXPECT_EQ(report.corpora[0].pairs, 3);
    if (!monolingual) {
      EXPECT_EQ(lines("out/kept.tsv.zst"), kept);
      EXPECT_EQ(lines("out/dropped.tsv.zst"), dropped);
    }
    EXPECT_FALSE(std::filesystem::exists(path("out/judged")));
    std::filesystem::remove_all(path("out"));
  }
}

TEST_F(Cleaning, LeavesNothingBehindWhenItFails) {
  write("a.tsv", {"no tab", "Good morning\tGuten Morgen"});
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

}  // namespace
}  // namespace starling
