// A text that is put together while the translations of its parts come, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/document_parts.h"

namespace starling {

class TranslationStream {
 public:
  // The text's document. Where two models lead through a pivot, `parts` are those of the second one, and `first` the translations of the
  // first; otherwise both are null. All must outlive this object, as must the vocabularies of the model that gives the translations.
  TranslationStream(const DocumentParts& document, const SentenceParts* parts, std::span<const AlignedText> first, const Vocabulary& source,
                    const Vocabulary& target)
      : document_(document.document()),
        parts_(parts ? *parts : document.sentences()),
        first_(first),
        source_(source),
        target_(target),
        translations_(parts_.parts().size()),
        there_(parts_.parts().size()) {}

  // Takes the translation of a part and returns what can be added to the text: all up to the first sentence that is not complete.
  std::string add(size_t part, PartTranslation translation);
  // Takes the next token of a part and returns how its sentence, the next one of the text, begins; "" for one that is not next, or whose
  // markup is placed after its translation.
  std::string add_token(size_t part, int32_t token);
  // Returns what the whole text has after all that add() returned.
  std::string rest(const std::string& whole);

 private:
  const Document& document_;
  const SentenceParts& parts_;
  const std::span<const AlignedText> first_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  std::vector<PartTranslation> translations_;
  std::vector<bool> there_;                   // which of them
  std::vector<std::vector<int32_t>> tokens_;  // of parts in progress
  size_t next_ = 0;                           // sentence
  size_t sent_ = 0;                           // bytes
};

}  // namespace starling
