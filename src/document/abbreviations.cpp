// Each list is one string with spaces around every word, so that a look-up is one search for " word ". They are searched once for each full
// stop that is followed by a capital or a number.
#include "document/abbreviations.h"

#include "text/languages.h"
#include "text/unicode.h"

namespace starling {
namespace {

struct Lists {
  std::string_view language, goes_on, before_number, may_end, beginnings;
};

constexpr Lists kLists[] = {
    {"en",
     " Mr Mrs Ms Mx Dr Drs Prof Rev Fr Gen Col Maj Capt Cmdr Lt Sgt Cpl Pvt Adm Gov Sen Rep Pres Hon Messrs Mme Mlle Msgr Supt Mt Ft e.g "
     "i.e "
     "eg ie vs viz cf ca approx incl excl esp resp ",
     " no nos p pp vol vols ch chap chaps fig figs sec art eq eqs ref refs tab nr par para pt ver § ",
     " etc a.m p.m Inc Ltd Co Corp LLC Bros St Ave Blvd Rd Sq Jr Sr Ph.D al ed eds dept est Assn Assoc Univ Jan Feb Mar Apr Jun Jul Aug "
     "Sep Sept Oct "
     "Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri max min hr hrs lb lbs oz ",
     " The A An This That These Those He She It We They You I But And Or So If In On At By For From With As When While After Before Since "
     "Although Though However There Here What Who Why How Where Not No Yes My Our His Her Its Their Your Some Many Most All Both Each Then "
     "Now Also To Is Are Was Were Do Does Did Can Please Thus Because Until Once One Two Three Let Another Such "},
    {"de",
     " Dr Prof Hr Hrn Fr Frl Dipl Ing Mag Med med phil jur rer nat habil St Hl hl bzw ca d.h z.B u.a u.U i.d.R evtl ggf inkl exkl insb "
     "insbes "
     "vgl sog bspw zzgl einschl etw jmd jmdn jmdm geb gest gegr lt lfd dt engl frz lat max min zB dh ua urspr allg bes Mio Mrd Tsd v i z d "
     "u "
     "o Sankt ",
     " Nr Nrn S Abs Art Abb Kap Bd Bde Rn Rz Tab Ziff Anm § Tel Bl Jg Hs Aufl ",
     " usw usf etc ff f o.ä u.ä Jh Jhd Chr n.Chr v.Chr Std Sek Str Abt Univ Jan Feb Mrz Apr Jun Jul Aug Sep Sept Okt Nov Dez ",
     " Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Wir Ihr Ich Du Man Und Aber Oder Denn Doch Auch Da Dann Dort Hier "
     "Heute "
     "Gestern Morgen Jetzt Nun Nach Vor Bei Mit Von Zu Zum Zur In Im Am An Auf Aus Für Um Über Unter Durch Gegen Ohne Während Wenn Weil "
     "Als Wie "
     "Was Wer Wo Warum Diese Dieser Dieses Diesen Jede Jeder Jedes Viele Alle Einige Beide Nur Noch Schon So Seit Sein Seine Ihre Mein "
     "Meine Unser "
     "Unsere Zwei Drei Nicht Kein Keine Damit Dabei Dazu Deshalb Daher Danach Außerdem Allerdings Obwohl Bis Nachdem Bitte Ja Nein "},
    {"fr", " M MM Mme Mmes Mlle Mlles Me Mes Dr Drs Pr Mgr St Ste p.ex ex cf env av apr vs c.-à-d adj ",
     " n no nos p pp vol chap art arts fig ch t tél § al éd ", " etc Cie Sté bd boul min max janv févr juil sept oct nov déc J.-C hab ",
     " Le La Les L Un Une Des Du De D Il Elle Ils Elles On Nous Vous Je J Tu Ce Cet Cette Ces C Mais Et Ou Or Donc Car Si Dans En Au Aux "
     "Avec "
     "Pour Par Sur Sous Sans Quand Lorsque Comme Après Avant Depuis Pendant Puis Ensuite Ainsi Alors Aussi Cependant Son Sa Ses Leur Leurs "
     "Mon Ma "
     "Mes Notre Nos Votre Vos Qui Que Quel Quelle Où Pourquoi Comment Deux Trois Plusieurs Tous Toutes Chaque Ne Oui Non Voici Voilà À "},
    {"es",
     " Sr Sra Srta Sres Sras Dr Dra Dres D Dña Prof Profa Lic Ing Arq Gral Cap Cnel Sto Sta Mons Excmo Excma Ilmo Ud Uds Vd p.ej ej cf vs "
     "aprox EE ",
     " núm no n pág págs p pp vol cap art arts fig ed t tel § ",
     " etc UU Cía Ltda Avda Av a.C d.C ene feb mar abr jun jul ago sept oct nov dic máx mín ",
     " El La Los Las Un Una Unos Unas Lo Él Ella Ellos Ellas Nosotros Yo Tú Usted Ustedes Este Esta Estos Estas Ese Esa Eso Esto Pero Y O "
     "Si En De Del "
     "Al Con Por Para Sin Sobre Cuando Como Después Antes Desde Hasta Mientras Aunque Entonces Luego También Además Sin Su Sus Mi Mis "
     "Nuestro Nuestra "
     "Que Qué Quién Cómo Dónde Dos Tres Muchos Todos Todas Cada No Sí Se Hay Es Son A "},
    {"it", " sig sigg dott dottor dr prof ing avv arch geom rag on sen mons S SS gen col cap es p.es cfr ca vs egr spett gent ",
     " n nn nr num pag pagg p pp vol cap art artt fig figg tab § ", " etc ecc a.C d.C tel min max feb mar apr giu lug ago set ott nov dic ",
     " Il Lo La I Gli Le L Un Uno Una Egli Ella Lui Lei Loro Noi Voi Io Tu Questo Questa Questi Queste Quello Quella Ma E Ed O Se In Nel "
     "Nella Del "
     "Della Di Da Dal Con Per Su Senza Quando Come Dopo Prima Mentre Poi Quindi Anche Inoltre Tuttavia Il Suo Sua Suoi Mio Mia Nostro Che "
     "Chi Dove "
     "Perché Due Tre Molti Tutti Tutte Ogni Non Sì No Si È Sono A Al Alla "},
    {"pt", " Sr Sra Srta Srs Dr Dra Drs Prof Profa Eng Exmo Exma D Sto Sta Gen Cel Cap cf vs p.ex ex aprox ",
     " n nº no pág págs p pp vol cap art arts fig t § ",
     " etc Ltda Cia Av R tel a.C d.C jan fev mar abr mai jun jul ago set out nov dez máx mín ",
     " O A Os As Um Uma Uns Umas Ele Ela Eles Elas Nós Eu Você Vocês Este Esta Esse Essa Isso Isto Aquele Mas E Ou Se Em No Na Nos Nas De "
     "Do Da "
     "Dos Das Com Por Para Pelo Pela Sem Sobre Quando Como Depois Antes Desde Até Enquanto Embora Então Também Além Seu Sua Seus Meu Minha "
     "Nosso "
     "Que Quem Onde Porque Dois Duas Três Muitos Todos Todas Cada Não Sim Há É São Ao À "},
    {"nl", " dhr mevr mw dr drs ir ing mr prof ds st bijv d.w.z m.a.w o.a t.a.v i.v.m m.b.t resp incl excl ca ong evt vgl zgn z.g ",
     " nr nrs blz p pag art afb hfst fig tel § ",
     " enz etc e.d e.a a.u.b N.V B.V jl Chr n.Chr v.Chr jan feb mrt apr jun jul aug sept okt nov dec ",
     " De Het Een Dit Dat Deze Die Hij Zij Ze Wij We Ik Je Jij U Jullie Er En Maar Of Want Als In Op Aan Bij Met Van Voor Naar Uit Over "
     "Onder Door "
     "Na Om Tot Toen Terwijl Hoewel Daarna Dan Ook Hier Daar Nu Zijn Haar Hun Mijn Ons Onze Wat Wie Waar Waarom Hoe Twee Drie Veel Alle "
     "Elke Niet "
     "Geen Ja Nee Zo "},
    {"pl", " prof dr hab inż mgr ul al pl św gen płk np tzn tzw tj m.in ok por zob ur zm ks ", " nr s str t poz art ust pkt rys tab § ",
     " itd itp r w godz tys mln mld p.n.e n.e ",
     " W We Z Ze Na Do Od Po Przed O I A Ale Lub To Ten Ta Te Tego On Ona Ono Oni One Ja Ty My Wy Jest Są Był Była Było Jak Gdy Kiedy "
     "Jeśli Co Kto Gdzie "
     "Nie Tak Dwa Trzy Każdy Każda Wszystkie Jego Jej Ich Za Przez Dla "},
    {"cs", " např tzv tj tzn mj Ing Mgr Bc MUDr JUDr PhDr RNDr doc prof pí sv gen plk red ", " č str s odst obr tab tel kap § ",
     " atd apod aj r stol hod ", ""},
    {"sk", " napr tzv t.j tzn Ing Mgr Bc MUDr JUDr PhDr RNDr doc prof sv gen ", " č str s ods obr tab tel kap § ", " atď apod r stor hod ",
     ""},
    {"sv", " t.ex bl.a d.v.s dvs s.k ca fr.o.m t.o.m kl prof dr ", " nr s sid kap fig tel § ", " etc osv m.m m.fl f.d Kr f.Kr e.Kr ", ""},
    {"da", " f.eks bl.a dvs ca kl hr fr dr prof ", " nr s kap fig tlf § ", " osv mv m.m m.fl etc Kr f.Kr e.Kr ", ""},
    {"nb", " f.eks bl.a dvs ca kl dr prof ", " nr s kap fig tlf § ", " osv mv m.m m.fl etc Kr f.Kr e.Kr ", ""},
    {"fi", " esim ts mm ns tri prof ", " n:o s nro klo § ", " jne ym yms jKr eKr ", ""},
    {"ru", " т.е т.к напр гг ул кв им проф акад см ср тыс млн млрд ", " стр с рис табл гл ст № § ", " т.д т.п д п др пр г в н.э руб коп ",
     " В Во На С Со К По За Из От До О Об У И А Но Или Что Это Этот Эта Эти Он Она Оно Они Мы Вы Я Ты Как Когда Если Где Кто Не Да Нет Для "
     "При Его Её Их "
     "Также Однако После Все Два Три "},
    {"uk", " напр див вул проф акад ім тис млн млрд т.зв ", " стор с рис табл гл ст № § ", " т.д т.п ін р м н.е грн ", ""},
    {"tr", " Dr Prof Doç Av Sn örn ", " No s § ", " vb vs yy ", ""},
    {"hu", " dr prof pl ún kb ill ", " sz § ", " stb ", ""},
    {"ro", " dl dna dr prof ex ", " nr pag p art fig tel § ", " etc str ", ""},
    {"el", " κ κα δρ π.χ δηλ βλ ", " αρ σελ τηλ § ", " κ.λπ κλπ κ.ά μ.Χ π.Χ ", ""},
};

// Languages that write ordinals as numbers with a full stop.
constexpr std::string_view kOrdinals = " de da nb nn no fi is fo et lv cs sk pl hu hr sl sr bs mk tr eu lb hsb dsb ";

bool contains(std::string_view words, std::string_view word) { return words.find(" " + std::string(word) + " ") != std::string_view::npos; }

}  // namespace

AbbreviationRules::AbbreviationRules(std::string_view language) {
  std::string main = main_language(language);
  ordinals_ = !main.empty() && contains(kOrdinals, main);
  if (main == "no" || main == "nn") main = "nb";
  const Lists* lists = &kLists[0];
  for (const Lists& each : kLists)
    if (each.language == main) lists = &each;
  goes_on_ = lists->goes_on;
  before_number_ = lists->before_number;
  may_end_ = lists->may_end;
  // The English words that begin sentences say nothing about another language.
  if (main.empty() || lists->language == main) beginnings_ = lists->beginnings;
}

Abbreviation AbbreviationRules::of(std::string_view word) const {
  const auto look_up = [&](std::string_view form) {
    return contains(goes_on_, form)         ? Abbreviation::goes_on
           : contains(before_number_, form) ? Abbreviation::before_number
           : contains(may_end_, form)       ? Abbreviation::may_end
                                            : Abbreviation::none;
  };
  if (word.empty()) return Abbreviation::none;
  const Abbreviation found = look_up(word);
  const auto [first, length] = decode_utf8_at(word);
  if (found != Abbreviation::none || length == 0 || letter_case(first) != LetterCase::upper) return found;
  return look_up(encode_utf8(to_lower(std::u32string_view(&first, 1))) + std::string(word.substr(static_cast<size_t>(length))));
}

bool AbbreviationRules::begins_sentences(std::string_view word) const { return contains(beginnings_, word); }

}  // namespace starling
