// Splits Japanese into words for BLEU with MeCab and the IPA dictionary, like sacreBLEU's tokenizer ja-mecab. The library is loaded when
// the tokenizer is first needed, so that Starling builds and runs without it.
#pragma once

#include "metrics/tokenizers.h"

namespace starling {

/// Returns the tokenizer ja-mecab, whose name has MeCab's version: "ja-mecab-0.996-IPA". Throws ConfigError naming the Debian packages if
/// MeCab or its IPA dictionary is missing. `library` is the name passed to the dynamic linker.
BleuTokenizer mecab_tokenizer(const char* library = "libmecab.so.2");

/// Returns whether mecab_tokenizer() would succeed.
bool mecab_is_installed();

}  // namespace starling
