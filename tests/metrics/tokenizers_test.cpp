// Tokenizers for languages without spaces: BLEU against a count of n-grams over tokens that are written down here, the words of MeCab and
// the pieces of SentencePiece, and the choice by looking at references.
#include "metrics/tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/sha256.h"
#include "metrics/mecab.h"
#include "metrics/metrics.h"
#include "metrics/tokenizer_choice.h"
#include "tests/text/small_vocabulary.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words tokens(std::string_view sentence, std::string_view tokenizer) {
  const std::string text = bleu_tokenizer_from(tokenizer)(sentence);
  const auto words = split_on_space(text);
  return {words.begin(), words.end()};
}

// ---- BLEU on Chinese and Thai ----

// clang-format off
// Hypothesis and reference in turn.
const Words kChinese{
    "我在2020年买了3.5公斤橘子。",
    "我在2020年买了3.5公斤苹果。",
    "他说：“你好。”GPT-4很有用。",
    "他说：“你好！”GPT-4很好用。",
    "苹果好吃，我很喜欢。",
    "苹果很好吃，我喜欢。",
};
const Words kChinese_zh{
    "我 在 2020 年 买 了 3.5 公 斤 橘 子 。",
    "我 在 2020 年 买 了 3.5 公 斤 苹 果 。",
    "他 说 ： “ 你 好 。 ” GPT-4 很 有 用 。",
    "他 说 ： “ 你 好 ！ ” GPT-4 很 好 用 。",
    "苹 果 好 吃 ， 我 很 喜 欢 。",
    "苹 果 很 好 吃 ， 我 喜 欢 。",
};
const Words kChinese_intl{
    "我在2020年买了3.5公斤橘子 。",
    "我在2020年买了3.5公斤苹果 。",
    "他说 ： “ 你好 。 ” GPT - 4很有用 。",
    "他说 ： “ 你好 ！ ” GPT - 4很好用 。",
    "苹果好吃 ， 我很喜欢 。",
    "苹果很好吃 ， 我喜欢 。",
};
const Words kChinese_none{
    "我在2020年买了3.5公斤橘子。",
    "我在2020年买了3.5公斤苹果。",
    "他说：“你好。”GPT-4很有用。",
    "他说：“你好！”GPT-4很好用。",
    "苹果好吃，我很喜欢。",
    "苹果很好吃，我喜欢。",
};
const Words kChinese_char{
    "我 在 2 0 2 0 年 买 了 3 . 5 公 斤 橘 子 。",
    "我 在 2 0 2 0 年 买 了 3 . 5 公 斤 苹 果 。",
    "他 说 ： “ 你 好 。 ” G P T - 4 很 有 用 。",
    "他 说 ： “ 你 好 ！ ” G P T - 4 很 好 用 。",
    "苹 果 好 吃 ， 我 很 喜 欢 。",
    "苹 果 很 好 吃 ， 我 喜 欢 。",
};

// Hypothesis and reference in turn.
const Words kThai{
    "ฉันชอบกินข้าว 2.5 จาน",
    "ฉันชอบกินข้าวผัด 2.5 จาน",
    "เขาไปตลาด, แล้วกลับบ้าน",
    "เขาไปตลาด, แล้วกลับบ้าน",
    "แมวนอนบนโต๊ะ",
    "แมวนั่งบนโต๊ะ",
};
const Words kThai_none{
    "ฉันชอบกินข้าว 2.5 จาน",
    "ฉันชอบกินข้าวผัด 2.5 จาน",
    "เขาไปตลาด, แล้วกลับบ้าน",
    "เขาไปตลาด, แล้วกลับบ้าน",
    "แมวนอนบนโต๊ะ",
    "แมวนั่งบนโต๊ะ",
};
const Words kThai_zh{
    "ฉันชอบกินข้าว 2.5 จาน",
    "ฉันชอบกินข้าวผัด 2.5 จาน",
    "เขาไปตลาด , แล้วกลับบ้าน",
    "เขาไปตลาด , แล้วกลับบ้าน",
    "แมวนอนบนโต๊ะ",
    "แมวนั่งบนโต๊ะ",
};
const Words kThai_intl{
    "ฉันชอบกินข้าว 2.5 จาน",
    "ฉันชอบกินข้าวผัด 2.5 จาน",
    "เขาไปตลาด , แล้วกลับบ้าน",
    "เขาไปตลาด , แล้วกลับบ้าน",
    "แมวนอนบนโต๊ะ",
    "แมวนั่งบนโต๊ะ",
};
const Words kThai_char{
    "ฉ ั น ช อ บ ก ิ น ข ้ า ว 2 . 5 จ า น",
    "ฉ ั น ช อ บ ก ิ น ข ้ า ว ผ ั ด 2 . 5 จ า น",
    "เ ข า ไ ป ต ล า ด , แ ล ้ ว ก ล ั บ บ ้ า น",
    "เ ข า ไ ป ต ล า ด , แ ล ้ ว ก ล ั บ บ ้ า น",
    "แ ม ว น อ น บ น โ ต ๊ ะ",
    "แ ม ว น ั ่ ง บ น โ ต ๊ ะ",
};
// clang-format on

// The published definition (Papineni et al., 2002; smoothing 3 of Chen and Cherry, 2014) over lines whose tokens stand between spaces,
// hypothesis and reference in turn.
double naive_bleu(const Words& lines) {
  const auto ngrams = [](const std::string& line, int n) {
    Words words;
    for (const std::string_view word : split_on_space(line)) words.emplace_back(word);
    std::map<Words, int> counts;
    for (int i = 0; i + n <= static_cast<int>(words.size()); ++i) ++counts[Words(words.begin() + i, words.begin() + i + n)];
    return counts;
  };
  double logs = 0, halvings = 1, lengths[2] = {0, 0};
  for (int n = 1; n <= 4; ++n) {
    double correct = 0, total = 0;
    for (size_t i = 0; i < lines.size(); i += 2) {
      const auto hypothesis = ngrams(lines[i], n), reference = ngrams(lines[i + 1], n);
      for (const auto& [gram, count] : hypothesis) {
        total += count;
        if (const auto found = reference.find(gram); found != reference.end()) correct += std::min(count, found->second);
      }
      if (n == 1)
        for (int side : {0, 1})
          for (const auto& [gram, count] : side == 0 ? hypothesis : reference) lengths[side] += count;
    }
    if (total == 0) return 0;
    logs += std::log((correct > 0 ? correct : 1 / (halvings *= 2)) / total) / 4;
  }
  return 100 * std::exp(logs) * (lengths[0] < lengths[1] ? std::exp(1 - lengths[1] / lengths[0]) : 1);
}

std::pair<Words, Words> sides(const Words& lines) {
  std::pair<Words, Words> sides;
  for (size_t i = 0; i < lines.size(); i += 2) sides.first.push_back(lines[i]), sides.second.push_back(lines[i + 1]);
  return sides;
}

void expect_bleu(const Words& lines, const char* tokenizer, const Words& tokenized) {
  for (size_t i = 0; i < lines.size(); ++i) {
    Words listed;
    for (const std::string_view token : split_on_space(tokenized[i])) listed.emplace_back(token);
    EXPECT_EQ(tokens(lines[i], tokenizer), listed) << tokenizer;
  }
  const auto [hypotheses, references] = sides(lines);
  const MetricScore score = corpus_bleu(hypotheses, references, {.tokenizer = bleu_tokenizer_from(tokenizer)});
  EXPECT_NEAR(score.score, naive_bleu(tokenized), 1e-9) << tokenizer;
  EXPECT_THAT(score.signature, HasSubstr("|tok:" + std::string(tokenizer) + "|"));
}

TEST(ScoresWithoutSpaces, Chinese) {
  expect_bleu(kChinese, "zh", kChinese_zh);
  expect_bleu(kChinese, "char", kChinese_char);
  expect_bleu(kChinese, "intl", kChinese_intl);
  expect_bleu(kChinese, "none", kChinese_none);
  EXPECT_EQ(naive_bleu(kChinese_none), 0);  // what the finding was about
  EXPECT_GT(naive_bleu(kChinese_zh), 50);
}

TEST(ScoresWithoutSpaces, Thai) {
  expect_bleu(kThai, "char", kThai_char);
  expect_bleu(kThai, "intl", kThai_intl);
  expect_bleu(kThai, "zh", kThai_zh);
  expect_bleu(kThai, "none", kThai_none);
  EXPECT_GT(naive_bleu(kThai_char), 70);
}

// ---- single tokenizers ----

TEST(InternationalTokenizer, PunctuationAndSymbols) {
  const auto t = [](std::string_view s) { return tokens(s, "intl"); };
  EXPECT_THAT(t("Hello, world!"), ElementsAre("Hello", ",", "world", "!"));
  EXPECT_THAT(t("1,000.5 and 2000."), ElementsAre("1,000.5", "and", "2000."));  // a number's period at the end stays
  EXPECT_THAT(t("x²+y €5"), ElementsAre("x²", "+", "y", "€", "5"));             // ² is a number, + and € are symbols
  EXPECT_THAT(t("«où?» ¿qué?"), ElementsAre("«", "où", "?", "»", "¿", "qué", "?"));
  EXPECT_THAT(t("१,२ ٣٫٤"), ElementsAre("१,२", "٣٫٤"));   // numbers of other scripts
  EXPECT_THAT(t("&amp;"), ElementsAre("&", "amp", ";"));  // entities are not decoded
  EXPECT_THAT(t("a..b"), ElementsAre("a", ".", ".", "b"));
}

TEST(CharacterClass, OfEachKind) {
  for (const char32_t c : U"!.,;—。、।") {
    if (c != 0) {
      EXPECT_EQ(character_class(c), CharacterClass::punctuation) << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : {U'+', U'$', U'€', U'^', U'→', U'\U0001F600'}) EXPECT_EQ(character_class(c), CharacterClass::symbol);
  for (const char32_t c : {U'0', U'9', U'²', U'½', U'٣', U'Ⅷ', U'〇'}) EXPECT_EQ(character_class(c), CharacterClass::number);
  for (const char32_t c : {U'a', U'é', U'日', U'か', U'ー', U' ', U'\n', U'ั', U'\U0010FFFF'})
    EXPECT_EQ(character_class(c), CharacterClass::other) << static_cast<uint32_t>(c);
}

TEST(Mecab, CutsWords) {
  if (!mecab_is_installed()) GTEST_SKIP() << "MeCab is not installed (Debian packages libmecab2 and mecab-ipadic-utf8)";
  EXPECT_EQ(bleu_tokenizer_from("ja-mecab").name(), "ja-mecab-0.996-IPA");
  EXPECT_THAT(tokens("すもももももももものうち", "ja-mecab"), ElementsAre("すもも", "も", "もも", "も", "もも", "の", "うち"));
  EXPECT_THAT(tokens(" 東京 へ行く。\xE3\x80\x80", "ja-mecab"), ElementsAre("東京", "へ", "行く", "。"));
  EXPECT_TRUE(tokens("", "ja-mecab").empty());
}

TEST(Mecab, AMissingLibraryNamesThePackages) {
  try {
    mecab_tokenizer("libstarling-has-no-such-library.so.2");
    ADD_FAILURE() << "a library that is not there was loaded";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("libstarling-has-no-such-library.so.2: cannot open shared object file"));
    EXPECT_THAT(e.what(), HasSubstr("install the Debian packages libmecab2 and mecab-ipadic-utf8, or choose the tokenizer char"));
  }
}

TEST(SentencePieceTokenizer, CountsPieces) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("starling-pieces-" + std::to_string(::getpid()) + ".spm");
  train_small_vocabulary(path.string());
  const Vocabulary vocabulary = Vocabulary::load(path.string());
  Words pieces;
  for (const int32_t id : vocabulary.encode("abba ba")) pieces.push_back(vocabulary.piece(id));
  const std::string name = "spm:" + path.string();
  EXPECT_EQ(tokens("abba ba", name), pieces);
  EXPECT_EQ(tokens("語", name).back(), "語");  // unknown pieces stand as in the text, not as <unk>
  EXPECT_EQ(bleu_tokenizer_from(name).name(), "spm-" + sha256_hex(vocabulary.bytes()).substr(0, 8));
  // Words that share no token between spaces do share pieces.
  const std::string verbose = corpus_bleu(Words{"abbaba"}, Words{"abbabab"}, {.tokenizer = bleu_tokenizer_from(name)}).verbose;
  EXPECT_GT(std::stod(verbose), 0) << verbose;
  std::filesystem::remove(path);
  EXPECT_THROW(bleu_tokenizer_from(name), IoError);
}

TEST(TokenizerNames, AreCheckedWithoutOpeningAnything) {
  for (const char* name : {"auto", "13a", "intl", "char", "zh", "ja-mecab", "none", "spm:/nowhere"})
    EXPECT_NO_THROW(check_tokenizer_name(name, "x")) << name;
  for (const char* name : {"", "13A", "spm:", "mecab"}) {
    try {
      check_tokenizer_name(name, "valid.tokenize");
      ADD_FAILURE() << name;
    } catch (const ConfigError& e) {
      EXPECT_EQ(e.what(), "valid.tokenize is '" + std::string(name) +
                              "'; choose auto, 13a, intl, char, zh, ja-mecab, none, or spm:FILE with a SentencePiece model");
    }
  }
}

// ---- the choice ----

TokenizerChoice choose(const Words& references, const char* name = "auto", const char* japanese = "char") {
  return choose_tokenizer(name, std::vector<Words>{references}, japanese);
}

TEST(TokenizerChoice, ByWhatTheReferencesAre) {
  const struct {
    const char *tokenizer, *text;
  } cases[] = {
      {"13a", "Zwei junge weiße Männer sind im Freien."},
      {"13a", "Donaudampfschifffahrtsgesellschaft"},
      {"13a", "오늘은 날씨가 좋다."},
      {"13a", "Сегодня хорошая погода."},
      {"13a", "आज मौसम अच्छा है।"},
      {"13a", "12 + 30 = 42"},
      {"13a", ""},
      {"13a", "The word 漢字 means Chinese characters."},
      {"char", "今日はいい天気です。"},
      {"char", "コンピューターのデータ"},
      {"char", "ｺﾝﾋﾟｭｰﾀｰ"},
      {"zh", "今天天气很好，我们去公园。"},
      {"zh", "我不知道 你说什么 再说一遍"},  // subtitles: spaces between phrases
      {"13a", "今天 天气 很 好 ， 我们 去 公园 。"},
      {"13a", "今日 は いい 天気 です 。"},
      {"char", "วันนี้อากาศดีมาก เราไปสวนสาธารณะกัน"},
      {"13a", "วันนี้ อากาศ ดี มาก"},
      {"char", "ມື້ນີ້ອາກາດດີຫຼາຍ"},
      {"char", "ថ្ងៃនេះអាកាសធាតុល្អណាស់"},
      {"char", "ဒီနေ့ရာသီဥတုကောင်းတယ်"},
      {"char", "དེ་རིང་གནམ་གཤིས་ཡག་པོ་འདུག"},
  };
  for (const auto& c : cases) {
    const TokenizerChoice choice = choose({c.text, c.text});
    EXPECT_EQ(choice.tokenizer.name(), c.tokenizer) << c.text << ": " << choice.reason;
    EXPECT_EQ(choice.warning, "");
  }
}

TEST(TokenizerChoice, OtherTextWithoutSpaces) {
  for (const char* text : {"ꀋꁱꂷꃀꄈꅪꆀꇐꈎꉬꊒꋌꌠꍏꎭꏦꐥꑌꒉꀑꀒ", "zweijungeweißemännersindimfreien."}) {
    EXPECT_EQ(choose(Words(10, text)).tokenizer.name(), "char") << text;
    EXPECT_EQ(choose(Words(10, text)).reason, "the references have hardly any spaces");
    EXPECT_EQ(choose(Words(9, text)).tokenizer.name(), "13a") << text;  // may be a word
  }
  EXPECT_EQ(choose(Words(10, "Donaudampfschiff Fahrtsgesellschaft")).tokenizer.name(), "13a");
}

TEST(TokenizerChoice, SaysWhy) {
  EXPECT_EQ(choose({"今日はいい天気です。"}).reason, "the references are Japanese (56 % of their letters are kana)");
  EXPECT_EQ(choose({"今天天气很好"}).reason, "the references are Chinese (100 % of their letters are Han characters)");
  EXPECT_EQ(choose({"วันนี้อากาศดีมาก"}).reason, "the references are Thai, which has no spaces between words");
  EXPECT_EQ(choose({"It rains."}).reason, "the references have spaces between words");
}

TEST(TokenizerChoice, JapaneseIsCutByMecabIfThereIsOne) {
  const TokenizerChoice choice = choose({"今日はいい天気です。"}, "auto", "");
  EXPECT_EQ(choice.tokenizer.name(), mecab_is_installed() ? "ja-mecab-0.996-IPA" : "char");
  EXPECT_EQ(choice.reason.find("not installed") == std::string::npos, mecab_is_installed()) << choice.reason;
  if (mecab_is_installed())
    EXPECT_EQ(choose({"今日はいい天気です。"}, "auto", "ja-mecab-0.996-IPA").tokenizer.name(), "ja-mecab-0.996-IPA");
  else
    EXPECT_THROW(choose({"今日はいい天気です。"}, "auto", "ja-mecab-0.996-IPA"), ConfigError);
}

TEST(TokenizerChoice, WarnsOfANamedOneThatDoesNotSuit) {
  for (const char* name : {"13a", "intl", "none"})
    EXPECT_EQ(choose({"今天天气很好"}, name).warning,
              "the references are Chinese (100 % of their letters are Han characters), but the tokenizer " + std::string(name) +
                  " relies on spaces between words; choose auto or zh");
  for (const char* name : {"char", "zh"}) EXPECT_EQ(choose({"今天天气很好"}, name).warning, "");
  EXPECT_EQ(choose({"It rains."}, "13a").warning, "");
  EXPECT_EQ(choose({"It rains."}, "zh").tokenizer.name(), "zh");
}

// ---- TER ----

TEST(TerNormalization, ByHand) {
  const TerOptions western{.normalized = true}, asian{.normalized = true, .asian_support = true};
  const auto ter = [](const char* hypothesis, const char* reference, const TerOptions& options) {
    return evaluate("ter", Words{hypothesis}, std::vector<Words>{{reference}}, {.ter = options});
  };
  // "a dog 's bone , 2.5 kg" against "a dog bone , 2.5 kg": one word too many of six.
  EXPECT_NEAR(ter("A dog's bone, 2.5 kg", "A dog bone, 2.5 kg", western).score, 100 / 6.0, 1e-9);
  EXPECT_NEAR(ter("&lt;b&gt;", "< b >", western).score, 0, 1e-9);
  // 犬 が 好 き 。 against 猫 が 好 き 。; kana between others stay together.
  EXPECT_NEAR(ter("犬が好き。", "猫が好き。", asian).score, 20, 1e-9);
  EXPECT_NEAR(ter("犬が好き。", "猫が好き。", western).score, 100, 1e-9);
  EXPECT_NEAR(ter("犬ですが。", "犬ですか。", asian).score, 100 / 3.0, 1e-9);
  EXPECT_THAT(ter("a", "a", asian).signature, HasSubstr("|tok:tercom|norm:yes|punct:yes|asian:yes|"));
  EXPECT_THAT(ter("a", "a", western).signature, HasSubstr("|tok:tercom|norm:yes|punct:yes|asian:no|"));
}

}  // namespace
}  // namespace starling
