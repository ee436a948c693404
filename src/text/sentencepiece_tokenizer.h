// BLEU on the pieces of a SentencePiece model (spBLEU; Goyal et al., 2022), which finds "words" in every language. The models that
// sacreBLEU calls flores101 and flores200 are not part of Starling: the user names the file.
#pragma once

#include "text/tokenizers.h"

namespace starling {

/// The tokenizer of a model file. Its name is "flores101" or "flores200" for a file that has the name under which sacreBLEU stores that
/// model, and its number of pieces; else "spm-" and the first eight digits of the file's SHA-256. IoError or DataError for an unfit file.
BleuTokenizer sentencepiece_tokenizer(const std::string& path);

}  // namespace starling
