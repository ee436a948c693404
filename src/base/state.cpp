// JSON has no infinity and no NaN (the best metric before the first validation is one), so these are the strings "inf", "-inf", "nan".
// Finite doubles are printed with the fewest digits that read back to the same value.
#include "base/state.h"

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

// is_number_integer() includes unsigned numbers, also those above the signed range.
bool fits_signed(const Json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
}

}  // namespace

void State::put(const std::string& key, double value) { json_[key] = encode(value); }

void State::put(const std::string& key, const std::string& value) { json_[key] = value; }

void State::put(const std::string& key, const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(encode(value));
  json_[key] = std::move(list);
}

const Json& State::value(const std::string& key) const {
  const auto found = json_.find(key);
  if (found != json_.end()) return *found;
  throw DataError(fmt::format("{}: has no '{}'; it was written by another version of Starling", where_, key));
}

void State::wrong_type(const std::string& key, const char* wanted) const {
  const std::string found = json_.at(key).dump(-1, ' ', false, Json::error_handler_t::replace);
  throw DataError(fmt::format("{}: '{}' is {}, but {} is needed", where_, key, found, wanted));
}

bool State::flag(const std::string& key) const {
  if (!value(key).is_boolean()) wrong_type(key, "true or false");
  return value(key).get<bool>();
}

int64_t State::integer(const std::string& key) const {
  if (!fits_signed(value(key))) wrong_type(key, "a whole number");
  return value(key).get<int64_t>();
}

uint64_t State::unsigned_integer(const std::string& key) const {
  const Json& found = value(key);
  if (!found.is_number_integer() || (!found.is_number_unsigned() && found.get<int64_t>() < 0)) wrong_type(key, "a whole number from 0");
  return found.get<uint64_t>();
}

double State::real(const std::string& key) const {
  const std::optional<double> number = decode(value(key));
  if (!number) wrong_type(key, "a number");
  return *number;
}

std::string State::text(const std::string& key) const {
  if (!value(key).is_string()) wrong_type(key, "a text");
  return value(key).get<std::string>();
}

std::vector<double> State::reals(const std::string& key) const {
  if (!value(key).is_array()) wrong_type(key, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& element : value(key)) {
    const std::optional<double> number = decode(element);
    if (!number) wrong_type(key, "a list of numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<int64_t> State::integers(const std::string& key) const {
  if (!value(key).is_array()) wrong_type(key, "a list of whole numbers");
  std::vector<int64_t> numbers;
  for (const Json& element : value(key)) {
    if (!fits_signed(element)) wrong_type(key, "a list of whole numbers");
    numbers.push_back(element.get<int64_t>());
  }
  return numbers;
}

std::string State::to_json() const { return json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

State State::from_json(std::string_view text, const std::string& where) {
  State state;
  state.where_ = where;
  state.json_ = parse_json_object(text, where);
  return state;
}

}  // namespace starling
