// Which tokenizer suits a reference. 13a, and everything else that counts what stands between spaces, gives BLEU 0 to nearly every
// translation into a language that is written without them. The choice looks at nothing but the references, so all ranks of a run, and a
// run and its continuation, choose alike; only for Japanese it matters whether MeCab is installed.
#pragma once

#include <string>
#include <string_view>

#include "metrics/metrics.h"

namespace starling {

struct TokenizerChoice {
  BleuTokenizer tokenizer;
  std::string reason;   // of `auto`: what the references are; "" if a name was given
  std::string warning;  // the named tokenizer does not suit the references, and which one does; "" otherwise

  /// A line for people: the warning, or what auto has chosen and why; "" if a name was given that suits.
  std::string notice() const;
};

/// The tokenizer called `name` (bleu_tokenizer_from), or the one for the references if that is "auto": ja-mecab for Japanese if MeCab is
/// installed, else char; zh for Chinese; char for Thai, Lao, Khmer, Burmese, Tibetan and what else has no spaces; 13a for all others, and
/// for text of those languages whose words somebody has separated. `japanese` is what an earlier part of the same run chose for Japanese,
/// the name of a tokenizer or "": it is kept. Throws as bleu_tokenizer_from does.
TokenizerChoice choose_tokenizer(std::string_view name, References references, std::string_view japanese = {});

/// Why TER says little about these references, and what to do; "" where words have spaces between them.
std::string ter_warning(References references, const TerOptions& options);

/// Whether a metric depends on the tokenizer: bleu and gleu.
bool is_tokenized(std::string_view metric);

}  // namespace starling
