// Shared by the HTTP interfaces: the parameters of a request, however they were sent, and what a translation request asks for and returns.
// Functions of data only: no socket, no model.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/range.h"
#include "document/document.h"
#include "http/http.h"
#include "serve/model_source.h"
#include "text/detect_language.h"

namespace starling {

class Glossary;

// Refuses a request: the HTTP status and the reason, which ends with what to do.
struct ApiError : Error {
  ApiError(int code, const std::string& message) : Error(message), status(code) {}
  int status;
  int retry_seconds = 0;  // 0: no advice
};

// The parameters of a request, from a JSON body or from form fields and the query string. Throws ApiError 400 for a body that is not a JSON
// object and for values that are not valid UTF-8 or have the wrong type.
class RequestValues {
 public:
  explicit RequestValues(const HttpRequest& request);

  bool has(const std::string& name) const;
  // Returns the first value; nothing if it is missing, null or empty.
  std::optional<std::string> text(const std::string& name) const;
  // The same of one that must be there; throws ApiError 400, as LibreTranslate does, if it is missing.
  std::string required(const std::string& name) const;
  // Returns all values of a list or of a repeated field; sets `list` to whether it was a JSON list.
  std::vector<std::string> texts(const std::string& name, bool& list) const;
  std::optional<int64_t> integer(const std::string& name) const;
  bool flag(const std::string& name) const;  // false if missing
  // Returns a text, or a JSON number or boolean as it is written.
  std::optional<std::string> word(const std::string& name) const;
  // Returns a JSON object; nothing if it is missing or something else.
  std::optional<nlohmann::json> object(const std::string& name) const;
  // Returns the names of all parameters sent, in alphabetical order.
  std::set<std::string> names() const;

 private:
  nlohmann::json json_;  // null if the parameters are form fields
  const NamedValues& fields_;
};

// A translation request.
struct TextQuery {
  std::vector<std::string> texts;
  bool list = false;   // the client sent a list and gets a list
  std::string source;  // "auto": detect it for each text
  std::string target;
  DocumentFormat format = DocumentFormat::text;
  DocumentOptions document;
  int64_t alternatives = 0;
  bool alternatives_asked = false;
  bool alignment = false;
  bool stream = false;  // the answer comes as events, sentence by sentence
  bool confidence = false;
  std::shared_ptr<const Glossary> glossary;
  std::string glossary_id;  // DeepL's, until it is found
  bool billed = false;      // DeepL's answer includes the number of characters of each text
  std::string key;
};

// Corresponding source and target words, in UTF-16 code units of the texts.
struct AlignedSpans {
  Range source, target;
};

// How probably a translated text is right, 0 to 1.
struct TextConfidence {
  struct Sentence {
    std::string text;
    double value = 0;
    std::vector<std::pair<std::string, double>> words;
  };
  double value = 1;                 // the mean of all words; 1 for a text that is its own translation
  std::vector<Sentence> sentences;  // as they were translated: without markup and placeholders at their ends
};

// The translation of a text.
struct TranslatedText {
  std::string text;
  std::vector<std::string> alternatives;
  std::vector<AlignedSpans> alignment;
  TextConfidence confidence;         // if it was asked for
  std::optional<Detected> detected;  // set if the source language was to be detected
};

// Returns the number of code points of a UTF-8 text.
int64_t characters_of(std::string_view text);

// Returns each language once, in the order of the models, sources first.
std::vector<std::string> languages_of(std::span<const Direction> models);

// Returns JSON without line breaks; bytes that are not UTF-8, which models may generate, become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);
HttpResponse json_response(int status, const nlohmann::ordered_json& json);

}  // namespace starling
