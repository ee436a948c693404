// Models that Marian trained, read from its files: its own scores and lists, its numbers of pieces, what is refused, damaged files.
#include "interop/marian.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/random.h"
#include "decode/translator.h"
#include "formats/zip.h"
#include "tests/interop/archives.h"
#include "tests/interop/interop_test.h"
#include "tests/models/common.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kMarianFixtures = STARLING_SOURCE_DIR "/tests/fixtures/marian";

std::vector<std::string> split(const std::string& line, const std::string& by) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = line.find(by, begin);
    parts.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + by.size();
  }
}

class MarianImport : public InteropTest {
 protected:
  LoadedModel import(const std::string& from, const VocabularyFiles& vocabularies = {kMarianFixtures + "/v.spm", "", "", ""}) {
    return load(imported(from, vocabularies));
  }
  // The log-probability of each reference.
  static std::vector<double> scores(const LoadedModel& loaded) {
    const Vocabularies& v = loaded.description.vocabularies;
    const std::vector<std::string> sources = lines_of(kMarianFixtures + "/s.en"), targets = lines_of(kMarianFixtures + "/s.de");
    std::vector<double> sums;
    for (size_t i = 0; i < sources.size(); ++i) {
      Batch batch;
      for (auto [text, vocabulary, side] :
           {std::tuple(&sources[i], &v.source(), &batch.source), {&targets[i], &v.target(), &batch.target}}) {
        std::vector<int32_t> tokens = vocabulary->encode(*text);
        tokens.push_back(vocabulary->eos());
        side->append(tokens.data(), tokens.data() + tokens.size());
      }
      batch.sample_ids = {0};
      std::vector<float> nll;
      run(*loaded.model, batch, false, &nll);
      sums.push_back(-std::accumulate(nll.begin(), nll.end(), 0.0));
    }
    return sums;
  }
  static std::vector<Translation> n_best(const LoadedModel& loaded) {
    SearchOptions search = loaded.description.search;
    search.beam = search.n_best = 4;
    search.length_penalty = 0;
    search.max_length_factor = 2;
    Translator translator(*loaded.model, loaded.description.vocabularies, search);
    std::vector<Translation> all;
    for (const auto& list : translator.translate(lines_of(kMarianFixtures + "/s.en"))) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
};

TEST_F(MarianImport, ScoresAreMariansOwn) {
  for (const std::string name : {"post", "pre", "ssru"}) {
    const LoadedModel loaded = import(kMarianFixtures + "/" + name);
    const std::vector<double> found = scores(loaded);
    const std::vector<std::string> expected = lines_of(kMarianFixtures + "/" + name + "/scores.txt");
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], std::stod(expected[i]), 1e-4) << name << " sentence " << i;
  }
}

// Marian's decoder does not normalise the keys and values of a pre-norm decoder as its training and its scorer do, so `pre` has other
// lists.
TEST_F(MarianImport, ListsAreMariansOwn) {
  for (const std::string name : {"post", "ssru"}) {
    const LoadedModel loaded = import(kMarianFixtures + "/" + name);
    const std::vector<Translation> found = n_best(loaded);
    const std::vector<std::string> expected = lines_of(kMarianFixtures + "/" + name + "/nbest.txt");
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<std::string> parts = split(expected[i], " ||| ");
      EXPECT_EQ(found[i].text, parts[1]) << name << " line " << i;
      EXPECT_NEAR(found[i].log_probability, std::stod(parts[3]), 2e-3) << name << " line " << i;
    }
  }
}

TEST_F(MarianImport, SaysWhatWasReadAndHowItSearches) {
  const LoadedModel loaded = import(kMarianFixtures + "/ssru");
  EXPECT_THAT(said_, HasSubstr("2+2 layers, width 32, feed-forward 64 (relu), 4 heads, post-norm, SSRU, output bias"));
  EXPECT_THAT(said_, HasSubstr("vocabulary 500 pieces of both languages"));
  EXPECT_EQ(loaded.description.search.beam, 12);
  EXPECT_EQ(loaded.description.search.length_penalty_form, LengthPenaltyForm::power);
  const SearchOptions search = marian_search("beam-size: 6\nnormalize: 1\nmax-length-factor: 2.5\nallow-unk: true\n", "decoder.yml");
  EXPECT_EQ(search.beam, 6);
  EXPECT_EQ(search.length_penalty, 1);
  EXPECT_EQ(search.max_length_factor, 2.5);
  EXPECT_TRUE(search.allow_unknown);
  EXPECT_EQ(marian_search("word-penalty: 0.5\n", "decoder.yml").word_penalty, 0.5);
}

// As in OPUS-MT: a zip archive with a model, a vocab.yml of its own numbers, and a SentencePiece model for each side.
class OpusMt : public MarianImport {
 protected:
  std::string file(const std::string& name) { return files_->read_file(kMarianFixtures + "/" + name); }
  // The fixture with its pieces in another order. `absent`: a piece of the SentencePiece models that the model does not have. `named`: the
  // vocabularies of decoder.yml; those of a side are lists of lines, as newer archives have them. `there`: whether they are in the archive.
  void make(int32_t shift, const std::string& absent = "", const std::vector<std::string>& named = {"opus.vocab.yml", "opus.vocab.yml"},
            bool there = true) {
    const Vocabulary v = Vocabulary::load(kMarianFixtures + "/v.spm");
    const int64_t V = v.size(), D = 32;
    number_.clear();
    std::string yml, lines;
    std::vector<std::string> ordered(static_cast<size_t>(V));
    for (int64_t id = 0; id < V; ++id) {
      number_.push_back(static_cast<int32_t>((id * 7 + shift) % V));
      const std::string piece = v.piece(static_cast<int32_t>(id));
      std::string quoted;
      for (const char c : piece) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      yml += fmt::format("\"{}\": {}\n", piece == absent ? "another" : quoted, number_.back());
      ordered[static_cast<size_t>(number_.back())] = piece;
    }
    for (const std::string& piece : ordered) lines += piece + "\n";
    std::vector<std::pair<std::string, std::string>> arrays;
    const std::string npz = file("post/model.npz");
    const ZipArchive zip(std::as_bytes(std::span(npz)), "post");
    for (const ZipEntry& e : zip.entries()) {
      std::string content = zip.read(e);
      const int64_t row = e.name == "Wemb.npy" ? D * 4 : e.name == "decoder_ff_logit_out_b.npy" ? 4 : 0;
      if (row > 0) {
        const size_t begin = content.size() - static_cast<size_t>(V * row);
        const std::string before = content.substr(begin);
        for (int64_t id = 0; id < V; ++id) content.replace(begin + number_[id] * row, row, before.substr(id * row, row));
      }
      arrays.emplace_back(e.name, std::move(content));
    }
    std::vector<std::pair<std::string, std::string>> all{{"opus.npz", zip_of(arrays)},
                                                         {"source.spm", file("v.spm")},
                                                         {"target.spm", file("v.spm")},
                                                         {"LICENSE", "CC-BY 4.0"},
                                                         {"preprocess.sh", "#!/bin/sh"}};
    if (!named.empty())
      all.emplace_back("decoder.yml",
                       fmt::format("models:\n  - opus.npz\nvocabs:\n  - {}\nbeam-size: 4\nnormalize: 0\n", fmt::join(named, "\n  - ")));
    if (there && (named.empty() || named[0].ends_with(".yml"))) all.emplace_back("opus.vocab.yml", yml);
    for (const std::string& name : named)
      if (there && name.ends_with(".vocab")) all.emplace_back(name, lines);
    files_->write_file(path("opus.zip"), zip_of(all, true));
  }
  std::vector<int32_t> number_;  // by the id in v.spm
};

TEST_F(OpusMt, AModelOfItsOwnNumbersTranslatesTheSame) {
  make(123);
  const LoadedModel loaded = import(path("opus.zip"), {});
  const Vocabularies& v = loaded.description.vocabularies;
  EXPECT_FALSE(v.joint());
  EXPECT_EQ(v.source().size(), 500);
  EXPECT_EQ(v.target().eos(), number_[0]);
  EXPECT_EQ(v.target().unk(), number_[1]);
  const std::vector<std::string> expected = lines_of(kMarianFixtures + "/post/nbest.txt");
  const std::vector<Translation> found = n_best(loaded);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].text, split(expected[i], " ||| ")[1]);
  const std::vector<std::string> expected_scores = lines_of(kMarianFixtures + "/post/scores.txt");
  const std::vector<double> found_scores = scores(loaded);
  for (size_t i = 0; i < found_scores.size(); ++i) EXPECT_NEAR(found_scores[i], std::stod(expected_scores[i]), 1e-4);
  EXPECT_THAT(said_, HasSubstr("preprocess.sh"));
  EXPECT_EQ(files_->read_file(loaded.description.directory + "/original-LICENSE"), "CC-BY 4.0");
}

// Newer archives have a list of pieces for each side, a line each, or name such lists and lack them: then the SentencePiece models' own
// numbers are the model's. Without a decoder.yml the vocab.yml tells the numbers all the same.
TEST_F(OpusMt, ListsOfLines) {
  const std::vector<std::string> expected = lines_of(kMarianFixtures + "/post/scores.txt");
  const auto expect_same = [&] {
    const std::vector<double> found = scores(import(path("opus.zip"), {}));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], std::stod(expected[i]), 1e-4) << i;
  };
  make(123, "", {"opus.src.vocab", "opus.trg.vocab"});
  expect_same();
  make(123, "", {});
  expect_same();
  make(0, "", {"opus.vocab", "opus.vocab"}, false);
  EXPECT_NE(number_[1], 1);  // the model's numbers are others than the SentencePiece model's
  EXPECT_EQ(import(path("opus.zip"), {}).description.vocabularies.target().eos(), 0);
}

// Files that are given take the place of those that decoder.yml names, one by one.
TEST_F(OpusMt, GivenVocabularies) {
  make(7);
  const std::string spm = kMarianFixtures + "/v.spm";
  const LoadedModel same = import(path("opus.zip"), {spm, spm, "", ""});
  EXPECT_EQ(same.description.vocabularies.target().eos(), number_[0]);
  files_->write_file(path("plain.yml"), "not: [a vocabulary]");
  EXPECT_THAT(refusal([&] { import(path("opus.zip"), {"", "", "", path("plain.yml")}); }), HasSubstr("plain.yml"));
}

TEST_F(OpusMt, APieceThatTheModelDoesNotHaveIsUnknown) {
  make(0, "▁ein");
  const LoadedModel loaded = import(path("opus.zip"), {});
  const Vocabulary &target = loaded.description.vocabularies.target(), own = Vocabulary::load(kMarianFixtures + "/v.spm");
  const std::vector<int32_t> before = own.encode("das ist ein Haus"), now = target.encode("das ist ein Haus");
  ASSERT_EQ(before.size(), now.size());
  int unknown = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    const bool gone = own.piece(before[i]) == "▁ein";
    EXPECT_EQ(now[i], gone ? target.unk() : number_[before[i]]) << i;
    unknown += gone;
  }
  EXPECT_EQ(unknown, 1);
  EXPECT_EQ(target.size(), 500);
  for (const int32_t id : target.encode_with_bytes("ein, ein").ids) EXPECT_LT(id, 500);
}

TEST(MarianConfig, RefusesWhatStarlingHasNotByName) {
  const std::string plain =
      "type: transformer\nenc-depth: 2\ndec-depth: 2\ndim-emb: 8\ntransformer-heads: 2\ntransformer-dim-ffn: 16\n"
      "transformer-ffn-activation: relu\n";
  const auto with = [&](const std::string& more) -> std::string {
    try {
      marian_config(plain + more, "model.yml");
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(with(""), "");
  for (const char* line :
       {"transformer-decoder-autoreg: average-attention", "transformer-train-position-embeddings: true", "right-left: true",
        "transformer-ffn-depth: 3", "transformer-postprocess-emb: nd", "transformer-tied-layers: [1, 1]", "transformer-postprocess: dhan",
        "lemma-dim-emb: 4", "tied-embeddings-src: true", "transformer-no-projection: true", "transformer-decoder-dim-ffn: 64"}) {
    EXPECT_THAT(with(std::string(line) + "\n"), HasSubstr(std::string("trained with ") + line)) << line;
  }
  EXPECT_THROW(marian_config("type: s2s\n", "model.yml"), ConfigError);
  EXPECT_THROW(marian_config("type: transformer\n", "model.yml"), DataError);
  const ModelConfig pre =
      marian_config(plain + "transformer-preprocess: n\ntransformer-postprocess: da\ntied-embeddings: true\n", "model.yml");
  EXPECT_EQ(pre.norm, NormPlace::pre);
  EXPECT_EQ(pre.tied_embeddings, TiedEmbeddings::decoder);
  EXPECT_EQ(pre.norm_epsilon, 1e-6);
}

TEST(MarianConfig, AlignmentsComeFromTheHeadThatMarianGuides) {
  const std::string plain = "type: transformer\nenc-depth: 6\ndec-depth: 4\ndim-emb: 8\ntransformer-heads: 2\ntransformer-dim-ffn: 16\n";
  for (const auto& [more, layer] : {std::pair("", 4), {"last", 4}, {"2", 2}, {"4", 4}}) {
    const std::string line = *more ? fmt::format("transformer-guided-alignment-layer: {}\n", more) : "";
    const ModelConfig c = marian_config(plain + line, "model.yml");
    EXPECT_EQ(c.alignment_layer, layer) << more;
    EXPECT_EQ(aligned_layer(c), static_cast<size_t>(layer - 1)) << more;
    EXPECT_EQ(c.alignment_head, 1) << more;
  }
  EXPECT_THROW(marian_config(plain + "transformer-guided-alignment-layer: 5\n", "model.yml"), ConfigError);
  EXPECT_THROW(marian_config(plain + "transformer-guided-alignment-layer: first\n", "model.yml"), DataError);
}

std::vector<std::string> listed_pieces(const std::string& text, const std::string& where) {
  ByteBudget budget(text.size());
  return marian_pieces(text, where, budget);
}

TEST(MarianPieces, ReadsQuotedAndComplexKeys) {
  EXPECT_THAT(listed_pieces("\"</s>\": 0\n<unk>: 1\n? \"a: b\"\n: 3\n\"\\x85\": 2\n", "vocab.yml"),
              ElementsAre("</s>", "<unk>", "\xc2\x85", "a: b"));
  const auto refusal = [](const std::string& yaml) -> std::string {
    try {
      listed_pieces(yaml, "vocab.yml");
      return "";
    } catch (const DataError& e) {
      return e.what();
    }
  };
  EXPECT_THAT(refusal("a: 0\nb: 0\n"), HasSubstr("vocab.yml:2: number 0 is given twice"));
  EXPECT_THAT(refusal("a: 0\nb: 2\n"), HasSubstr("no piece has number 1"));
  EXPECT_THAT(refusal("a: 99999999999\n"), HasSubstr("vocab.yml:1: not a piece and its number"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("not a piece and its number"));
  EXPECT_THAT(refusal("a: [\n"), HasSubstr("not a piece and its number"));
  EXPECT_THAT(listed_pieces("{\"</s>\": 0, \"<unk>\": 1}", "x.zip: vocab.en.json"), ElementsAre("</s>", "<unk>"));
}

TEST(MarianPieces, ReadsLines) {
  EXPECT_THAT(listed_pieces("</s>\n<unk>\r\na: b\n\"\t-3.5\n▁x", "vocab.en"), ElementsAre("</s>", "<unk>", "a: b", "\"", "▁x"));
  EXPECT_THROW(listed_pieces("a\n\nb\n", "vocab.en"), DataError);
}

// A piece in front of the source and a beginning of the translation, as models of many languages need them.
TEST_F(MarianImport, Prefixes) {
  const LoadedModel loaded = import(kMarianFixtures + "/post");
  SearchOptions search = loaded.description.search;
  const auto best = [&](const std::string& line) {
    return Translator(*loaded.model, loaded.description.vocabularies, search).translate(std::vector{line})[0][0];
  };
  const Translation plain = best("ein A man in a hat");
  search.source_prefix = "▁ein";
  EXPECT_EQ(best("A man in a hat").text, plain.text);
  EXPECT_EQ(best("A man in a hat").log_probability, plain.log_probability);
  // Alignments count the tokens of the text.
  search.alignment = true;
  const std::vector<int32_t> shifted = best("A man in a hat").hypothesis.alignment;
  search.source_prefix = "";
  const auto text_tokens = static_cast<int32_t>(loaded.description.vocabularies.source().encode("A man in a hat").size()) + 1;
  for (const int32_t at : shifted) EXPECT_TRUE(at >= 0 && at < text_tokens) << at;
  search.alignment = false;
  // A translation that is made to begin so has the probability of what follows, as the whole model gives it.
  search.target_prefix = "▁Ein ▁Hund";
  search.alignment = true;
  const Translation forced = best("A man in a hat");
  const Vocabularies& v = loaded.description.vocabularies;
  Batch batch;
  std::vector<int32_t> source = v.source().encode("A man in a hat"), target{v.target().id_of("▁Ein"), v.target().id_of("▁Hund")};
  source.push_back(v.source().eos());
  target.insert(target.end(), forced.hypothesis.tokens.begin(), forced.hypothesis.tokens.end());
  if (static_cast<size_t>(forced.hypothesis.length) > forced.hypothesis.tokens.size()) target.push_back(v.target().eos());
  batch.source.append(source.data(), source.data() + source.size());
  batch.target.append(target.data(), target.data() + target.size());
  batch.sample_ids = {0};
  std::vector<float> nll;
  run(*loaded.model, batch, false, &nll);
  EXPECT_NEAR(forced.log_probability, -std::accumulate(nll.begin() + 2, nll.end(), 0.0), 1e-4);
  EXPECT_GT(nll[1], 1) << "the model would have begun so by itself";
  search.target_prefix = "▁Ein ▁nothing";
  EXPECT_THAT(refusal([&] { best("A man"); }), HasSubstr("target-prefix: the vocabulary has no piece '▁nothing'"));
}

TEST_F(MarianImport, MutatedModelsAreReadOrRefused) {
  const std::string whole = files_->read_file(kMarianFixtures + "/ssru/model.npz"), from = path("mutated.npz");
  Random random(5, 1);
  int refused = 0, read = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    // The directory at the end and the settings are where most mistakes can be made.
    for (int k = 0; k < 1 + i % 5; ++k) {
      const size_t from_end = 1 + random.below(i % 3 == 0 ? bytes.size() : 12'000);
      bytes[bytes.size() - from_end] = static_cast<char>(random.below(256));
    }
    if (i % 11 == 0) bytes.resize(random.below(bytes.size()));
    files_->write_file(from, bytes);
    try {
      import(from);
      ++read;
    } catch (const DataError&) {
      ++refused;
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_EQ(refused + read, 300);
}

}  // namespace
}  // namespace starling
