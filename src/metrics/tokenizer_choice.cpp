#include "metrics/tokenizer_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "metrics/mecab.h"
#include "text/script.h"
#include "text/unicode.h"

namespace starling {

namespace {

// Indexed by Script.
constexpr std::array<const char*, kScripts> kNames = {"", "Japanese", "Chinese", "Korean", "Thai", "Lao", "Tibetan", "Burmese", "Khmer"};
constexpr auto kThai = static_cast<std::size_t>(Script::thai);  // this and all later scripts have no spaces between words

// Statistics of a text. Letters are code points that are not punctuation, symbols, numbers or spaces.
struct Look {
  std::array<std::int64_t, kScripts> of{};
  std::int64_t letters = 0, lines = 0, lines_with_spaces = 0, words = 0;  // words: runs between spaces

  void add(const std::string& line) {
    std::int64_t runs = 0;
    const std::u32string text = decode_utf8(line);
    for (const std::u32string_view run : split_on_space(text)) {
      ++runs;
      for (const char32_t c : run) count(c);
    }
    lines += runs > 0;
    lines_with_spaces += runs > 1;
    words += runs;
  }

  void count(char32_t c) {
    if (character_class(c) != CharacterClass::other) return;
    ++letters;
    ++of[static_cast<std::size_t>(script_of(c))];
  }

  std::int64_t in(Script script) const { return of[static_cast<std::size_t>(script)]; }
  std::int64_t percent(Script script) const { return letters > 0 ? (100 * in(script) + letters / 2) / letters : 0; }
};

struct Finding {
  const char* tokenizer;  // "" for Japanese: two are possible
  std::string what;       // "the references are ..."
};

bool spaced(const Look& look, double longest_word) {
  return 2 * look.lines_with_spaces > look.lines && static_cast<double>(look.letters) < longest_word * static_cast<double>(look.words);
}

Finding find(const Look& look) {
  const Finding words{"13a", "the references have spaces between words"};
  if (look.letters == 0) return words;
  const std::int64_t cjk = look.in(Script::kana) + look.in(Script::han);
  std::int64_t south_east = 0;
  for (std::size_t s = kThai; s < kScripts; ++s) south_east += look.of[s];
  if (2 * (cjk + south_east) > look.letters) {
    // Japanese and Chinese words have 1 to 2 letters on average, Thai and Burmese ones 4 to 7 with their marks.
    if (spaced(look, cjk > south_east ? 3 : 8)) return {"13a", "the references have spaces between words, though their script has none"};
    if (south_east > cjk) {
      const auto most = std::max_element(look.of.begin() + kThai, look.of.end()) - look.of.begin();
      return {"char", fmt::format("the references are {}, which has no spaces between words", kNames[static_cast<std::size_t>(most)])};
    }
    // Japanese is about half kana; Chinese text has a stray one in a name.
    if (20 * look.in(Script::kana) >= cjk)
      return {"", fmt::format("the references are Japanese ({} % of their letters are kana)", look.percent(Script::kana))};
    return {"zh", fmt::format("the references are Chinese ({} % of their letters are Han characters)", look.percent(Script::han))};
  }
  // No language has words of 20 letters on average, but one or two lines may consist of a single long word.
  constexpr std::int64_t kNoWord = 20, kManyLines = 10;
  if (look.letters >= kNoWord * look.words && look.lines >= kManyLines) return {"char", "the references have hardly any spaces"};
  return words;
}

Look look_at(References references) {
  Look look;
  for (const auto& list : references)
    for (const std::string& line : list) look.add(line);
  return look;
}

}  // namespace

bool is_tokenized(std::string_view metric) { return metric == "bleu" || metric == "gleu"; }

std::string TokenizerChoice::notice() const {
  if (!warning.empty()) return "warning: " + warning;
  return reason.empty() ? "" : fmt::format("tokenizer of BLEU and GLEU: {}, since {}", tokenizer.name(), reason);
}

std::string ter_warning(References references, const TerOptions& options) {
  const Finding found = find(look_at(references));
  if (found.tokenizer == std::string_view("13a") || (options.normalized && options.asian_support)) return "";
  return fmt::format(
      "{}, but TER relies on spaces between words; choose chrf, or for Chinese --ter-normalized "
      "--ter-asian-support",
      found.what);
}

TokenizerChoice choose_tokenizer(std::string_view name, References references, std::string_view japanese) {
  const Finding found = find(look_at(references));
  std::string suited = found.tokenizer, reason = found.what;
  if (suited.empty() && !japanese.empty()) {
    suited = japanese.starts_with("ja-mecab") ? "ja-mecab" : "char";
  } else if (suited.empty()) {
    suited = mecab_is_installed() ? "ja-mecab" : "char";
    if (suited == "char") reason += "; MeCab, which finds their words, is not installed (Debian packages libmecab2 and mecab-ipadic-utf8)";
  }
  if (name == "auto") return {bleu_tokenizer_from(suited), std::move(reason), ""};
  TokenizerChoice choice{bleu_tokenizer_from(name), "", ""};
  if (suited != "13a" && (name == "13a" || name == "intl" || name == "none"))
    choice.warning = fmt::format("{}, but the tokenizer {} relies on spaces between words; choose auto or {}", found.what, name, suited);
  return choice;
}

}  // namespace starling
