// Words that keep their full stop, by language; the languages are those that Moses has lists of, others have the English one there. Moses's
// lists are longer; these have what stands in usual text. A user who has Moses's own puts nonbreaking_prefix.LANGUAGE beside the model. A
// word that Moses's list lacks must be absent here too: models have learnt it split.
#include <fmt/format.h>

#include <algorithm>

#include "moses/moses.h"

namespace starling::moses {
namespace {

struct Lists {
  std::string_view language, words;
};

constexpr std::string_view kLatin = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z ";

// Single Latin capitals, which most languages have, stand in kLatin.
constexpr Lists kLists[] = {
    {"en",
     "v Mr Mrs Ms Messrs Mlle Mme Dr Drs Prof Rev Hon Gov Sen Rep Gen Col Maj Capt Cmdr Comdr Lt Sgt Cpl Pvt Pfc Adm Brig "
     "Supt Insp Sr St Ph MM Bros Corp vs i.e e.g Adj Adv Asst Bart Bldg Con DR Ens Hosp Hr MR MRS Msgr Op Ord Rt Sfc Surg "
     "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec Nos Nr rev Sens Reps #No #Art #pp"},
    {"de",
     "a b c d e f g h i j k l m n o p q r s t u v w x y z Dr Prof Bros Co Corp Ltd Messrs Mr Mrs Ms Sen St Sr Art bzgl bzw "
     "ca d.h dgl evtl etc ff ggf Mio Mrd Nr No Nos o.ä pp sog Std u.a u.U u.ä u.s.w usf usw vgl vs z.B z.Zt Zt z.T Gen IV "
     "VI VII VIII IX XI XII XIII II III XIV XV XVI XVII XVIII XIX XX Lt Maj Mme Msgr Op Rev s.p.a Sgt Supt"},
    {"fr",
     "b c d e f g h i j k l m n o p q r s t u v w x y z MM art av boul chap cf dir éd ex env etc fig hab ms pp p.ex pl "
     "sing suiv sup tél vol vs apr auj ann c.-à-d fasc fém ibid id inf masc sec vb N.B"},
    {"es",
     "c p s Sr Sra Srta Dr Dra Da Prof Lic Gral Sto Sta Excmo Ud Uds Vd Vds EE.UU p.ej etc núm pág págs vol cap Tel Av "
     "Apdo cta cm doc ej entlo esq izq dcha km N.B ptas P.D s.s.s vid Bco afmo"},
    {"it",
     "v Sig Sigg Dott Dr Drs Prof Ing Avv Arch Geom Rag Sen Mons Gen Col Brig Gov Rep Rev S.p.A S.r.l Sr St Mr Mrs Ms "
     "Messrs Mlle Mme Spett Egr Co Corp Bros Ph Op Ord Nos N.B P.S vs v.s i.e e.g es p.es ecc tel a.c all seg gg c.a c.p "
     "p.v dott rev int lett racc u.s Adj Adm Adv Asst Bart Bldg Capt Cmdr Comdr Con Cpl DR Ens Hon Hosp Insp Lt MM MR MRS "
     "MS Maj Pfc Pvt Reps Res Rt Sens Sfc Sgt Supt Surg #Art #No #pp"},
    {"pt",
     "a b c d e f g h i j k l m n o q r s t u v w x y z Sr Sra Srs Sras Dr Dra Drs Dras Prof Eng Enga Exmo Ex Gen Sgt Maj "
     "Corp Sto Mrs Ms Ph Sen Rep Rev art ex fig op vs i.e e.g Op Adj Adm Adv Capt Cmdr Col Comdr Con Cpl DR Fig Insp Hosp "
     "MM MR MRS MS Nos Nr Ord Pfc Pvt Reps Res Rt Sens Sfc Supt Surg rev sr sra dr dra i ii iii iv vi vii viii ix x xi xii xiii xiv xv xvi "
     "xvii xviii xix xx I II III IV VI VII VIII IX #Art #No #p #pp"},
    {"ru",
     "А Б В Г Д Е Ж З И Й К Л М Н О П Р С Т У Ф Х Ц Ч Ш Щ Ъ Ы Ь Э Ю Я в г д е и к л "
     "м н о п р с т х ч э бульв вв гг гл гос др доп зам инд исп кв кг кл км "
     "коп куб кол макс мин мл млн млрд мм нач ном обл обр общ ок пер пл "
     "пос пр просп проф ред руб сб св см ср ст стр тел туп тыс тт уд ул "
     "уч физ чел шт экз"},
    {"cs",
     "f m n p r s č ř Bc BcA Ing Ing.arch MUDr MVDr MgA Mgr JUDr PhDr RNDr PharmDr ThLic ThDr Ph.D Th.D prof doc CSc DrSc "
     "PaedDr Dr DiS a.i aj apod atd atp b.r cca čes čín čj ed fam franc h.c hist hl ibid il jap jv kol kr lat lit m.a "
     "mj mp např násl něm no nr n.p n.s obr odd odp opr orig phil pl pol př.kr př.n.l příl red resp roč sg sl srov "
     "st sv t.č tab tis tj tř tzn tzv univ vol vs vyd zejm zkr zvl ak angl arab archit astr biol bot chem dat fyz gen "
     "geogr geol hud kniž lék mat mld obch ojed pers slov spec tech"},
    {"nl",
     "bacc bc bgen c.i dhr dr dr.h.c drs ds eint fa fam gen ing ir jhr jkvr jr kand kol lgen lkol Mej mevr mr Mw prof bijv "
     "bv d.w.z e.g i.p.v i.v.m m.a.w m.b.t m.b.v m.i.v #Nr #nr"},
    {"pl",
     "Ć Ś Ź Ż k n o p Dr Hr Np Nb Ps Pt Ryc Rys Św Śp Tzw afr akad al Al am amer arch art Art astr austr bł bp br "
     "c.k cd Cd cdn ces chem chir czes czw czyt cyt ćw dł dn dol dot doc dop dosł dr ds dst egz ekon elektr em ew fab "
     "farm fot fr gen geogr geol gimn gm godz górn gosp gr gram h.c hab hist hiszp hot hr id im in inż jn jw kard kat "
     "katol kk kl kol kpt kr ks kult lek łac m.in med mec mgr nb niem np oo pl płk pn pol por pow prof przyp ps pt pw red "
     "rys ryc sp st szer św śp tel tj tow tzn tzw ub ul ur wł woj ww zach zał zewn zm zob żyd adw ang niem #Nr #nr #pkt #str #s "
     "#r #l #tab #ust #par"},
    {"ca", "Sr Sra Dr Dra St Sta dir pàg núm av ed"},
    {"el", "Α Β Γ Δ Ε Ζ Η Θ Ι Κ Λ Μ Ν Ξ Ο Π Ρ Σ Τ Υ Φ Χ Ψ Ω κ Δρ μ.μ π.μ π.χ εκατ δισ χλμ κ.λπ κ.ά κ.τ.λ βλ σελ αρ Αρ π.Χ δηλ αι"},
    {"fi", "Mr Mrs Ms v t l esim mm"},
    {"hu", "St Dr Prof dr pl ún kb vö"},
    {"lt", "m p d a t k mln mlrd angl Dr dr mėn el pat pvz t.t t.y žr nr kt vad pr ž Prof prof doc sav g"},
    {"is", "hr dr v á mín o.fl o.s.frv bls kl"},
    {"sk", "Dr sv angl mld mil prof Ing Mgr Bc JUDr MUDr PhDr RNDr napr tzv resp atď č str tel ul"},
    {"sl", "dr Dr sl tj npr itd oz"},
    {"sv", "kl vs t.ex dvs osv m.fl etc kr d.v.s fr.o.m t.o.m o.s.v"},
    {"lv", "Dr prof Prof"},
    {"et", "v prof"},
    {"hi", "डॉ श्री"},
    {"mr", "श्री डॉ"},
    {"kn", "ಡಾ ಶ್ರೀ"},
    {"ml", "ഡോ ശ്രീ"},
    {"pa", "ਸੀ ਡਾ"},
    {"ta", "திரு"},
    {"te", "శ్రీ"},
    {"gu", "ડૉ ડો શ્રી"},
    {"ga", ""},
    {"ro", ""},
    {"tdt", ""},
    {"yue", ""},
    {"zh", ""},
    {"as", ""},
    {"bn", ""},
    {"mni", ""},
    {"or", ""},
};

constexpr std::string_view kNoLatin = " as bn cs el gu hi kn ml mni mr or pa ta te ";

}  // namespace

std::string abbreviations(std::string_view language) {
  const Lists* list = std::find_if(std::begin(kLists), std::end(kLists), [&](const Lists& l) { return l.language == language; });
  if (list == std::end(kLists)) list = kLists;
  const bool latin = kNoLatin.find(fmt::format(" {} ", list->language)) == std::string_view::npos;
  std::string words = (latin ? std::string(kLatin) : "") + std::string(list->words);
  for (int ordinal = 1; language == "de" && ordinal < 100; ++ordinal) words += fmt::format(" {}", ordinal);
  return words;
}

}  // namespace starling::moses
