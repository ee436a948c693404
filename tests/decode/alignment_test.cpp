// Links between texts from the attention of hypotheses, made by hand and found by a search.
#include "decode/alignment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "decode/beam_search.h"
#include "decode/document_parts.h"
#include "decode/model_directory.h"
#include "models/model.h"

namespace starling {
namespace {

Vocabulary characters() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("starling-alignment-" + std::to_string(::getpid()) + ".spm");
  int next = 0;
  train_vocabulary([&](std::string_view& line) { return line = next % 2 ? "a b c d ä" : "e f g h", next++ < 40; }, {.size = 30},
                   path.string());
  Vocabulary v = Vocabulary::load(path.string());
  std::filesystem::remove(path);
  return v;
}

// The piece of a line that ends behind a byte.
int32_t piece_ending_at(const EncodedLine& line, int64_t end) {
  for (size_t i = 0; i < line.bytes.size(); ++i)
    if (line.bytes[i].end == end && line.bytes[i].count() > 0) return static_cast<int32_t>(i);
  ADD_FAILURE() << end;
  return 0;
}

TEST(Alignment, LinksPiecesByTheirBytes) {
  const Vocabulary v = characters();
  const EncodedLine source = v.encode_with_bytes("a ä c"), target = v.encode_with_bytes("f e g");
  const int32_t end = static_cast<int32_t>(source.ids.size());
  Hypothesis h;
  h.tokens = target.ids;
  h.alignment.assign(h.tokens.size() + 1, end);
  const auto look = [&](int64_t to, int64_t from) {
    h.alignment[static_cast<size_t>(piece_ending_at(target, to))] = piece_ending_at(source, from);
  };
  look(1, 4), look(5, 1);  // "f" at "ä", "g" at "a"; all else at the end
  const AlignedText aligned = align(source, v, h);
  EXPECT_EQ(aligned.text, "f e g");
  ASSERT_EQ(aligned.links.size(), 2u);
  EXPECT_EQ(aligned.links[0].source.end, 4);
  EXPECT_EQ(aligned.links[0].target, (Range{0, 1}));
  EXPECT_EQ(aligned.links[1].source.end, 1);
  EXPECT_EQ(aligned.links[1].target.end, 5);
  h.tokens.clear(), h.alignment = {0};
  EXPECT_TRUE(align(source, v, h).links.empty());
  EXPECT_EQ(align({}, v, h).text, "");
}

// Positions of pieces are those of the hypothesis; words pair where any of their pieces do.
TEST(Alignment, AsTextCountsPiecesOrWords) {
  const Vocabulary v = characters();
  const std::string line = " ab ä  cd";
  const EncodedLine source = v.encode_with_bytes(line), target = v.encode_with_bytes("fe g");
  const auto end = static_cast<int32_t>(source.ids.size());
  Hypothesis h;
  h.tokens = target.ids;
  h.alignment.assign(h.tokens.size() + 1, end);
  const auto look = [&](int64_t to, int64_t from) {
    h.alignment[static_cast<size_t>(piece_ending_at(target, to))] = piece_ending_at(source, from);
  };
  look(1, 10), look(2, 2), look(4, 6);  // "f" at "d", "e" at "a", "g" at "ä"; the rest at the end
  const auto text = [&](AlignmentUnit unit) { return alignment_text(source, line, v, h, unit); };
  EXPECT_EQ(text(AlignmentUnit::words), "0-0 1-1 2-0");
  const auto piece = [](const EncodedLine& of, int64_t ends) { return piece_ending_at(of, ends); };
  EXPECT_EQ(text(AlignmentUnit::pieces), fmt::format("{}-{} {}-{} {}-{}", piece(source, 2), piece(target, 2), piece(source, 6),
                                                     piece(target, 4), piece(source, 10), piece(target, 1)));
  h.tokens.clear(), h.alignment = {0};
  EXPECT_EQ(text(AlignmentUnit::words), "");
  EXPECT_EQ(text(AlignmentUnit::pieces), "");
}

// Whatever a model looks at, links are within the texts, and the document keeps what is not translated.
TEST(Alignment, OfASearchStaysWithinTheTexts) {
  const Vocabularies vocabularies(characters(), std::nullopt);
  const Vocabulary& v = vocabularies.source();
  const auto backend = make_backend("cpu:f32", 1);
  for (const char* preset : {"transformer-tiny", "gnmt-small"}) {
    ModelConfig config = model_preset(preset);
    config.width = 16, config.encoder_layers = config.decoder_layers = 2;
    if (config.heads > 2) config.heads = 2;
    const auto model = make_model(config, vocabularies.sizes(), *backend, 3, false);
    const DocumentParts document(
        Document("a <b>b c</b> d e <i>f</i> g. H {x}.\n<p>a b c d e f g h a b c d</p>", DocumentFormat::html, "en"), v, 5);
    EXPECT_EQ(document.cut(), 2);
    std::vector<PartTranslation> translations;
    for (const std::string& part : document.parts()) {
      const EncodedLine line = v.encode_with_bytes(part);
      std::vector<int32_t> source = line.ids;
      EXPECT_LE(source.size(), 5u);
      source.push_back(v.eos());
      SearchOptions options;
      options.alignment = true;
      const Hypothesis best = beam_search(*model, std::vector<std::vector<int32_t>>{source}, options).front().front();
      const AlignedText aligned = align(line, v, best);
      for (const auto& [from, to] : aligned.links) {
        EXPECT_TRUE(0 <= from.begin && from.begin < from.end && from.end <= static_cast<int64_t>(part.size()));
        EXPECT_TRUE(0 <= to.begin && to.begin < to.end && to.end <= static_cast<int64_t>(aligned.text.size()));
      }
      translations.push_back({v.decode(best.tokens), best});
    }
    const std::string out = document.assemble(translations, v, v);
    for (const char* kept : {"<b>", "</b>", "<i>", "</i>", "{x}", "\n<p>", "</p>"}) EXPECT_NE(out.find(kept), std::string::npos) << out;
    EXPECT_LT(out.find("<b>"), out.find("</b>"));
    EXPECT_TRUE(out.ends_with("</p>"));
  }
}

}  // namespace
}  // namespace starling
