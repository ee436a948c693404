#include "document/placeholder_words.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"

namespace starling {
namespace {

constexpr std::string_view kVariableNames =
    " action amount app application attribute author category city code color comment content count country currency current customer date "
    "datetime day days decimal description digits domain duration email error field fields file filename files filesize first format from "
    "group height host hour hours id ids index input ip item items key keys label language last length limit line link list locale max "
    "message method min minute minutes model module month months name names new number old option order other owner page pages param "
    "parameter password path percent percentage permission phone plan plural position post price product project property provider "
    "quantity query rate reason resource result results role route rule score second seconds section sender site size status step subject "
    "tag team text time title to token total type unit until url user username users value values version week weeks width word words year "
    "years ";

}  // namespace

bool is_ip_address(std::string_view word) {
  int groups = 1, value = 0;
  for (const char c : word) {
    if (c != '.' && !is_ascii_digit(static_cast<unsigned char>(c))) return false;
    value = c == '.' ? 0 : std::min(1000, 10 * value + c - '0');
    groups += c == '.';
    if (value > 255) return false;
  }
  return groups == 4;
}

bool is_iso_time(std::string_view word) {
  constexpr std::string_view kForm = "0000-00-00T00:00";
  if (word.size() < kForm.size()) return false;
  for (size_t k = 0; k < kForm.size(); ++k)
    if (kForm[k] == '0' ? !is_ascii_digit(static_cast<unsigned char>(word[k])) : word[k] != kForm[k]) return false;
  return true;
}

bool is_variable_name(std::string_view word) { return kVariableNames.find(" " + std::string(word) + " ") != std::string_view::npos; }

}  // namespace starling
