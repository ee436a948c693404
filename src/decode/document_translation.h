// Translates documents as whole texts, whatever their format: everything but their sentences stays unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/document_parts.h"
#include "decode/translator.h"
#include "formats/unit_file.h"

namespace starling {

class DocumentTranslation {
 public:
  /// Writes a piece of the translated document, with the number of the sentences that were translated for it.
  using Write = std::function<void(std::string_view piece, int64_t sentences)>;

  /// The translator and its vocabularies must outlive it. Parts of sentences have at most `most_tokens` source tokens.
  DocumentTranslation(Translator& translator, const Vocabularies& vocabularies, Languages languages, int64_t most_tokens)
      : translator_(translator), vocabularies_(vocabularies), languages_(std::move(languages)), most_tokens_(most_tokens) {}

  /// Also leaves these placeholders as they are.
  void set_own_placeholders(std::shared_ptr<const OwnPlaceholders> own) { own_placeholders_ = std::move(own); }
  /// Translates a text of a format of file_format(), which is written in pieces. Throws DataError, with `path` and the line, for a broken
  /// file, before anything is written.
  void translate(std::string whole, const std::string& format, const std::string& path, const Write& write);
  /// Returns the translated fraction of the present text, 0 to 1, given that of what the translator works on.
  double share(double of_piece) const { return begun_ + of_piece * (ends_ - begun_); }
  /// Returns the number of sentences so far that were translated in parts.
  int64_t cut() const { return cut_; }
  int64_t most_tokens() const { return most_tokens_; }

 private:
  // Translates texts that are a share of the whole, adding to the number of sentences.
  std::vector<std::string> translate_texts(std::span<const TextUnit> units, double share, int64_t& sentences);

  Translator& translator_;
  const Vocabularies& vocabularies_;
  const Languages languages_;
  const int64_t most_tokens_;
  std::shared_ptr<const OwnPlaceholders> own_placeholders_;
  int64_t cut_ = 0;
  double begun_ = 0, ends_ = 0;  // where the current piece begins and ends, as fractions of the text
};

}  // namespace starling
