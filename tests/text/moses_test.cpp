// Moses's tokenizer and subword-nmt. What is expected was printed by sacremoses 0.1.1 (called as Argos Translate does), by Moses's Perl
// scripts (called as OPUS-MT's preprocess.sh does) and by subword-nmt.
#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "text/unicode.h"
#include "text/word_pieces.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct MosesCase {
  const char *language, *line, *tokens, *text;
};

std::string split_line(const moses::Settings& settings, std::string_view line) {
  std::string pieces;
  for (const moses::Piece& piece : moses::WordPieces(settings, "codes").pieces(line)) pieces += (pieces.empty() ? "" : " ") + piece.text;
  return pieces;
}

std::string join_line(const moses::Settings& settings, std::string_view pieces) {
  std::vector<std::string> all;
  for (const std::string_view piece : split_on_space(pieces)) all.emplace_back(piece);
  return moses::WordPieces(settings, "codes").join(all).text;
}

void expect_cases(std::span<const MosesCase> cases, moses::Options options) {
  for (const MosesCase& c : cases) {
    options.language = c.language;
    EXPECT_EQ(split_line({options, ""}, c.line), c.tokens) << c.language;
    EXPECT_EQ(join_line({options, ""}, c.tokens), c.text) << c.language;
  }
}

TEST(Moses, SplitsAndJoinsAsSacremoses) {
  constexpr MosesCase kCases[] = {
      {"en", "Mr. Smith's \"co-op\" (est. 1990) cost $3,500.50, didn't it?",
       "Mr. Smith &apos;s &quot; co-op &quot; ( est . 1990 ) cost $ 3,500.50 , didn &apos;t it ?",
       "Mr. Smith's \"co-op\" (est. 1990) cost $3,500.50, didn't it?"},
      {"en", "No. 5 of the 1990's: the dogs' bowl… and 'em, \"quoted,\" he said.",
       "No. 5 of the 1990 &apos;s : the dogs &apos; bowl ... and &apos; em , &quot; quoted , &quot; he said .",
       "No. 5 of the 1990's: the dogs' bowl... and 'em, \"quoted,\" he said."},
      {"en", "Wait... what?! [a|b] <i>x & y</i> e.g. this, i.e. that.. end.'",
       "Wait ... what ? ! &#91; a &#124; b &#93; &lt; i &gt; x &amp; y &lt; / i &gt; e.g. this , i.e. that .. end . &apos;",
       "Wait... what?! [a | b] < i > x & y < / i > e.g. this, i.e. that.. end. '"},
      {"en", "100 % of 5 000 people ( 3 ) ) agree ; really : yes — “no”, ‘so’",
       "100 % of 5 000 people ( 3 ) ) agree ; really : yes - &quot; no , &quot; &apos; so&apos;",
       "100% of 5 000 people (3)) agree; really: yes - \"no,\" 'so'"},
      {"en", "A,B,C,D,E 1,2,a ½,x ,, 中文 and 😀 naïve ﬁ", "A , B , C , D , E 1,2 , a ½ , x , , 中 文 and 😀 naïve ﬁ",
       "A, B, C, D, E 1,2, a ½, x,, 中文 and 😀 naïve ﬁ"},
      {"de", "Dr. Müller traf am 3. Oktober die „Gäste“, z.B. Prof. Ä.'s Frau.",
       "Dr. Müller traf am 3. Oktober die &quot; Gäste &quot; , z.B. Prof. Ä . &apos; s Frau .",
       "Dr. Müller traf am 3. Oktober die \"Gäste\", z.B. Prof. Ä. 's Frau."},
      {"de", "\"Ja,\" sagte er. \"Nein.\" Und 5 000 m² <b>\"so.\"</b>",
       "&quot; Ja &quot; , sagte er . &quot; Nein &quot; . Und 5 000 m ² &lt; b &gt; &quot; so . &quot; &lt; / b &gt;",
       "\"Ja\", sagte er. \"Nein\". Und 5 000 m ² < b > \"so.\" < / b >"},
      {"fr", "L'été, c'est « beau » ! M. Dupont n'a qu'1 200 € : 50 %.",
       "L&apos; été , c&apos; est &quot; beau &quot; ! M. Dupont n&apos; a qu &apos; 1 200 € : 50 % .",
       "L'été, c'est \"beau\" ! M. Dupont n'a qu '1 200 € : 50 %."},
      {"it", "Dell'arte, l'uomo: po' di più all'8%.", "Dell&apos; arte , l&apos; uomo : po &apos; di più all &apos; 8 % .",
       "Dell'arte, l'uomo: po 'di più all' 8%."},
      {"es", "¿Qué? ¡Sí! El Sr. Pérez dijo: \"hola,\" y se fue. 10 000",
       "¿ Qué ? ¡ Sí ! El Sr. Pérez dijo : &quot; hola &quot; , y se fue . 10 000",
       "¿Qué? ¡Sí! El Sr. Pérez dijo: \"hola\", y se fue. 10 000"},
      {"cs", "Prof. Novák řekl: „Ahoj“, č. 5, např. takto. 3 , 5", "Prof . Novák řekl : &quot; Ahoj &quot; , č. 5 , např. takto . 3 , 5",
       "Prof. Novák řekl: \"Ahoj\", č. 5, např. takto. 3, 5"},
      {"ru", "Проф. Иванов, д. 5, сказал: «Привет!» Т. е. так.", "Проф . Иванов , д. 5 , сказал : &quot; Привет ! &quot; Т. е. так .",
       "Проф. Иванов, д. 5, сказал: \"Привет!\" Т. е. так."},
      {"fi", "EU:n ja USA:ssa: niin, 20:een.", "EU : n ja USA : ssa : niin , 20 : een .", "EU: n ja USA: ssa: niin, 20: een."},
      {"zh", "他说：“你好”，abc中文123。『书』", "他说 ： &quot; 你好 &quot; ， abc中文123。『书』",
       "他说 ： \"你好\" ， abc中文123。『书』"},
      {"ja", "東京は、とてもABC大きい。カタカナ・ー", "東京は、とてもABC大きい。カタカナ・ー", "東京は、とてもABC大きい。カタカナ・ー"},
      {"ko", "안녕하세요, abc한글 가.", "안녕하세요 , abc한글 가 .", "안녕하세요, abc한글 가."},
      {"hi", "यह एक वाक्य है। नमस्ते, क्या?", "यह एक वाक्य है । नमस्ते , क्या ?", "यह एक वाक्य है । नमस्ते, क्या?"},
      {"ga", "D'imigh sé; b'fhéidir.", "D &apos; imigh sé ; b &apos; fhéidir .", "D 'imigh sé; b' fhéidir."},
      {"sv", "USA:s bror, kl. 5.", "USA : s bror , kl. 5 .", "USA: s bror, kl. 5."},
      {"pb", "O Sr. José d'Ávila.", "O Sr. José d &apos; Ávila .", "O Sr. José d 'Ávila."},
  };
  expect_cases(kCases, {});
}

TEST(Moses, SplitsAndJoinsAsTheScripts) {
  constexpr MosesCase kCases[] = {
      {"en", "Mr. Smith's \"co-op\" (est. 1990) cost $3,500.50, didn't it?",
       "Mr. Smith &apos;s &quot; co @-@ op &quot; ( est . 1990 ) cost $ 3,500.50 , didn &apos;t it ?",
       "Mr. Smith's \"co-op\" (est. 1990) cost $3,500.50, didn't it?"},
      {"de", "\"Ja,\" sagte er. \"Nein.\" Und 5 000 m² <b>\"so.\"</b>",
       "&quot; Ja &quot; , sagte er . &quot; Nein &quot; . Und 5 000 m ² &lt; b &gt; &quot; so . &quot; &lt; / b &gt;",
       "\"Ja\", sagte er. \"Nein\". Und 5 000 m ² < b > \"so.\" < / b >"},
      {"cs", "Prof. Novák řekl: „Ahoj“, č. 5, např. takto. 3 , 5", "Prof . Novák řekl : &quot; Ahoj &quot; , č. 5 , např. takto . 3 , 5",
       "Prof. Novák řekl: \"Ahoj\", č. 5, např. takto. 3,5"},
      {"ru", "Проф. Иванов, д. 5, сказал: «Привет!» Т. е. так.", "Проф . Иванов , д. 5 , сказал : &quot; Привет ! &quot; Т. е. так .",
       "Проф. Иванов, д. 5, сказал: \"Привет!\" Т. е. так."},
      {"fi", "EU:n ja USA:ssa: niin, 20:een.", "EU:n ja USA:ssa : niin , 20:een .", "EU:n ja USA:ssa: niin, 20:een."},
      {"zh", "他说：“你好”，abc中文123。『书』", "他说 : &quot; 你好 &quot; , abc中文123 . 『 书 』", "他说: \"你好\", abc中文123. 『书』"},
      {"hi", "यह एक वाक्य है। नमस्ते, क्या?", "यह एक वाक ् य है । नमस ् ते , क ् या ?", "यह एक वाक ् य है । नमस ् ते, क ् या?"},
      {"sv", "USA:s bror, kl. 5.", "USA:s bror , kl. 5 .", "USA:s bror, kl. 5."},
  };
  expect_cases(kCases, {.perl = true, .plain_asian_marks = true, .split_hyphens = true});
}

TEST(Moses, TakesTheUsersAbbreviations) {
  moses::Options options{.language = "da", .abbreviations = "# Moses's\nbl\nnr #NUMERIC_ONLY#\nto ord\n"};
  EXPECT_EQ(split_line({options, ""}, "bl. A nr. 5 nr. A Hr. B"), "bl. A nr. 5 nr . A Hr. B");
  options.own_abbreviations = false;
  EXPECT_EQ(split_line({options, ""}, "bl. A Hr. B to. C"), "bl. A Hr . B to . C");
  options.words = false;
  EXPECT_EQ(split_line({options, ""}, " bl.  it's\tA, "), "bl. it's A,");
  EXPECT_EQ(join_line({options, ""}, "bl. it 's A ,"), "bl. it 's A ,");
}

const char* const kWordEndings =
    "l o\nlo w</w>\ne r</w>\nw er</w>\nlo w\nn e\nne w\nx x\nxx x\ne s\nes t</w>\nnew est</w>\no w</w>\na b\nab c\n"
    "b c\nd abc\nabc d\n&a pos;\n& a\np o\npo s\npos ;</w>\n&a pos;</w>\n";
const char* const kLine = "low lower newest new lowest xxxx xxxxx xxxxxxx abcabc dabcd abcabcd &apos; &apos;s l ow é 中文 lowlow";

TEST(SubwordNmt, CutsByTheVersionOfItsCodes) {
  const moses::Options tokens{.words = false};
  EXPECT_EQ(
      split_line({tokens, std::string("#version: 0.2\n") + kWordEndings}, kLine),
      "low lo@@ wer newest ne@@ w low@@ est xxx@@ x xx@@ xx@@ x xx@@ xx@@ xx@@ x abc@@ ab@@ c dabc@@ d abc@@ abc@@ d &apos; &a@@ pos@@ ;@@ "
      "s l ow é 中@@ 文 low@@ low");
  const char* const older =
      "low low@@ e@@ r new@@ es@@ t new low@@ es@@ t xx@@ xx xx@@ xxx xx@@ xx@@ xxx abc@@ abc dabc@@ d abc@@ abcd &a@@ pos@@ ; &a@@ pos@@ "
      ";@@ s "
      "l o@@ w é 中@@ 文 low@@ low";
  EXPECT_EQ(split_line({tokens, std::string("#version: 0.1\n") + kWordEndings}, kLine), older);
  EXPECT_EQ(split_line({tokens, kWordEndings}, kLine), older);
  EXPECT_EQ(split_line({tokens, "l o\nlo w\nlow </w>\ne r\r\ner </w>\nw er\nx x\nx </w>\nxx xx\n\n"}, "low lower xxxx xxx er lowx x"),
            "low low@@ er xxxx xx@@ x er low@@ x x");
}

TEST(SubwordNmt, RefusesWhatIsNoCodes) {
  const auto why = [](const std::string& codes) {
    try {
      moses::SubwordNmt(codes, "bpe.model");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(why("#version: 0.2\na b\nab\n"), HasSubstr("bpe.model:3: 'ab' is not a pair of pieces"));
  EXPECT_THAT(why("a b c\n"), HasSubstr("bpe.model:1: "));
  EXPECT_THAT(why("#version: 0.3\n"), HasSubstr("bpe.model:1: the codes have version '0.3'"));
  EXPECT_THAT(why("#version: 0.2 byte\n"), HasSubstr("codes are of bytes"));
  EXPECT_EQ(why("#version: 0.2\n"), "");
}

TEST(SubwordNmt, CutsAWordOfManyLetters) {
  const moses::SubwordNmt codes("#version: 0.2\na a\naa aa\naaaa aaaa\n", "codes");
  EXPECT_EQ(codes.cut(std::u32string(400'001, U'a')).size(), 50'001u);
}

TEST(Moses, TakesALineOfManyMarks) {
  for (const char* mark : {".", ".\"", ".\"<", "' ", "( "}) {
    std::string line;
    for (int i = 0; i < 100'000; ++i) line += mark;
    EXPECT_GE(split_line({{.language = "de"}, ""}, line).size(), 100'000u);
  }
}

// Words and marks are told apart by what they come from, in both directions.
TEST(WordPieces, KnowWhereTheyComeFrom) {
  const moses::WordPieces words({{.language = "en"}, std::string("#version: 0.2\n") + kWordEndings}, "codes");
  const std::string line = "  Lower (“new”)  isn't";
  std::vector<std::string> parts;
  for (const moses::Piece& piece : words.pieces(line))
    parts.push_back(piece.text + " " + line.substr(static_cast<size_t>(piece.bytes.begin), static_cast<size_t>(piece.bytes.count())));
  EXPECT_THAT(parts,
              ElementsAre("L@@ L", "o@@ o", "wer wer", "( (", "&@@ “", "q@@ ", "u@@ ", "o@@ ", "t@@ ", "; ", "ne@@ ne", "w w", "&@@ ”",
                          "q@@ ", "u@@ ", "o@@ ", "t@@ ", "; ", ") )", "i@@ i", "s@@ s", "n n", "&a@@ '", "pos@@ ", ";@@ ", "t t"));
  const std::vector<std::string> pieces{"(", "lo@@", "wer", ")", "", ",", "&quot;", "a", "&qu@@", "ot;", "b@@"};
  const moses::JoinedText joined = words.join(pieces);
  EXPECT_EQ(joined.text, "(lower), \"a\" b");
  std::vector<std::string> became;
  for (const Range& r : joined.bytes) became.push_back(joined.text.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count())));
  EXPECT_THAT(became, ElementsAre("(", "lo", "wer", ")", "", ",", " \"", "a", "\"", "", " b"));
}

TEST(WordPieces, TakeAnyText) {
  std::mt19937 random(7);
  const std::u32string letters = U"aZ0 .,'\"()[]<>&|`@-–“”„«»…\u00a0\u3000\r\t\u0001é中가ก्😀€%:;!?d½";
  for (const char* language : {"en", "fr", "de", "cs", "fi", "zh", "ko", ""})
    for (const bool perl : {false, true}) {
      const moses::WordPieces words({{.language = language, .perl = perl, .plain_asian_marks = perl}, "#version: 0.2\n& a\n. .\n"},
                                    "codes");
      for (int round = 0; round < 200; ++round) {
        std::string line;
        for (auto n = random() % 40; n > 0; --n) {
          if (random() % 50 == 0)
            line += '\xff';
          else
            append_utf8(line, letters[random() % letters.size()]);
        }
        int64_t end = 0;
        std::vector<std::string> pieces;
        for (const moses::Piece& piece : words.pieces(line)) {
          EXPECT_GE(piece.bytes.begin, end) << line;
          EXPECT_GE(piece.bytes.end, piece.bytes.begin) << line;
          EXPECT_EQ(piece.text.find(' '), std::string::npos);
          EXPECT_NE(piece.text, "");
          end = piece.bytes.end;
          pieces.push_back(piece.text);
        }
        EXPECT_LE(end, std::ssize(line));
        const moses::JoinedText joined = words.join(pieces);
        EXPECT_EQ(joined.bytes.size(), pieces.size());
        for (const Range& r : joined.bytes) EXPECT_LE(r.end, std::ssize(joined.text));
      }
    }
}

TEST(WordPieces, SettingsAreAMessage) {
  const moses::Settings settings{
      {.language = "pt", .perl = true, .split_hyphens = true, .abbreviations = "Sr\n", .own_abbreviations = false}, "a b\n"};
  const std::string message = moses::message_of(settings);
  const std::string model = std::string("\xd2\xc8\x03") + static_cast<char>(message.size()) + message;  // field 7306
  const auto read = moses::settings_of(model);
  ASSERT_TRUE(read);
  EXPECT_EQ(moses::message_of(*read), message);
  EXPECT_EQ(read->text.language, "pt");
  EXPECT_TRUE(read->text.perl && read->text.split_hyphens && read->text.normalise_marks && read->text.words);
  EXPECT_FALSE(read->text.own_abbreviations || read->text.plain_asian_marks);
  EXPECT_FALSE(moses::settings_of(""));
}

}  // namespace
}  // namespace starling
