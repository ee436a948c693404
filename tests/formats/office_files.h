// Office documents made in memory, and a translation without a model: capitals, each word linked to its own.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/office.h"
#include "tests/interop/archives.h"

namespace starling {

inline const std::string kWordSpace = R"( xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main")";

using Entries = std::vector<std::pair<std::string, std::string>>;

inline std::string content_types(const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string types = R"(<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">)";
  for (const auto& [name, type] : parts)
    types += "<Override PartName=\"/" + name + "\" ContentType=\"application/vnd.openxmlformats-officedocument." + type + "\"/>";
  return types + "</Types>";
}

inline std::string word_document(const std::string& body) {
  return "<?xml version=\"1.0\"?>\n<w:document" + kWordSpace + "><w:body>" + body + "</w:body></w:document>";
}

inline std::string docx_of(const std::string& body, const Entries& more = {}, std::vector<std::pair<std::string, std::string>> types = {}) {
  types.emplace_back("word/document.xml", "wordprocessingml.document.main+xml");
  Entries all{{"[Content_Types].xml", content_types(types)}, {"word/", ""}, {"word/document.xml", word_document(body)}};
  all.insert(all.end(), more.begin(), more.end());
  return zip_of(all, true);
}

inline std::string open_document(const std::string& kind, const std::string& body, const Entries& more = {}) {
  Entries all{{"mimetype", "application/vnd.oasis.opendocument." + kind},
              {"content.xml", R"(<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0")"
                              R"( xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0")"
                              R"( xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body>)" +
                                  body + "</office:body></office:document-content>"}};
  all.insert(all.end(), more.begin(), more.end());
  return zip_of(all);
}

inline std::string entry_of(const std::string& archive, const std::string& name) {
  const ZipArchive zip(std::as_bytes(std::span(archive)), "it");
  for (const ZipEntry& e : zip.entries())
    if (e.name == name) return zip.read(e);
  return "none";
}

inline AlignedText in_capitals(const std::string& sentence) {
  AlignedText t{sentence, {}};
  for (char& c : t.text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  for (size_t begin = 0; begin < sentence.size();) {
    const bool mark = std::string_view(".,;:!?").find(sentence[begin]) != std::string_view::npos;
    const size_t end = mark ? begin + 1 : std::min(sentence.find_first_of(" .,;:!?", begin), sentence.size());
    const Range word{static_cast<int64_t>(begin), static_cast<int64_t>(end)};
    if (end > begin) t.links.push_back({word, word});
    begin = std::max(end, begin + (end == begin));
  }
  return t;
}

template <class File>
requires std::is_base_of_v<UnitFile, std::remove_reference_t<File>> std::string translated(
    File&& file, AlignedText translate(const std::string&) = in_capitals) {
  std::vector<std::string> translations;
  for (const TextUnit& unit : file.units()) {
    const Document document(unit.text, unit.format, "en", unit.options);
    std::vector<AlignedText> sentences;
    for (const std::string& s : document.sentences()) sentences.push_back(translate(s));
    translations.push_back(document.assemble(sentences));
  }
  return file.assemble(translations);
}

inline std::string translated(const std::string& format, const std::string& bytes) {
  OfficeFile file(format, bytes, {"en", "de", {}});
  return translated(file);
}

// The body of a document of Word, translated.
inline std::string translated_body(const std::string& body) {
  const std::string xml = entry_of(translated("docx", docx_of(body)), "word/document.xml");
  const size_t begin = xml.find("<w:body>") + 8;
  return xml.substr(begin, xml.find("</w:body>") - begin);
}

}  // namespace starling
