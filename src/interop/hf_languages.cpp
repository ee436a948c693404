// Which pieces stand for languages: __en__ in M2M-100, eng_Latn in NLLB, >>eng<< in MarianMT's models of several targets.
#include <algorithm>
#include <set>

#include "interop/hf_vocabulary.h"
#include "text/language_match.h"

namespace starling {
namespace {

// NLLB's pieces for two-letter codes: ISO 639-3 and a script, for macrolanguages the member that NLLB has.
constexpr std::string_view kNllbLanguages =
    " af afr_Latn am amh_Ethi ar arb_Arab as asm_Beng ay ayr_Latn az azj_Latn ba bak_Cyrl be bel_Cyrl bg bul_Cyrl bm bam_Latn bn ben_Beng "
    "bo bod_Tibt bs bos_Latn ca cat_Latn cs ces_Latn cy cym_Latn da dan_Latn de deu_Latn dz dzo_Tibt ee ewe_Latn el ell_Grek en eng_Latn "
    "eo epo_Latn es spa_Latn et est_Latn eu eus_Latn fa pes_Arab ff fuv_Latn fi fin_Latn fj fij_Latn fo fao_Latn fr fra_Latn ga gle_Latn "
    "gd gla_Latn gl glg_Latn gn grn_Latn gu guj_Gujr ha hau_Latn he heb_Hebr hi hin_Deva hr hrv_Latn ht hat_Latn hu hun_Latn hy hye_Armn "
    "id ind_Latn ig ibo_Latn is isl_Latn it ita_Latn ja jpn_Jpan jv jav_Latn ka kat_Geor ki kik_Latn kk kaz_Cyrl km khm_Khmr kn kan_Knda "
    "ko kor_Hang ks kas_Arab ku kmr_Latn ky kir_Cyrl lb ltz_Latn lg lug_Latn li lim_Latn ln lin_Latn lo lao_Laoo lt lit_Latn lv lvs_Latn "
    "mg plt_Latn mi mri_Latn mk mkd_Cyrl ml mal_Mlym mn khk_Cyrl mr mar_Deva ms zsm_Latn mt mlt_Latn my mya_Mymr nb nob_Latn ne npi_Deva "
    "nl nld_Latn nn nno_Latn no nob_Latn ny nya_Latn oc oci_Latn om gaz_Latn or ory_Orya pa pan_Guru pl pol_Latn ps pbt_Arab pt por_Latn "
    "qu quy_Latn rn run_Latn ro ron_Latn ru rus_Cyrl rw kin_Latn sa san_Deva sc srd_Latn sd snd_Arab sg sag_Latn si sin_Sinh sk slk_Latn "
    "sl slv_Latn sm smo_Latn sn sna_Latn so som_Latn sq als_Latn sr srp_Cyrl ss ssw_Latn st sot_Latn su sun_Latn sv swe_Latn sw swh_Latn "
    "ta tam_Taml te tel_Telu tg tgk_Cyrl th tha_Thai ti tir_Ethi tk tuk_Latn tl tgl_Latn tn tsn_Latn tr tur_Latn ts tso_Latn tt tat_Cyrl "
    "ug uig_Arab uk ukr_Cyrl ur urd_Arab uz uzn_Latn vi vie_Latn wo wol_Latn xh xho_Latn yi ydd_Hebr yo yor_Latn zh zho_Hans zu zul_Latn ";

constexpr size_t kNllbSize = 8;  // of "eng_Latn"
bool is_nllb_language(std::string_view piece) { return piece.size() == kNllbSize && piece[3] == '_'; }
bool is_m2m_language(std::string_view piece) { return piece.size() > 4 && piece.starts_with("__") && piece.ends_with("__"); }
bool is_marian_language(std::string_view piece) { return piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<"); }

// A code of the tokenizer's, in the form that ours have; "" if it is none.
std::string code_of_setting(const HfSettings& settings, const char* key) {
  const nlohmann::json* const value = settings.find(key);
  if (!value || !value->is_string()) return "";
  std::string code = value->get<std::string>();
  std::replace(code.begin(), code.end(), '_', '-');
  return is_language_code(code) ? code : "";
}

}  // namespace

std::string hf_language_piece(const std::vector<std::string>& pieces, const std::string& code) {
  if (code.empty()) return "";
  const std::set<std::string_view> all(pieces.begin(), pieces.end());
  std::string under = code, main = main_language(code);
  std::replace(under.begin(), under.end(), '-', '_');
  std::vector<std::string> tries{"__" + under + "__", ">>" + under + "<<", "__" + main + "__", ">>" + main + "<<"};
  if (is_nllb_language(under)) tries.insert(tries.begin(), under);
  if (const size_t at = kNllbLanguages.find(" " + main + " "); main.size() == 2 && at != std::string_view::npos) {
    const std::string usual(kNllbLanguages.substr(at + 4, kNllbSize));
    tries.push_back(usual.substr(0, 4) + language_script(code));
    tries.push_back(usual);
  }
  for (const std::string& piece : tries)
    if (all.contains(piece)) return piece;
  // A code of three letters without its script, if there is only one.
  std::vector<std::string_view> found;
  for (const std::string_view piece : all)
    if (is_nllb_language(piece) && main.size() == 3 && piece.starts_with(main)) found.push_back(piece);
  return found.size() == 1 ? std::string(found[0]) : "";
}

void set_hf_languages(const ForeignFiles& folder, const HfConfig& c, const HfPieces& p, Languages& languages, SearchOptions& search,
                      std::vector<std::string>& notes) {
  const bool marian = c.family == HfFamily::marian;
  constexpr const char* kSettings = "tokenizer_config.json";
  if (folder.has(kSettings)) {
    const HfSettings settings(folder.read(kSettings), folder.where(kSettings));
    if (languages.source.empty()) languages.source = code_of_setting(settings, marian ? "source_lang" : "src_lang");
    if (languages.target.empty()) languages.target = code_of_setting(settings, marian ? "target_lang" : "tgt_lang");
    const nlohmann::json* const legacy = settings.find("legacy_behaviour");
    if (legacy && *legacy == true)
      notes.push_back(
          "tokenizer_config.json says legacy_behaviour, which puts the source's language behind the text; here it stands in front, as NLLB "
          "was trained.");
  }
  if (c.forced >= 0) search.target_prefix = p.target.at(static_cast<size_t>(c.forced));
  const auto is_language = [&](const std::string& piece) {
    return marian ? is_marian_language(piece) : is_m2m_language(piece) || is_nllb_language(piece);
  };
  const auto example = std::find_if(p.source.begin(), p.source.end(), is_language);
  if (example == p.source.end()) return;
  if (!marian) search.source_prefix = hf_language_piece(p.source, languages.source);
  std::string& of_target = marian ? search.source_prefix : search.target_prefix;
  if (const std::string piece = hf_language_piece(p.source, languages.target); !piece.empty()) of_target = piece;
  const auto note = [&](const char* key, const std::string& prefix) {
    if (!prefix.empty()) notes.push_back(fmt::format("{}: {}, which decode.yml has and translate's options can change.", key, prefix));
  };
  note("source-prefix", search.source_prefix);
  note("target-prefix", search.target_prefix);
  if (of_target.empty() || (!marian && search.source_prefix.empty()))
    notes.push_back(
        fmt::format("It translates {}many languages, whose tags are pieces such as {}. Import it with {}--target-language, or "
                    "translate with {}.",
                    marian ? "into " : "between ", *example, marian ? "" : "--source-language and ",
                    marian ? "--source-prefix" : "--source-prefix and --target-prefix"));
}

}  // namespace starling
