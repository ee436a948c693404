// LibreTranslate's interface, field by field: what its clients send and what they expect. Functions of data only.
#pragma once

#include <span>

#include "serve/api.h"

namespace starling {

struct LibreTranslateLimits {
  int64_t alternatives = 10;
  int64_t characters = -1;  // limit for the texts of a request; -1: limited only by the body size
  bool keys = false;        // whether a key is required
};

// Parses POST or GET /translate. Throws ApiError 400 for missing or wrong values.
TextQuery parse_translate(const HttpRequest& request, const LibreTranslateLimits& limits);
// Returns its answer; `texts` has one entry for each text of the query.
HttpResponse translate_answer(const TextQuery& query, std::span<const TranslatedText> texts);

// Parse POST or GET /detect, and answer it.
std::string parse_detect(const RequestValues& values);
HttpResponse detect_answer(std::span<const Detected> found);

// Answer GET /languages and GET /frontend/settings; `files` are the endings of the files that are translated, none if no files are.
HttpResponse languages_answer(std::span<const Direction> models);
HttpResponse settings_answer(std::span<const Direction> models, const LibreTranslateLimits& limits, const std::vector<std::string>& files);

// Returns {"error": why}.
HttpResponse error_answer(int status, const std::string& why);

}  // namespace starling
