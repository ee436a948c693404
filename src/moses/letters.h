// What a letter, a digit and so on is for the tokenizers of Moses: its Perl scripts ask Perl, sacremoses has lists of its own. Texts are
// code points that remember where they come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::moses {

struct Letter {
  char32_t c;
  int32_t begin, end;  // where it comes from: bytes of a text, or pieces
};
using Letters = std::vector<Letter>;

// A full stop in a row of several, which stay together; the tokenizers take it for a letter.
inline constexpr char32_t kDotOfSeveral = 0x110000;

/// Returns the code points of a text; each byte that is not UTF-8 becomes U+FFFD.
Letters letters_of(std::string_view text);
/// Appends letters as UTF-8.
void append_letters(std::string& to, const Letter* begin, const Letter* end);

class LetterClasses {
 public:
  LetterClasses(std::string_view language, bool perl);
  bool alphabetic(char32_t c) const;
  /// A letter or decimal digit; of Chinese, Japanese and Korean also what sacremoses adds for them.
  bool alphanumeric(char32_t c) const;
  bool number(char32_t c) const;  // of any kind: also ½, Ⅳ
  bool small(char32_t c) const;

 private:
  bool perl_, chinese_, japanese_, korean_;
};

bool is_digit(char32_t c);    // decimal, of any script
bool is_control(char32_t c);  // general categories Cc, Cf and Co
bool is_currency(char32_t c, bool perl);
/// Chinese, Japanese or Korean as the detokenizers have it; sacremoses leaves out the ends of each range, such as the syllable 가.
bool is_asian(char32_t c, bool perl);

}  // namespace starling::moses
