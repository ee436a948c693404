// Japanese words for BLEU by MeCab and the IPA dictionary, as sacreBLEU's tokenizer ja-mecab. The library is loaded when the tokenizer is
// asked for, so that Starling builds and runs without it.
#pragma once

#include "metrics/tokenizers.h"

namespace starling {

/// The tokenizer ja-mecab; its name has MeCab's version: "ja-mecab-0.996-IPA". ConfigError naming the Debian packages when MeCab or its
/// IPA dictionary is missing. `library` is what the dynamic linker is asked for.
BleuTokenizer mecab_tokenizer(const char* library = "libmecab.so.2");

/// Whether mecab_tokenizer() would succeed.
bool mecab_is_installed();

}  // namespace starling
