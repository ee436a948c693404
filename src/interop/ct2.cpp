#include "interop/ct2.h"

#include <algorithm>

#include "base/json.h"
#include "base/push_once.h"
#include "base/quotes.h"
#include "interop/recognise.h"
#include "interop/value_kind.h"
#include "interop/word_pieces.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

// What config.json says, or the variables of older files, or CTranslate2's defaults.
struct Ct2Tokens {
  std::string unknown = "<unk>", begin = "<s>", end = "</s>", start;
  bool source_begin = false, source_end = false;
  double epsilon = 1e-5;
};

Ct2Tokens tokens_of(const Ct2File& file, const ForeignFiles& folder, const std::string& base) {
  Ct2Tokens t;
  const auto text = [&](const char* name, std::string& to) {
    const auto found = file.arrays.find(name);
    if (found != file.arrays.end() && found->second.type == "i1") to = found->second.bytes.substr(0, found->second.bytes.find('\0'));
  };
  text("unk_token", t.unknown);
  text("bos_token", t.begin);
  text("eos_token", t.end);
  t.source_begin = file.number("with_source_bos", 0) != 0;
  t.source_end = file.number("with_source_eos", 0) != 0;
  t.start = file.number("with_target_bos", 1) != 0 ? t.begin : t.end;
  const std::string name = base + "config.json";
  if (!folder.has(name)) return t;
  const BudgetScope scope(folder.budget());
  const nlohmann::json json = parse_json(folder.read(name), folder.where(name), folder.budget());
  const auto get = [&](const char* key, auto& to) {
    if (!json.is_object() || !json.contains(key) || json[key].is_null()) return;
    try {
      json[key].get_to(to);
    } catch (const nlohmann::json::exception&) {
      throw DataError(fmt::format("{}: {} has the wrong type; expected {}", folder.where(name), key,
                                  value_kind<std::remove_reference_t<decltype(to)>>()));
    }
  };
  get("unk_token", t.unknown);
  get("bos_token", t.begin);
  get("eos_token", t.end);
  t.start = t.begin;
  get("decoder_start_token", t.start);
  get("add_source_bos", t.source_begin);
  get("add_source_eos", t.source_end);
  get("layer_norm_epsilon", t.epsilon);
  return t;
}

// The tokens of a vocabulary by number: a line each, or a list in JSON; unknown is added if it is missing.
std::vector<std::string> token_list(const ForeignFiles& folder, const std::string& base, const std::string& side,
                                    const std::string& unknown) {
  std::vector<std::string> tokens;
  for (const std::string& name : {side + "_vocabulary", std::string("shared_vocabulary")}) {
    if (const std::string file = base + name + ".json"; folder.has(file)) {
      const nlohmann::json json = parse_json(folder.read(file), folder.where(file), folder.budget());
      if (!json.is_array()) throw DataError(fmt::format("{}: not a list of tokens", folder.where(file)));
      if (json.size() > kMostPieces) throw DataError(fmt::format("{}: has more than {} tokens", folder.where(file), kMostPieces));
      folder.budget().take(json.size() * kPieceBytes, folder.where(file), "the list of its tokens");
      for (const auto& token : json) {
        if (!token.is_string()) throw DataError(fmt::format("{}: not a list of tokens", folder.where(file)));
        tokens.push_back(token.get<std::string>());
      }
    } else if (const std::string lines = base + name + ".txt"; folder.has(lines)) {
      tokens = pieces_in_lines(folder.read(lines), folder.where(lines), folder.budget());
    } else {
      continue;
    }
    push_once(tokens, unknown);
    return tokens;
  }
  throw ConfigError(fmt::format("{0}: there is no vocabulary of the {1}; fetch {1}_vocabulary.json or shared_vocabulary.json too",
                                folder.where(base), side));
}

// The names of the special tokens, as our vocabularies have them.
void rename_specials(std::vector<std::string>& list, const Ct2Tokens& t) {
  for (const auto& [theirs, ours] : {std::pair<std::string, std::string>{t.unknown, "<unk>"}, {t.begin, "<s>"}, {t.end, "</s>"}}) {
    if (theirs == ours || theirs == "</s>" || std::find(list.begin(), list.end(), ours) != list.end()) continue;
    std::replace(list.begin(), list.end(), theirs, ours);
  }
}

// Whether a model that adds no end of sentence to its source reads pieces alone, as those of OpenNMT do. transformers' MarianMT, which
// begins with an embedding of zeros, and M2M-100 and NLLB, which have tokens of languages, leave that end to their tokenizers.
bool has_only_pieces(const ModelConfig& config, const std::vector<std::string>& tokens) {
  const auto has = [&](const char* token) { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); };
  return config.decoder_start != DecoderStart::zero && !has("__en__") && !has("eng_Latn");
}

}  // namespace

ImportedModel read_ct2_model(FileSystem& files, const ForeignFiles& folder, const ForeignFile& model_file, const VocabularyFiles& given,
                             const Languages& given_languages) {
  const std::string &name = model_file.name, &where = model_file.where, base = name.substr(0, name.rfind('/') + 1);
  const Ct2File file = read_ct2(model_file.content, where);
  ModelConfig config = ct2_config(file, where);
  const Ct2Tokens t = tokens_of(file, folder, base);
  config.source_end = t.source_end;
  config.norm_epsilon = t.epsilon;
  if (config.decoder_start == DecoderStart::token && t.start == t.end) config.decoder_start = DecoderStart::end;
  if (config.decoder_start == DecoderStart::token && t.start == "<pad>") config.decoder_start = DecoderStart::pad;
  if (config.decoder_start == DecoderStart::token && t.start != t.begin)
    throw ConfigError(fmt::format("{}: the decoder begins with {}, which is neither {} nor {}", where, printable(t.start),
                                  printable(t.begin), printable(t.end)));

  std::vector<std::string> notes;
  std::vector<std::string> source_list = token_list(folder, base, "source", t.unknown),
                           target_list = token_list(folder, base, "target", t.unknown);
  rename_specials(source_list, t);
  rename_specials(target_list, t);
  if (!t.source_end && !has_only_pieces(config, source_list)) {
    config.source_end = true;
    notes.push_back("It was converted from transformers, whose tokenizers end a source with </s>: the model reads that end.");
  }
  // A package has one SentencePiece model for both sides, which its engine splits and joins text with.
  VocabularyFiles v = given;
  if (v.source.empty() && folder.has("sentencepiece.model")) v.source = "sentencepiece.model";
  if (v.source.empty() && folder.has(base + "source.spm") && folder.has(base + "target.spm"))
    v.source = base + "source.spm", v.target = base + "target.spm";
  const std::vector<std::string>& there = folder.names();
  if (const auto codes = std::find_if(there.begin(), there.end(), has_name_of_codes); v.source.empty() && codes != there.end())
    v.source = *codes;
  if (v.target.empty()) v.target = v.source;
  Languages languages = given_languages;
  std::string from = languages.source, to = languages.target;  // as Argos has them: also those that are no codes elsewhere
  std::string kind = fmt::format("CTranslate2's {} (binary version {})", name, file.version), target_prefix;
  const bool package = folder.has("metadata.json");  // of Argos
  if (package) {
    const BudgetScope scope(folder.budget());
    const nlohmann::json json = parse_json(folder.read("metadata.json"), folder.where("metadata.json"), folder.budget());
    const auto code = [&](const char* key) {
      return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
    };
    target_prefix = code("target_prefix");
    languages = languages_beside(folder, name);
    from = code("from_code"), to = code("to_code");
    kind = fmt::format("Argos package {} to {}, version {}, with {}", printable(from), printable(to), printable(code("package_version")),
                       kind);
  }
  const auto vocabulary = [&](const std::string& path, const std::vector<std::string>& list, const std::string& language) {
    const ForeignFile splitter = path.empty() ? ForeignFile() : read_foreign(files, folder, path);
    if (path.empty() || is_codes(splitter))
      return token_vocabulary(list, where, path.empty() ? nullptr : &splitter, argos_text(folder, language), folder.budget());
    return numbered_vocabulary(splitter, {list, {}}, folder.budget());
  };
  Vocabulary source = vocabulary(v.source, source_list, from);
  const bool codes = source.word_pieces() != nullptr;
  const bool joint = v.source == v.target && source_list == target_list && (!codes || from == to);
  if (codes || v.source.empty()) notes.push_back(text_note(codes ? argos_text(folder, from) : moses::Options{.words = false}, codes));
  std::optional<Vocabulary> target;
  if (!joint) target = vocabulary(v.target, target_list, to);

  SearchOptions search;
  search.length_penalty_form = LengthPenaltyForm::power;
  search.length_penalty = 1;  // CTranslate2's defaults
  search.max_length_factor = 0, search.max_length_offset = 256;
  if (t.source_begin)
    search.source_prefix = std::find(source_list.begin(), source_list.end(), t.begin) == source_list.end() ? "<s>" : t.begin;
  search.target_prefix = target_prefix;
  if (package) search.length_penalty = 0.2;  // Argos Translate's
  ImportedModel model{.kind = std::move(kind),
                      .config = config,
                      .search = search,
                      .languages = languages,
                      .vocabularies = Vocabularies(std::move(source), std::move(target)),
                      .notes = std::move(notes)};
  model.tensors = ct2_tensors(file, config, where, folder.budget());
  model.further_files = further_files(folder);
  return model;
}

}  // namespace starling
