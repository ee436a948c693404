// LibreTranslate's interface, field by field: what its clients send, and what they read. Functions of data only.
#pragma once

#include <span>

#include "serve/api.h"

namespace starling {

struct LibreTranslateLimits {
  int64_t alternatives = 10;
  int64_t characters = -1;  // of the texts of a request; -1: as many as the body may have
  bool keys = false;        // a key is required
};

// POST or GET /translate. ApiError 400 for what is missing or wrong.
TextQuery parse_translate(const HttpRequest& request, const LibreTranslateLimits& limits);
// Its answer; one text for each of the query's.
HttpResponse translate_answer(const TextQuery& query, std::span<const TranslatedText> texts);

// POST or GET /detect: the text. Its answer.
std::string parse_detect(const RequestValues& values);
HttpResponse detect_answer(std::span<const Detected> found);

// GET /languages and GET /frontend/settings.
HttpResponse languages_answer(std::span<const Direction> models);
HttpResponse settings_answer(std::span<const Direction> models, const LibreTranslateLimits& limits);

// {"error": why}
HttpResponse error_answer(int status, const std::string& why);

}  // namespace starling
