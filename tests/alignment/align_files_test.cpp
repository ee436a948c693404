// Alignment of files: which parts are aligned, and that sampling and threads keep order and positions.
#include "alignment/align_files.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(LineParts, AreWordsWithoutTheirMarks) {
  const auto parts = [](std::string_view line, AlignedParts how) { return line_parts(line, how, nullptr); };
  EXPECT_THAT(parts("“Hello,” SHE said - 12.5 %!", AlignedParts::words), ElementsAre("hello", "she", "said", "-", "12.5", "%!"));
  EXPECT_THAT(parts("“Hello,” SHE said", AlignedParts::spaces), ElementsAre("“Hello,”", "SHE", "said"));
  EXPECT_THAT(parts(" \t", AlignedParts::words), ElementsAre());
}

class AlignFiles : public testing::Test {
 protected:
  AlignFiles() {
    std::ifstream tiny(STARLING_SOURCE_DIR "/tests/fixtures/alignment/tiny.txt");
    std::vector<std::string> lines;
    for (std::string line; std::getline(tiny, line);) lines.push_back(line);
    std::ofstream file(own_.file("text.tsv"));
    for (int i = 0; i < 100; ++i)
      for (const std::string& line : lines)
        file << line.substr(0, line.find(" ||| ")) << "\t" << line.substr(line.find(" ||| ") + 5) << "\n";
    job_.text.tsv = own_.file("text.tsv");
    job_.parts = AlignedParts::spaces;
  }
  std::vector<std::string> aligned(AlignedCounts* text = nullptr) {
    std::vector<std::string> all;
    const AlignedCounts result = align_files(
        job_, {}, [](const std::string&) {},
        [&](const Links& links, double score) { all.push_back(links_line(links) + fmt::format(" {:.9g}", score)); });
    if (text) *text = result;
    return all;
  }
  const OwnDirectory own_;
  AlignJob job_;
};

TEST_F(AlignFiles, AlignsEveryPairInOrderWithAnyNumberOfThreads) {
  AlignedCounts text;
  const std::vector<std::string> one = aligned(&text);
  EXPECT_EQ(text.pairs, 1800);
  EXPECT_EQ(text.sampled, 1800);
  ASSERT_EQ(one.size(), 1800u);
  EXPECT_TRUE(one[4].starts_with("0-0 1-1 2-2 ")) << one[4];
  for (size_t i = 18; i < one.size(); ++i) EXPECT_EQ(one[i], one[i - 18]);
  job_.aligner.threads = 3;
  EXPECT_EQ(aligned(), one);
}

TEST_F(AlignFiles, TrainsOnASampleSpreadOverTheText) {
  job_.sample = 180;
  AlignedCounts text;
  EXPECT_EQ(aligned(&text).size(), 1800u);
  EXPECT_EQ(text.sampled, 180);
  EXPECT_GT(text.links, 1800);
}

// A sentence pair of millions of links would take hours, and a damaged line must not end the work.
TEST_F(AlignFiles, LongAndDamagedLinesHaveTheirPlace) {
  {
    std::ofstream file(own_.file("text.tsv"), std::ios::app);
    for (const char* side : {"a", "b\n"}) {
      for (int i = 0; i < 4097; ++i) file << side[0] << ' ';
      file << (side[1] ? '\n' : '\t');
    }
    file << "no tab\nein \xFF Hund\ta \xFF dog\n";
  }
  AlignedCounts text;
  const std::vector<std::string> all = aligned(&text);
  EXPECT_EQ(text.pairs, 1803);
  EXPECT_EQ(text.sampled, 1801) << "without the long one and the one that has no target";
  EXPECT_EQ(text.too_long, 1);
  ASSERT_EQ(all.size(), 1803u);
  EXPECT_EQ(all[1800], " nan");
  EXPECT_TRUE(all[1801].starts_with(" ")) << all[1801];
  EXPECT_NE(all[1802], " nan");
}

TEST_F(AlignFiles, ATextWithoutWordsIsRefused) {
  std::ofstream(own_.file("empty.tsv")) << "\t\n\tx\n";
  job_.text.tsv = own_.file("empty.tsv");
  EXPECT_THROW(aligned(), ConfigError);
}

}  // namespace
}  // namespace starling
