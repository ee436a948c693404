#include "decode/document_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "formats/file_format.h"

namespace starling {
namespace {

// Opens a file of units; messages that begin with a line get the path in front of it.
std::unique_ptr<UnitFile> open_named(const std::string& format, std::string bytes, const Languages& languages, const std::string& path) {
  try {
    return open_unit_file(format, std::move(bytes), languages);
  } catch (const DataError& e) {
    const std::string_view why = e.what(), line = "line ";
    const bool has_line = why.starts_with(line);
    throw DataError(fmt::format("{}:{}{}", path, has_line ? "" : " ", has_line ? why.substr(line.size()) : why));
  }
}

}  // namespace

void DocumentTranslation::translate(std::string whole, const std::string& format, const std::string& path, const Write& write) {
  begun_ = ends_ = 0;
  const auto file = open_named(format, std::move(whole), languages_, path);
  const auto all = static_cast<double>(file->text_bytes());
  int64_t sentences = 0;
  const auto translate = [&](std::span<const TextUnit> units) {
    double bytes = 0;
    for (const TextUnit& unit : units) bytes += static_cast<double>(unit.text.size());
    return translate_texts(units, bytes / all, sentences);
  };
  file->translate(translate, [&](std::string_view piece) { write(piece, std::exchange(sentences, 0)); });
}

std::vector<std::string> DocumentTranslation::translate_texts(std::span<const TextUnit> units, double share, int64_t& sentences) {
  begun_ = ends_, ends_ += share;
  std::vector<DocumentParts> documents;
  std::vector<std::string> sources;
  for (const TextUnit& unit : units) {
    DocumentOptions options = unit.options;
    options.own_placeholders = own_placeholders_;
    documents.emplace_back(Document(unit.text, unit.format, languages_.source, options), vocabularies_.source(), most_tokens_);
    cut_ += documents.back().cut();
    sources.insert(sources.end(), documents.back().parts().begin(), documents.back().parts().end());
  }
  auto lists = translator_.translate(sources);
  sentences += std::ssize(lists);
  std::vector<std::string> translations;
  size_t done = 0;
  for (const DocumentParts& document : documents) {
    std::vector<PartTranslation> parts;
    for (size_t i = 0; i < document.parts().size(); ++i, ++done)
      parts.push_back({std::move(lists[done].front().text), std::move(lists[done].front().hypothesis)});
    translations.push_back(document.assemble(parts, vocabularies_.source(), vocabularies_.target()));
  }
  return translations;
}

}  // namespace starling
