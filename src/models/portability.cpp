// Each row of the table is what the engines of some programs compute, or what their formats can say. Marian's and bergamot-translator's
// rows are held against that engine (tests/cli/bergamot_engine_test.cpp).
#include "models/portability.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace starling {
namespace {

constexpr unsigned bit(Program p) { return 1u << static_cast<unsigned>(p); }
constexpr unsigned kCt2 = bit(Program::ctranslate2) | bit(Program::argos);
constexpr unsigned kMarian = bit(Program::marian) | bit(Program::bergamot);
constexpr unsigned kHf = bit(Program::huggingface);
// The multiple that 8-bit products ask of a matrix's inner dimension.
constexpr int64_t kInMultiple = 64;
// Layer normalisation adds 1e-6 in Marian and 1e-5 in transformers; a model whose own number is between them gives the same translations.
constexpr double kMarianEpsilon = 1e-6, kMostEpsilon = 1e-5;

struct Portable {
  const ModelConfig& model;
  const PortableVocabulary& vocabulary;
  Portability how;
  bool m2m() const { return model.norm == NormPlace::pre; }  // transformers' M2M-100 in place of MarianMT
};

struct Requirement {
  unsigned programs;
  const char* key;
  bool (*fits)(const Portable&);
  std::string (*value)(const Portable&);
  const char* set;
  const char* needed;
  const char* why;
};

std::string flag(bool value) { return value ? "true" : "false"; }

constexpr const char* kTwoFamilies = "a pre-norm model becomes an M2M-100 there; post-norm ones are freer";

const Requirement kRequirements[] = {
    {kCt2 | kMarian | kHf, "model.preset", [](const Portable& p) { return architecture_of(p.model.preset) == Architecture::transformer; },
     [](const Portable& p) { return p.model.preset; }, "", "a transformer preset", ""},
    {kMarian, "model.norm", [](const Portable& p) { return p.model.norm == NormPlace::post; },
     [](const Portable& p) { return std::string(word(p.model.norm)); }, "post", "post",
     "attention to earlier positions skips the normalisation there"},
    {kMarian, "model.decoder-start", [](const Portable& p) { return p.model.decoder_start == DecoderStart::zero; },
     [](const Portable& p) { return std::string(word(p.model.decoder_start)); }, "zero", "zero", ""},
    {kMarian, "model.norm-epsilon",
     [](const Portable& p) { return p.model.norm_epsilon == kMarianEpsilon || (!p.how.exact && p.model.norm_epsilon <= kMostEpsilon); },
     [](const Portable& p) { return fmt::format("{}", p.model.norm_epsilon); }, "1e-6", "at most 1e-5", ""},
    {kMarian, "model.activation",
     [](const Portable& p) {
       return p.model.activation == Activation::relu || p.model.activation == Activation::swish ||
              p.model.activation == Activation::gelu_sigmoid;
     },
     [](const Portable& p) { return std::string(word(p.model.activation)); }, "relu", "relu, swish or gelu-sigmoid", ""},
    {kMarian, "model.position-table", [](const Portable& p) { return p.model.position_table == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.position_table); }, "0", "0", ""},
    {kMarian | kHf, "model.relative-positions", [](const Portable& p) { return p.model.relative_positions == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.relative_positions); }, "0", "0", ""},
    {kMarian, "model.first-position", [](const Portable& p) { return p.model.first_position == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.first_position); }, "0", "0", ""},
    {kMarian, "model.embedding-scale", [](const Portable& p) { return p.model.embedding_scale == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.embedding_scale); }, "0", "0", ""},
    {kMarian | kHf, "model.source-end", [](const Portable& p) { return p.model.source_end; },
     [](const Portable& p) { return flag(p.model.source_end); }, "true", "true", ""},
    {kMarian, "the vocabulary", [](const Portable& p) { return p.vocabulary.whole; },
     [](const Portable&) { return std::string("one of which some pieces have no number"); }, "", "a number for each piece", ""},
    {kMarian | kHf, "the vocabulary", [](const Portable& p) { return p.vocabulary.sentence_piece; },
     [](const Portable&) { return std::string("one of Moses and subword-nmt"); }, "", "a SentencePiece model",
     "its folders say no other way from text to tokens"},
    {bit(Program::bergamot), "model.width", [](const Portable& p) { return !p.how.integers || p.model.width % kInMultiple == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.width); }, "", "a multiple of 64 for 8-bit integers", ""},
    {bit(Program::bergamot), "model.feed-forward",
     [](const Portable& p) { return !p.how.integers || p.model.feed_forward % kInMultiple == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.feed_forward); }, "", "a multiple of 64 for 8-bit integers", ""},

    {kCt2 | kHf, "model.autoregression", [](const Portable& p) { return p.model.autoregression == Autoregression::self_attention; },
     [](const Portable& p) { return std::string(word(p.model.autoregression)); }, "self-attention", "self-attention", ""},
    {bit(Program::argos), "vocab.joint", [](const Portable& p) { return !p.vocabulary.sentence_piece || p.vocabulary.joint; },
     [](const Portable& p) { return flag(p.vocabulary.joint); }, "true", "true", "a package has one SentencePiece model"},
    {bit(Program::argos), "the vocabulary", [](const Portable& p) { return p.vocabulary.sentence_piece || p.vocabulary.one_splitter; },
     [](const Portable&) { return std::string("one of tokens that sacremoses and one file of codes do not make"); }, "",
     "a SentencePiece model, or the same codes of subword-nmt for both sides", ""},

    {kHf, "model.embedding-scale", [](const Portable& p) { return p.model.embedding_scale == 0 || p.model.embedding_scale == 1; },
     [](const Portable& p) { return fmt::format("{}", p.model.embedding_scale); }, "0", "0 or 1", ""},
    {kHf, "model.norm-epsilon", [](const Portable& p) { return p.model.norm_epsilon <= kMostEpsilon; },
     [](const Portable& p) { return fmt::format("{}", p.model.norm_epsilon); }, "1e-5", "at most 1e-5", ""},
    {kHf, "model.tied-embeddings",
     [](const Portable& p) { return p.model.tied_embeddings != TiedEmbeddings::all || p.vocabulary.same_pieces; },
     [](const Portable& p) { return std::string(word(p.model.tied_embeddings)); }, "", "one vocabulary",
     "the vocabularies have different pieces"},
    {kHf, "the vocabularies' padding",
     [](const Portable& p) { return p.m2m() || p.vocabulary.source_padding == p.vocabulary.target_padding; },
     [](const Portable& p) { return fmt::format("{} and {}", p.vocabulary.source_padding, p.vocabulary.target_padding); }, "", "one number",
     ""},
    {kHf, "model.position-table", [](const Portable& p) { return !p.m2m() || p.model.position_table == 0; },
     [](const Portable& p) { return fmt::format("{}", p.model.position_table); }, "0", "0", kTwoFamilies},
    {kHf, "model.first-position",
     [](const Portable& p) {
       const int64_t padding = p.model.first_position - 1;  // positions begin behind its number, and it stands for no text
       return !p.m2m() || (padding >= 0 && padding < p.vocabulary.target_size &&
                           (padding == p.vocabulary.begin || padding == p.vocabulary.target_padding));
     },
     [](const Portable& p) { return fmt::format("{}", p.model.first_position); }, "2", "2, so that <s>, piece 1, can be the padding",
     kTwoFamilies},
    {kHf, "model.decoder-start",
     [](const Portable& p) {
       return !p.m2m() || p.model.decoder_start == DecoderStart::end ||
              (p.model.decoder_start == DecoderStart::token && p.vocabulary.begin != p.model.first_position - 1);
     },
     [](const Portable& p) { return std::string(word(p.model.decoder_start)); }, "end", "end", kTwoFamilies},
    {kHf, "model.output-bias", [](const Portable& p) { return !p.m2m() || !p.model.output_bias; },
     [](const Portable& p) { return flag(p.model.output_bias); }, "false", "false", kTwoFamilies},
    {kHf, "model.tied-embeddings", [](const Portable& p) { return !p.m2m() || p.model.tied_embeddings == TiedEmbeddings::all; },
     [](const Portable& p) { return std::string(word(p.model.tied_embeddings)); }, "all", "all", kTwoFamilies},
};

}  // namespace

const char* name_of(Program program) {
  constexpr std::array kNames{"CTranslate2", "an Argos package", "Marian", "bergamot-translator", "transformers"};
  return kNames[static_cast<size_t>(program)];
}

std::string Obstacle::text(Program program) const {
  return fmt::format("{} is {}, and {} needs {}{}{}", key, value, name_of(program), needed, why.empty() ? "" : ": ", why);
}

std::vector<Obstacle> obstacles(Program program, const ModelConfig& model, const PortableVocabulary& vocabulary, Portability how) {
  const Portable p{model, vocabulary, how};
  std::vector<Obstacle> all;
  for (const Requirement& r : kRequirements)
    if ((r.programs & bit(program)) && !r.fits(p)) {
      all.push_back({r.key, r.value(p), r.set, r.needed, r.why});
      if (architecture_of(model.preset) != Architecture::transformer) break;  // which have none of the other keys
    }
  return all;
}

std::string destinations_text(const ModelConfig& model, const PortableVocabulary& vocabulary, const std::vector<std::string>& asked) {
  std::vector<std::string> open;
  std::vector<std::pair<std::string, std::string>> closed;  // programs, and what they need
  for (const char* name : words(Program())) {
    const auto program = from_word<Program>(name);
    std::vector<std::string> needs;
    for (const Obstacle& o : obstacles(program, model, vocabulary))
      needs.push_back(fmt::format("{} {}", o.key, o.set.empty() ? o.needed : o.set));
    if (const std::string need = fmt::format("{}", fmt::join(needs, ", ")); need.empty())
      open.emplace_back(name);
    else if (!closed.empty() && closed.back().second == need)
      closed.back().first += fmt::format(" and {}", name);
    else
      closed.emplace_back(name, need);
    if (needs.empty())
      for (const Obstacle& o : obstacles(program, model, vocabulary, {.integers = true}))
        open.back() += fmt::format(" (not as 8-bit integers: {} {})", o.key, o.value);
  }
  if (open.empty()) return fmt::format("export: {} models go to no other program", model.preset);
  std::string text = fmt::format("export: this model can go to {}", fmt::join(open, ", "));
  if (!asked.empty() || closed.empty()) return text;
  for (const auto& [programs, needs] : closed) text += fmt::format("; to {} with {}", programs, needs);
  return text + "; model.for sets these keys";
}

}  // namespace starling
