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

// Whether a value is one that its enum names, and not `none`: the compiler prints the names of those, and the numbers of others.
template <auto kValue>
constexpr bool is_named() {
  const std::string_view function = __PRETTY_FUNCTION__;
  return function[function.rfind('=') + 2] != '(' && !function.ends_with("::none]");
}
// Whether the last value of an enum has the last word, so that no word is missing. One that is called none may be without a word.
template <Worded E>
constexpr bool kEachHasWord = (words(E{}).back() == std::string_view("none") || is_named<static_cast<E>(words(E{}).size() - 1)>()) &&
                              !is_named<static_cast<E>(words(E{}).size())>();

// Returns the word of a value.
template <Worded E>
constexpr std::string_view word(E value) {
  return words(value)[static_cast<size_t>(value)];
}

// Returns the value of a word that is known to be one of them.
template <Worded E>
E from_word(std::string_view text) {
  static_assert(kEachHasWord<E>, "each value of the enum has a word");
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
