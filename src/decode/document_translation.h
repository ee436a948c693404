// Translates documents as whole texts, whatever their format: everything but their sentences stays unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "decode/document_parts.h"
#include "decode/translator.h"

namespace starling {

class DocumentTranslation {
 public:
  /// Writes a piece of the translated document, with the number of its sentences.
  using Write = std::function<void(const std::string& piece, int64_t sentences)>;

  /// The translator and its vocabularies must outlive it. Parts of sentences have at most `most_tokens` source tokens.
  DocumentTranslation(Translator& translator, const Vocabularies& vocabularies, std::string language, int64_t most_tokens)
      : translator_(translator), vocabularies_(vocabularies), language_(std::move(language)), most_tokens_(most_tokens) {}

  /// Translates a text of a format of file_format(). Sentences never span lines, so plain text is translated in pieces; HTML, XML and
  /// subtitles are translated as a whole.
  void translate(const std::string& whole, const std::string& format, const Write& write);
  /// Returns the translated fraction of the present text, 0 to 1, given that of what the translator works on.
  double share(double of_piece) const { return begun_ + of_piece * (ends_ - begun_); }
  /// Returns the number of sentences so far that were translated in parts.
  int64_t cut() const { return cut_; }
  int64_t most_tokens() const { return most_tokens_; }

 private:
  std::string translate_piece(std::string text, DocumentFormat format, int64_t& sentences);

  Translator& translator_;
  const Vocabularies& vocabularies_;
  const std::string language_;
  const int64_t most_tokens_;
  int64_t cut_ = 0;
  double begun_ = 0, ends_ = 0;  // where the current piece begins and ends, as fractions of the text
};

}  // namespace starling
