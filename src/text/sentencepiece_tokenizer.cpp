#include "text/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <memory>

#include "base/files.h"
#include "base/sha256.h"
#include "text/vocabulary.h"

namespace starling {

namespace {

constexpr int64_t kFloresPieces = 256000;

std::string signature_of(const std::string& path, const Vocabulary& model) {
  if (model.size() == kFloresPieces && file_name(path) == "sacrebleu_tokenizer_spm.model") return "flores101";
  if (model.size() == kFloresPieces && file_name(path) == "flores200sacrebleuspm") return "flores200";
  return "spm-" + sha256_hex(model.bytes()).substr(0, 8);
}

}  // namespace

BleuTokenizer sentencepiece_tokenizer(const std::string& path) {
  const auto model = std::make_shared<const Vocabulary>(Vocabulary::load(path));
  return {signature_of(path, *model),
          [model](std::string_view sentence) { return fmt::format("{}", fmt::join(model->pieces(sentence), " ")); }};
}

}  // namespace starling
