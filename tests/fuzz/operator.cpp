// libFuzzer's target for what an operator hands to the server: files of API keys, models with their directions, codes of languages.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "http/api_keys.h"
#include "serve/model_source.h"
#include "text/detect_language.h"
#include "text/language_match.h"
#include "text/languages.h"

namespace {

using namespace starling;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_code(const std::string& code) {
  require(code.size() >= 2 && std::none_of(code.begin(), code.end(), [](unsigned char c) { return c <= ' ' || c >= 127 || c == '/'; }));
  const std::string main = main_language(code);
  require((main.size() == 2 || main.size() == 3) && same_language(main, code.substr(0, main.size())) && same_language(code, code));
  require(!language_name(code).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (is_language_code(text)) check_code(text);
  main_language(text);
  language_name(text);
  try {
    const ModelSource source = parse_model_source(text);
    require(text.ends_with(source.path));
    if (!source.direction) require(source.path == text);
    if (source.direction) check_code(source.direction->source), check_code(source.direction->target);
  } catch (const ConfigError&) {
  }
  try {
    const ApiKeys keys = ApiKeys::parse(text, "keys");
    require(keys.size() > 0 && keys.size() <= 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
    require(keys.find(text) == nullptr);  // the hash of a text that holds it
  } catch (const DataError& e) {
    require(std::string(e.what()).starts_with("keys:"));
  }
  return 0;
}
