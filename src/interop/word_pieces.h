// Vocabularies of models whose text is split by Moses's tokenizer and subword-nmt, or by whoever uses them: lists of tokens.
#pragma once

#include <string>
#include <vector>

#include "interop/foreign_files.h"
#include "interop/vocabulary_files.h"
#include "moses/moses.h"
#include "text/languages.h"

namespace starling {

// Whether a file has codes of subword-nmt, not a SentencePiece model.
bool is_codes(const ForeignFile& file);
// Whether a name is usual for codes: source.bpe, bpe.model, bpe.codes.
bool has_name_of_codes(const std::string& name);

// How Argos Translate makes tokens of text in a language, and how OPUS-MT's preprocess.sh does, if the folder has one; of others text is
// taken as tokens with spaces between them, which only codes split further. A list nonbreaking_prefix.LANGUAGE in the folder takes the
// place of the abbreviations that are built in.
moses::Options argos_text(const ForeignFiles& folder, const std::string& language);
moses::Options marian_text(const ForeignFiles& folder, const std::string& language);
// The languages of an archive of OPUS-MT by its README, which names where it was fetched: ".../OPUS-MT-models/fr-de/opus-2019-12-04.zip".
Languages opus_languages(const ForeignFiles& folder);
// Tells the user which text such a model takes.
std::string text_note(const moses::Options& source, bool codes);

// A vocabulary of these tokens; codes: null if text has them with spaces between them. It charges the budget.
Vocabulary token_vocabulary(const std::vector<std::string>& tokens, const std::string& where, const ForeignFile* codes,
                            const moses::Options& text, ByteBudget& budget);

}  // namespace starling
