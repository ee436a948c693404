// A small set of named values that is saved with a checkpoint: step, position in the data, early-stopping counters, best metric.
// It is JSON, so that people can read it; integers keep all 64 bits and doubles round-trip exactly, as a bit-exact resume requires.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace starling {

class State {
 public:
  void put(const std::string& key, std::integral auto value) { json_[key] = value; }
  void put(const std::string& key, double value);
  void put(const std::string& key, const std::string& value);
  void put(const std::string& key, const char* value) { put(key, std::string(value)); }
  void put(const std::string& key, const std::vector<double>& values);
  void put(const std::string& key, const std::vector<int64_t>& values) { json_[key] = values; }

  bool has(const std::string& key) const { return json_.contains(key); }
  // The getters throw DataError, naming the file and the key, if the key is missing or has another type.
  bool flag(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  uint64_t unsigned_integer(const std::string& key) const;
  double real(const std::string& key) const;
  std::string text(const std::string& key) const;
  std::vector<double> reals(const std::string& key) const;
  std::vector<int64_t> integers(const std::string& key) const;

  // Returns indented JSON with sorted keys, ending in a newline.
  std::string to_json() const;
  // Throws DataError if the text is not a JSON object. `where` (the file's path) begins the messages of this and of the getters.
  static State from_json(std::string_view text, const std::string& where);

 private:
  const nlohmann::json& value(const std::string& key, bool (*fits)(const nlohmann::json&), const char* wanted) const;

  std::string where_ = "state";
  nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace starling
