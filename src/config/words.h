// Options whose value is one of a few words: an enum inside the program, a word in files and on the command line. Beside an enum E whose
// values count from 0 there is `constexpr auto words(E)`, an array of its words in the order of the values. Code uses only the enum, so a
// misspelled word does not compile.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace starling {

template <class E>
concept Worded = std::is_enum_v<E> && sizeof(E) == 1 && requires(E value) {
  words(value).size();
};

// Returns the word of a value.
template <Worded E>
constexpr std::string_view word(E value) {
  return words(value)[static_cast<size_t>(value)];
}

// Returns the value of a word that is known to be one of them.
template <Worded E>
E from_word(std::string_view text) {
  for (size_t i = 0; i < words(E{}).size(); ++i)
    if (words(E{})[i] == text) return static_cast<E>(i);
  CHECK(false, "'{}' is not one of {}", text, fmt::join(words(E{}), ", "));
  return E{};
}

}  // namespace starling

// Formats a value as its word.
template <starling::Worded E>
struct fmt::formatter<E> : fmt::formatter<std::string_view> {
  auto format(E value, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(starling::word(value), context);
  }
};
