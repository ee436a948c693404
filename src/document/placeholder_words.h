// What single words are that a translation leaves unchanged.
#pragma once

#include <string_view>

namespace starling {

/// Returns whether a word is four numbers of at most 255; larger ones are thousands with points between them.
bool is_ip_address(std::string_view word);

/// Returns whether a word is a time of ISO 8601 with a date.
bool is_iso_time(std::string_view word);

/// Returns whether programs often call a variable of a message so.
bool is_variable_name(std::string_view word);

}  // namespace starling
