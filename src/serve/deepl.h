// The text-translation part of DeepL's API v2: /v2/translate, /v2/languages, /v2/usage. Functions of data only.
#pragma once

#include <span>

#include "serve/api.h"

namespace starling {

// Parses POST /v2/translate. Throws ApiError 400 for missing or wrong values. Language codes become those of the models: "DE" finds de, and
// "EN-US" and "EN-GB" find en if no model has the longer code.
TextQuery parse_deepl(const HttpRequest& request, std::span<const Direction> models);
// Returns its answer, with language codes in capitals as in DeepL.
HttpResponse deepl_answer(const TextQuery& query, std::span<const TranslatedText> texts);

// Answers GET /v2/languages?type=source|target.
HttpResponse deepl_languages(const RequestValues& values, std::span<const Direction> models);
// Answers GET /v2/usage with the characters translated and a practically unlimited quota.
HttpResponse deepl_usage(int64_t characters);

// Answers GET /v2/glossary-language-pairs: all directions with a model of their own.
HttpResponse deepl_glossary_pairs(std::span<const Direction> models);

// Returns a parameter that must be there. Throws ApiError 400 naming it.
std::string specified(const RequestValues& values, const char* parameter);

// Returns the models' code for a language, or `asked` itself if several codes match, since one of them may have a model for both languages.
// Throws ApiError 400 naming the parameter for a language that no model has.
std::string known_language(const std::string& asked, std::span<const Direction> models, const char* parameter);

// Refuses, with ApiError 400, parameters of a request for a document that no model here can fulfil, and unknown ones.
void refuse_document_options(const RequestValues& values);

// Returns {"message": why}.
HttpResponse deepl_error(int status, const std::string& why);

}  // namespace starling
