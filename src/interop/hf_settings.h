// The settings of a Hugging Face folder: one object of JSON, whose values are read by kind.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "base/error.h"
#include "base/json.h"
#include "base/quotes.h"
#include "interop/value_kind.h"

namespace starling {

class HfSettings {
 public:
  // Throws DataError, beginning with `where`, unless the text is an object.
  // The document charges the budget.
  HfSettings(const std::string& text, std::string where, ByteBudget& budget)
      : where_(std::move(where)), json_(parse_json_object(text, where_, budget)) {}

  const std::string& where() const { return where_; }
  // Null if the key is absent or null.
  const nlohmann::json* find(const std::string& key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  // Throws DataError naming the key if its value is of another kind than T: bool, int64_t, double or a string.
  template <class T>
  T get(const std::string& key, T otherwise) const {
    const nlohmann::json* const value = find(key);
    if (!value) return otherwise;
    if constexpr (std::is_same_v<T, bool>) {
      if (value->is_boolean()) return value->get<bool>();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (value->is_number_integer() && !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX)) return value->get<int64_t>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (value->is_number()) return value->get<double>();
    } else if (value->is_string()) {
      return value->get<std::string>();
    }
    throw DataError(fmt::format("{}: {} is {}, but must be {}", where_, key, printable(value->dump()), value_kind<T>()));
  }
  // Refuses the model, because Starling's have no such setting.
  [[noreturn]] void refuse(const std::string& key) const {
    const nlohmann::json* const value = find(key);
    if (!value) throw DataError(fmt::format("{}: it lacks {}, so the model cannot be imported", where_, key));
    throw ConfigError(fmt::format("{}: the model has {}: {}, which Starling's models do not have; it cannot be imported", where_, key,
                                  printable(value->dump())));
  }

 private:
  std::string where_;
  nlohmann::json json_;
};

}  // namespace starling
