// BLEU's tokenizers by name: those of sacreBLEU (13a, intl, char, zh, ja-mecab, none) and SentencePiece models that somebody names.
// A score is only comparable under the same tokenizer, so each carries the name that stands in signatures.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace starling {

/// How a sentence is cut into the tokens whose n-grams BLEU and GLEU count. A small value to copy; not for several threads at once.
class BleuTokenizer {
 public:
  using Function = std::function<std::string(std::string_view)>;

  /// 13a.
  BleuTokenizer();
  /// `split` gets a sentence without white space at its end and returns its tokens with white space between them.
  BleuTokenizer(std::string name, Function split);

  /// As in signatures: "13a", "ja-mecab-0.996-IPA".
  const std::string& name() const { return name_; }
  /// The tokens of a sentence (valid UTF-8), separated by white space.
  std::string operator()(std::string_view sentence) const;

 private:
  std::string name_;
  Function split_;
};

/// The tokenizer called 13a, intl, char, zh, ja-mecab, none or spm:FILE. ConfigError for another name and when MeCab is not installed;
/// IoError or DataError when FILE is no SentencePiece model.
BleuTokenizer bleu_tokenizer_from(std::string_view name);

/// ConfigError unless `name` is "auto" or has the form of a name above; `option` is what it was given to. Opens nothing.
void check_tokenizer_name(std::string_view name, std::string_view option);

}  // namespace starling
