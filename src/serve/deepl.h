// The part of DeepL's second interface that translates texts: /v2/translate, /v2/languages, /v2/usage. Functions of data only.
#pragma once

#include <span>

#include "serve/api.h"

namespace starling {

// POST /v2/translate. ApiError 400 for what is missing or wrong. Languages are as the models have them: "DE" finds de, "EN-US" and "EN-GB"
// en where there is no model of the longer code.
TextQuery parse_deepl(const HttpRequest& request, std::span<const Direction> models);
// Its answer. Languages in capitals, as DeepL writes them.
HttpResponse deepl_answer(const TextQuery& query, std::span<const TranslatedText> texts);

// GET /v2/languages?type=source|target.
HttpResponse deepl_languages(const RequestValues& values, std::span<const Direction> models);
// GET /v2/usage: characters translated, and no limit worth the name.
HttpResponse deepl_usage(int64_t characters);

// GET /v2/glossary-language-pairs: none, since there are no glossaries.
HttpResponse deepl_glossary_pairs();

// {"message": why}
HttpResponse deepl_error(int status, const std::string& why);

}  // namespace starling
