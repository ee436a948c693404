// `starling translate` beyond the plain search, as users start it, with small models of random weights: alignments, samples, ensembles and
// forbidden pieces.
#include <gmock/gmock.h>

#include <numeric>
#include <sstream>

#include "base/text_files.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kFixtures = STARLING_SOURCE_DIR "/tests/fixtures/models";

class Translate : public CalledTest {
 protected:
  Translate() { write("text", "A rock climber climbs a large rock.\n\nA dog is running on the beach.\n"); }
  std::string translate(const std::string& arguments, const std::string& model = "pre") const {
    const ShellOutcome o = call("translate --quiet --precision f32 --model " + kFixtures + "/" + model + "/model " + arguments);
    EXPECT_EQ(o.status, 0) << o.text;
    return o.text;
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  static std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> all(1);
    for (size_t at = 0, end;; at = end + 5) {
      end = line.find(" ||| ", at);
      all.back() = line.substr(at, end == std::string::npos ? end : end - at);
      if (end == std::string::npos) return all;
      all.emplace_back();
    }
  }
  static int64_t words_of(const std::string& text) {
    std::istringstream in(text);
    int64_t words = 0;
    for (std::string word; in >> word;) ++words;
    return words;
  }
};

// A table of positions is the limit of an imported model; documents are cut into parts that fit it.
TEST_F(Translate, SaysWhatCutsALine) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "A man is on a street with a dog. ";
  write("long", text + "\n");
  const ShellOutcome imported = call("import " STARLING_SOURCE_DIR "/tests/fixtures/hf/marian -o imported");
  ASSERT_EQ(imported.status, 0) << imported.text;
  EXPECT_THAT(call("translate --quiet --model imported -i long").text,
              HasSubstr("warning: 1 sentence was cut at 47 source tokens, since the model has 48 positions; use --document"));
  EXPECT_THAT(call("translate --quiet --model imported -i long --document").text, testing::Not(HasSubstr("cut at")));
  EXPECT_THAT(call("translate --quiet --model imported -i long --max-source-tokens 9").text,
              HasSubstr("cut at 9 source tokens; raise --max-source-tokens"));
  EXPECT_THAT(call("tune-search --model imported --source long --target long --dry-run --length-penalties 0 --coverage-penalties 0").text,
              HasSubstr("warning: 1 sentence was cut at 47 source tokens, since the model has 48 positions; split them"));
}

TEST_F(Translate, AlignmentsFollowTheText) {
  const std::vector<std::string> sources = {"A rock climber climbs a large rock.", "", "A dog is running on the beach."};
  const std::vector<std::string> plain = lines(translate("-i text", "gnmt-clip")),
                                 words = lines(translate("-i text --alignment words", "gnmt-clip")),
                                 pieces = lines(translate("-i text --alignment pieces", "gnmt-clip")),
                                 cut = lines(translate("-i text --alignment pieces --max-source-tokens 2", "gnmt-clip"));
  ASSERT_EQ(words.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<std::string> f = fields(words[i]);
    ASSERT_EQ(f.size(), 2u) << words[i];
    EXPECT_EQ(f[0], plain[i]);
    EXPECT_EQ(fields(pieces[i]).at(0), plain[i]);
    EXPECT_EQ(f[1].empty(), i == 1) << words[i];
    std::istringstream pairs(f[1]);
    int64_t source, target;
    for (char dash; pairs >> source >> dash >> target;) {
      EXPECT_LT(source, words_of(sources[i]));
      EXPECT_LT(target, words_of(plain[i]));
    }
    EXPECT_TRUE(pairs.eof());
    std::istringstream of_cut(fields(cut[i]).at(1));
    for (char dash; of_cut >> source >> dash >> target;) EXPECT_LT(source, 2) << "pieces that the model has not read";
  }
  const std::vector<std::string> list = lines(translate("-i text --alignment words --n-best 2", "gnmt-clip"));
  ASSERT_EQ(fields(list.at(0)).size(), 5u) << list[0];
  EXPECT_EQ(fields(list[0])[1] + " ||| " + fields(list[0])[2], words[0]);
  EXPECT_LT(std::stod(fields(list[0])[4]), 0) << "the score is the last field";
}

// Numbers, times and marks are their own translations, also where more is asked for than a text.
TEST_F(Translate, WhatHasNoLetterStaysAsItIs) {
  write("mixed", "A dog.\n12:30\n\n- 2,50 € -\n٣٫١٤\nA rock.\n");
  const std::vector<std::string> found = lines(translate("-i mixed")), all = lines(translate("--translate-all -i mixed"));
  ASSERT_EQ(found.size(), 6u);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(found, (std::vector<std::string>{all[0], "12:30", "", "- 2,50 € -", "٣٫١٤", all[5]}));
  EXPECT_NE(all[1], "12:30");
  EXPECT_EQ(fields(lines(translate("-i mixed --n-best 2"))[2]), (std::vector<std::string>{"1", "12:30", "0.000000", "0.000000"}));
  EXPECT_EQ(lines(translate("-i mixed --alignment words"))[3], "- 2,50 € - ||| ");
  write("beginnings", "12:30\ta\n");
  EXPECT_EQ(lines(translate("-i beginnings --tsv"))[0].front(), 'a');
}

TEST_F(Translate, SamplesDependOnTheSeedAndTheLineAlone) {
  const std::string sampled = translate("-i text --sampling --n-best 3 --threads 1");
  EXPECT_EQ(translate("-i text --sampling --n-best 3 --threads 2 --batch-size 1 --seed 1"), sampled);
  const ShellOutcome piped = run_shell("(cd " + directory_ +
                                       " && (head -n 1 text; sleep 0.1; tail -n +2 text) | " STARLING_BINARY
                                       " translate --quiet --precision f32 --sampling --n-best 3 --model " +
                                       kFixtures + "/pre/model)");
  EXPECT_EQ(piped.text, sampled) << "lines from a pipe come in other batches";
  EXPECT_NE(translate("-i text --sampling --n-best 3 --seed 2"), sampled);
  const std::vector<std::string> all = lines(sampled);
  ASSERT_EQ(all.size(), 3u + 1 + 3);
  EXPECT_EQ(all[3], "1 |||  ||| 0.000000 ||| 0.000000");
  for (const std::string& line : {all[0], all[5]}) EXPECT_EQ(fields(line).at(2), fields(line).at(3)) << line;
  EXPECT_EQ(translate("-i text --sampling --sampling-top-k 1"), translate("-i text --beam 1"));
  EXPECT_EQ(lines(translate("-i text --sampling")).at(0), fields(all[0]).at(1)) << "the first of three is the first of one";
}

TEST_F(Translate, SeveralModelsAreAnEnsemble) {
  const auto with = [&](const std::string& second) {
    return translate("-i text --n-best 2 --model " + kFixtures + "/" + second + "/model");
  };
  const std::string alone = translate("-i text --n-best 2");
  const std::vector<std::string> twice = lines(with("pre")), once = lines(alone);
  ASSERT_EQ(twice.size(), once.size());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(fields(twice[i]).at(1), fields(once[i]).at(1));
    EXPECT_NEAR(std::stod(fields(twice[i]).at(2)), std::stod(fields(once[i]).at(2)), 1e-4);
  }
  EXPECT_NE(with("gnmt"), alone);
  const std::string other = path("other");
  std::filesystem::copy(kFixtures + "/post/model", other);
  std::filesystem::remove(other + "/manifest.json");
  std::filesystem::copy(STARLING_SOURCE_DIR "/tests/fixtures/marian/v.spm", other + "/vocab.spm",
                        std::filesystem::copy_options::overwrite_existing);
  const ShellOutcome refused = call("translate -i text --model " + kFixtures + "/pre/model --model other");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("have different target vocabularies"));
}

// tests/decode/forbidden_tokens_test.cpp has the rules themselves.
TEST_F(Translate, ForbiddenPiecesAreReplaced) {
  EXPECT_NE(translate("-i text --no-repeat-ngram 1"), translate("-i text"));
  const std::string model = "translate -i text --model " + kFixtures + "/pre/model ";
  EXPECT_THAT(call(model + "--suppress 'nowhere'").text, HasSubstr("suppress: the vocabulary has no piece 'nowhere'"));
  EXPECT_THAT(call(model + "--suppress '</s>'").text, HasSubstr("suppress: '</s>' is the end of sentence"));
}

std::vector<double> numbers(const std::string& text, char between = ' ') {
  std::vector<double> all;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, between);)
    if (!number.empty()) all.push_back(std::stod(number));
  return all;
}

TEST_F(Translate, SentencesComeFromAMemory) {
  const std::string plain = translate("-i text");
  write("memory", "A dog is running on the beach.\tDa rennt ein Hund.\n");
  write("text2", "A dog is running on the  beach.\nA dog is standing in the sand.\n");
  const ShellOutcome ended = call("translate --model " + kFixtures + "/pre/model -i text2 --memory memory --precision f32");
  EXPECT_THAT(ended.text, HasSubstr("Da rennt ein Hund."));
  EXPECT_THAT(ended.text, HasSubstr("1 line came from memory"));
  write("page", "<p><b>A dog</b> is running on the beach.</p>");
  EXPECT_EQ(translate("--document --format html -i page --memory memory"), "<p><b>Da</b> rennt ein Hund.</p>");
  EXPECT_THAT(call("translate --model " + kFixtures + "/pre/model -i text2 --memory text2").text,
              HasSubstr("text2:1: no tab; a memory is a TMX file"));
}

TEST_F(Translate, TermsOfAGlossaryAreThereOrMissed) {
  write("text2", "A dog is running on the beach.\nThe sea.\n"), write("glossary", "dog\tFrau\n");
  const std::vector<std::string> plain = lines(translate("-i text2")), with = lines(translate("-i text2 --glossary glossary"));
  EXPECT_THAT(with[0], HasSubstr("Frau"));
  EXPECT_THAT(plain[0], testing::Not(HasSubstr("Frau")));
  EXPECT_EQ(with[1], plain[1]);
  const std::string model = "translate --model " + kFixtures + "/pre/model -i text2 --glossary ";
  EXPECT_THAT(call(model + "glossary --max-length-factor 0 --max-length-offset 1").text,
              HasSubstr("warning: 1 term of the glossary could not be placed"));
  EXPECT_THAT(call(model + "text2").text, HasSubstr("text2:1: a line has a term, a tab and its translation"));
  EXPECT_THAT(call(model + "glossary --repetition-penalty 2").text, HasSubstr("a glossary cannot be combined with repetition-penalty"));
}

TEST_F(Translate, EachLineMayHaveABeginning) {
  const std::string plain = translate("-i text");
  write("tsv", "A rock climber climbs a large rock.\t\n\nA dog is running on the beach.\tEin Hund im\n");
  const std::vector<std::string> begun = lines(translate("-i tsv --tsv"));
  write("sources", "A rock climber climbs a large rock.\n\nA dog is running on the beach.\n"), write("prefixes", "\n\nEin Hund im\n");
  EXPECT_EQ(lines(translate("-i sources --prefix-file prefixes")), begun);
  write("prefixes", "x\n");
  EXPECT_THAT(call("translate --model " + kFixtures + "/pre/model -i sources --prefix-file prefixes").text,
              HasSubstr("prefixes: 1 beginning for more lines of input"));
  ASSERT_EQ(begun.size(), 3u);
  EXPECT_EQ(begun[0], lines(plain)[0]);
  EXPECT_EQ(begun[1], "");
  EXPECT_TRUE(begun[2].starts_with("Ein Hund im")) << begun[2];
  EXPECT_EQ(numbers(fields(lines(translate("-i tsv --tsv --word-scores pieces"))[2])[1].substr(11))[0], 0) << "a beginning is given";
  write("long", "A dog\t" + std::string(6000, 'x') + "\n");
  EXPECT_THAT(call("translate --model " + kFixtures + "/pre/model --tsv -i long").text,
              HasSubstr("beginnings of 1 translation were cut at"));
  // However few tokens are read, what all lines begin with stays whole and hidden.
  write("short", "A dog\tEin\n"), write("source", "A dog\n");
  const std::string few = " --max-source-tokens 1 --target-pieces --target-prefix 'u n e'";
  EXPECT_EQ(lines(translate("-i short --tsv" + few))[0], lines(translate("-i source" + few))[0]);
  write("odd", "A dog\tEin\nno tab\n");
  EXPECT_THAT(call("translate --model " + kFixtures + "/pre/model --tsv -i odd").text, HasSubstr("odd:2: no tab instead of one"));
}

TEST_F(Translate, AnEmptyValueIsAValue) {
  const std::string plain = translate("-i text");
  EXPECT_EQ(translate("--target-prefix= -i text"), plain);
  EXPECT_EQ(translate("-i text --suppress="), plain);
}

// Pieces go out as the vocabulary cut them, and come in as if the text had been given.
TEST_F(Translate, ReadsAndWritesPieces) {
  const std::string plain = translate("-i text");
  std::string joined;
  for (const std::string& line : lines(translate("-i text --target-pieces"))) {
    std::string text;
    for (const char c : line)
      if (c != ' ') text += c;
    for (size_t at; (at = text.find("\u2581")) != std::string::npos;) text.replace(at, std::string("\u2581").size(), " ");
    joined += (text.starts_with(' ') ? text.substr(1) : text) + "\n";
  }
  EXPECT_EQ(joined, plain);
  const std::string model = " --model " + kFixtures + "/pre/model ";
  write("plain", plain);
  ASSERT_EQ(call("score --tokens" + model + "--source text --target plain -o scores").status, 0);
  ASSERT_EQ(call("score --tokens" + model + "--source text --target text -o of-sources").status, 0);  // the vocabulary is joint
  const auto column = [&](const std::string& file, bool pieces) {
    std::string text;
    for (const std::string& line : lines(read_text_file(path(file)))) {
      const size_t tab = line.find('\t'), end = line.find(" </s>");
      text += (!pieces ? line.substr(0, tab) : end == std::string::npos ? "" : line.substr(tab + 1, end - tab - 1)) + "\n";
    }
    return text;
  };
  write("source.pieces", column("of-sources", true));
  write("target.pieces", column("scores", true));
  EXPECT_EQ(translate("-i source.pieces --source-pieces"), plain);
  ASSERT_EQ(call("score --pieces" + model + "--source source.pieces --target target.pieces -o again").status, 0);
  EXPECT_EQ(column("again", false), column("scores", false));
}

TEST_F(Translate, TextInPlaceOfPiecesIsNoticed) {
  const std::string model = " --quiet --model " + kFixtures + "/pre/model ", warned = "warning: with --source-pieces the input is pieces";
  EXPECT_THAT(call("translate -i text --source-pieces" + model).text, HasSubstr(warned));
  EXPECT_THAT(call("score --source text --target text --pieces --model " + kFixtures + "/pre/model").text,
              HasSubstr("warning: with --pieces the input is pieces"));
  write("pieces", "\u2581A \u2581dog\n");
  EXPECT_THAT(call("translate -i pieces --source-pieces" + model).text, testing::Not(HasSubstr("warning")));
}

TEST_F(Translate, WordScoresSumUpToTheLogProbability) {
  for (const std::string& line : lines(translate("-i text --n-best 3 --word-scores pieces"))) {
    const std::vector<std::string> f = fields(line);
    ASSERT_EQ(f.size(), 5u) << line;
    const std::vector<double> scores = numbers(f[2].substr(11));
    EXPECT_NEAR(std::accumulate(scores.begin(), scores.end(), 0.0), std::stod(f[3]), 1e-4) << line;
  }
  const std::vector<std::string> words = fields(lines(translate("-i text --word-scores words"))[0]);
  EXPECT_EQ(static_cast<int64_t>(numbers(words.at(1).substr(11)).size()), words_of(words[0]));
}

TEST_F(Translate, AttentionIsShownWhole) {
  const std::string soft = fields(lines(translate("-i text --alignment soft", "gnmt-clip"))[0]).at(1);
  std::istringstream rows(soft);
  for (std::string row; rows >> row;) {
    const std::vector<double> weights = numbers(row, ',');
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-3) << row;
  }
  const auto pairs = [&](const std::string& threshold) {
    return words_of(fields(lines(translate("-i text --alignment pieces --alignment-threshold " + threshold, "gnmt-clip"))[0]).at(1));
  };
  EXPECT_GT(pairs("0.001"), pairs("0.2"));
  EXPECT_EQ(pairs("1"), 0);
}

TEST_F(Translate, ModelsOfAnEnsembleHaveWeights) {
  const std::string two = "-i text --model " + kFixtures + "/post/model ";
  const std::string first = translate("-i text"), second = translate("-i text", "post");
  EXPECT_EQ(translate(two + "--weights 1,0"), first);
  EXPECT_EQ(translate(two + "--weights 0,2"), second);
  EXPECT_THAT(call("translate -i text --weights 1 --model " + kFixtures + "/pre/model " + two).text,
              HasSubstr("--weights has 1 for 2 --model"));
}

TEST_F(Translate, PatienceBelowOneLeavesTheBeam) {
  EXPECT_EQ(lines(translate("-i text --beam 4 --n-best 4 --patience 0.5")).size(), 9u) << "four of each, and the blank line";
}

TEST_F(Translate, NBestListsAreScoredAgain) {
  write("list", translate("-i text --n-best 3 --word-scores words"));
  const std::string model = " --model " + kFixtures + "/pre/model ";
  ASSERT_EQ(call("score --n-best list --n-best-feature Again --source text -o again" + model).status, 0);
  const std::vector<std::string> before = lines(read_text_file(path("list"))), after = lines(read_text_file(path("again")));
  ASSERT_EQ(after.size(), before.size());
  const std::vector<std::string> sources = {"A rock climber climbs a large rock.", "", "A dog is running on the beach."};
  std::string of_list, texts;
  for (size_t i = 0; i < after.size(); ++i) {
    const std::vector<std::string> was = fields(before[i]), is = fields(after[i]);
    ASSERT_EQ(is.size(), was.size());
    const size_t added = is[3].find(" Again= ");
    ASSERT_NE(added, std::string::npos) << after[i];
    EXPECT_EQ(is[3].substr(0, added), was[3]);
    EXPECT_EQ(is[4], was[4]);
    of_list += sources.at(std::stoul(was[0])) + "\n", texts += was[1] + "\n";
  }
  write("of-list", of_list), write("texts", texts);  // the same pairs, scored as lines
  ASSERT_EQ(call("score --source of-list --target texts -o plain-scores" + model).status, 0);
  const std::vector<std::string> plain = lines(read_text_file(path("plain-scores")));
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(fields(after[i])[3].substr(fields(after[i])[3].find(" Again= ") + 8), plain.at(i));
  // A text with bars of its own is scored whole.
  write("bars", "0 ||| Ein ||| Hund ||| 0-0 1-1 ||| F0= -1 ||| -1\n2 ||| a ||| b ||| WordScores= -1 -2 ||| -1.5 ||| -1\n");
  write("of-bars", sources[0] + "\n" + sources[2] + "\n"), write("bar-texts", "Ein ||| Hund\na ||| b\n");
  ASSERT_EQ(call("score --n-best bars --source text -o bar-scores" + model).status, 0);
  ASSERT_EQ(call("score --source of-bars --target bar-texts -o bar-plain" + model).status, 0);
  const std::vector<std::string> scored = lines(read_text_file(path("bar-scores"))), whole = lines(read_text_file(path("bar-plain")));
  ASSERT_EQ(scored.size(), 2u);
  EXPECT_EQ(scored[0], "0 ||| Ein ||| Hund ||| 0-0 1-1 ||| F0= -1 Score= " + whole.at(0) + " ||| -1");
  EXPECT_EQ(scored[1], "2 ||| a ||| b ||| WordScores= -1 -2 ||| -1.5 Score= " + whole.at(1) + " ||| -1");
  write("wrong", "0 ||| Ein Hund ||| F0= -1 ||| -1\n7 ||| Ein Hund ||| F0= -1 ||| -1\n");
  EXPECT_THAT(call("score --n-best wrong --source text" + model).text, HasSubstr("wrong:2: sentence 7, but the source has 3 lines"));
}

}  // namespace
}  // namespace starling
