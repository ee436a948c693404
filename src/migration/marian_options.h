// Every option of Marian's training, with its default, and what becomes of it here. A conversion answers by it for options that it does not
// convert, and "starling train --names" prints it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

enum class MarianFate : uint8_t {
  converted,  // into keys of ours
  by_hand,    // there is a key, which a conversion does not set
  always,     // not needed: it is so here, or the program sees to it
  none,       // has no counterpart
};

struct MarianOption {
  std::string_view name, standard;  // its default as text, "0 0" for a list; "" = none, false or 0
  MarianFate fate;
  std::string_view text;  // our keys, or why there is none; "" = what the table of names says (peer_names.h)
};
// In the order of Marian's help.
std::span<const MarianOption> marian_options();

// Returns the row of an option; null if Marian has none of that name.
const MarianOption* marian_option(std::string_view name);
// Returns what a row says of its fate.
std::string text_of(const MarianOption& option);
// Returns whether values are an option's default.
bool is_standard(const MarianOption& option, const std::vector<std::string>& values);

// The options that an alias stands for, such as task transformer-base, with their values; lists by spaces.
struct MarianAlias {
  std::string_view name, value;
  std::vector<std::pair<std::string, std::string>> options;
};
const std::vector<MarianAlias>& marian_aliases();

// Returns the table as Markdown.
std::string marian_options_markdown();

}  // namespace starling
