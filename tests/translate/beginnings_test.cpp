// Beginnings of translations: which line gets which, and what ends them.
#include "translate/beginnings.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/own_directory.h"
#include "translate/options.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

TranslateOptions with_tabs(Lines inputs) {
  TranslateOptions o;
  o.tsv = true, o.inputs = std::move(inputs);
  return o;
}

TEST(Beginnings, StandBehindATab) {
  Beginnings beginnings(with_tabs({"in.tsv"}));
  Lines lines{"a dog\tEin Hund", "", "a cat\t", "\tDie"};
  EXPECT_THAT(beginnings.take(lines), ElementsAre("Ein Hund", "", "", "Die"));
  EXPECT_THAT(lines, ElementsAre("a dog", "", "a cat", ""));
  EXPECT_EQ(beginnings.wrong(), "");
}

TEST(Beginnings, ALineWithoutATabOrWithSeveralEndsThem) {
  for (const auto& [line, what] : {std::pair("no tab here", "no tab"), {"a\tb\tc", "several tabs"}}) {
    Beginnings beginnings(with_tabs({"in.tsv"}));
    Lines first{"a\tb", "c\td"}, second{"e\tf", line, "g\th"};
    beginnings.take(first);
    EXPECT_THAT(beginnings.take(second), ElementsAre("f"));
    EXPECT_THAT(second, ElementsAre("e"));
    EXPECT_EQ(beginnings.wrong(), fmt::format("in.tsv:4: {} instead of one; with --tsv each line is a source, a tab and a beginning, "
                                              "which may be empty",
                                              what));
  }
  Beginnings of_two(with_tabs({"one", "two"}));  // the line is counted over both
  Lines lines{"x"};
  EXPECT_THAT(of_two.take(lines), ElementsAre());
  EXPECT_THAT(of_two.wrong(), HasSubstr("input:1: no tab"));
}

TEST(Beginnings, StandInAFileOfTheirOwn) {
  const OwnDirectory directory;
  TranslateOptions o;
  o.prefix_file = directory.file("prefixes");
  std::ofstream(o.prefix_file) << "Ein\n\nDie\n";
  Lines two{"a", "b"}, one{"c"}, three{"a", "b\tb", "c"}, fourth{"d", "e"};
  Beginnings more(o);
  EXPECT_THAT(more.take(two), ElementsAre("Ein", ""));
  EXPECT_EQ(more.warning(), "warning: " + o.prefix_file + " has more beginnings than the input has lines\n");
  Beginnings as_many(o);
  EXPECT_THAT(as_many.take(three), ElementsAre("Ein", "", "Die"));
  EXPECT_EQ(three[1], "b\tb") << "a tab is text here";
  EXPECT_EQ(as_many.warning(), "");
  EXPECT_THAT(as_many.take(fourth), ElementsAre());
  EXPECT_THAT(fourth, ElementsAre());
  EXPECT_EQ(as_many.wrong(), o.prefix_file + ": 3 beginnings for more lines of input; give one for each, which may be empty");
}

TEST(Beginnings, AreNotThereUnlessAskedFor) {
  Beginnings none{TranslateOptions()};
  Lines lines{"a\tb", "c"};
  EXPECT_THAT(none.take(lines), ElementsAre());
  EXPECT_THAT(lines, ElementsAre("a\tb", "c"));
  EXPECT_EQ(none.warning(), "");
}

}  // namespace
}  // namespace starling
