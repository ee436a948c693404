// BLEU's tokenizers by name: those of sacreBLEU (13a, intl, char, zh, ja-mecab, none) and SentencePiece models that the user names.
// Scores are only comparable under the same tokenizer, so each carries the name that appears in signatures.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace starling {

/// Splits a sentence into the tokens whose n-grams BLEU and GLEU count. Cheap to copy; one object must not be used by several threads at
/// once.
class BleuTokenizer {
 public:
  using Function = std::function<std::string(std::string_view)>;

  /// Makes tokenizer 13a.
  BleuTokenizer();
  /// `split` gets a sentence without white space at its end and returns its tokens with white space between them.
  BleuTokenizer(std::string name, Function split);

  /// The name as in signatures: "13a", "ja-mecab-0.996-IPA".
  const std::string& name() const { return name_; }
  /// Returns the tokens of a sentence (valid UTF-8), separated by white space.
  std::string operator()(std::string_view sentence) const;

 private:
  std::string name_;
  Function split_;
};

/// Returns the tokenizer called 13a, intl, char, zh, ja-mecab, none or spm:FILE. Throws ConfigError for another name and if MeCab is needed
/// but not installed, IoError or DataError if FILE is not a SentencePiece model.
BleuTokenizer bleu_tokenizer_from(std::string_view name);

/// Throws ConfigError unless `name` is "auto" or has the form of a name above; `option` is the option it was given to. Opens no files.
void check_tokenizer_name(std::string_view name, std::string_view option);

}  // namespace starling
