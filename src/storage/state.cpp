// JSON has no infinity and no NaN (the best metric before the first validation is one), so these are the strings "inf", "-inf", "nan".
// Finite doubles are printed with the fewest digits that read back to the same value.
#include "storage/state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/json.h"

namespace starling {
namespace {

using Json = nlohmann::json;

Json encode(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

std::optional<double> decode(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

bool is_real(const Json& value) { return decode(value).has_value(); }

// is_number_integer() includes unsigned numbers, also those above the signed range.
bool fits_signed(const Json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
}

template <bool (*fits)(const Json&)>
bool is_list_of(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), fits);
}

}  // namespace

void State::put(const std::string& key, double value) { json_[key] = encode(value); }

void State::put(const std::string& key, const std::string& value) { json_[key] = value; }

void State::put(const std::string& key, const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(encode(value));
  json_[key] = std::move(list);
}

const Json& State::value(const std::string& key, bool (*fits)(const Json&), const char* wanted) const {
  const auto found = json_.find(key);
  if (found == json_.end()) throw DataError(fmt::format("{}: has no '{}'; it was written by another version of Starling", where_, key));
  if (fits(*found)) return *found;
  throw DataError(
      fmt::format("{}: '{}' is {}, but {} is needed", where_, key, found->dump(-1, ' ', false, Json::error_handler_t::replace), wanted));
}

bool State::flag(const std::string& key) const {
  return value(
             key, [](const Json& json) { return json.is_boolean(); }, "true or false")
      .get<bool>();
}

int64_t State::integer(const std::string& key) const { return value(key, fits_signed, "a whole number").get<int64_t>(); }

uint64_t State::unsigned_integer(const std::string& key) const {
  const auto fits = [](const Json& json) { return json.is_number_integer() && (json.is_number_unsigned() || json.get<int64_t>() >= 0); };
  return value(key, fits, "a whole number from 0").get<uint64_t>();
}

double State::real(const std::string& key) const { return *decode(value(key, is_real, "a number")); }

std::string State::text(const std::string& key) const {
  return value(
             key, [](const Json& json) { return json.is_string(); }, "a text")
      .get<std::string>();
}

std::vector<double> State::reals(const std::string& key) const {
  std::vector<double> numbers;
  for (const Json& element : value(key, is_list_of<is_real>, "a list of numbers")) numbers.push_back(*decode(element));
  return numbers;
}

std::vector<int64_t> State::integers(const std::string& key) const {
  return value(key, is_list_of<fits_signed>, "a list of whole numbers").get<std::vector<int64_t>>();
}

std::string State::to_json() const { return json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

State State::from_json(std::string_view text, const std::string& where) {
  State state;
  state.where_ = where;
  state.json_ = parse_json_object(text, where);
  return state;
}

}  // namespace starling
