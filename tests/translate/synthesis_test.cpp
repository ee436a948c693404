// Synthetic text by a small model of random weights: which pairs are written, by one process, by several at once, and after one that was
// killed.
#include "translate/synthesis.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/text_files.h"
#include "data/line_reader.h"
#include "data/zstd_writer.h"
#include "storage/shared_parts.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;

const std::string kModel = STARLING_SOURCE_DIR "/tests/fixtures/models/post/model";

Lines lines_in(const std::string& path) {
  Lines lines;
  LineReader reader(path);
  for (std::string_view line; reader.next(line);) lines.emplace_back(line);
  return lines;
}

class SynthesisTest : public testing::Test {
 protected:
  SynthesisTest() {
    TranslateOptions& t = o_.translate;
    t.models = {kModel}, t.inputs = {directory_.file("in")}, t.output = directory_.file("out");
    t.compute = {.precision = "f32", .threads = 1, .device = "cpu"};
    t.search = [](SearchOptions s) {
      s.max_length_factor = 3, s.max_length_offset = 20, s.beam = 2;
      return s;
    };
    o_.part_lines = 3;
    for (int i = 0; i < 20; ++i)
      in_.push_back(i % 5 == 4 ? " " : i % 5 == 3 ? fmt::format("12:{}", i) : fmt::format("A dog\tsees {} cats.", i));
    write(in_);
  }
  void write(const Lines& lines) const {
    std::ofstream file(directory_.file("in"));
    for (const std::string& line : lines) file << line << '\n';
  }
  std::string run(const SynthesisOptions& o) const {
    std::string told;
    std::ostringstream nothing;
    synthesize(*real_file_system(), o,
               {.output = nothing,
                .tell = [&](const std::string& text) { told += text; },
                .screen = {},
                .on_stop = [](const std::string&) {},
                .join = make_mpi_world});
    return told;
  }
  std::string run() const { return run(o_); }
  Lines pairs() const { return lines_in(directory_.file("out/text.tsv.zst")); }
  Lines scores() const { return lines_in(directory_.file("out/scores.zst")); }

  const OwnDirectory directory_;
  SynthesisOptions o_;
  Lines in_;
};

TEST_F(SynthesisTest, PairsAreTranslationsAndTheirLines) {
  const std::string told = run();
  const LoadedModel model = load_model(*real_file_system(), kModel, o_.translate.compute);
  Translator translator(*model.model, model.description.vocabularies, o_.translate.search(model.description.search));
  Lines expected, expected_scores;
  int64_t unfinished = 0;
  for (std::string line : in_) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    if (line == " ") continue;
    if (line.starts_with("12:")) {
      expected.push_back(line + "\t" + line);
      expected_scores.push_back("nan");
      continue;
    }
    const Translation t = translator.translate(std::span(&line, 1))[0][0];
    if (t.hypothesis.end < 0) {
      ++unfinished;
      continue;
    }
    if (t.text.empty()) continue;
    expected.push_back(t.text + "\t" + line);
    expected_scores.push_back(fmt::format("{:.6g}", t.log_probability / static_cast<double>(t.tokens)));
  }
  ASSERT_GT(expected.size(), 4u) << "no translation has an end";
  EXPECT_EQ(pairs(), expected);
  EXPECT_EQ(scores(), expected_scores);
  const auto counts = nlohmann::json::parse(read_text_file(directory_.file("out/synthesis.json")));
  EXPECT_EQ(counts["lines"], 20);
  EXPECT_EQ(counts["pairs"], expected.size());
  EXPECT_EQ(counts["blank_lines"], 4);
  EXPECT_EQ(counts["unfinished_translations"], unfinished);
  EXPECT_THAT(told, HasSubstr(fmt::format("{} pairs of 20 lines; left out: 4 blank lines", expected.size())));
  EXPECT_THAT(run(), HasSubstr("this process translated nothing"));
}

TEST_F(SynthesisTest, ForwardPairsBeginWithTheLine) {
  run();
  Lines turned;
  for (const std::string& pair : pairs()) turned.push_back(pair.substr(pair.find('\t') + 1) + "\t" + pair.substr(0, pair.find('\t')));
  std::filesystem::remove_all(directory_.file("out"));
  o_.forward = true;
  run();
  EXPECT_EQ(pairs(), turned);
}

TEST_F(SynthesisTest, LinesThatTheModelCannotReadAreLeftOut) {
  o_.translate.max_source_tokens = 6;
  write({"A dog sees a dog that sees a dog that sees a dog.", "12:30"});
  EXPECT_THAT(run(), HasSubstr("1 of more than 6 tokens"));
  EXPECT_THAT(pairs(), testing::ElementsAre("12:30\t12:30"));
}

// Samples depend on the number of their line alone, so parts of any size, made by any process, have the same.
TEST_F(SynthesisTest, SamplesAreThoseOfTheLines) {
  o_.translate.sampling = true;
  o_.translate.n_best = 3;
  o_.translate.drawing.key = 7;
  run();
  const Lines whole = pairs();
  std::set<std::string> different(whole.begin(), whole.end());
  EXPECT_GT(different.size(), in_.size());
  std::filesystem::remove_all(directory_.file("out"));
  o_.part_lines = 7;
  run();
  EXPECT_EQ(pairs(), whole);
}

TEST_F(SynthesisTest, SeveralAtOnceMakeTheSame) {
  run();
  const Lines whole = pairs();
  const auto is_of_second_part = [&](const std::string& pair) {
    for (size_t i = 3; i < 6; ++i) {
      std::string line = in_[i];
      std::replace(line.begin(), line.end(), '\t', ' ');
      if (pair.ends_with("\t" + line)) return true;
    }
    return false;
  };
  std::filesystem::remove_all(directory_.file("out"));
  // One that was killed: a part that is half written, and one that is done.
  {
    SynthesisOptions killed = o_;
    killed.translate.output = directory_.file("elsewhere");
    run(killed);
    const auto files = real_file_system();
    SharedParts left(*files, directory_.file("out"), read_text_file(directory_.file("elsewhere/job")));
    std::ofstream(left.unfinished(2, "tsv.zst")) << "half";
    std::ofstream(left.path(2, "lock")) << "";
    const auto mine = left.begin(1);
    ZstdWriter(*files, left.unfinished(1, "scores.zst")).close();
    ZstdWriter taken(*files, left.unfinished(1, "tsv.zst"));
    taken.write("as it\twas left\n");
    taken.close();
    left.finish(1, {"tsv.zst", "scores.zst"}, "3 1 0 0 0 0 9");
  }
  std::vector<std::thread> processes;
  for (int i = 0; i < 3; ++i) processes.emplace_back([&] { run(); });
  for (std::thread& process : processes) process.join();
  // Everything but lines 4 to 6, of which the part that was there is taken as it is.
  const auto without = [&](Lines all) {
    std::erase_if(all, [&](const std::string& pair) { return pair == "as it\twas left" || is_of_second_part(pair); });
    return all;
  };
  EXPECT_THAT(pairs(), testing::Contains("as it\twas left"));
  EXPECT_EQ(without(pairs()), without(whole));
  EXPECT_THAT(pairs(), testing::Not(testing::Contains("12:3\t12:3")));
  EXPECT_THAT(whole, testing::Contains("12:3\t12:3"));
  std::vector<std::string> left;
  for (const auto& file : std::filesystem::directory_iterator(directory_.path())) left.push_back(file.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("in", "out", "elsewhere"));
}

TEST_F(SynthesisTest, NothingIsTranslatedBeforeAllLinesAreRead) {
  write({"A dog.", "A \xFF cat."});
  try {
    run();
    FAIL();
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), HasSubstr("in:2: "));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_.file(".tmp-out")));
  write({"A dog."});
  EXPECT_NE(run(), "");
}

TEST_F(SynthesisTest, ATextThatChangesMeanwhileIsNotPublished) {
  bool changed = false;
  o_.translate.quiet = false;
  const TranslateSurroundings surroundings{.output = std::cout,
                                           .tell = [](const std::string&) {},
                                           .screen = {.line = {},
                                                      .live =
                                                          [&](const std::string&) {
                                                            if (!std::exchange(changed, true)) write({"another text", "of two lines"});
                                                          },
                                                      .live_after = 0},
                                           .on_stop = [](const std::string&) {}};
  try {
    synthesize(*real_file_system(), o_, surroundings);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("has changed since the work began"));
  }
  EXPECT_TRUE(changed);
  EXPECT_FALSE(std::filesystem::exists(directory_.file("out")));
}

TEST_F(SynthesisTest, SeveralTextsAndLineEnds) {
  o_.part_lines = 2;
  std::ofstream(directory_.file("a")) << "1\r\n\u3000\r\n3";
  std::ofstream(directory_.file("b")) << "4\n5\n";
  o_.translate.inputs = {directory_.file("a"), directory_.file("b")};
  run();
  EXPECT_THAT(pairs(), testing::ElementsAre("1\t1", "3\t3", "4\t4", "5\t5"));
}

TEST_F(SynthesisTest, AnEmptyTextGivesNoPairs) {
  write({});
  EXPECT_THAT(run(), HasSubstr("0 pairs of 0 lines"));
  EXPECT_TRUE(pairs().empty());
}

}  // namespace
}  // namespace starling
