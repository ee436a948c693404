#include "decode/document_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "formats/file_format.h"

namespace starling {
namespace {

constexpr size_t kPiece = size_t{1} << 18;  // bytes that are translated at once

// Opens a file of units; messages that begin with a line get the path in front of it.
std::unique_ptr<UnitFile> open_named(const std::string& format, const std::string& bytes, const Languages& languages,
                                     const std::string& path) {
  try {
    return open_unit_file(format, bytes, languages);
  } catch (const DataError& e) {
    const std::string_view why = e.what(), line = "line ";
    const bool has_line = why.starts_with(line);
    throw DataError(fmt::format("{}:{}{}", path, has_line ? "" : " ", has_line ? why.substr(line.size()) : why));
  }
}

}  // namespace

void DocumentTranslation::translate(const std::string& whole, const std::string& format, const std::string& path, const Write& write) {
  begun_ = ends_ = 0;
  if (const auto file = open_named(format, whole, languages_, path)) return translate_units(*file, write);
  const bool plain = format == "text";
  TextUnit unit{.format = text_format(format)};
  for (size_t begin = 0; begin < whole.size();) {
    const size_t line = !plain || whole.size() - begin <= kPiece ? std::string::npos : whole.find('\n', begin + kPiece);
    const size_t end = line == std::string::npos ? whole.size() : line + 1;
    unit.text = whole.substr(begin, end - begin);
    int64_t sentences = 0;
    const double share = static_cast<double>(end - begin) / static_cast<double>(whole.size());
    const std::string translation = translate_texts({&unit, 1}, share, sentences).front();
    write(translation, sentences);
    begin = end;
  }
}

void DocumentTranslation::translate_units(const UnitFile& file, const Write& write) {
  const std::span<const TextUnit> units = file.units();
  size_t bytes = 0;
  for (const TextUnit& unit : units) bytes += unit.text.size();
  std::vector<std::string> translations;
  int64_t sentences = 0;
  for (size_t first = 0; first < units.size();) {
    size_t end = first, piece = 0;
    for (; end < units.size() && piece < kPiece; ++end) piece += units[end].text.size();
    std::ranges::move(
        translate_texts(units.subspan(first, end - first), static_cast<double>(piece) / static_cast<double>(bytes), sentences),
        std::back_inserter(translations));
    first = end;
  }
  write(file.assemble(translations), sentences);
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
