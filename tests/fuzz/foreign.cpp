// Bytes of models of other programs: the first one says which reader gets the rest.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "formats/zip.h"
#include "interop/ct2.h"
#include "interop/hf.h"
#include "interop/hf_weights.h"
#include "interop/marian.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"
#include "text/vocabulary_format.h"
#include "text/word_pieces.h"

using namespace starling;

namespace {

// The files of a Hugging Face folder, one after another with this between them.
constexpr std::string_view kBetween = "\xff\xfe";

class FuzzedFolder : public ForeignFiles {
 public:
  explicit FuzzedFolder(std::string_view bytes) {
    for (const char* name : {"config.json", "vocab.json", "model.safetensors", "source.spm", "target.spm", "tokenizer_config.json",
                             "special_tokens_map.json", "generation_config.json", "tokenizer.json", "added_tokens.json"}) {
      const size_t end = std::min(bytes.find(kBetween), bytes.size());
      if (end > 0) content_[name] = bytes.substr(0, end);
      bytes.remove_prefix(std::min(end + kBetween.size(), bytes.size()));
    }
    // M2M-100 and NLLB have another name for theirs.
    if (content_.contains("source.spm") && !content_.contains("target.spm")) content_["sentencepiece.bpe.model"] = content_["source.spm"];
    for (const auto& [name, content] : content_) names_.push_back(name);
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override { return content_.at(name); }
  std::string where(const std::string& name) const override { return name; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> content_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  ByteBudget budget(size);
  try {
    switch (data[0] % 10) {
      case 0: {
        const Ct2File file = read_ct2(bytes, "fuzz");
        ct2_tensors(file, ct2_config(file, "fuzz"), "fuzz", budget);
        break;
      }
      case 1:
        read_marian_bin(bytes, "fuzz");
        break;
      case 2:
        read_npz(std::as_bytes(std::span(bytes)), "fuzz", budget);
        break;
      case 3: {
        const ZipArchive zip(std::as_bytes(std::span(bytes)), "fuzz");
        for (const ZipEntry& e : zip.entries()) zip.read(e);
        break;
      }
      case 4:
        marian_config(bytes, "fuzz");
        marian_search(bytes, "fuzz");
        break;
      case 5:
        marian_pieces(bytes, "fuzz.yml", budget);
        marian_pieces(bytes, "fuzz.vocab", budget);
        break;
      case 6:
        unpacked(bytes, "fuzz", budget);
        break;
      case 7: {
        const auto files = real_file_system();
        const FuzzedFolder folder(bytes);
        if (is_hf(folder)) read_hf(*files, folder, {}, {"en", "de"});
        break;
      }
      case 8: {  // codes of subword-nmt, then a line of text
        const size_t end = std::min(bytes.find(kBetween), bytes.size());
        const std::string line = bytes.substr(std::min(end + kBetween.size(), bytes.size()));
        for (const char* language : {"en", "de", "fr", "cs", "fi", "zh"})
          for (const bool perl : {false, true}) {
            const moses::WordPieces words({{.language = language, .perl = perl, .plain_asian_marks = perl}, bytes.substr(0, end)}, "fuzz");
            std::vector<std::string> pieces;
            for (moses::Piece& piece : words.pieces(line)) pieces.push_back(std::move(piece.text));
            words.join(pieces);
          }
        break;
      }
      default: {
        const HfSettings settings(bytes, "fuzz", budget);
        hf_config(settings);
        std::vector<std::string> notes;
        hf_search(settings, &settings, 1, notes);
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
