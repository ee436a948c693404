// The document is built here from the library's events, since its own parser has no limits, and with a callback searches the whole
// enclosing object whenever an inner one ends, which takes minutes for a large header.
#include "base/json.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/quotes.h"

namespace starling {

using Json = nlohmann::json;

namespace {

// Bytes that values take, with what the allocator adds: an element of a list when the list has just grown, a list, a key of an object, and
// a text that is longer than what a string holds itself.
constexpr uint64_t kElement = 48, kContainer = 64, kKey = 128, kText = 48, kShortText = 15;

uint64_t text_bytes(const std::string& text) { return text.size() > kShortText ? text.size() + 16 : 0; }

[[noreturn]] void refuse_json(const std::string& where, const Json::exception& error) {
  throw DataError(fmt::format("{}: is not JSON: {}", where, printable(error.what())));
}

// Refuses texts and runs of white space that are so long that the parser's own copies, and its message about them, would take many times
// their length.
void require_short_tokens(std::string_view text, const std::string& where) {
  constexpr size_t kMostText = size_t{4} << 20, kMostSpace = size_t{64} << 10;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
      at = std::min(at + 1, text.size());
      if (at - begin > kMostText) throw DataError(fmt::format("{}: has a text of more than {} MiB", where, kMostText >> 20));
      continue;
    }
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (at - begin > kMostSpace) throw DataError(fmt::format("{}: has more than {} KiB of white space", where, kMostSpace >> 10));
    at += at == begin;
  }
}

class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& where, ByteBudget& budget) : where_(where), budget_(budget) {}
  Json result;

  bool null() override { return add(nullptr, 0); }
  bool boolean(bool value) override { return add(value, 0); }
  bool number_integer(number_integer_t value) override { return add(value, 0); }
  bool number_unsigned(number_unsigned_t value) override { return add(value, 0); }
  bool number_float(number_float_t value, const string_t&) override { return add(value, 0); }
  bool string(string_t& value) override {
    const uint64_t bytes = kText + text_bytes(value);
    return add(std::move(value), bytes);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return enter(Json::object()); }
  bool start_array(size_t) override { return enter(Json::array()); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    charge(kKey + text_bytes(name));
    const auto [at, added] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    if (!added) throw DataError(fmt::format("{}: the JSON key {} occurs twice", where_, in_quotes(at->first)));
    member_ = &at->second;
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception& error) override { refuse_json(where_, error); }

 private:
  static constexpr size_t kMostLevels = 8;
  void charge(uint64_t bytes) { budget_.take(bytes, where_, "the JSON in it"); }
  // Returns where the value now is.
  Json* place(Json value, uint64_t bytes) {
    const bool element = !open_.empty() && open_.back()->is_array();
    charge(bytes + (element ? kElement : 0));
    if (!element) return &((open_.empty() ? result : *member_) = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  bool add(Json value, uint64_t bytes) {
    place(std::move(value), bytes);
    return true;
  }
  bool enter(Json container) {
    if (open_.size() >= kMostLevels) throw DataError(fmt::format("{}: JSON nested deeper than {} levels", where_, kMostLevels));
    open_.push_back(place(std::move(container), kContainer));
    return true;
  }
  bool leave() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  ByteBudget& budget_;
  std::vector<Json*> open_;  // lists and objects that have not ended; what they lie in does not grow meanwhile
  Json* member_ = nullptr;   // whose key was read last
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where, ByteBudget& budget) {
  try {
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);  // headers of safetensors are filled up
    require_short_tokens(text, where);
    Builder builder(where, budget);
    Json::sax_parse(text, &builder);
    return std::move(builder.result);
  } catch (const Json::exception& error) {
    refuse_json(where, error);
  }
}

Json parse_json_object(std::string_view text, const std::string& where, ByteBudget& budget) {
  Json json = parse_json(text, where, budget);
  if (!json.is_object()) throw DataError(fmt::format("{}: is JSON, but not an object", where));
  return json;
}

Json parse_json_object(std::string_view text, const std::string& where) {
  ByteBudget budget(text.size());
  return parse_json_object(text, where, budget);
}

bool for_each_json_line(const std::string& path, const std::function<void(const Json& object, int64_t line)>& take) {
  std::ifstream file(path);
  if (!file) return false;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    ++number;
    if (json.is_object()) take(json, number);
  }
  return true;
}

}  // namespace starling
