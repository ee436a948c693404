// Two passes: the first only validates, so that bad text is rejected before a document is built in memory; the second is the library's
// parser. That parser with a callback would need one pass, but it searches the whole enclosing object whenever an inner one ends, which
// takes minutes for a large header.
#include "base/json.h"

#include <set>
#include <vector>

#include "base/error.h"

namespace starling {

using Json = nlohmann::json;

namespace {

// Levels and keys of the objects that are open.
class Looker : public nlohmann::json_sax<Json> {
 public:
  explicit Looker(const std::string& where) : where_(where) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) throw DataError(fmt::format("{}: the JSON key '{}' occurs twice", where_, name));
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    throw DataError(fmt::format("{}: is not JSON: {}", where_, error.what()));
  }

 private:
  static constexpr size_t kMostLevels = 8;
  bool enter() {
    if (keys_.size() >= kMostLevels) throw DataError(fmt::format("{}: JSON nested deeper than {} levels", where_, kMostLevels));
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of each open level, none in arrays
};

}  // namespace

Json parse_json_object(std::string_view text, const std::string& where) {
  try {
    Looker looker(where);
    Json::sax_parse(text, &looker);
    Json json = Json::parse(text);
    if (!json.is_object()) throw DataError(fmt::format("{}: is JSON, but not an object", where));
    return json;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: is not JSON: {}", where, error.what()));
  }
}

}  // namespace starling
