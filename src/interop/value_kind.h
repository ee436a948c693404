// What messages call the type of value that a setting must have.
#pragma once

#include <string>
#include <type_traits>

namespace starling {

template <class T>
constexpr const char* value_kind() {
  if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_integral_v<T>)
    return "a whole number";
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else
    return std::is_same_v<T, std::string> ? "a string" : "a list of strings";
}

}  // namespace starling
