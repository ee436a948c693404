// Chooses a tokenizer that suits the references. 13a, and every other tokenizer that relies on spaces between words, gives nearly every
// translation into a language without spaces a BLEU of 0. The choice depends only on the references, so all ranks of a run, and a run and
// its continuation, choose the same; for Japanese it also depends on whether MeCab is installed.
#pragma once

#include <string>
#include <string_view>

#include "metrics/metrics.h"

namespace starling {

struct TokenizerChoice {
  BleuTokenizer tokenizer;
  std::string reason;   // for `auto`: what the references are; "" if a name was given
  std::string warning;  // that the named tokenizer does not suit the references, and which one does; "" otherwise

  /// Returns a line for people: the warning, or what auto chose and why; "" if a suitable name was given.
  std::string notice() const;
};

/// Returns the tokenizer called `name` (bleu_tokenizer_from) or, for "auto", the one that suits the references: ja-mecab for Japanese if
/// MeCab is installed, else char; zh for Chinese; char for Thai, Lao, Khmer, Burmese, Tibetan and other text without spaces; 13a for
/// everything else, including text of those languages that was already split into words. `japanese` is the name of the tokenizer that an
/// earlier part of the same run chose for Japanese, which is kept, or "". Throws as bleu_tokenizer_from does.
TokenizerChoice choose_tokenizer(std::string_view name, References references, std::string_view japanese = {});

/// Returns why TER says little about these references and what to do; "" if there are spaces between words.
std::string ter_warning(References references, const TerOptions& options);

/// Returns whether a metric depends on the tokenizer: bleu and gleu do.
bool is_tokenized(std::string_view metric);

}  // namespace starling
