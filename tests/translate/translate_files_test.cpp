// Files of lines and documents, translated in this process with small models of random weights: what is written, told and left.
#include "translate/translate_files.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text_files.h"
#include "sim/simulate.h"
#include "tests/own_directory.h"
#include "translate/shard_ranks.h"

namespace starling {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

const std::string kModels = STARLING_SOURCE_DIR "/tests/fixtures/models/";

Lines in_lines(const std::string& text) {
  Lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

class TranslateFiles : public testing::Test {
 protected:
  TranslateFiles() {
    o_.models = {model_}, o_.inputs = {path("in")}, o_.quiet = true;
    o_.compute = {.precision = "f32", .threads = 1, .device = "cpu"};
  }
  std::string path(const std::string& name) const { return directory_.file(name); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // Returns standard output.
  std::string run(const TranslateOptions& o) {
    std::ostringstream out;
    told_.clear(), notes_.clear();
    translate_files(*real_file_system(), o,
                    {.output = out,
                     .tell = [&](const std::string& text) { told_ += text; },
                     .screen = screen_,
                     .on_stop = [&](const std::string& line) { notes_.push_back(line); }});
    return out.str();
  }
  std::string run() { return run(o_); }
  template <class E>
  std::string error() {
    try {
      run();
    } catch (const E& e) {
      return e.what();
    }
    return "nothing was thrown";
  }
  // Translations of sentences, one after the other, by the translator itself.
  static Lines alone(const Lines& sentences) {
    const LoadedModel model = load_model(*real_file_system(), model_, {.precision = "f32", .threads = 1, .device = "cpu"});
    Translator translator(*model.model, model.description.vocabularies, model.description.search);
    Lines all;
    for (const std::string& sentence : sentences) all.push_back(translator.translate(std::span(&sentence, 1))[0][0].text);
    return all;
  }

  static inline const std::string model_ = kModels + "pre/model", other_ = kModels + "gnmt-clip/model";
  const OwnDirectory directory_;
  TranslateOptions o_;
  TaskScreen screen_;
  std::string told_;
  Lines notes_;
};

TEST_F(TranslateFiles, LinesOfSeveralFilesInOrder) {
  Lines sources, letters;
  for (int i = 0; i < 20; ++i) sources.push_back(i % 5 == 4 ? "" : i % 5 == 3 ? fmt::format("12:{}", i) : fmt::format("A dog {}.", i));
  std::string one, two;
  for (int i = 0; i < 20; ++i) (i < 7 ? one : two) += sources[static_cast<size_t>(i)] + "\n";
  o_.inputs = {write("one", one), write("two", two)};
  o_.batch_sentences = 1;  // 16 lines at a time
  const Lines found = in_lines(run());
  Lines expected = alone(sources);
  for (size_t i = 3; i < sources.size(); i += 5) expected[i] = sources[i];
  EXPECT_EQ(found, expected);
  EXPECT_EQ(told_, "");
  const std::string where = ", whose translations are on standard output; to continue, pass the lines from ";
  EXPECT_THAT(notes_, testing::ElementsAre("stopped before there were translations; the same command begins again",
                                           HasSubstr("stopped after 16 lines" + where + "17 on"),
                                           HasSubstr("stopped after 20 lines" + where + "21 on")));
  o_.all_lines = true;
  EXPECT_EQ(in_lines(run()), alone(sources));
}

// expected.json has what an independent implementation finds.
TEST_F(TranslateFiles, ListsOfTheBest) {
  const auto expected = nlohmann::json::parse(read_text_file(kModels + "pre/expected.json"))["beam"];
  std::string text;
  for (const std::string& line : in_lines(read_text_file(kModels + "source.en"))) text += line + "\n";
  write("in", text);
  o_.batch_sentences = 1, o_.n_best = expected["beam"];
  o_.search = [&](SearchOptions s) {
    s.beam = expected["beam"], s.length_penalty = expected["length_penalty"], s.coverage_penalty = expected["coverage_penalty"];
    s.max_length_factor = expected["max_length_factor"], s.max_length_offset = expected["max_length_offset"];
    return s;
  };
  const Lines found = in_lines(run());
  ASSERT_EQ(found.size(), 4 * in_lines(text).size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], testing::StartsWith(fmt::format("{} ||| ", i / 4)));
  for (size_t i = 0; i < expected["n_best"].size(); ++i)
    for (size_t n = 0; n < 4; ++n) {
      const std::string& line = found[4 * i + n];
      const size_t score = line.rfind(" ||| "), probability = line.rfind(" ||| ", score - 1);
      EXPECT_NEAR(std::stod(line.substr(score + 5)), expected["n_best"][i][n]["score"], 1e-3) << line;
      EXPECT_NEAR(std::stod(line.substr(probability + 5)), expected["n_best"][i][n]["log_probability"], 1e-3) << line;
    }
}

TEST_F(TranslateFiles, AWrongLineLeavesWhatCameBefore) {
  std::string text;
  for (int i = 0; i < 17; ++i) text += fmt::format("A dog {}.\tEin\n", i);
  write("in", text + "no tab\nA cat.\tEine\n");
  o_.tsv = true, o_.batch_sentences = 1, o_.output = path("out");
  EXPECT_THAT(error<DataError>(),
              EndsWith(fmt::format("which may be empty; the translations of 17 lines before it are in {0}.partial", o_.output)));
  const Lines left = in_lines(read_text_file(o_.output + ".partial"));
  EXPECT_EQ(left.size(), 17u);
  EXPECT_THAT(left, testing::Each(testing::StartsWith("Ein")));
  EXPECT_FALSE(std::filesystem::exists(o_.output));
  EXPECT_THAT(notes_.back(), HasSubstr("stopped after 17 lines"));
  write("in", text);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(in_lines(read_text_file(o_.output)).size(), 17u);
}

TEST_F(TranslateFiles, NothingThatIsReadIsWritten) {
  const std::string text = "A dog.\n";
  write("in", text), write("glossary", "dog\tHund\n");
  std::filesystem::create_symlink(path("in"), path("link"));
  std::filesystem::copy(model_, path("model"));
  o_.glossary = path("glossary"), o_.models = {path("model")};
  for (const auto& [output, says] : {std::pair("in", "is the same file as --input"),
                                     {"link", "is the same file as --input"},
                                     {"glossary", "is the same file as --glossary"},
                                     {"model/new", "lies in the model directory"}}) {
    o_.output = path(output);
    EXPECT_THAT(error<ConfigError>(), HasSubstr(says)) << output;
  }
  EXPECT_EQ(read_text_file(path("in")), text);
  o_.models = {"nowhere"}, o_.output = path("in");
  EXPECT_THAT(error<ConfigError>(), HasSubstr("is the same file")) << "before a model is loaded";
}

TEST_F(TranslateFiles, ModelsOfAnEnsembleAreLoadedBesideTheFirst) {
  write("in", "A dog is running on the beach.\n");
  const std::string first = run();
  o_.models = {model_, other_};
  const std::string both = run();
  EXPECT_NE(both, first);
  o_.weights = {1, 0};
  EXPECT_EQ(run(), first);
  o_.models = {other_, model_}, o_.weights = {0, 1};
  EXPECT_EQ(run(), first);
  o_.weights = {};
  EXPECT_EQ(run(), both);
}

TEST_F(TranslateFiles, ASearchThatCannotBeDoneIsRefused) {
  write("in", "A dog.\n");
  const auto with = [&](int64_t beam, double patience) {
    o_.search = [=](SearchOptions s) {
      s.beam = beam, s.patience = patience;
      return s;
    };
  };
  o_.n_best = 5, with(2, 1);
  EXPECT_EQ(in_lines(run()).size(), 5u) << "a beam that nobody chose widens";
  o_.beam_given = true;
  EXPECT_EQ(error<ConfigError>(), "--n-best 5 is more than the beam of 2; raise --beam, or --patience");
  with(2, 2.5);
  EXPECT_FALSE(run().empty());
  o_.beam_given = false, o_.sampling = true;
  o_.search = [](SearchOptions s) {
    s.repetition_penalty = 2;
    return s;
  };
  EXPECT_THAT(error<ConfigError>(), HasSubstr("--sampling draws from the model's own probabilities"));
}

TEST_F(TranslateFiles, WhatHasACountIsTold) {
  write("in", "A dog is running on the beach.\nA cat.\n"), write("memory", "A cat.\tEine Katze.\n");
  o_.memory = path("memory"), o_.max_source_tokens = 3;
  run();
  EXPECT_EQ(told_, "warning: 1 sentence was cut at 3 source tokens; raise --max-source-tokens\n") << "a warning is not quiet";
  o_.quiet = false;
  run();
  EXPECT_THAT(told_, testing::MatchesRegex("1 line came from .*memory\nwarning: 1 sentence was cut at .*\n2 sentences, [0-9]+ tokens in "
                                           "[0-9.]+ s: .*\\(beam 4, [0-9]+ rows, f32 on .*\\)\n"));
}

TEST_F(TranslateFiles, DocumentsKeepWhatIsNoSentence) {
  const Lines sentences = alone({"A dog.", "A cat."});
  o_.inputs = {write("a.html", "<p id='x'>A dog.</p><br>A cat."), write("b", "\n A dog.\n")};
  o_.document = true;
  EXPECT_EQ(run(), "<p id='x'>" + sentences[0] + "</p><br>" + sentences[1] + "\n " + sentences[0] + "\n");
  EXPECT_EQ(notes_.size(), 1u) << "a part of a document is no place to continue from";
  o_.keep = {"d[aeiou]g"};
  EXPECT_THAT(run(), HasSubstr("dog"));
}

TEST_F(TranslateFiles, ProgressIsShownOfFilesWhoseSizeIsKnown) {
  write("in", "A dog.\nA cat.\nA rock.\n");
  Lines shown;
  screen_.live = [&](const std::string& line) { shown.push_back(line); };
  screen_.live_after = 0;
  run();
  EXPECT_THAT(shown, testing::IsEmpty()) << "quiet";
  o_.quiet = false;
  run();
  ASSERT_GT(shown.size(), 1u);
  EXPECT_THAT(shown[0], testing::StartsWith("translate"));
  EXPECT_EQ(shown.back(), "") << "removed before anything else is told";
}

// Each rank has a shard; the first one alone reads and writes.
TEST_F(TranslateFiles, RanksWithShardsWriteWhatOneModelWrites) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 6 == 5 ? "\n" : fmt::format("A dog is running on beach {}.\tEin\n", i);
  write("in", text);
  o_.tsv = true, o_.batch_sentences = 1;
  const std::string alone = run();
  o_.shards = 2;
  std::ostringstream outs[2];
  std::string told;
  Scenario scenario;
  scenario.ranks = 2;
  simulate(scenario, [&](World& world) {
    const auto rank = static_cast<size_t>(world.comm->rank());
    translate_files(*real_file_system(), o_,
                    {.output = outs[rank],
                     .tell = [&](const std::string& text) { told += text; },
                     .screen = {},
                     .on_stop = [&](const std::string&) { EXPECT_EQ(rank, 0u); },
                     .join = [&] { return World{.comm = world.comm->split([](int) { return 0; })}; }});
  });
  EXPECT_EQ(outs[0].str(), alone);
  EXPECT_EQ(outs[1].str(), "");
  EXPECT_EQ(told, "");
}

TEST_F(TranslateFiles, AsManyRanksAsShards) {
  write("in", "A dog.\n");
  o_.shards = 3;
  Scenario scenario;
  scenario.ranks = 2;
  try {
    simulate(scenario,
             [&](World& world) { ShardRanks(o_.shards, [&] { return World{.comm = world.comm->split([](int) { return 0; })}; }); });
    ADD_FAILURE() << "not refused";
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "--parallel.tensor 3 divides the model among 3 ranks, and 2 were started; start it with mpirun -n 3");
  }
}

}  // namespace
}  // namespace starling
