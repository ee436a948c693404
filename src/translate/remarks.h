// What people are told when a translation is complete.
#pragma once

#include <string>

#include "decode/document_translation.h"
#include "translate/models.h"

namespace starling {

// Returns what was wrong with lines or could not be done, and what the options asked for that has a count: sentences that end with line
// breaks.
std::string remarks(const TranslateOptions& options, const Translator& translator, const DocumentTranslation& documents);

// Returns a line about `sentences` that took so many seconds, and what computed.
std::string speed_line(const TranslateOptions& options, const TranslationModels& models, const Translator& translator, int64_t sentences,
                       double seconds);

}  // namespace starling
