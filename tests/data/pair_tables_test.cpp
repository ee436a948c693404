// Corpora in the files of translators: TMX and CSV. What they hold was also read by Python's xml.etree and csv.
#include "data/pair_tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "data/tokenize.h"
#include "formats/csv.h"
#include "formats/tmx.h"
#include "tests/data/fixtures.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pairs_of(const CorpusFiles& files) {
  std::vector<std::string> pairs;
  PairReader reader(files);
  for (std::string_view source, target; reader.next(source, target);) pairs.push_back(fmt::format("{}|{}", source, target));
  return pairs;
}

std::vector<std::string> pairs_of(const std::string& path, const std::string& source = "en", const std::string& target = "de") {
  return pairs_of(CorpusFiles{.source = "", .target = "", .tsv = path, .source_language = source, .target_language = target});
}

template <class E>
std::string refusal(const std::string& path, const std::string& source = "en", const std::string& target = "de") {
  return test::message_of<E>([&] { pairs_of(path, source, target); });
}

std::string unit(const std::string& source, const std::string& target, const char* from = "en", const char* to = "de") {
  return fmt::format("<tu>\n<tuv xml:lang=\"{}\"><seg>{}</seg></tuv><tuv xml:lang=\"{}\"><seg>{}</seg></tuv>\n</tu>\n", from, source, to,
                     target);
}
const std::string kHead = "<?xml version=\"1.0\"?>\n<tmx version=\"1.4\"><header srclang=\"en\"/><body>\n", kTail = "</body></tmx>";

TEST(PairTables, TmxGivesTheUnitsWithBothLanguages) {
  const TemporaryDirectory directory;
  const std::string text = kHead + unit("a &lt; b", "A\n\tB") + unit("only", "seul", "en", "fr") +
                           unit("colour", "Farbe", "en-GB", "de_AT") + unit("", "leer") + kTail;
  EXPECT_THAT(pairs_of(directory.write("m.tmx", text)), ElementsAre("a < b|A B", "colour|Farbe", "|leer"));
  EXPECT_THAT(pairs_of(directory.write("m.TMX.gz", test::gzip(text)), "de", "en"), ElementsAre("A B|a < b", "Farbe|colour", "leer|"));
  EXPECT_THAT(pairs_of(directory.write("m.tmx.zst", test::zstandard(text)), "en", "fr"), ElementsAre("only|seul"));
}

TEST(PairTables, TmxOfTwoRegionsOfOneLanguage) {
  const TemporaryDirectory directory;
  const std::string text = kHead + unit("color", "colour", "en-US", "en-GB") + unit("neither", "nor", "en-AU", "en-AU") + kTail;
  EXPECT_THAT(pairs_of(directory.write("m.tmx", text), "en-US", "en-GB"), ElementsAre("color|colour", "neither|nor"));
  EXPECT_THAT(pairs_of(directory.write("m.tmx", text), "en-GB", "en-US"), ElementsAre("colour|color", "neither|nor"));
}

// Units lie across the parts in which a file is read, whatever their lengths.
TEST(PairTables, LongTmxIsReadAsItComes) {
  const TemporaryDirectory directory;
  std::string text = kHead;
  for (int i = 0; i < 20000; ++i)
    text += unit(fmt::format("{} {}", i, std::string(static_cast<size_t>(i % 97), 'x')), std::to_string(i * 7));
  std::string wide = "\xFE\xFF";
  for (const char c : text + kTail) wide += '\0', wide += c;
  for (const std::string& path : {directory.write("m.tmx", text + kTail), directory.write("wide.tmx", wide)}) {
    const std::vector<std::string> pairs = pairs_of(path);
    ASSERT_EQ(pairs.size(), 20000u);
    for (size_t i = 0; i < pairs.size(); ++i)
      ASSERT_EQ(pairs[i], i % 97 ? fmt::format("{} {}|{}", i, std::string(i % 97, 'x'), i * 7) : fmt::format("{}|{}", i, i * 7));
  }
}

TEST(PairTables, TmxSaysWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("m.tmx", kHead + unit("a", "b") + kTail);
  EXPECT_THAT(refusal<ConfigError>(path, "", ""), HasSubstr("choose two with data.source-language and data.target-language"));
  EXPECT_THAT(refusal<DataError>(path, "en", "it"), HasSubstr("no sentences from en to it; its languages are de, en"));
  EXPECT_THAT(refusal<DataError>(directory.write("cut.tmx", kHead + "<tu>\n<tuv xml:lang=\"en\"><seg>a")),
              HasSubstr("cut.tmx:1: the unit that begins in line 3 has no end (</tu>)"));
  EXPECT_THAT(refusal<DataError>(directory.write("long.tmx", kHead + "<tu>" + std::string(TmxReader::kMostUnitBytes + 10, ' '))),
              HasSubstr("within 16 MiB"));
  EXPECT_THAT(refusal<DataError>(directory.write("bad.tmx", kHead + unit("a\xFF", "b") + kTail)), HasSubstr("invalid UTF-8"));
  EXPECT_THAT(refusal<DataError>(directory.write("empty.tmx", "")), HasSubstr("has no sentences"));
}

TEST(PairTables, CsvAsSpreadsheetsWriteIt) {
  const TemporaryDirectory directory;
  const auto read = [&](const std::string& text) { return pairs_of(directory.write("t.csv", text)); };
  EXPECT_THAT(read("a,b\r\n\"x, \"\"y\"\"\",\"line\r\nbreak\ttab\"\r\n\r\n,\"\"\r\nthe 5\" disk,d"),
              ElementsAre("a|b", "x, \"y\"|line  break tab", "|", "the 5\" disk|d"));
  EXPECT_THAT(read("\xEF\xBB\xBFsource;target\n1,5;2,5\n"), ElementsAre("1,5|2,5"));
  EXPECT_THAT(read("EN,de-DE\nen,nach\n"), ElementsAre("en|nach"));
  EXPECT_THAT(read("hello,hallo\nen,de\n"), ElementsAre("hello|hallo", "en|de"));
  EXPECT_THAT(pairs_of(directory.write("t.csv.gz", test::gzip("\"a\",\"b\""))), ElementsAre("a|b"));
  EXPECT_THAT(refusal<DataError>(directory.write("t.csv", "a,b\nc,d,e\n")), HasSubstr("t.csv:2: 3 columns instead of two"));
  EXPECT_THAT(refusal<DataError>(directory.write("t.csv", "a\nb\n")), HasSubstr("1 column instead of two"));
}

TEST(PairTables, MostRecordsSayWhatSeparatesFields) {
  EXPECT_EQ(csv_separator("An ora;nge,eine Ora;nge\nA dog,ein Hund\nA cat,eine Katze\n"), ',') << "only what has to be is in quotes";
  EXPECT_EQ(csv_separator("1,5;2,5\nHello, you;Hallo\nno;nein\n"), ';');
  EXPECT_EQ(csv_separator("a, b\tc, d\ne\tf\n"), '\t');

  EXPECT_EQ(csv_separator("a,b;c\n"), ',');
  EXPECT_EQ(csv_separator("\"a,b\";c,d\n"), ';');
  EXPECT_EQ(csv_separator("a\tb, c\n"), '\t');
  EXPECT_EQ(csv_separator("a\nb\n"), ',') << "none of them has one";
}

// Stored tokens are those of other pairs when the languages change, though the file does not.
TEST(PairTables, LanguagesOfAMemoryAreInTheFingerprintOfItsTokens) {
  const TemporaryDirectory directory;
  DataOptions data;
  data.train = {{.tsv = directory.write("m.tmx", kHead + unit("a", "b") + kTail), .source_language = "en", .target_language = "de"}};
  const Vocabulary vocabulary = test::small_vocabulary(directory);
  const uint64_t before = token_fingerprint(data, vocabulary, vocabulary);
  EXPECT_EQ(token_fingerprint(data, vocabulary, vocabulary), before);
  data.train[0].target_language = "fr";
  EXPECT_NE(token_fingerprint(data, vocabulary, vocabulary), before);
}

// Quotes, separators and line ends lie across the parts in which a table is read.
TEST(PairTables, LongCsvIsReadAsItComes) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 30000; ++i)
    text += fmt::format("\"{}, \"\"{}\"\"\",\"{}\"\r\n", i, std::string(static_cast<size_t>(i % 31), '"' + 1), i);
  const std::vector<std::string> pairs = pairs_of(directory.write("t.csv", text));
  ASSERT_EQ(pairs.size(), 30000u);
  for (size_t i = 0; i < pairs.size(); ++i) ASSERT_EQ(pairs[i], fmt::format("{}, \"{}\"|{}", i, std::string(i % 31, '#'), i));
}

}  // namespace
}  // namespace starling
