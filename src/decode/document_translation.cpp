#include "decode/document_translation.h"

#include <optional>
#include <utility>

#include "document/subtitles.h"

namespace starling {

void DocumentTranslation::translate(const std::string& whole, const std::string& format, const Write& write) {
  constexpr size_t kPiece = size_t{1} << 18;  // bytes
  const bool tagged = format == "html" || format == "xml";
  const DocumentFormat kind = format == "html" ? DocumentFormat::html : tagged ? DocumentFormat::xml : DocumentFormat::text;
  std::optional<Subtitles> subtitles;
  if (format == "subtitles") subtitles.emplace(whole);
  const std::string text = subtitles ? subtitles->texts() : whole;
  std::string translated;
  int64_t sentences = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t line = tagged || text.size() - begin <= kPiece ? std::string::npos : text.find('\n', begin + kPiece);
    const size_t end = line == std::string::npos ? text.size() : line + 1;
    begun_ = static_cast<double>(begin) / static_cast<double>(text.size());
    ends_ = static_cast<double>(end) / static_cast<double>(text.size());
    const std::string piece = translate_piece(text.substr(begin, end - begin), kind, sentences);
    if (subtitles)
      translated += piece;
    else
      write(piece, std::exchange(sentences, 0));
    begin = end;
  }
  if (subtitles) write(subtitles->assemble(translated), sentences);
}

std::string DocumentTranslation::translate_piece(std::string text, DocumentFormat format, int64_t& sentences) {
  const DocumentParts document(Document(std::move(text), format, language_), vocabularies_.source(), most_tokens_);
  cut_ += document.cut();
  std::vector<PartTranslation> parts;
  for (auto& list : translator_.translate(document.parts()))
    parts.push_back({std::move(list.front().text), std::move(list.front().hypothesis)});
  sentences += std::ssize(parts);
  return document.assemble(parts, vocabularies_.source(), vocabularies_.target());
}

}  // namespace starling
