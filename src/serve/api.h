// What the HTTP interfaces share: the values of a request, whichever way they were sent, and what a translation of texts is asked for and
// gives. Functions of data only: no socket, no model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/range.h"
#include "document/document.h"
#include "http/http.h"
#include "serve/detect_language.h"
#include "serve/model_source.h"

namespace starling {

// A request that is refused: the HTTP status and the reason, which ends with what to do.
struct ApiError : Error {
  ApiError(int code, const std::string& message) : Error(message), status(code) {}
  int status;
  int retry_seconds = 0;  // 0: no advice
};

// The parameters of a request, from a JSON body or from form fields and the query string. ApiError 400 for a body that is no JSON object
// and for values that are no valid UTF-8 or of another type than asked for.
class RequestValues {
 public:
  explicit RequestValues(const HttpRequest& request);

  bool has(const std::string& name) const;
  // The first value; nothing where it is missing, null or empty.
  std::optional<std::string> text(const std::string& name) const;
  // All values, of a list or of a repeated field; `list` becomes whether it was a list (JSON).
  std::vector<std::string> texts(const std::string& name, bool& list) const;
  std::optional<int64_t> integer(const std::string& name) const;
  bool flag(const std::string& name) const;  // missing: false
  // A text, or a number or truth value of JSON as it is written.
  std::optional<std::string> word(const std::string& name) const;
  // Of all that were sent, in the order of their alphabet.
  std::set<std::string> names() const;

 private:
  nlohmann::json json_;  // null: form fields
  const NamedValues& fields_;
};

// What is asked for.
struct TextQuery {
  std::vector<std::string> texts;
  bool list = false;   // the answer is a list
  std::string source;  // "auto": to be detected for each text
  std::string target;
  DocumentFormat format = DocumentFormat::text;
  DocumentOptions document;
  int64_t alternatives = 0;
  bool alternatives_asked = false;
  bool alignment = false;
  bool billed = false;  // DeepL's answer has the characters of each text
  std::string key;
};

// Source and target words that belong together, in UTF-16 code units of the texts.
struct AlignedSpans {
  Range source, target;
};

// What a text became.
struct TranslatedText {
  std::string text;
  std::vector<std::string> alternatives;
  std::vector<AlignedSpans> alignment;
  std::optional<Detected> detected;  // where the source was to be detected
};

// Of UTF-8: code points.
int64_t characters_of(std::string_view text);

// Each language once, in the order of the models, sources first.
std::vector<std::string> languages_of(std::span<const Direction> models);

HttpResponse json_response(int status, const nlohmann::ordered_json& json);

}  // namespace starling
