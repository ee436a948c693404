// Number words by table and composition: English reads tens before ones, German ones before tens in one word.
#include "demo/numbers.h"

#include <fmt/format.h>

#include "base/error.h"

namespace starling::demo {
namespace {

const char* const kEnglish[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
const char* const kEnglishTens[] = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
const char* const kGerman[] = {"null", "eins", "zwei",  "drei",     "vier",     "fünf",     "sechs",    "sieben",   "acht",     "neun",
                               "zehn", "elf",  "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
const char* const kGermanTens[] = {"", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
const char* const kEnglishOrdinals[] = {"",           "first",     "second",    "third",       "fourth",     "fifth",      "sixth",
                                        "seventh",    "eighth",    "ninth",     "tenth",       "eleventh",   "twelfth",    "thirteenth",
                                        "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"};

std::string english_below_100(int n) {
  if (n < 20) return kEnglish[n];
  return n % 10 == 0 ? kEnglishTens[n / 10] : fmt::format("{}-{}", kEnglishTens[n / 10], kEnglish[n % 10]);
}

std::string english_words(int n) {
  std::string text;
  if (n >= 1000) text += fmt::format("{} thousand ", kEnglish[n / 1000]);
  if (n % 1000 >= 100) text += fmt::format("{} hundred ", kEnglish[n % 1000 / 100]);
  const int rest = n % 100;
  if (rest == 0 && n > 0) return text.substr(0, text.size() - 1);
  if (n > 100) text += "and ";
  return text + english_below_100(rest);
}

std::string german_below_100(int n) {
  if (n < 20) return kGerman[n];
  if (n % 10 == 0) return kGermanTens[n / 10];
  return fmt::format("{}und{}", n % 10 == 1 ? "ein" : kGerman[n % 10], kGermanTens[n / 10]);
}

std::string german_words(int n) {
  std::string text;
  if (n >= 1000) text += fmt::format("{}tausend", n / 1000 == 1 ? "ein" : kGerman[n / 1000]);
  if (n % 1000 >= 100) text += fmt::format("{}hundert", n % 1000 / 100 == 1 ? "ein" : kGerman[n % 1000 / 100]);
  if (n % 100 != 0 || n == 0) text += german_below_100(n % 100);
  return text;
}

}  // namespace

Pair number_words(int n) {
  CHECK(n >= 0 && n <= 9999, "number {} has no words here", n);
  return {english_words(n), german_words(n)};
}

std::string german_number_before_noun(int n) {
  std::string text = number_words(n).de;
  if (n % 100 == 1) text.pop_back();
  return text;
}

std::string english_ordinal(int n) {
  CHECK(n >= 1 && n <= 31, "ordinal {}", n);
  if (n <= 20) return kEnglishOrdinals[n];
  return n == 30 ? "thirtieth" : fmt::format("{}-{}", kEnglishTens[n / 10], kEnglishOrdinals[n % 10]);
}

std::string german_ordinal(int n, const std::string& ending) {
  CHECK(n >= 1 && n <= 31, "ordinal {}", n);
  if (n == 1) return "erst" + ending;
  if (n == 3) return "dritt" + ending;
  if (n == 7) return "siebt" + ending;
  if (n == 8) return "acht" + ending;
  return german_words(n) + (n < 20 ? "t" : "st") + ending;
}

Pair spoken_time(int hour, int minute) {
  CHECK(hour >= 1 && hour <= 12 && minute >= 0 && minute < 60 && minute % 5 == 0, "time {}:{}", hour, minute);
  const int next = hour % 12 + 1;
  if (minute == 0) return {fmt::format("{} o'clock", kEnglish[hour]), fmt::format("{} Uhr", german_number_before_noun(hour))};
  if (minute == 15) return {fmt::format("a quarter past {}", kEnglish[hour]), fmt::format("Viertel nach {}", kGerman[hour])};
  if (minute == 30) return {fmt::format("half past {}", kEnglish[hour]), fmt::format("halb {}", kGerman[next])};
  if (minute == 45) return {fmt::format("a quarter to {}", kEnglish[next]), fmt::format("Viertel vor {}", kGerman[next])};
  if (minute == 25) return {fmt::format("twenty-five past {}", kEnglish[hour]), fmt::format("fünf vor halb {}", kGerman[next])};
  if (minute == 35) return {fmt::format("twenty-five to {}", kEnglish[next]), fmt::format("fünf nach halb {}", kGerman[next])};
  if (minute < 30)
    return {fmt::format("{} past {}", english_below_100(minute), kEnglish[hour]),
            fmt::format("{} nach {}", german_below_100(minute), kGerman[hour])};
  return {fmt::format("{} to {}", english_below_100(60 - minute), kEnglish[next]),
          fmt::format("{} vor {}", german_below_100(60 - minute), kGerman[next])};
}

Pair digital_time(int hour, int minute) {
  const int twelve = hour % 12 == 0 ? 12 : hour % 12;
  return {fmt::format("{}:{:02} {}", twelve, minute, hour < 12 ? "am" : "pm"), fmt::format("{}:{:02} Uhr", hour, minute)};
}

Pair digital_price(int euros, int cents) { return {fmt::format("€{}.{:02}", euros, cents), fmt::format("{},{:02} €", euros, cents)}; }

Pair digital_number(int n) {
  if (n < 1000) return {std::to_string(n), std::to_string(n)};
  return {fmt::format("{},{:03}", n / 1000, n % 1000), fmt::format("{}.{:03}", n / 1000, n % 1000)};
}

}  // namespace starling::demo
