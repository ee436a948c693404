// The checking pass: every defect of a parallel corpus is found before anything else happens.
#include "data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class E = DataError>
std::string refusal(const DataOptions& options) {
  return test::message_of<E>([&] { check_corpora(options); });
}

TEST(Corpus, CountsThePairsOfEveryForm) {
  const TemporaryDirectory directory;
  const std::string source = directory.write("s", "a\nb\nc\n"), target = directory.write("t.gz", test::gzip("A\nB\nC"));
  const std::string tsv = directory.write("both.tsv.zst", test::zstandard("a\tA\r\n\tB\n"));
  DataOptions options{{{source, target, ""}, {"", "", tsv}}};
  EXPECT_THAT(check_corpora(options), ElementsAre(3, 2));

  std::vector<std::string> lines;
  std::string_view line;
  for (CorpusLines next(options, Side::both); next(line);) lines.emplace_back(line);
  EXPECT_THAT(lines, ElementsAre("a", "A", "b", "B", "c", "C", "a", "A", "", "B"));
  lines.clear();
  for (CorpusLines next(options, Side::target); next(line);) lines.emplace_back(line);
  EXPECT_THAT(lines, ElementsAre("A", "B", "C", "A", "B"));
  lines.clear();
  for (CorpusLines next(options, Side::source); next(line);) lines.emplace_back(line);
  EXPECT_THAT(lines, ElementsAre("a", "b", "c", "a", ""));
}

// A pipe has nothing left for the second reader, and one without a writer is waited for without end.
TEST(Corpus, PipesAreRefusedBeforeTheyAreOpened) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text", "a\n"), pipe = directory.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const CorpusFiles& files : {CorpusFiles{pipe, text, ""}, CorpusFiles{text, pipe, ""}, CorpusFiles{"", "", pipe}}) {
    const DataOptions options{{files}};
    const std::string said = refusal<ConfigError>(options);
    EXPECT_THAT(said, HasSubstr("parallel text cannot come from " + pipe + ", which is a pipe, as it may be read more than once"));
    EXPECT_EQ(test::message_of<ConfigError>([&] { check_options(options); }), said);
    EXPECT_EQ(test::message_of<ConfigError>([&] { CorpusLines(options, Side::both); }), said);
  }
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string shells = fmt::format("/dev/fd/{}", ends[0]);
  EXPECT_THAT(refusal<ConfigError>({{{shells, text, ""}}}), HasSubstr(shells + ", which is a pipe"));
  ::close(ends[0]), ::close(ends[1]);
  EXPECT_THAT(refusal({{{"/dev/null", text, ""}}}), HasSubstr("has 0 lines but"));
}

TEST(Corpus, NamesBothCountsOfUnequalSides) {
  const TemporaryDirectory directory;
  const std::string three = directory.write("three", "1\n2\n3\n"), five = directory.write("five", "1\n2\n3\n4\n5");
  EXPECT_THAT(refusal({{{three, five, ""}}}), HasSubstr("three:3: has 3 lines but " + five + " has 5"));
  EXPECT_THAT(refusal({{{five, three, ""}}}), HasSubstr("three:3: has 3 lines but " + five + " has 5"));
  EXPECT_THAT(refusal({{{three, directory.write("none", ""), ""}}}), HasSubstr("has 0 lines but"));
}

// Files are read side by side; the defect that is told is the one that a reader of pairs would meet first.
TEST(Corpus, TellsTheFirstDefectWhateverTheThreads) {
  const TemporaryDirectory directory;
  const auto text = [](int64_t lines, int64_t bad) {
    std::string bytes;
    for (int64_t i = 1; i <= lines; ++i) bytes += i == bad ? "\xff\n" : "line\n";
    return bytes;
  };
  const std::string good = directory.write("good", text(100000, 0)), late = directory.write("late", text(100000, 90000)),
                    early = directory.write("early", text(20, 10)), longer = directory.write("longer", text(100001, 0));
  const std::string tsv = directory.write("tsv", "a\tb\nc\n");
  for (const int threads : {1, 2, 8}) {
    const auto told = [&](const DataOptions& options) { return test::message_of<DataError>([&] { check_corpora(options, threads); }); };
    EXPECT_THAT(told({{{good, late, ""}, {early, early, ""}, {"", "", tsv}}}), HasSubstr("late:90000: invalid UTF-8"));
    EXPECT_THAT(told({{{late, early, ""}}}), HasSubstr("early:10: invalid UTF-8"));
    EXPECT_THAT(told({{{good, good, ""}, {longer, good, ""}, {"", "", tsv}}}), HasSubstr("good:100000: has 100000 lines but"));
    EXPECT_THAT(told({{{good, good, ""}, {"", "", tsv}}}), HasSubstr("tsv:2: no tab"));
    EXPECT_THAT(check_corpora({{{good, good, ""}, {longer, longer, ""}}}, threads), ElementsAre(100000, 100001));
  }
}

TEST(Corpus, AsksForTwoColumns) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal({{{"", "", directory.write("a", "x\ty\nxy\n")}}}), HasSubstr("a:2: no tab"));
  EXPECT_THAT(refusal({{{"", "", directory.write("b", "x\ty\tz\n")}}}), HasSubstr("b:1: more than one tab"));
}

// In a file of their own or in a third column.
TEST(Corpus, LinksAreReadWithTheirPairs) {
  const TemporaryDirectory directory;
  const std::string side = directory.write("side", "x y\nz\n"), tsv = directory.write("tsv", "x y\tx y\t0-1\nz\tz\t\n");
  CorpusFiles file{side, side, ""}, column{"", "", tsv};
  file.alignment = directory.write("links", "0-1\n\n");
  column.alignment = kAlignmentColumn;
  for (const CorpusFiles& files : {file, column}) {
    EXPECT_THAT(check_corpora({{files}}), ElementsAre(2));
    PairReader reader(files);
    std::string_view source, target;
    ASSERT_TRUE(reader.next(source, target));
    EXPECT_EQ(target, "x y");
    EXPECT_EQ(reader.links(), "0-1");
    ASSERT_TRUE(reader.next(source, target));
    EXPECT_EQ(reader.links(), "");
    EXPECT_FALSE(reader.next(source, target));
  }
  EXPECT_THAT(refusal({{{"", "", tsv}}}), HasSubstr("set alignment: column"));
  column.tsv = directory.write("two", "x\ty\n");
  EXPECT_THAT(refusal({{column}}), HasSubstr("two:1: 1 tab instead of two"));
  file.alignment = directory.write("few", "0-0\n");
  EXPECT_THAT(refusal({{file}}), HasSubstr("few:1: has 1 line but"));
  file.alignment = directory.write("bad", "0-0\nzero\n");
  EXPECT_THAT(refusal({{file}}), HasSubstr("bad:2: 'zero' is not a link"));
  column.tsv = directory.write("wrong", "x\tx\t0-0\nx\tx\tzero\n");
  EXPECT_THAT(refusal({{column}}), HasSubstr("wrong:2: 'zero' is not a link"));
  file.alignment = kAlignmentColumn;
  EXPECT_THAT(refusal<ConfigError>({{file}}), HasSubstr("only a tsv has columns"));
}

TEST(Corpus, RefusesOptionsThatCannotBeMeant) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("f", "x\n");
  EXPECT_THAT(refusal<ConfigError>({}), HasSubstr("no training corpus"));
  EXPECT_THAT(refusal<ConfigError>({{{file, "", ""}}}), HasSubstr("name its target file"));
  EXPECT_THAT(refusal<ConfigError>({{{"", file, ""}}}), HasSubstr("name its source file"));
  EXPECT_THAT(refusal<ConfigError>({{{"", "", ""}}}), HasSubstr("exactly one of the two forms"));
  EXPECT_THAT(refusal<ConfigError>({{{file, file, file}}}), HasSubstr("exactly one of the two forms"));
  EXPECT_THAT(refusal<ConfigError>({{{"-", file, ""}}}), HasSubstr("standard input"));
  EXPECT_THAT(refusal<ConfigError>({{{file, file, "", -1}}}), HasSubstr("weight -1"));
  EXPECT_THAT(refusal<ConfigError>({{{file, file, "", std::nan("")}}}), HasSubstr("weight nan"));
  EXPECT_THAT(refusal<ConfigError>({{{file, file, ""}}, -5}), HasSubstr("max-length is -5"));
  EXPECT_THAT(refusal<ConfigError>({{{file, file, ""}}, 256, 0.5}), HasSubstr("max-ratio is 0.5"));
  EXPECT_THAT(refusal<IoError>({{{file, file, ""}, {file, directory.path("gone"), ""}}}), HasSubstr("gone: cannot be opened"));
}

}  // namespace
}  // namespace starling
