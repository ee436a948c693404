// Which languages a Hugging Face folder names, and the pieces that stand for them: __en__ in M2M-100, eng_Latn in NLLB.
#include <algorithm>

#include "base/quotes.h"
#include "interop/hf_vocabulary.h"
#include "text/language_codes.h"

namespace starling {
namespace {

// A code of the tokenizer's, in the form that ours have; "" if it is none.
std::string code_of_setting(const HfSettings& settings, const char* key) {
  const nlohmann::json* const value = settings.find(key);
  if (!value || !value->is_string()) return "";
  std::string code = value->get<std::string>();
  std::replace(code.begin(), code.end(), '_', '-');
  return is_language_code(code) ? code : "";
}

}  // namespace

void set_hf_languages(const ForeignFiles& folder, const HfConfig& c, const HfPieces& p, Languages& languages, SearchOptions& search,
                      std::vector<std::string>& notes) {
  const bool marian = c.family == HfFamily::marian;
  constexpr const char* kSettings = "tokenizer_config.json";
  if (folder.has(kSettings)) {
    const HfSettings settings(folder.read(kSettings), folder.where(kSettings), folder.budget());
    if (languages.source.empty()) languages.source = code_of_setting(settings, marian ? "source_lang" : "src_lang");
    const bool several = marian && std::count_if(p.source.begin(), p.source.end(), vocabulary_format::has_form_of_tag) > 1;
    if (languages.target.empty()) {
      languages.target = code_of_setting(settings, marian ? "target_lang" : "tgt_lang");
      const std::string tag = language_tag(languages.target);
      if (several && std::find(p.source.begin(), p.source.end(), tag) != p.source.end()) search.source_prefix = tag;
      if (several) languages.target.clear();  // one of them, or a group of languages
    }
    const nlohmann::json* const legacy = settings.find("legacy_behaviour");
    if (legacy && *legacy == true)
      notes.push_back(
          "tokenizer_config.json sets legacy_behaviour, which puts the source's language after the text; here it is put before it, as in "
          "NLLB's training.");
  }
  if (c.forced >= 0) search.target_prefix = p.target.at(static_cast<size_t>(c.forced));
  if (marian) return;
  const auto is_language = [&](const std::string& piece) { return is_m2m_language(piece) || is_nllb_language(piece); };
  const auto example = std::find_if(p.source.begin(), p.source.end(), is_language);
  if (example == p.source.end()) return;
  for (const std::string& code : {languages.source, languages.target})
    if (!code.empty() && language_piece(p.source, code).empty())
      throw ConfigError(fmt::format("{}: the model has no language {}; its languages are pieces such as {}", folder.where(""),
                                    in_quotes(code), printable(*example)));
  search.source_prefix = language_piece(p.source, languages.source);
  if (const std::string piece = language_piece(p.source, languages.target); !piece.empty()) search.target_prefix = piece;
  const auto note = [&](const char* key, const std::string& prefix) {
    if (!prefix.empty()) notes.push_back(fmt::format("{}: {}, which decode.yml has and translate's options can change.", key, prefix));
  };
  note("source-prefix", search.source_prefix);
  note("target-prefix", search.target_prefix);
  if (search.target_prefix.empty() || search.source_prefix.empty())
    notes.push_back(
        fmt::format("It translates between many languages, whose tags are pieces such as {}. Import it with --source-language and "
                    "--target-language, or translate with --source-prefix and --target-prefix.",
                    *example));
}

}  // namespace starling
