// Numbers, clock times and dates in English and German words and digits, for the demo corpus.
// These are the parts where the two languages order things differently: "dreiundzwanzig", "halb vier".
#pragma once

#include <string>

namespace starling::demo {

struct Pair {
  std::string en, de;
};

// 0 <= n <= 9999 in words: {"two hundred and five", "zweihundertfünf"}; German "eins" for a final one.
Pair number_words(int n);

// The German number before a noun: as number_words, except that a final one is "ein" ("ein Uhr", "hundertein").
std::string german_number_before_noun(int n);

// 1 <= n <= 31 as an ordinal; the German one inflected with the ending "e" or "en".
std::string english_ordinal(int n);
std::string german_ordinal(int n, const std::string& ending);

// A spoken twelve-hour time, minutes a multiple of five: {"half past three", "halb vier"}, {"three o'clock", "drei Uhr"}.
Pair spoken_time(int hour, int minute);

// A time in digits: {"3:45 pm", "15:45 Uhr"}; hour 0..23.
Pair digital_time(int hour, int minute);

// A price in digits: {"€23.50", "23,50 €"}.
Pair digital_price(int euros, int cents);

// A whole number in digits with thousands separators: {"1,250", "1.250"}.
Pair digital_number(int n);

}  // namespace starling::demo
