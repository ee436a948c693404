#include "text/language_codes.h"

#include <algorithm>
#include <set>

#include "text/language_match.h"
#include "text/languages.h"

namespace starling {
namespace {

// ISO 639-3 and ISO 639-1, as Debian's iso-codes 4.15 pairs them; then members of macrolanguages that corpora use for the whole.
constexpr std::string_view kThreeAndTwo =
    " aar aa abk ab afr af aka ak amh am ara ar arg an asm as ava av ave ae aym ay aze az bak ba bam bm bel be ben bn bis bi bod bo "
    "bos bs bre br bul bg cat ca ces cs cha ch che ce chu cu chv cv cor kw cos co cre cr cym cy dan da deu de div dv dzo dz ell el "
    "eng en epo eo est et eus eu ewe ee fao fo fas fa fij fj fin fi fra fr fry fy ful ff gla gd gle ga glg gl glv gv grn gn guj gu "
    "hat ht hau ha hbs sh heb he her hz hin hi hmo ho hrv hr hun hu hye hy ibo ig ido io iii ii iku iu ile ie ina ia ind id ipk ik "
    "isl is ita it jav jv jpn ja kal kl kan kn kas ks kat ka kau kr kaz kk khm km kik ki kin rw kir ky kom kv kon kg kor ko kua kj "
    "kur ku lao lo lat la lav lv lim li lin ln lit lt ltz lb lub lu lug lg mah mh mal ml mar mr mkd mk mlg mg mlt mt mon mn mri mi "
    "msa ms mya my nau na nav nv nbl nr nde nd ndo ng nep ne nld nl nno nn nob nb nor no nya ny oci oc oji oj ori or orm om oss os "
    "pan pa pli pi pol pl por pt pus ps que qu roh rm ron ro run rn rus ru sag sg san sa sin si slk sk slv sl sme se smo sm sna sn "
    "snd sd som so sot st spa es sqi sq srd sc srp sr ssw ss sun su swa sw swe sv tah ty tam ta tat tt tel te tgk tg tgl tl tha th "
    "tir ti ton to tsn tn tso ts tuk tk tur tr twi tw uig ug ukr uk urd ur uzb uz ven ve vie vi vol vo wln wa wol wo xho xh yid yi "
    "yor yo zha za zho zh zul zu arb ar azj az cmn zh ekk et gaz om kmr ku khk mn lvs lv npi ne ory or pbt ps pes fa plt mg quy qu "
    "swh sw uzn uz ydd yi zsm ms als sq ayr ay fuv ff knc kr ";

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

}  // namespace

std::string two_letter_language(std::string_view three) {
  const size_t at = three.size() == 3 ? kThreeAndTwo.find(" " + std::string(three) + " ") : std::string_view::npos;
  return at == std::string_view::npos ? "" : std::string(kThreeAndTwo.substr(at + 5, 2));
}

std::vector<std::string> three_letter_languages(std::string_view two) {
  std::vector<std::string> found;
  const std::string wanted = " " + std::string(two) + " ";
  if (two.size() == 2)
    for (size_t at = 0; (at = kThreeAndTwo.find(wanted, at)) != std::string_view::npos; ++at)
      found.emplace_back(kThreeAndTwo.substr(at - 3, 3));
  return found;
}

bool is_nllb_language(std::string_view piece) { return piece.size() == kNllbSize && piece[3] == '_'; }
bool is_m2m_language(std::string_view piece) { return piece.size() > 4 && piece.starts_with("__") && piece.ends_with("__"); }

std::string language_piece(const std::vector<std::string>& pieces, const std::string& code) {
  if (code.empty()) return "";
  const std::set<std::string_view> all(pieces.begin(), pieces.end());
  std::string under = code;
  const std::string main = main_language(code), script = language_script(code);
  std::replace(under.begin(), under.end(), '-', '_');
  std::vector<std::string> names{under};                                // as a model may call the language, the best first
  if (comparable_language(code) == "pt-br") names.emplace_back("pob");  // OPUS-MT's
  std::vector<std::string> mains = three_letter_languages(main);
  mains.insert(mains.begin(), main);
  if (const std::string two = two_letter_language(main); !two.empty()) mains.push_back(two);
  for (const std::string& each : mains)
    if (!script.empty()) names.push_back(each + "_" + script);
  names.insert(names.end(), mains.begin(), mains.end());
  std::vector<std::string> tries;
  if (is_nllb_language(under)) tries.push_back(under);
  for (const std::string& name : names) {
    tries.push_back("__" + name + "__");
    tries.push_back(">>" + name + "<<");
  }
  if (const size_t at = kNllbLanguages.find(" " + main + " "); main.size() == 2 && at != std::string_view::npos) {
    const std::string usual(kNllbLanguages.substr(at + 4, kNllbSize));
    tries.push_back(usual.substr(0, 4) + script);
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

}  // namespace starling
